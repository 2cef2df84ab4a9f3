/* SPDX-License-Identifier: Apache-2.0 */
/* Ops along a dim: gradients where elements are 0 or equal, second derivatives, and wrong calls. */
#include <check.h>
#include <math.h>
#include <string.h>

#include "single.h"
#include "suite.h"
#include "trama_array.h"
#include "trama_ops.h"

enum { N = 5 };

/* The gradient of sum(w y) with respect to x, a line of N elements. */
static void expect_gradient(trama_program *p, trama_value *x, trama_value *y, const double *at, const double *weights,
                            const double *want)
{
    trama_value *w = trama_constant(p, TRAMA_F64, trama_value_shape(y), weights);
    trama_value *g = trama_gradient(trama_sum(trama_mul(y, w)), x);
    trama_target *target = trama_target_at(TRAMA_HERE, p, "gradient", 1, &g);
    ck_assert_msg(target != NULL, "%s", trama_program_error(p));
    single *one = single_new(p);
    dense fed = dense_new(TRAMA_SHAPE(N));
    for (int i = 0; i < N; i++)
        fed.at[i] = at[i];
    single_feed(one, x, &fed);
    single_run(one, target);
    for (int i = 0; i < N; i++)
        ck_assert_msg(single_value(one, g)->at[i] == want[i], "element %d is %g, not %g", i,
                      single_value(one, g)->at[i], want[i]);
    dense_free(&fed);
    single_destroy(&one);
}

static trama_value *line(trama_program **p)
{
    *p = trama_program_create();
    return trama_input(*p, "x", TRAMA_F64, TRAMA_SHAPE(N));
}

/* Products of the other elements, by hand. */
START_TEST(the_gradient_of_a_product_is_right_with_one_zero_and_with_two)
{
    trama_program *p;
    trama_value *x = line(&p);
    expect_gradient(p, x, trama_prod(x), (double[]){2, 3, 0, 5, 7}, (double[]){1}, (double[]){0, 0, 210, 0, 0});
    trama_program_destroy(&p);
    x = line(&p);
    expect_gradient(p, x, trama_prod(x), (double[]){2, 0, 3, 0, 7}, (double[]){1}, (double[]){0, 0, 0, 0, 0});
    trama_program_destroy(&p);
}
END_TEST

/* sum of w_i d(x_0 .. x_i)/dx_k, by hand. */
START_TEST(the_gradient_of_cumprod_is_right_at_zeros)
{
    const double x_at[] = {2, 0, 3, 0, 5}, w[] = {1, 10, 100, 1000, 10000};
    trama_program *p;
    trama_value *x = line(&p);
    expect_gradient(p, x, trama_cumprod(x, 0), x_at, w, (double[]){1, 2 * 10 + 6 * 100, 0, 0, 0});
    trama_program_destroy(&p);
    x = line(&p);
    /* 1, x0, x0 x1, x0 x1 x2, x0 x1 x2 x3 */
    expect_gradient(p, x, trama_cumprod_over(x, 0, true, false), x_at, w, (double[]){10, 2 * 100 + 6 * 1000, 0, 0, 0});
    trama_program_destroy(&p);
    x = line(&p);
    /* x0 .. x4, x1 .. x4, x2 x3 x4, x3 x4, x4 */
    expect_gradient(p, x, trama_cumprod_over(x, -1, false, true), x_at, w,
                    (double[]){0, 0, 0, 15 * 100 + 5 * 1000, 10000});
    trama_program_destroy(&p);
}
END_TEST

/* y = x0 + x0 x1 + x0 x1 x2 + ..: d/dx0 of the sum of dy/dx_k, by hand at (1, 2, 3, 4, 5) with weights 1:
 * the second derivatives with respect to x_j and x_k, summed over j. */
START_TEST(cumprod_has_a_second_derivative)
{
    const double x_at[] = {1, 2, 3, 4, 5};
    double want[N], ones[N];
    for (int j = 0; j < N; j++) {
        want[j] = 0;
        ones[j] = 1;
        for (int k = 0; k < N; k++)
            for (int last = j > k ? j : k; last < N && j != k; last++) {
                double term = 1;
                for (int i = 0; i <= last; i++)
                    term *= i == j || i == k ? 1 : x_at[i];
                want[j] += term;
            }
    }
    trama_program *p;
    trama_value *x = line(&p);
    trama_value *first = trama_gradient(trama_sum(trama_cumprod(x, 0)), x);
    expect_gradient(p, x, first, x_at, ones, want);
    trama_program_destroy(&p);
}
END_TEST

/* The places by hand. */
START_TEST(the_first_of_equals_gets_the_gradient_of_a_cumulative_maximum)
{
    const double x_at[] = {1, 3, 3, 2, 5}, w[] = {1, 10, 100, 1000, 10000};
    trama_program *p;
    trama_value *x = line(&p);
    expect_gradient(p, x, trama_cummax(x, 0), x_at, w, (double[]){1, 1110, 0, 0, 10000});
    trama_program_destroy(&p);
    x = line(&p); /* -inf 1 3 3 3 */
    expect_gradient(p, x, trama_cummax_over(x, 0, true, false), x_at, w, (double[]){10, 11100, 0, 0, 0});
    trama_program_destroy(&p);
    x = line(&p); /* 1 2 2 2 5 */
    expect_gradient(p, x, trama_cummin_over(x, 0, false, true), x_at, w, (double[]){1, 0, 0, 1110, 10000});
    trama_program_destroy(&p);
}
END_TEST

START_TEST(chosen_elements_get_the_gradients_of_their_places)
{
    const double x_at[] = {1, 7, 3, 9, 5}, w[] = {1, 10, 100, 1000, 10000};
    trama_program *p;
    trama_value *x = line(&p);
    expect_gradient(p, x, trama_top_k(x, 2, 0, true), x_at, w, (double[]){0, 10, 0, 1, 0});
    trama_program_destroy(&p);
    x = line(&p); /* 1 3 5 7 9 */
    expect_gradient(p, x, trama_sort(x, -1, false), x_at, w, (double[]){1, 1000, 10, 10000, 100});
    trama_program_destroy(&p);
    x = line(&p); /* the slope of squares of the chosen ones has a slope, too */
    trama_value *first = trama_gradient(trama_sum(trama_square(trama_top_k(x, 2, 0, true))), x);
    expect_gradient(p, x, first, x_at, w, (double[]){0, 20, 0, 2000, 0});
    trama_program_destroy(&p);
}
END_TEST

START_TEST(a_wrong_k_is_refused_with_the_extent)
{
    trama_program *p;
    trama_value *x = line(&p);
    for (int64_t k = -1; k <= N + 1; k += N + 2) {
        ck_assert_ptr_null(trama_top_k(x, k, 0, true));
        ck_assert_msg(strstr(trama_program_error(p), "and dim 0 has 5 elements") != NULL, "%s", trama_program_error(p));
        trama_program_clear_error(p);
    }
    ck_assert_ptr_null(trama_top_k(trama_input(p, "y", TRAMA_F64, TRAMA_SHAPE(TRAMA_ANY)), 1, 0, true));
    ck_assert_msg(strstr(trama_program_error(p), "only known when fed") != NULL, "%s", trama_program_error(p));
    trama_program_clear_error(p);
    ck_assert_ptr_null(trama_argsort(x, 3, false));
    trama_program_destroy(&p);
}
END_TEST

START_TEST(wrong_calls_name_the_op_and_the_dim)
{
    trama_program *p;
    trama_value *x = line(&p);
    ck_assert_ptr_null(trama_cumsum(x, 1));
    ck_assert_msg(strstr(trama_program_error(p), "cumsum of x: dim 1 is not there (1 dims)") != NULL, "%s",
                  trama_program_error(p));
    trama_program_clear_error(p);
    ck_assert_ptr_null(trama_cumprod(x, -2));
    trama_program_clear_error(p);
    ck_assert_ptr_null(trama_recurrence(x, trama_input(p, "y", TRAMA_F64, TRAMA_SHAPE(4)), 0, false));
    ck_assert_msg(strstr(trama_program_error(p), "recurrence") != NULL, "%s", trama_program_error(p));
    trama_program_destroy(&p);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {the_gradient_of_a_product_is_right_with_one_zero_and_with_two,
                                  the_gradient_of_cumprod_is_right_at_zeros,
                                  cumprod_has_a_second_derivative,
                                  the_first_of_equals_gets_the_gradient_of_a_cumulative_maximum,
                                  chosen_elements_get_the_gradients_of_their_places,
                                  a_wrong_k_is_refused_with_the_extent,
                                  wrong_calls_name_the_op_and_the_dim};
    return suite_run("scan", NULL, NULL, tests, sizeof tests / sizeof *tests);
}
