/* SPDX-License-Identifier: Apache-2.0 */
/* The tests of runtime share this: a context, plain tasks on it, a log that remembers, the main function. */
#ifndef HARNESS_H
#define HARNESS_H

#include <check.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "fence.h"
#include "idleness.h"
#include "message.h"
#include "shard.h"

static trama_context *ctx;

static inline void start(void)
{
    trama_status status = context_create(NULL, "cpu:test", NULL, &ctx);
    ck_assert_msg(status == TRAMA_OK, "%s", trama_error());
}

static inline void stop(void)
{
    trama_status status = context_destroy(&ctx);
    ck_assert_msg(status == TRAMA_OK, "%s", trama_error());
    ck_assert_ptr_null(ctx);
}

static inline int here(void)
{
    return context_first_place(ctx);
}

static inline void pause_for(double s)
{
    struct timespec t = {(time_t)s, (long)((s - (double)(time_t)s) * 1e9)};
    nanosleep(&t, NULL);
}

/* A task on one handle (RW), held to the context's first place. */
static inline void submit(struct starpu_codelet *codelet, starpu_data_handle_t handle, void *arg, fence *f)
{
    struct starpu_task *task = starpu_task_create();
    task->cl = codelet;
    task->handles[0] = handle;
    task->cl_arg = arg;
    task->workerids = (uint32_t *)(uintptr_t)context_place_mask(ctx, here());
    task->workerids_len = context_mask_words(ctx);
    fence_add(f, 1);
    task->callback_func = fence_signal;
    task->callback_arg = f;
    ck_assert_int_eq(starpu_task_submit(task), 0);
}

static inline void add_one(void *buffers[], void *arg)
{
    shard_view v = shard_buffer_view(buffers[0]);
    for (int64_t r = 0; r < v.rows; r++)
        for (int64_t i = 0; i < v.run; i++)
            ((float *)v.ptr)[r * v.ld + i] += 1;
}

/* arg: address of a double, how many seconds. */
static inline void dawdle(void *buffers[], void *arg)
{
    pause_for(*(const double *)arg);
}

/* arg: address of an atomic_bool, for which it waits. */
static inline void wait_for_gate(void *buffers[], void *arg)
{
    while (!atomic_load((atomic_bool *)arg))
        pause_for(0.001);
}

static __attribute__((unused)) struct starpu_codelet increment = {
    .cpu_funcs = {add_one}, .nbuffers = 1, .modes = {STARPU_RW}, .name = "increment"};
static __attribute__((unused)) struct starpu_codelet delay = {
    .cpu_funcs = {dawdle}, .nbuffers = 1, .modes = {STARPU_RW}, .name = "delay"};
static __attribute__((unused)) struct starpu_codelet gated = {
    .cpu_funcs = {wait_for_gate}, .nbuffers = 1, .modes = {STARPU_RW}, .name = "gated"};

/* A log that remembers its last lines. */
typedef struct remembered {
    atomic_int lines;
    trama_log_level level;
    char last[4096];
} remembered;

static inline void remember(void *data, trama_log_level level, const char *line)
{
    remembered *r = data;
    r->level = level;
    snprintf(r->last, sizeof r->last, "%s", line);
    atomic_fetch_add(&r->lines, 1);
}

static inline void keep_quiet(void *data, trama_log_level level, const char *line)
{
}

#define TESTS(...)                                                                                                     \
    int main(void)                                                                                                     \
    {                                                                                                                  \
        const TTest *tests[] = {__VA_ARGS__};                                                                          \
        Suite *suite = suite_create(__FILE__);                                                                         \
        TCase *tcase = tcase_create("all");                                                                            \
        for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)                                                      \
            tcase_add_test(tcase, tests[i]);                                                                           \
        suite_add_tcase(suite, tcase);                                                                                 \
        SRunner *runner = srunner_create(suite);                                                                       \
        srunner_set_fork_status(runner, CK_NOFORK);                                                                    \
        srunner_run_all(runner, CK_NORMAL);                                                                            \
        int failed = srunner_ntests_failed(runner);                                                                    \
        srunner_free(runner);                                                                                          \
        return failed ? EXIT_FAILURE : EXIT_SUCCESS;                                                                   \
    }

#endif
