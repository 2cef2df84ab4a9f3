/* SPDX-License-Identifier: Apache-2.0 */
/* A host that runs StarPU itself: it is adopted or refused, never paused and never ended. */
#include "harness.h"

static void start_host(int workers)
{
    struct starpu_conf conf;
    starpu_conf_init(&conf);
    conf.precedence_over_environment_variables = 1;
    conf.ncpus = workers;
    conf.ncuda = conf.nopencl = 0;
    conf.catch_signals = 0;
    ck_assert_int_eq(starpu_init(&conf), 0);
}

START_TEST(the_programs_starpu_is_adopted)
{
    start_host(2);
    for (int i = 0; i < 2; i++) {
        start();
        ck_assert_int_eq(context_machine(ctx)->places[0].workers, 2);
        shard *s = shard_get(ctx, here(), TRAMA_F32, 2, (int64_t[]){3, 4}, 1, 2);
        memset(s->data, 0, s->bytes);
        fence *f = fence_new(ctx);
        context_wake(ctx);
        submit(&increment, s->tile[0], NULL, f);
        submit(&increment, s->tile[1], NULL, f);
        context_rest(ctx);
        fence_wait(ctx, f, "tasks");
        pause_for(0.02);
        ck_assert(!starpu_is_paused());
        for (int k = 0; k < 12; k++)
            ck_assert_float_eq(((float *)s->data)[k], 1);
        fence_free(f);
        shard_put(ctx, s);
        char *description = trama_context_describe(ctx);
        ck_assert_ptr_nonnull(strstr(description, "StarPU was started by the program"));
        free(description);
        stop();
        ck_assert(starpu_is_initialized());
    }
    starpu_shutdown();
}
END_TEST

/* The host's task ends after trama_stop. */
START_TEST(only_its_own_tasks_are_waited_for)
{
    atomic_bool gate = false;
    start_host(2);
    starpu_data_handle_t handle;
    float value = 0;
    starpu_variable_data_register(&handle, STARPU_MAIN_RAM, (uintptr_t)&value, sizeof value);
    start();
    struct starpu_task *task = starpu_task_create(); /* the host's */
    task->cl = &gated;
    task->handles[0] = handle;
    task->cl_arg = &gate;
    ck_assert_int_eq(starpu_task_submit(task), 0);
    fence_wait_all(ctx, "all");
    stop();
    atomic_store(&gate, true);
    starpu_data_unregister(handle);
    starpu_shutdown();
}
END_TEST

START_TEST(what_does_not_suffice_is_said)
{
    start_host(2);
    ck_assert_int_eq(context_create(&(trama_config){.workers = 1}, "cpu:test", NULL, &ctx), TRAMA_E_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(trama_error(), "the program's StarPU has 2"));
    starpu_pause();
    ck_assert_int_eq(context_create(NULL, "cpu:test", NULL, &ctx), TRAMA_E_ORDER);
    ck_assert_ptr_nonnull(strstr(trama_error(), "starpu_resume"));
    starpu_resume();
    start();
    stop();
    starpu_shutdown();
    start(); /* and without a host again */
    stop();
}
END_TEST

TESTS(the_programs_starpu_is_adopted, only_its_own_tasks_are_waited_for, what_does_not_suffice_is_said)
