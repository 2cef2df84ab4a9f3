/* SPDX-License-Identifier: Apache-2.0 */
/* A host that initialised MPI without threads: the error says what is needed. */
#include "harness.h"

#if TRAMA_HAVE_MPI
#include <mpi.h>

START_TEST(mpi_without_threads_is_refused_by_name)
{
    MPI_Init(NULL, NULL);
    ck_assert_int_eq(context_create(&(trama_config){.log = keep_quiet}, "cpu:test", &ctx), TRAMA_E_SYSTEM);
    ck_assert_ptr_nonnull(strstr(trama_error(), "MPI_THREAD_SINGLE"));
    ck_assert_ptr_nonnull(strstr(trama_error(), "MPI_THREAD_MULTIPLE"));
    ck_assert_ptr_null(ctx);
    ck_assert(!starpu_is_initialized());
}
END_TEST

START_TEST(a_rank_of_its_own_needs_no_threads)
{
    MPI_Comm self = MPI_COMM_SELF;
    ck_assert_int_eq(context_create(&(trama_config){.log = keep_quiet, .communicator = &self}, "cpu:test", &ctx),
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
