/* SPDX-License-Identifier: Apache-2.0 */
/* sin and cos over the whole range, and at the ends. */
#include "sine.h"
#include "sweep.h"

OF_FLOAT(sin)
OF_FLOAT(cos)

START_TEST(sin_and_cos_are_within_1_unit_over_the_whole_range)
{
    check_f32(sin_float, sin, 1);
    check_f32(cos_float, cos, 1);
}
END_TEST

/* The f32 that is nearest to a multiple (Muller, Elementary Functions, on range reduction), some large numbers, and
 * the floats next to the first 100,000 multiples. */
START_TEST(numbers_next_to_multiples_of_a_quarter_turn_keep_their_digits)
{
    static const float hard[] = {16367173.0f * 0x1p72f, 0x1.f9cbe2p7f, 0x1.47d0fep34f, 0x1.ddebdep120f};
    for (size_t i = 0; i < sizeof hard / sizeof *hard; i++) {
        ck_assert_double_le(units_off(sin_float(hard[i]), (long double)sin(hard[i]), FLT_MIN_EXP, FLT_MANT_DIG), 1);
        ck_assert_double_le(units_off(cos_float(hard[i]), (long double)cos(hard[i]), FLT_MIN_EXP, FLT_MANT_DIG), 1);
    }
    for (int i = 1; i <= 100000; i++) {
        const float middle = (float)(i * 1.57079632679489661923), x[] = {nextafterf(middle, 0), middle, -middle};
        for (int j = 0; j < 3; j++) {
            ck_assert_double_le(units_off(sin_float(x[j]), (long double)sin(x[j]), FLT_MIN_EXP, FLT_MANT_DIG), 1);
            ck_assert_double_le(units_off(cos_float(x[j]), (long double)cos(x[j]), FLT_MIN_EXP, FLT_MANT_DIG), 1);
        }
    }
}
END_TEST

START_TEST(ends_and_zeros_are_exact)
{
    ck_assert(sin_float(0) == 0 && !signbit(sin_float(0)) && signbit(sin_float(-0.0f)) && cos_float(-0.0f) == 1);
    ck_assert(isnan(sin_float(INFINITY)) && isnan(cos_float(-INFINITY)));
    ck_assert(isnan(sin_float(NAN)) && isnan(cos_float(NAN)));
    ck_assert(sin_float(FLT_TRUE_MIN) == FLT_TRUE_MIN && sin_float(-FLT_MIN) == -FLT_MIN && cos_float(FLT_MIN) == 1);
}
END_TEST

RUN_TESTS("sine", sin_and_cos_are_within_1_unit_over_the_whole_range,
          numbers_next_to_multiples_of_a_quarter_turn_keep_their_digits, ends_and_zeros_are_exact)
