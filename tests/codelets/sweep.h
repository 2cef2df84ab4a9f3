/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of one number against libm in a wider type, over bit patterns of the whole range. */
#ifndef TESTS_CODELETS_SWEEP_H
#define TESTS_CODELETS_SWEEP_H

#include <float.h>

#include "views.h"

/* The functions of the formulas, for a sweep. */
#define OF_FLOAT(name)                                                                                                 \
    static float name##_float(float x)                                                                                 \
    {                                                                                                                  \
        return name##_of_TRAMA_F32(x);                                                                                 \
    }
#define OF_DOUBLE(name)                                                                                                \
    static double name##_double(double x)                                                                              \
    {                                                                                                                  \
        return name##_of_TRAMA_F64(x);                                                                                 \
    }
#define OF_BOTH(name) OF_FLOAT(name) OF_DOUBLE(name)

/* The distance in units in the last place of want's type (min_exponent and digits as in float.h). */
static inline double units_off(double got, long double want, int min_exponent, int digits)
{
    int exponent;
    frexpl(want, &exponent);
    if (exponent < min_exponent)
        exponent = min_exponent;
    return (double)(fabsl(got - want) / ldexpl(1, exponent - digits));
}

static inline void check_f32(float (*f)(float), double (*exact)(double), double most)
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

static inline void check_f64(double (*f)(double), long double (*exact)(long double), double most)
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

#endif
