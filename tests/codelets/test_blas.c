/* SPDX-License-Identifier: Apache-2.0 */
/* The BLAS is set up for tasks and given back to the host. */
#define _GNU_SOURCE /* RTLD_DEFAULT */
#include <dlfcn.h>
#include <stdio.h>

#include "suite.h"
#include "views.h"

extern int openblas_get_num_threads(void) __attribute__((weak));
extern void openblas_set_num_threads(int n) __attribute__((weak));
extern int openblas_get_parallel(void) __attribute__((weak));
extern void gotoblas_dynamic_quit(void) __attribute__((weak));
extern void gotoblas_dynamic_init(void) __attribute__((weak));

static bool has_own_threads(void)
{
    return openblas_set_num_threads && openblas_get_num_threads && openblas_get_parallel() != 2;
}

START_TEST(one_thread_inside_tasks_and_the_hosts_number_after)
{
    if (suite_skips(!has_own_threads(), "threads of OpenBLAS, this BLAS has none of its own"))
        return;
    openblas_set_num_threads(2);
    const int host = openblas_get_num_threads();
    blas_start(false);
    blas_start(false);
    ck_assert_int_eq(openblas_get_num_threads(), 1);
    blas_stop();
    ck_assert_int_eq(openblas_get_num_threads(), host);
    blas_stop();
    ck_assert_int_eq(openblas_get_num_threads(), host);
}
END_TEST

START_TEST(between_tasks_it_is_the_hosts)
{
    if (suite_skips(!has_own_threads(), "threads of OpenBLAS, this BLAS has none of its own"))
        return;
    openblas_set_num_threads(2);
    const int host = openblas_get_num_threads();
    blas_start(false);
    blas_awake(false);
    ck_assert_int_eq(openblas_get_num_threads(), host);
    openblas_set_num_threads(1); /* the host thinks anew */
    for (int i = 0; i < 2; i++) {
        blas_awake(true);
        ck_assert_int_eq(openblas_get_num_threads(), 1);
        blas_awake(false);
        ck_assert_int_eq(openblas_get_num_threads(), i ? host : 1);
        openblas_set_num_threads(host);
    }
    blas_awake(true);
    blas_stop();
    ck_assert_int_eq(openblas_get_num_threads(), host);
}
END_TEST

/* Runs where LD_LIBRARY_PATH, say, names an OpenBLAS over OpenMP. */
START_TEST(threads_of_openmp_are_one_inside_a_call_only)
{
    if (suite_skips(!openblas_get_parallel || openblas_get_parallel() != 2, "OpenMP, which this BLAS does not use"))
        return;
    int (*openmp_threads)(void);
    *(void **)&openmp_threads = dlsym(RTLD_DEFAULT, "omp_get_max_threads");
    openblas_set_num_threads(3);
    blas_start(false);
    ck_assert_int_eq(openmp_threads(), 3);
    const int before = blas_enter();
    ck_assert_int_eq(openmp_threads(), 1);
    blas_leave(before);
    ck_assert_int_eq(openmp_threads(), 3);
    blas_stop();
    ck_assert_int_eq(openmp_threads(), 3);
}
END_TEST

START_TEST(looking_leaves_the_kernels_and_the_environment_alone)
{
    char before[64];
    snprintf(before, sizeof before, "%s", blas_kernel_name());
    blas_start(false);
    ck_assert_str_eq(before, blas_kernel_name());
    blas_stop();
}
END_TEST

/* An old OpenBLAS does this on a CPU that it does not know. */
static void fall_back_to_prescott(void)
{
    setenv("OPENBLAS_CORETYPE", "Prescott", 1);
    gotoblas_dynamic_quit();
    gotoblas_dynamic_init();
}

static bool runs_prescott(void)
{
    return !strcmp(blas_kernel_name(), "Prescott");
}

static void check_product(void)
{
    tensor x = tensor_random(TRAMA_F32, PACKED, TRAMA_SHAPE(65, 33), 1);
    tensor y = tensor_random(TRAMA_F32, PACKED, TRAMA_SHAPE(33, 47), 2);
    tensor out = tensor_new(TRAMA_F32, PACKED, TRAMA_SHAPE(65, 47));

    run_binary("matmul", NULL, &out, &x, &y);
    FOR_EACH(&out, i)
    {
        double want = 0;
        for (int64_t k = 0; k < 33; k++)
            want += AT(&x, i[0], k) * AT(&y, k, i[1]);
        ck_assert(at(&out, i) == want);
    }
    tensor_free(&x);
    tensor_free(&y);
    tensor_free(&out);
}

START_TEST(slow_kernels_are_replaced_only_if_allowed_and_not_chosen_by_the_user)
{
    if (suite_skips(!gotoblas_dynamic_init || !gotoblas_dynamic_quit || getenv("OPENBLAS_CORETYPE"),
                    "a change of kernels, this BLAS cannot, or OPENBLAS_CORETYPE is set"))
        return;
    fall_back_to_prescott();
    if (suite_skips(!runs_prescott(), "slow kernels, which are of another architecture"))
        return;
    ck_assert_ptr_null(blas_start(true));
    ck_assert(runs_prescott()); /* as the environment says */
    unsetenv("OPENBLAS_CORETYPE");
    if (blas_start(false)) {
        ck_assert(runs_prescott());
        ck_assert_ptr_null(blas_start(true));
        ck_assert(!runs_prescott() && !getenv("OPENBLAS_CORETYPE"));
    }
    check_product();
    blas_stop();
}
END_TEST

RUN_TESTS("blas", one_thread_inside_tasks_and_the_hosts_number_after, between_tasks_it_is_the_hosts,
          threads_of_openmp_are_one_inside_a_call_only, looking_leaves_the_kernels_and_the_environment_alone,
          slow_kernels_are_replaced_only_if_allowed_and_not_chosen_by_the_user)
