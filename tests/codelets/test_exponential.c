/* SPDX-License-Identifier: Apache-2.0 */
/* exp and tanh against libm in a wider type, over bit patterns of the whole range. */
#include <float.h>

#include "exponential.h"
#include "views.h"

/* The distance in units in the last place of want's type (min_exponent and digits as in float.h). */
static double units_off(double got, long double want, int min_exponent, int digits)
{
    int exponent;
    frexpl(want, &exponent);
    if (exponent < min_exponent)
        exponent = min_exponent;
    return (double)(fabsl(got - want) / ldexpl(1, exponent - digits));
}

static void check_f32(float (*f)(float), double (*exact)(double), double most)
{
    for (uint32_t word = 0; word < 0xff800000; word += 16411) {
        float x;
        memcpy(&x, &word, sizeof x);
        const float want = (float)exact(x), got = f(x);
        if (isinf(want) || isnan(want))
            ck_assert_msg(isnan(want) ? isnan(got) : got == want, "%a: %a, not %a", x, got, want);
        else
            ck_assert_msg(units_off(got, (long double)exact(x), FLT_MIN_EXP, FLT_MANT_DIG) <= most, "%a: %a, not %a", x,
                          got, want);
    }
}

static void check_f64(double (*f)(double), long double (*exact)(long double), double most)
{
    for (uint64_t word = 0; word < 0xfff0000000000000; word += 0x0001ffffdeadbeef) {
        double x;
        memcpy(&x, &word, sizeof x);
        const double want = (double)exact(x), got = f(x);
        if (isinf(want) || isnan(want))
            ck_assert_msg(isnan(want) ? isnan(got) : got == want, "%a: %a, not %a", x, got, want);
        else
            ck_assert_msg(units_off(got, exact(x), DBL_MIN_EXP, DBL_MANT_DIG) <= most, "%a: %a, not %a", x, got, want);
    }
}

static float exp_float(float x)
{
    return exp_of_TRAMA_F32(x);
}
static float tanh_float(float x)
{
    return tanh_of_TRAMA_F32(x);
}
static double exp_double(double x)
{
    return exp_of_TRAMA_F64(x);
}
static double tanh_double(double x)
{
    return tanh_of_TRAMA_F64(x);
}

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
    ck_assert(tanh_float(0) == 0 && signbit(tanh_float(-0.0f)) && signbit(tanh_double(-0.0)));
}
END_TEST

RUN_TESTS("exponential", exp_is_within_2_units_over_the_whole_range, tanh_is_within_4_units_over_the_whole_range,
          ends_and_zeros_are_exact)
