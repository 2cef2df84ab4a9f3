/* SPDX-License-Identifier: Apache-2.0 */
/* exp, exp2, expm1 and tanh over the whole range, and at the ends. */
#include "exponential.h"
#include "sweep.h"

OF_BOTH(exp)
OF_BOTH(exp2)
OF_BOTH(expm1)
OF_BOTH(tanh)

START_TEST(exp2_is_within_2_units_over_the_whole_range)
{
    check_f32(exp2_float, exp2, 2);
    check_f64(exp2_double, exp2l, 2);
}
END_TEST

START_TEST(expm1_is_within_4_units_over_the_whole_range)
{
    check_f32(expm1_float, expm1, 4);
    check_f64(expm1_double, expm1l, 4);
}
END_TEST

START_TEST(exp_is_within_2_units_over_the_whole_range)
{
    check_f32(exp_float, exp, 2);
    check_f64(exp_double, expl, 2);
}
END_TEST

START_TEST(tanh_is_within_4_units_over_the_whole_range)
{
    check_f32(tanh_float, tanh, 4);
    check_f64(tanh_double, tanhl, 4);
}
END_TEST

START_TEST(ends_and_zeros_are_exact)
{
    ck_assert(exp_float(0) == 1 && exp_double(-0.0) == 1);
    ck_assert(exp_float(INFINITY) == INFINITY && exp_float(-INFINITY) == 0 && isnan(exp_float(NAN)));
    ck_assert(exp_double(INFINITY) == INFINITY && exp_double(-INFINITY) == 0 && isnan(exp_double(NAN)));
    ck_assert(tanh_float(INFINITY) == 1 && tanh_float(-INFINITY) == -1 && isnan(tanh_float(NAN)));
    ck_assert(tanh_double(INFINITY) == 1 && tanh_double(-INFINITY) == -1 && isnan(tanh_double(NAN)));
    ck_assert(exp2_float(10) == 1024 && exp2_float(-149) == 0x1p-149f && exp2_double(-1074) == 0x1p-1074);
    ck_assert(expm1_float(INFINITY) == INFINITY && expm1_float(-INFINITY) == -1 && isnan(expm1_float(NAN)));
    ck_assert(expm1_double(-INFINITY) == -1 && signbit(expm1_float(-0.0f)) && signbit(expm1_double(-0.0)));
    ck_assert(tanh_float(0) == 0 && signbit(tanh_float(-0.0f)) && signbit(tanh_double(-0.0)));
}
END_TEST

RUN_TESTS("exponential", exp2_is_within_2_units_over_the_whole_range, expm1_is_within_4_units_over_the_whole_range,
          exp_is_within_2_units_over_the_whole_range, tanh_is_within_4_units_over_the_whole_range,
          ends_and_zeros_are_exact)
