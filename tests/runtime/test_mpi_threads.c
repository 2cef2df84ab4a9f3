/* SPDX-License-Identifier: Apache-2.0 */
/* A host that initialised MPI with too few threads: the error says what is needed. */
#include "harness.h"

#if TRAMA_HAVE_MPI
#include <mpi.h>

/* 2, 3 and 4 ranks: SINGLE, FUNNELED, SERIALIZED. */
static int level_asked_for(void)
{
    static const int levels[] = {MPI_THREAD_SINGLE, MPI_THREAD_FUNNELED, MPI_THREAD_SERIALIZED};
    const char *size = getenv("OMPI_COMM_WORLD_SIZE") ? getenv("OMPI_COMM_WORLD_SIZE") : getenv("PMI_SIZE");
    int ranks = size ? atoi(size) : 2;
    return levels[ranks >= 2 && ranks <= 4 ? ranks - 2 : 0];
}

START_TEST(mpi_without_threads_is_refused_by_name)
{
    int provided, level = level_asked_for();
    MPI_Init_thread(NULL, NULL, level, &provided);
    const char *name = provided == MPI_THREAD_SINGLE     ? "with MPI_THREAD_SINGLE"
                       : provided == MPI_THREAD_FUNNELED ? "with MPI_THREAD_FUNNELED"
                                                         : "with MPI_THREAD_SERIALIZED";
    ck_assert_int_eq(provided, level); /* an MPI that gives more than asked for needs another test */
    ck_assert_int_eq(context_create(&(trama_config){.log = keep_quiet}, "cpu:test", NULL, &ctx), TRAMA_E_SYSTEM);
    ck_assert_msg(strstr(trama_error(), name), "%s", trama_error());
    ck_assert_ptr_nonnull(strstr(trama_error(), "needs MPI_Init_thread(..., MPI_THREAD_MULTIPLE, ...)"));
    ck_assert_ptr_null(ctx);
    ck_assert(!starpu_is_initialized());
}
END_TEST

START_TEST(a_rank_of_its_own_needs_no_threads)
{
    MPI_Comm self = MPI_COMM_SELF;
    ck_assert_int_eq(context_create(&(trama_config){.log = keep_quiet, .communicator = &self}, "cpu:test", NULL, &ctx),
                     TRAMA_OK);
    ck_assert_int_eq(context_ranks(ctx), 1);
    stop();
    MPI_Finalize();
}
END_TEST

TESTS(mpi_without_threads_is_refused_by_name, a_rank_of_its_own_needs_no_threads)
#else
int main(void)
{
    return 77;
}
#endif
