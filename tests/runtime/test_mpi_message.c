/* SPDX-License-Identifier: Apache-2.0 */
/* Messages between ranks: values, order, counters, the watchdog, idle ranks; under mpirun, also with more ranks than
 * cores. The benchmark has their latency (rows hop.*). */
#include "harness.h"

#if TRAMA_HAVE_MPI
#include <mpi.h>
#endif

static remembered log_of_test;
static int me, ranks;
static int64_t next_tag;

/* Rank 1 lets rank 0 wait until the watchdog of rank 0 has spoken. */
static atomic_bool tell;

static void remember_and_tell(void *data, trama_log_level level, const char *line)
{
    remember(data, level, line);
#if TRAMA_HAVE_MPI
    if (atomic_exchange(&tell, false))
        MPI_Send(NULL, 0, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
#endif
}

static void wait_until_told(void)
{
#if TRAMA_HAVE_MPI
    MPI_Recv(NULL, 0, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
#endif
}

START_TEST(it_starts)
{
    trama_config config = {.watchdog = 1, .log = remember_and_tell, .log_data = &log_of_test};
    trama_status status = context_create(&config, "cpu:test", NULL, &ctx);
    ck_assert_msg(status == TRAMA_OK, "%s", trama_error());
    me = context_rank(ctx);
    ranks = context_ranks(ctx);
    ck_assert_int_ge(ranks, 2);
}
END_TEST

START_TEST(it_stops)
{
    stop();
}
END_TEST

/* A tensor goes round the ranks, each adds one. */
static void ring(shard *s, int hops)
{
    fence *f = fence_new(ctx);
    context_barrier(ctx, "test");
    context_wake(ctx);
    for (int i = 0; i < hops; i++) {
        int from = i % ranks, to = (i + 1) % ranks;
        if (me == from) {
            submit(&increment, s->tile[0], NULL, f);
            message_send(ctx, s->tile[0], (envelope){to, next_tag + i, 0, "ring", i, false}, f);
        }
        if (me == to)
            message_receive(ctx, s->tile[0], (envelope){from, next_tag + i, 0, "ring", i, false}, f);
    }
    context_rest(ctx);
    next_tag += hops;
    ck_assert_int_eq(fence_wait(ctx, f, "ring"), TRAMA_OK);
    fence_free(f);
    context_barrier(ctx, "test");
}

static void demand_rings(int64_t n, int hops, int rounds)
{
    shard *s = shard_get(ctx, here(), TRAMA_F32, 1, &n, -1, 1);
    for (int r = 0; r < rounds; r++) {
        int64_t right = 0;
        memset(s->data, 0, s->bytes);
        ring(s, hops);
        for (int64_t i = 0; i < n; i++)
            right += ((float *)s->data)[i] == (float)hops;
        if (me == hops % ranks)
            ck_assert_int_eq(right, n);
    }
    shard_put(ctx, s);
}

START_TEST(a_float_goes_round_the_ranks)
{
    demand_rings(1, 60 * ranks, 3);
}
END_TEST

START_TEST(a_mebibyte_goes_round_the_ranks_whole)
{
    demand_rings(1 << 18, 10 * ranks, 3);
}
END_TEST

/* Element value that names rank and position. */
static float mark(int rank, int64_t i)
{
    return (float)(1000 * rank + i);
}

START_TEST(tiles_of_unlike_shape_exchange_their_elements)
{
    shard *columns = shard_get(ctx, here(), TRAMA_F32, 2, (int64_t[]){4, 6}, 1, 2); /* tiles [4][3], ld 6 */
    shard *line = shard_get(ctx, here(), TRAMA_F32, 1, (int64_t[]){12}, -1, 1);
    fence *f = fence_new(ctx);
    for (int64_t i = 0; i < 24; i++)
        ((float *)columns->data)[i] = mark(me, i);
    int to = (me + 1) % ranks, from = (me + ranks - 1) % ranks;
    context_wake(ctx);
    message_receive(ctx, line->tile[0], (envelope){from, next_tag, 0, "line", 0, false}, f);
    message_send(ctx, columns->tile[1], (envelope){to, next_tag, 0, "columns", 0, false}, f);
    context_rest(ctx);
    next_tag++;
    fence_wait(ctx, f, "exchange");
    ck_assert_int_eq(shard_acquire(ctx, line, STARPU_R, "line"), TRAMA_OK);
    for (int64_t i = 0; i < 12; i++)
        ck_assert_float_eq(((float *)line->data)[i], mark(from, 6 * (i / 3) + 3 + i % 3));
    shard_release(ctx, line);
    fence_free(f);
    shard_put(ctx, columns);
    shard_put(ctx, line);
}
END_TEST

START_TEST(hundreds_of_messages_fly_at_once_in_any_order)
{
    enum { N = 200 };
    shard *in[N], *out[N];
    fence *sends = fence_new(ctx), *receives = fence_new(ctx);
    context_counters before = context_count(ctx);
    int to = (me + 1) % ranks, from = (me + ranks - 1) % ranks;
    for (int i = 0; i < N; i++) {
        int64_t n = 1 + i % 17 * 500;
        in[i] = shard_get(ctx, here(), TRAMA_I64, 1, &n, -1, 1);
        out[i] = shard_get(ctx, here(), TRAMA_I64, 1, &n, -1, 1);
        for (int64_t k = 0; k < n; k++)
            ((int64_t *)out[i]->data)[k] = 1000000 * me + 1000 * i + k;
    }
    context_wake(ctx);
    for (int i = 0; i < N; i++) { /* early and late receives */
        int k = (i * 77 + 13) % N;
        message_send(ctx, out[i]->tile[0], (envelope){to, next_tag + i, 0, "out", i, false}, sends);
        message_receive(ctx, in[k]->tile[0], (envelope){from, next_tag + k, 0, "in", k, false}, receives);
    }
    context_rest(ctx);
    next_tag += N;
    fence_wait(ctx, receives, "receives");
    fence_wait(ctx, sends, "sends");
    int64_t bytes = 0;
    for (int i = 0; i < N; i++) {
        for (int64_t k = 0; k < in[i]->count; k++)
            ck_assert_int_eq(((int64_t *)in[i]->data)[k], 1000000 * from + 1000 * i + k);
        bytes += (int64_t)in[i]->bytes;
        shard_put(ctx, in[i]);
        shard_put(ctx, out[i]);
    }
    context_counters after = context_count(ctx);
    ck_assert_int_eq(after.messages_sent - before.messages_sent, N);
    ck_assert_int_eq(after.messages_received - before.messages_received, N);
    ck_assert_int_eq(after.bytes_sent - before.bytes_sent, bytes);
    ck_assert_int_eq(after.bytes_received - before.bytes_received, bytes);
    fence_free(sends);
    fence_free(receives);
}
END_TEST

START_TEST(messages_wait_for_tasks_and_tasks_for_messages)
{
    static const double time = 0.02;
    shard *s = shard_get(ctx, here(), TRAMA_F32, 1, (int64_t[]){4}, -1, 1);
    fence *f = fence_new(ctx);
    memset(s->data, 0, s->bytes);
    context_wake(ctx);
    if (me == 0) {
        submit(&delay, s->tile[0], (void *)(uintptr_t)&time, f);
        submit(&increment, s->tile[0], NULL, f);
        message_send(ctx, s->tile[0], (envelope){1, next_tag, 0, "s", 0, false}, f);
        submit(&increment, s->tile[0], NULL, f); /* not before the message has left */
    } else if (me == 1) {
        message_receive(ctx, s->tile[0], (envelope){0, next_tag, 0, "s", 0, false}, f);
        for (int i = 0; i < 10; i++)
            submit(&increment, s->tile[0], NULL, f);
    }
    context_rest(ctx);
    next_tag++;
    fence_wait(ctx, f, "test");
    ck_assert_float_eq(*(float *)s->data, me == 0 ? 2 : me == 1 ? 11 : 0);
    fence_free(f);
    shard_put(ctx, s);
    context_barrier(ctx, "test");
}
END_TEST

START_TEST(the_watchdog_names_the_missing_message)
{
    shard *s = shard_get(ctx, here(), TRAMA_F32, 1, (int64_t[]){5}, -1, 1);
    fence *f = fence_new(ctx);
    log_of_test.lines = 0;
    atomic_store(&tell, me == 0);
    context_wake(ctx);
    if (me == 0)
        message_receive(ctx, s->tile[0], (envelope){1, next_tag, 0, "w1.grad", 17, false}, f);
    context_rest(ctx);
    if (me == 1) {
        wait_until_told();
        context_wake(ctx);
        message_send(ctx, s->tile[0], (envelope){0, next_tag, 0, "w1.grad", 17, false}, f);
        context_rest(ctx);
    }
    next_tag++;
    fence_wait(ctx, f, "trama_run");
    if (me == 0) {
        ck_assert_int_ge(log_of_test.lines, 1);
        ck_assert_msg(strstr(log_of_test.last, "receive of w1.grad from rank 1, step 17, 20 bytes"), "%s",
                      log_of_test.last);
        ck_assert_ptr_nonnull(strstr(log_of_test.last, "rank 0: trama_run waits for 1"));
    }
    fence_free(f);
    shard_put(ctx, s);
    context_barrier(ctx, "test");
}
END_TEST

START_TEST(the_watchdog_names_a_rank_that_does_not_call)
{
    log_of_test.lines = 0;
    atomic_store(&tell, me == 0);
    if (me == 1)
        wait_until_told();
    context_barrier(ctx, "trama_compile");
    if (me == 0) {
        ck_assert_int_ge(log_of_test.lines, 1);
        ck_assert_ptr_nonnull(strstr(log_of_test.last, "trama_compile"));
    }
}
END_TEST

static int64_t resident(void)
{
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(fscanf(file, "%*d %ld", &pages), 1);
    fclose(file);
    return (int64_t)pages * sysconf(_SC_PAGESIZE);
}

/* A leak makes each window of a run grow. A busy machine makes some windows grow, as ranks run ahead of each other. */
enum { WINDOWS = 3 };
typedef struct growth {
    int n;
    int64_t at[WINDOWS + 1]; /* resident bytes at the ends of the windows */
} growth;

static void growth_note(growth *g)
{
    g->at[g->n++] = resident();
}

static int64_t growth_least(const growth *g)
{
    int64_t least = INT64_MAX;
    for (int i = 0; i + 1 < g->n; i++)
        least = g->at[i + 1] - g->at[i] < least ? g->at[i + 1] - g->at[i] : least;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    least = 0; /* they keep what was freed */
#endif
    return least;
}

START_TEST(thousands_of_steps_grow_nothing)
{
    enum { STEPS = 3000, EACH = 4, BYTES = 50 };
    shard *in = shard_get(ctx, here(), TRAMA_F32, 1, (int64_t[]){64}, -1, 1);
    shard *out = shard_get(ctx, here(), TRAMA_F32, 1, (int64_t[]){64}, -1, 1);
    fence *f = fence_new(ctx);
    growth g = {0};
    for (int step = 0; step < STEPS; step++) {
        context_wake(ctx);
        submit(&increment, out->tile[0], NULL, f);
        for (int i = 0; i < EACH; i++) {
            int64_t tag = ((int64_t)(step + 1) << MESSAGE_TAG_BITS) + i;
            message_send(ctx, out->tile[0], (envelope){(me + 1) % ranks, tag, 0, "out", step, false}, f);
            message_receive(ctx, in->tile[0], (envelope){(me + ranks - 1) % ranks, tag, 0, "in", step, false}, f);
        }
        context_rest(ctx);
        if (step % 4 == 3)
            fence_wait(ctx, f, "step");
        if (step % (STEPS / (WINDOWS + 1)) == STEPS / (WINDOWS + 1) - 1)
            growth_note(&g);
    }
    fence_wait(ctx, f, "steps");
    fence_free(f);
    shard_put(ctx, in);
    shard_put(ctx, out);
    context_barrier(ctx, "test"); /* before a rank can fail */
    ck_assert_int_lt(growth_least(&g), STEPS / (WINDOWS + 1) * EACH * BYTES);
}
END_TEST

static void exchange(shard *out, shard *in, int64_t call, int n, fence *f)
{
    message_begin_call(ctx, call);
    context_wake(ctx);
    submit(&increment, out->tile[0], NULL, f);
    for (int i = 0; i < n; i++) {
        int64_t tag = call << MESSAGE_TAG_BITS | i;
        message_send(ctx, out->tile[0], (envelope){(me + 1) % ranks, tag, 0, "out", call, false}, f);
        message_receive(ctx, in->tile[0], (envelope){(me + ranks - 1) % ranks, tag, 0, "in", call, false}, f);
    }
    context_rest(ctx);
}

/* StarPU-MPI's tables have all tags after MESSAGE_CALLS calls; a tag of its own for each of the later messages would
 * take 40 bytes or more. */
START_TEST(tags_are_used_again_when_messages_are_done)
{
    enum { FILLED = 40, WINDOW = 90, EACH = 100, BYTES = 40 };
    shard *in = shard_get(ctx, here(), TRAMA_F32, 1, (int64_t[]){64}, -1, 1);
    shard *out = shard_get(ctx, here(), TRAMA_F32, 1, (int64_t[]){64}, -1, 1);
    fence *f = fence_new(ctx);
    growth g = {0};
    for (int64_t call = 0; call <= FILLED + WINDOWS * WINDOW; call++) {
        exchange(out, in, call, EACH, f);
        fence_wait(ctx, f, "call");
        if (call >= FILLED && (call - FILLED) % WINDOW == 0)
            growth_note(&g);
    }
    fence_free(f);
    shard_put(ctx, in);
    shard_put(ctx, out);
    context_barrier(ctx, "test");
    ck_assert_int_lt(growth_least(&g), WINDOW * EACH * BYTES);
}
END_TEST

/* Nobody waits for a call, so that messages of several calls have one tag. */
START_TEST(messages_with_one_tag_arrive_in_order)
{
    enum { CALLS = 4 * MESSAGE_CALLS };
    shard *in[2 * MESSAGE_CALLS], *out = shard_get(ctx, here(), TRAMA_F32, 1, (int64_t[]){64}, -1, 1);
    fence *f = fence_new(ctx);
    memset(out->data, 0, out->bytes);
    for (int i = 0; i < 2 * MESSAGE_CALLS; i++)
        in[i] = shard_get(ctx, here(), TRAMA_F32, 1, (int64_t[]){64}, -1, 1);
    for (int64_t call = 0; call < CALLS; call++)
        exchange(out, in[call % (2 * MESSAGE_CALLS)], call, 1, f);
    fence_wait(ctx, f, "calls");
    for (int i = 0; i < 2 * MESSAGE_CALLS; i++) {
        ck_assert_float_eq(*(float *)in[i]->data, (float)(2 * MESSAGE_CALLS + i + 1));
        shard_put(ctx, in[i]);
    }
    fence_free(f);
    shard_put(ctx, out);
    context_barrier(ctx, "test");
}
END_TEST

START_TEST(idle_ranks_burn_no_cores)
{
    demand_rings(1, 2 * ranks, 1);
    ck_assert(comes_to_rest());
    context_wake(ctx);
    context_rest(ctx);
    ck_assert(comes_to_rest());
    context_barrier(ctx, "test");
}
END_TEST

START_TEST(work_and_rest_alternate_at_every_rhythm)
{
    shard *s = shard_get(ctx, here(), TRAMA_F32, 1, (int64_t[]){1}, -1, 1);
    memset(s->data, 0, s->bytes);
    fence *f = fence_new(ctx);
    int turn = 0;
    for (double gap = 0; gap < 0.02; gap = gap * 1.4 + 0.0002, turn++) {
        int from = turn % ranks, to = (turn + 1) % ranks;
        context_wake(ctx);
        if (me == from) {
            submit(&increment, s->tile[0], NULL, f);
            message_send(ctx, s->tile[0], (envelope){to, next_tag + turn, 0, "s", turn, false}, f);
        }
        if (me == to)
            message_receive(ctx, s->tile[0], (envelope){from, next_tag + turn, 0, "s", turn, false}, f);
        context_rest(ctx);
        if (turn % 2)
            fence_wait(ctx, f, "turn");
        pause_for(gap);
    }
    next_tag += turn;
    fence_wait(ctx, f, "all");
    if (me == turn % ranks)
        ck_assert_float_eq(*(float *)s->data, (float)turn);
    fence_free(f);
    shard_put(ctx, s);
    context_barrier(ctx, "test");
}
END_TEST

TESTS(it_starts, a_float_goes_round_the_ranks, a_mebibyte_goes_round_the_ranks_whole,
      tiles_of_unlike_shape_exchange_their_elements, hundreds_of_messages_fly_at_once_in_any_order,
      messages_wait_for_tasks_and_tasks_for_messages, the_watchdog_names_the_missing_message,
      the_watchdog_names_a_rank_that_does_not_call, thousands_of_steps_grow_nothing,
      tags_are_used_again_when_messages_are_done, messages_with_one_tag_arrive_in_order, idle_ranks_burn_no_cores,
      work_and_rest_alternate_at_every_rhythm, it_stops)
