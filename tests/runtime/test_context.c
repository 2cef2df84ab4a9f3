/* SPDX-License-Identifier: Apache-2.0 */
/* A context of one rank without MPI: life, options, what it knows. */
#include "harness.h"

START_TEST(a_context_starts_and_stops_as_often_as_one_likes)
{
    for (int i = 0; i < 4; i++) {
        start();
        ck_assert_int_eq(context_rank(ctx), 0);
        ck_assert_int_eq(context_ranks(ctx), 1);
        ck_assert_int_ge(context_n_places(ctx), 1);
        stop();
    }
    ck_assert_int_eq(context_destroy(&ctx), TRAMA_OK); /* NULL is allowed */
    ck_assert(!starpu_is_initialized());
}
END_TEST

START_TEST(a_second_live_context_is_refused)
{
    trama_context *second = (trama_context *)&second;
    start();
    ck_assert_int_eq(context_create(NULL, "cpu:test", NULL, &second), TRAMA_E_ORDER);
    ck_assert_ptr_null(second);
    ck_assert_ptr_nonnull(strstr(trama_error(), "trama_stop"));
    stop();
}
END_TEST

START_TEST(it_does_not_stop_while_executables_live)
{
    start();
    context_tenant first = {.what = "the executable", .ends = "trama_executable_destroy", .where = TRAMA_HERE};
    context_tenant second = {.what = "the wrapped tensor", .name = "w", .ends = "trama_release"};
    context_enter(ctx, &first);
    context_enter(ctx, &second);
    ck_assert_int_eq(context_destroy(&ctx), TRAMA_E_ORDER);
    ck_assert_ptr_nonnull(ctx);
    ck_assert_ptr_nonnull(strstr(trama_error(), "the wrapped tensor 'w', which trama_release ends"));
    ck_assert_ptr_nonnull(strstr(trama_error(), "the executable ("));
    context_leave(ctx, &first);
    ck_assert_int_eq(context_destroy(&ctx), TRAMA_E_ORDER);
    ck_assert_ptr_null(strstr(trama_error(), "the executable ("));
    context_leave(ctx, &second);
    stop();
}
END_TEST

START_TEST(defaults_fill_a_zeroed_configuration)
{
    start();
    const trama_config *c = context_config(ctx);
    ck_assert_int_eq(c->max_in_flight, 0); /* each executable chooses */
    ck_assert_int_eq(c->max_tiles, 0);
    ck_assert_int_eq(c->grain_flops, 2000000);
    ck_assert_int_eq(c->grain_bytes, 65536);
    ck_assert_int_eq(c->nominal, 1024);
    ck_assert_int_eq(c->watchdog, 30);
    ck_assert_int_ge(c->workers, 1);
    ck_assert_ptr_nonnull(c->log);
    stop();
}
END_TEST

START_TEST(the_environment_stands_in_for_zeros_only)
{
    setenv("TRAMA_WORKERS", "1", 1);
    setenv("TRAMA_MAX_IN_FLIGHT", "5", 1);
    setenv("TRAMA_WATCHDOG", "7", 1);
    setenv("TRAMA_MAX_TILES", "3", 1);
    setenv("TRAMA_SUM", "nccl", 1);
    ck_assert_int_eq(context_create(&(trama_config){.max_in_flight = 4}, "cpu:test", NULL, &ctx), TRAMA_OK);
    ck_assert_int_eq(context_config(ctx)->workers, 1);
    ck_assert_int_eq(context_config(ctx)->max_in_flight, 4);
    ck_assert_int_eq(context_config(ctx)->watchdog, 7);
    ck_assert_int_eq(context_config(ctx)->max_tiles, 3);
    ck_assert(context_config(ctx)->nccl_sums);
    ck_assert_int_eq((int)starpu_cpu_worker_get_count(), 1);
    stop();
    unsetenv("TRAMA_WORKERS");
    unsetenv("TRAMA_MAX_IN_FLIGHT");
    unsetenv("TRAMA_WATCHDOG");
    unsetenv("TRAMA_MAX_TILES");
    unsetenv("TRAMA_SUM");
}
END_TEST

START_TEST(wrong_options_are_named)
{
    ck_assert_int_eq(context_create(&(trama_config){.workers = -1}, "cpu:test", NULL, &ctx), TRAMA_E_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(trama_error(), "config.workers is -1"));
    ck_assert_ptr_null(ctx);
    setenv("TRAMA_MAX_IN_FLIGHT", "two", 1);
    ck_assert_int_eq(context_create(NULL, "cpu:test", NULL, &ctx), TRAMA_E_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(trama_error(), "TRAMA_MAX_IN_FLIGHT is \"two\""));
    unsetenv("TRAMA_MAX_IN_FLIGHT");
    setenv("TRAMA_SUM", "fast", 1);
    ck_assert_int_eq(context_create(NULL, "cpu:test", NULL, &ctx), TRAMA_E_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(trama_error(), "TRAMA_SUM is \"fast\""));
    unsetenv("TRAMA_SUM");
    ck_assert_int_eq(context_create(&(trama_config){.workers = 1000}, "cpu:test", NULL, &ctx), TRAMA_E_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(trama_error(), "1000 workers"));
    start(); /* an error leaves nothing behind */
    stop();
}
END_TEST

START_TEST(flags_of_the_environment_are_0_or_1)
{
    static const char *const names[] = {"TRAMA_TF32", "TRAMA_CHECK_CALLS", "TRAMA_MAP_BY_ORDER", "TRAMA_VERIFY",
                                        "TRAMA_KEEP_AFFINITY"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        for (const char *const *wrong = (const char *const[]){"yes", "false", "2", " 1", "01", NULL}; *wrong; wrong++) {
            setenv(names[i], *wrong, 1);
            ck_assert_int_eq(context_create(NULL, "cpu:test", NULL, &ctx), TRAMA_E_ARGUMENT);
            ck_assert_msg(strstr(trama_error(), names[i]) && strstr(trama_error(), *wrong) &&
                              strstr(trama_error(), "0 or 1"),
                          "%s", trama_error());
        }
        unsetenv(names[i]);
    }
    setenv("TRAMA_VERIFY", "1", 1);
    setenv("TRAMA_MAP_BY_ORDER", "0", 1);
    setenv("TRAMA_CHECK_CALLS", "", 1);
    start();
    ck_assert(context_config(ctx)->verify && !context_config(ctx)->map_by_order && !context_config(ctx)->check_calls);
    stop();
    unsetenv("TRAMA_VERIFY");
    unsetenv("TRAMA_MAP_BY_ORDER");
    unsetenv("TRAMA_CHECK_CALLS");
}
END_TEST

START_TEST(a_communicator_without_mpi_is_refused)
{
    int nothing = 0;
    ck_assert_int_ne(context_create(&(trama_config){.communicator = &nothing}, "cpu:test", NULL, &ctx), TRAMA_OK);
    ck_assert_ptr_nonnull(strstr(trama_error(), "config.communicator"));
}
END_TEST

START_TEST(more_workers_than_cores_work)
{
    int n = 2 * (int)sysconf(_SC_NPROCESSORS_ONLN) + 1;
    ck_assert_int_eq(context_create(&(trama_config){.workers = n}, "cpu:test", NULL, &ctx), TRAMA_OK);
    ck_assert_int_eq((int)starpu_cpu_worker_get_count(), n);
    shard *s = shard_get(ctx, here(), TRAMA_F32, 1, (int64_t[]){8}, -1, 1);
    memset(s->data, 0, s->bytes);
    fence *f = fence_new(ctx);
    context_wake(ctx);
    for (int i = 0; i < 100; i++)
        submit(&increment, s->tile[0], NULL, f);
    context_rest(ctx);
    ck_assert_int_eq(fence_wait(ctx, f, "increments"), TRAMA_OK);
    ck_assert_float_eq(*(float *)s->data, 100);
    fence_free(f);
    shard_put(ctx, s);
    stop();
}
END_TEST

static int count_bits(const uint32_t *mask, unsigned words)
{
    int n = 0;
    for (unsigned i = 0; i < words; i++)
        n += __builtin_popcount(mask[i]);
    return n;
}

START_TEST(lanes_are_the_workers_of_a_place)
{
    start();
    const machine *m = context_machine(ctx);
    unsigned words = context_mask_words(ctx);
    int workers = 0;
    ck_assert_int_eq(m->n_ranks, 1);
    ck_assert_int_eq(m->n_places, context_n_places(ctx));
    for (int p = 0; p < m->n_places; p++) {
        int lanes = m->places[p].workers;
        ck_assert_int_eq(count_bits(context_place_mask(ctx, p), words), lanes);
        for (int l = 0; l < lanes; l++) {
            int id = context_lane_worker(ctx, p, l);
            const uint32_t *mask = context_lane_mask(ctx, p, l);
            ck_assert_int_eq(starpu_worker_get_type(id), STARPU_CPU_WORKER);
            ck_assert_int_eq(count_bits(mask, words), 1);
            ck_assert(mask[id / 32] >> (id % 32) & 1);
            ck_assert(context_place_mask(ctx, p)[id / 32] >> (id % 32) & 1);
        }
        workers += lanes;
    }
    ck_assert_int_eq(workers, context_config(ctx)->workers);
    stop();
}
END_TEST

static int ran_on;
static void note_worker(void *buffers[], void *arg)
{
    ran_on = starpu_worker_get_id();
}

START_TEST(a_lane_mask_holds_a_task_to_its_worker)
{
    static struct starpu_codelet note = {.cpu_funcs = {note_worker}, .nbuffers = 0};
    start();
    fence *f = fence_new(ctx);
    for (int i = 0; i < 20; i++) {
        int lane = i % context_machine(ctx)->places[0].workers;
        struct starpu_task *task = starpu_task_create();
        task->cl = &note;
        task->workerids = (uint32_t *)(uintptr_t)context_lane_mask(ctx, 0, lane);
        task->workerids_len = context_mask_words(ctx);
        task->callback_func = fence_signal;
        task->callback_arg = f;
        context_wake(ctx);
        fence_add(f, 1);
        ck_assert_int_eq(starpu_task_submit(task), 0);
        context_rest(ctx);
        fence_wait(ctx, f, "task");
        ck_assert_int_eq(ran_on, context_lane_worker(ctx, 0, lane));
    }
    fence_free(f);
    stop();
}
END_TEST

START_TEST(its_description_names_what_matters)
{
    start();
    char *description = trama_context_describe(ctx);
    ck_assert_ptr_nonnull(strstr(description, "rank 0 of 1"));
    ck_assert_ptr_nonnull(strstr(description, "workers"));
    ck_assert_ptr_nonnull(strstr(description, "place 0: rank 0"));
    free(description);
    stop();
}
END_TEST

START_TEST(the_log_gets_whole_lines)
{
    remembered log = {0};
    char line[3000];
    ck_assert_int_eq(context_create(&(trama_config){.log = remember, .log_data = &log}, "cpu:test", NULL, &ctx),
                     TRAMA_OK);
    ck_assert_int_eq(log.lines, 0); /* nothing to say about a start that went well */
    memset(line, 'x', sizeof line - 1);
    line[sizeof line - 1] = '\0';
    context_log(ctx, TRAMA_LOG_WARNING, "%s!", line);
    ck_assert_int_eq(log.level, TRAMA_LOG_WARNING);
    ck_assert_int_eq(strlen(log.last), strlen(line) + 1);
    stop();
    ck_assert_int_eq(log.lines, 1);
}
END_TEST

START_TEST(collective_calls_of_one_rank_are_trivial)
{
    start();
    int64_t mine = 42, all = 0;
    ck_assert_int_eq(context_next_call(ctx), 0);
    ck_assert_int_eq(context_next_call(ctx), 1);
    ck_assert_int_eq(context_gather(ctx, "test", &mine, sizeof mine, &all), TRAMA_OK);
    ck_assert_int_eq(all, 42);
    ck_assert_int_eq(context_call(ctx, TRAMA_HERE, "test", "test()"), TRAMA_OK);
    ck_assert_int_eq(context_agree(ctx, "test", TRAMA_E_MEMORY), TRAMA_E_MEMORY);
    ck_assert_int_eq(context_barrier(ctx, "test"), TRAMA_OK);
    stop();
}
END_TEST

START_TEST(the_environment_is_left_as_it_was)
{
    extern char **environ;
    int before = 0, after = 0;
    for (char **e = environ; *e; e++)
        before++;
    start();
    stop();
    for (char **e = environ; *e; e++)
        after++;
    ck_assert_int_eq(before, after);
}
END_TEST

TESTS(a_context_starts_and_stops_as_often_as_one_likes, a_second_live_context_is_refused,
      it_does_not_stop_while_executables_live, defaults_fill_a_zeroed_configuration,
      the_environment_stands_in_for_zeros_only, wrong_options_are_named, flags_of_the_environment_are_0_or_1,
      a_communicator_without_mpi_is_refused, more_workers_than_cores_work, lanes_are_the_workers_of_a_place,
      a_lane_mask_holds_a_task_to_its_worker, its_description_names_what_matters, the_log_gets_whole_lines,
      collective_calls_of_one_rank_are_trivial, the_environment_is_left_as_it_was)
