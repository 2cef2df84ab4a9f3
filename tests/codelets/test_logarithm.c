/* SPDX-License-Identifier: Apache-2.0 */
/* log, log1p, softplus and erf over the whole range, and at the ends. */
#include "formula.h"
#include "sweep.h"

OF_BOTH(log)
OF_BOTH(log1p)
OF_BOTH(softplus)
OF_BOTH(erf)

START_TEST(log_is_within_2_units_over_the_whole_range)
{
    check_f32(log_float, log, 2);
    check_f64(log_double, logl, 2);
}
END_TEST

START_TEST(log1p_is_within_4_units_over_the_whole_range)
{
    check_f32(log1p_float, log1p, 4);
    check_f64(log1p_double, log1pl, 4);
}
END_TEST

static double softplus_exact(double x)
{
    return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
}
static long double softplus_exact_long(long double x)
{
    return x > 0 ? x + log1pl(expl(-x)) : log1pl(expl(x));
}

START_TEST(softplus_is_within_4_units_over_the_whole_range)
{
    check_f32(softplus_float, softplus_exact, 4);
    check_f64(softplus_double, softplus_exact_long, 4);
}
END_TEST

START_TEST(erf_is_within_4_units_over_the_whole_range)
{
    check_f32(erf_float, erf, 4);
    check_f64(erf_double, erfl, 4);
}
END_TEST

START_TEST(ends_and_zeros_are_exact)
{
    ck_assert(log_float(1) == 0 && log_double(1) == 0 && log_float(0) == -INFINITY && log_double(-0.0) == -INFINITY);
    ck_assert(isnan(log_float(-1)) && isnan(log_double(NAN)) && log_float(INFINITY) == INFINITY);
    ck_assert(log1p_float(-1) == -INFINITY && isnan(log1p_double(-1.5)) && log1p_double(INFINITY) == INFINITY);
    ck_assert(signbit(log1p_float(-0.0f)) && signbit(log1p_double(-0.0)) && isnan(log1p_float(NAN)));
    ck_assert(erf_float(INFINITY) == 1 && erf_float(-INFINITY) == -1 && isnan(erf_float(NAN)));
    ck_assert(signbit(erf_float(-0.0f)) && softplus_float(INFINITY) == INFINITY && softplus_float(-INFINITY) == 0);
}
END_TEST

RUN_TESTS("logarithm", log_is_within_2_units_over_the_whole_range, log1p_is_within_4_units_over_the_whole_range,
          softplus_is_within_4_units_over_the_whole_range, erf_is_within_4_units_over_the_whole_range,
          ends_and_zeros_are_exact)
