/* SPDX-License-Identifier: Apache-2.0 */
/* A host that initialised MPI itself: its communicator, another order of ranks, a part of the ranks, its own StarPU. */
#include "harness.h"

#if TRAMA_HAVE_MPI
#include <mpi.h>

static int world_rank, world;

static void exchange(void)
{
    int me = context_rank(ctx), ranks = context_ranks(ctx);
    shard *in = shard_get(ctx, here(), TRAMA_F32, 1, (int64_t[]){3}, -1, 1);
    shard *out = shard_get(ctx, here(), TRAMA_F32, 1, (int64_t[]){3}, -1, 1);
    fence *f = fence_new(ctx);
    ((float *)out->data)[2] = (float)me;
    context_wake(ctx);
    message_send(ctx, out->tile[0], (envelope){(me + 1) % ranks, 5, 0, "out", 0, false}, f);
    message_receive(ctx, in->tile[0], (envelope){(me + ranks - 1) % ranks, 5, 0, "in", 0, false}, f);
    submit(&increment, in->tile[0], NULL, f);
    context_rest(ctx);
    fence_wait(ctx, f, "exchange");
    ck_assert_float_eq(((float *)in->data)[2], (float)((me + ranks - 1) % ranks) + 1);
    fence_free(f);
    shard_put(ctx, in);
    shard_put(ctx, out);
}

START_TEST(the_hosts_communicator_gives_the_ranks)
{
    MPI_Comm reversed;
    MPI_Comm_split(MPI_COMM_WORLD, 0, -world_rank, &reversed);
    trama_config config = {.communicator = &reversed, .log = keep_quiet};
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(context_create(&config, "cpu:test", NULL, &ctx), TRAMA_OK);
        ck_assert_int_eq(context_rank(ctx), world - 1 - world_rank);
        exchange();
        stop();
    }
    MPI_Comm_free(&reversed);
}
END_TEST

START_TEST(ranks_may_form_contexts_apart)
{
    MPI_Comm half;
    MPI_Comm_split(MPI_COMM_WORLD, world_rank % 2, world_rank, &half);
    trama_config config = {.communicator = &half, .log = keep_quiet};
    ck_assert_int_eq(context_create(&config, "cpu:test", NULL, &ctx), TRAMA_OK);
    ck_assert_int_eq(context_ranks(ctx), (world + 1 - world_rank % 2) / 2);
    if (context_ranks(ctx) > 1)
        exchange();
    stop();
    MPI_Comm_free(&half);
    MPI_Barrier(MPI_COMM_WORLD);
}
END_TEST

START_TEST(without_a_communicator_it_is_the_world)
{
    ck_assert_int_eq(context_create(&(trama_config){.log = keep_quiet}, "cpu:test", NULL, &ctx), TRAMA_OK);
    ck_assert_int_eq(context_rank(ctx), world_rank);
    exchange();
    stop();
    int finalized;
    MPI_Finalized(&finalized);
    ck_assert(!finalized);
}
END_TEST

START_TEST(the_hosts_starpu_gets_messages_too)
{
    struct starpu_conf conf;
    starpu_conf_init(&conf);
    conf.precedence_over_environment_variables = 1;
    conf.ncpus = 1;
    conf.ncuda = conf.nopencl = 0;
    conf.catch_signals = 0;
    setenv("STARPU_WORKERS_NOBIND", "1", 1);
    setenv("STARPU_SILENT", "1", 1);
    ck_assert_int_eq(starpu_init(&conf), 0);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(context_create(&(trama_config){.log = keep_quiet}, "cpu:test", NULL, &ctx), TRAMA_OK);
        exchange();
        stop();
        ck_assert(starpu_is_initialized());
    }
    starpu_shutdown();
    ck_assert(!starpu_is_initialized());
}
END_TEST

/* The host's task ends after trama_stop. */
START_TEST(the_hosts_tasks_are_not_waited_for)
{
    atomic_bool gate = false;
    struct starpu_conf conf;
    starpu_conf_init(&conf);
    conf.precedence_over_environment_variables = 1;
    conf.ncpus = 2;
    conf.ncuda = conf.nopencl = 0;
    conf.catch_signals = 0;
    ck_assert_int_eq(starpu_init(&conf), 0);
    starpu_data_handle_t handle;
    float value = 0;
    starpu_variable_data_register(&handle, STARPU_MAIN_RAM, (uintptr_t)&value, sizeof value);
    ck_assert_int_eq(context_create(&(trama_config){.log = keep_quiet}, "cpu:test", NULL, &ctx), TRAMA_OK);
    MPI_Barrier(MPI_COMM_WORLD);
    struct starpu_task *task = starpu_task_create();
    task->cl = &gated;
    task->handles[0] = handle;
    task->cl_arg = &gate;
    task->execute_on_a_specific_worker = 1;
    task->workerid = 1;
    ck_assert_int_eq(starpu_task_submit(task), 0);
    fence_wait_all(ctx, "all");
    stop();
    atomic_store(&gate, true);
    starpu_data_unregister(handle);
    starpu_shutdown();
}
END_TEST

START_TEST(mpi_starts)
{
    int provided;
    MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided);
    ck_assert_int_eq(provided, MPI_THREAD_MULTIPLE);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world);
}
END_TEST

START_TEST(mpi_ends)
{
    MPI_Finalize();
    ck_assert_int_eq(context_create(&(trama_config){.log = keep_quiet}, "cpu:test", NULL, &ctx), TRAMA_E_SYSTEM);
    ck_assert_ptr_nonnull(strstr(trama_error(), "finalised"));
}
END_TEST

TESTS(mpi_starts, the_hosts_communicator_gives_the_ranks, ranks_may_form_contexts_apart,
      without_a_communicator_it_is_the_world, the_hosts_starpu_gets_messages_too, the_hosts_tasks_are_not_waited_for,
      mpi_ends)
#else
int main(void)
{
    return 77;
}
#endif
