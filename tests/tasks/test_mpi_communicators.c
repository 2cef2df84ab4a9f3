/* SPDX-License-Identifier: Apache-2.0 */
/* Any communicator: parts of the ranks with programs of their own at the same time, ranks outside, another order; and
 * those that are refused. */
#include "hosted.h"

#if TRAMA_HAVE_MPI
#include "trama_mpi.h"

static int world_rank, world;
static const char *const meshes[] = {"dp=2,mp=2", "dp=3", "1"};
static uint64_t alone[3];

/* Tiles do not depend on the workers of a place. */
static void start_on(MPI_Comm communicator)
{
    must(trama_start_mpi(&(trama_config){.max_tiles = 1}, communicator, &ctx));
    my_rank = trama_context_rank(ctx);
    n_ranks = world; /* a failure ends the job */
}

static void demand_bits(int program)
{
    uint64_t got = train_bits(meshes[program]);
    demand(got == alone[program], "mesh %s on %d ranks: other bits", meshes[program], trama_context_ranks(ctx));
}

START_TEST(each_rank_may_be_a_context_of_its_own)
{
    start_on(MPI_COMM_SELF);
    demand(trama_context_ranks(ctx) == 1 && trama_context_rank(ctx) == 0, "rank %d of %d", trama_context_rank(ctx),
           trama_context_ranks(ctx));
    for (int i = 0; i < 3; i++)
        alone[i] = train_bits(meshes[i]);
    stop();
    MPI_Barrier(MPI_COMM_WORLD);
}
END_TEST

/* Each colour runs another program, color + 1 times. */
static void run_in_groups(int color, int key)
{
    MPI_Comm group;
    MPI_Comm_split(MPI_COMM_WORLD, color, key, &group);
    if (group != MPI_COMM_NULL) {
        int rank, ranks;
        MPI_Comm_rank(group, &rank);
        MPI_Comm_size(group, &ranks);
        for (int i = 0; i < 2; i++) {
            start_on(group);
            demand(trama_context_rank(ctx) == rank && trama_context_ranks(ctx) == ranks, "rank %d of %d instead of %d",
                   trama_context_rank(ctx), trama_context_ranks(ctx), rank);
            for (int k = 0; k <= color; k++)
                demand_bits(color);
            stop();
        }
        MPI_Comm_free(&group);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

START_TEST(groups_of_ranks_run_programs_of_their_own)
{
    run_in_groups(world_rank == 0, world_rank);
    run_in_groups(world_rank % 2, world_rank);
    run_in_groups(world_rank % 2, -world_rank);
}
END_TEST

START_TEST(ranks_may_stay_outside)
{
    run_in_groups(world_rank == 1 ? MPI_UNDEFINED : 0, world_rank);
}
END_TEST

START_TEST(another_order_of_ranks_computes_the_same)
{
    run_in_groups(0, -world_rank);
}
END_TEST

START_TEST(what_is_no_communicator_of_this_rank_is_refused)
{
    MPI_Comm none = MPI_COMM_NULL, half, between;
    expect(trama_start(&(trama_config){.communicator = &none}, &ctx), TRAMA_E_ARGUMENT, "config.communicator",
           "MPI_COMM_NULL");
    MPI_Comm_split(MPI_COMM_WORLD, world_rank % 2, world_rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - world_rank % 2, 7, &between);
    expect(trama_start(&(trama_config){.communicator = &between}, &ctx), TRAMA_E_ARGUMENT, "config.communicator",
           "intercommunicator", "MPI_Intercomm_merge");
    demand(!ctx, "a context in spite of the error");
    MPI_Comm_free(&between);
    start_on(half);
    demand_bits(0);
    stop();
    MPI_Comm_free(&half);
}
END_TEST

/* The host's messages of any tag are not Trama's, nor the other way round. */
START_TEST(the_hosts_messages_stay_the_hosts)
{
    int sent = 100 + world_rank, got = 0, next = (world_rank + 1) % world;
    MPI_Request request;
    MPI_Irecv(&got, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &request);
    start_on(MPI_COMM_WORLD);
    demand_bits(0);
    MPI_Send(&sent, 1, MPI_INT, next, 3, MPI_COMM_WORLD);
    demand_bits(1);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    demand(got == 100 + (world_rank + world - 1) % world, "%d was received", got);
    stop();
}
END_TEST

START_TEST(mpi_starts)
{
    int provided;
    MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world);
    n_ranks = world;
    my_rank = world_rank;
}
END_TEST

START_TEST(mpi_ends)
{
    int finalized;
    MPI_Finalized(&finalized);
    demand(!finalized, "Trama ended the host's MPI");
    MPI_Finalize();
}
END_TEST

TESTS(mpi_starts, each_rank_may_be_a_context_of_its_own, groups_of_ranks_run_programs_of_their_own,
      ranks_may_stay_outside, another_order_of_ranks_computes_the_same, what_is_no_communicator_of_this_rank_is_refused,
      the_hosts_messages_stay_the_hosts, mpi_ends)
#else
int main(void)
{
    return 77;
}
#endif
