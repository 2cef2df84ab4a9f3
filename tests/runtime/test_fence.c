/* SPDX-License-Identifier: Apache-2.0 */
/* Fences: counting, waiting, the watchdog, and rest while nothing is under way. */
#include "harness.h"

static remembered log_of_test;

START_TEST(it_starts)
{
    trama_config config = {.watchdog = 1, .log = remember, .log_data = &log_of_test};
    ck_assert_int_eq(context_create(&config, "cpu:test", NULL, &ctx), TRAMA_OK);
}
END_TEST

START_TEST(it_stops)
{
    stop();
}
END_TEST

static shard *one(void)
{
    shard *s = shard_get(ctx, here(), TRAMA_F32, 1, (int64_t[]){4}, -1, 1);
    memset(s->data, 0, s->bytes);
    return s;
}

START_TEST(a_wait_returns_when_all_have_completed)
{
    atomic_bool gate = false;
    shard *s = one();
    fence *f = fence_new(ctx);
    ck_assert(fence_done(f));
    ck_assert_int_eq(fence_wait(ctx, f, "nothing"), TRAMA_OK);
    context_wake(ctx);
    submit(&gated, s->tile[0], &gate, f);
    for (int i = 0; i < 50; i++)
        submit(&increment, s->tile[0], NULL, f);
    context_rest(ctx);
    ck_assert(!fence_done(f));
    atomic_store(&gate, true);
    ck_assert_int_eq(fence_wait(ctx, f, "tasks"), TRAMA_OK);
    ck_assert(fence_done(f));
    ck_assert_float_eq(*(float *)s->data, 50);
    fence_free(f);
    shard_put(ctx, s);
}
END_TEST

START_TEST(fences_are_independent)
{
    atomic_bool gate = false;
    shard *a = one(), *b = one();
    fence *slow = fence_new(ctx), *fast = fence_new(ctx);
    context_wake(ctx);
    submit(&increment, b->tile[0], NULL, fast);
    submit(&gated, a->tile[0], &gate, slow);
    context_rest(ctx);
    fence_wait(ctx, fast, "fast");
    ck_assert(!fence_done(slow));
    atomic_store(&gate, true);
    fence_wait(ctx, slow, "slow");
    fence_free(slow);
    fence_free(fast);
    shard_put(ctx, a);
    shard_put(ctx, b);
}
END_TEST

START_TEST(a_fence_may_be_freed_while_under_way)
{
    static const double time = 0.02;
    shard *s = one();
    for (int i = 0; i < 20; i++) {
        fence *f = fence_new(ctx);
        context_wake(ctx);
        submit(&increment, s->tile[0], NULL, f);
        if (i == 0)
            submit(&delay, s->tile[0], (void *)(uintptr_t)&time, f);
        context_rest(ctx);
        fence_free(f);
    }
    ck_assert_int_eq(fence_wait_all(ctx, "all"), TRAMA_OK);
    ck_assert_float_eq(*(float *)s->data, 20);
    fence_free(NULL);
    shard_put(ctx, s);
}
END_TEST

static trama_status inner_status, inner_acquire;
static fence *inner_fence;
static shard *inner_shard;
static void wait_inside(void *buffers[], void *arg)
{
    inner_status = fence_wait(ctx, inner_fence, "inner");
    inner_acquire = shard_acquire(ctx, inner_shard, STARPU_R, "inner");
}

START_TEST(waiting_inside_a_task_is_refused)
{
    static struct starpu_codelet waiting = {.cpu_funcs = {wait_inside}, .nbuffers = 1, .modes = {STARPU_RW}};
    shard *s = inner_shard = one();
    fence *f = inner_fence = fence_new(ctx);
    context_wake(ctx);
    submit(&waiting, s->tile[0], NULL, f);
    context_rest(ctx);
    fence_wait(ctx, f, "outer");
    ck_assert_int_eq(inner_status, TRAMA_E_ORDER);
    ck_assert_int_eq(inner_acquire, TRAMA_E_ORDER);
    fence_free(f);
    shard_put(ctx, s);
}
END_TEST

static void wait_for_two_lines(void *buffers[], void *arg)
{
    while (atomic_load(&log_of_test.lines) < 2)
        pause_for(0.001);
}

START_TEST(the_watchdog_speaks_of_a_wait_without_progress_and_goes_on)
{
    static struct starpu_codelet waiting = {.cpu_funcs = {wait_for_two_lines}, .nbuffers = 1, .modes = {STARPU_RW}};
    shard *s = one();
    fence *f = fence_new(ctx);
    log_of_test.lines = 0;
    context_wake(ctx);
    submit(&waiting, s->tile[0], NULL, f);
    context_rest(ctx);
    ck_assert_int_eq(fence_wait(ctx, f, "trama_read of loss"), TRAMA_OK);
    ck_assert_int_ge(log_of_test.lines, 2);
    ck_assert_int_eq(log_of_test.level, TRAMA_LOG_WARNING);
    ck_assert_ptr_nonnull(strstr(log_of_test.last, "rank 0: trama_read of loss waits for 1 tasks"));
    fence_free(f);
    shard_put(ctx, s);
}
END_TEST

/* The longest time without progress, in seconds; where the machine is busy it may be long. */
static double longest_gap;

static void note_gap(void *buffers[], void *arg)
{
    static struct timespec last;
    struct timespec now;
    pause_for(0.1);
    clock_gettime(CLOCK_MONOTONIC, &now);
    double gap = (double)(now.tv_sec - last.tv_sec) + 1e-9 * (double)(now.tv_nsec - last.tv_nsec);
    if (last.tv_sec && gap > longest_gap)
        longest_gap = gap;
    last = now;
}

/* Three times as long as the watchdog's second. It may speak where nothing ended for that second. */
START_TEST(the_watchdog_keeps_silent_while_there_is_progress)
{
    static struct starpu_codelet step = {.cpu_funcs = {note_gap}, .nbuffers = 1, .modes = {STARPU_RW}};
    shard *s = one();
    fence *f = fence_new(ctx);
    log_of_test.lines = 0;
    context_wake(ctx);
    for (int i = 0; i < 30; i++)
        submit(&step, s->tile[0], NULL, f);
    context_rest(ctx);
    fence_wait(ctx, f, "tasks");
    ck_assert_msg(log_of_test.lines == 0 || longest_gap > 0.8, "it speaks after %.1f s: %s", longest_gap,
                  log_of_test.last);
    fence_free(f);
    shard_put(ctx, s);
}
END_TEST

START_TEST(an_idle_context_burns_no_cores)
{
    shard *s = one();
    fence *f = fence_new(ctx);
    ck_assert(comes_to_rest()); /* after a start or a stop of work */
    context_wake(ctx);
    submit(&increment, s->tile[0], NULL, f);
    context_rest(ctx);
    fence_wait(ctx, f, "task");
    ck_assert(comes_to_rest());
    context_wake(ctx); /* nobody waits */
    submit(&increment, s->tile[0], NULL, f);
    context_rest(ctx);
    ck_assert(comes_to_rest());
    ck_assert(fence_done(f));
    context_wake(ctx); /* nothing is submitted */
    context_rest(ctx);
    ck_assert(comes_to_rest());
    ck_assert_int_eq(shard_acquire(ctx, s, STARPU_R, "host"), TRAMA_OK); /* a shard of the host needs no workers */
    ck_assert(comes_to_rest());
    shard_release(ctx, s);
    fence_free(f);
    shard_put(ctx, s);
}
END_TEST

START_TEST(a_wait_does_not_spin)
{
    static const double time = 0.5;
    shard *s = one();
    fence *f = fence_new(ctx);
    context_wake(ctx);
    submit(&delay, s->tile[0], (void *)(uintptr_t)&time, f);
    context_rest(ctx);
    struct timespec before, after;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &before);
    fence_wait(ctx, f, "task");
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &after);
    double spent = (double)(after.tv_sec - before.tv_sec) + 1e-9 * (double)(after.tv_nsec - before.tv_nsec);
    ck_assert_double_lt(spent, 0.05);
    fence_free(f);
    shard_put(ctx, s);
}
END_TEST

START_TEST(work_and_rest_alternate_at_every_rhythm)
{
    shard *s = one();
    fence *f = fence_new(ctx);
    int n = 0;
    for (double gap = 0; gap < 0.02; gap = gap * 1.3 + 0.0001)
        for (int i = 0; i < 5; i++, n++) {
            context_wake(ctx);
            submit(&increment, s->tile[0], NULL, f);
            context_rest(ctx);
            if (i % 2)
                fence_wait(ctx, f, "task");
            pause_for(gap);
        }
    fence_wait(ctx, f, "last");
    ck_assert_float_eq(*(float *)s->data, (float)n);
    fence_free(f);
    shard_put(ctx, s);
}
END_TEST

TESTS(it_starts, a_wait_returns_when_all_have_completed, fences_are_independent, a_fence_may_be_freed_while_under_way,
      waiting_inside_a_task_is_refused, the_watchdog_speaks_of_a_wait_without_progress_and_goes_on,
      the_watchdog_keeps_silent_while_there_is_progress, an_idle_context_burns_no_cores, a_wait_does_not_spin,
      work_and_rest_alternate_at_every_rhythm, it_stops)
