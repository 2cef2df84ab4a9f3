/* SPDX-License-Identifier: Apache-2.0 */
/* bf16 and f16: all of them, and the numbers between them, against their definition in doubles. */
#include "halves.h"

#include <math.h>

#include "base.h"
#include "dense.h"
#include "suite.h"

static const trama_dtype halves[] = {TRAMA_BF16, TRAMA_F16};
enum { N_HALVES = sizeof halves / sizeof *halves, N_BITS = 1 << 16 };

static double value(trama_dtype dtype, uint16_t bits)
{
    return dtype == TRAMA_BF16 ? trama_float_of_bf16((trama_bf16){bits}) : trama_float_of_f16((trama_f16){bits});
}

static uint16_t of_float(trama_dtype dtype, float x)
{
    return dtype == TRAMA_BF16 ? trama_bf16_of_float(x).bits : trama_f16_of_float(x).bits;
}

static uint16_t of_double(trama_dtype dtype, double x)
{
    return dtype == TRAMA_BF16 ? trama_bf16_of_double(x).bits : trama_f16_of_double(x).bits;
}

static void check_bits(trama_dtype dtype, double x, uint16_t got)
{
    const uint16_t want = half_bits(dtype, half_round(dtype, x));
    if (isnan(x) ? !isnan(half_value(dtype, got)) || got >> 15 != (signbit(x) != 0) : got != want)
        ck_abort_msg("%s of %a: %04x, not %04x", trama_dtype_name(dtype), x, got, want);
}

static void check_number(trama_dtype dtype, double x)
{
    check_bits(dtype, x, of_double(dtype, x));
    check_bits(dtype, (float)x, of_float(dtype, (float)x));
}

START_TEST(every_half_is_the_number_that_its_bits_say)
{
    for (int h = 0; h < N_HALVES; h++)
        for (int bits = 0; bits < N_BITS; bits++) {
            const double got = value(halves[h], (uint16_t)bits), want = half_value(halves[h], (uint16_t)bits);
            if (isnan(want) ? !isnan(got) : got != want || !signbit(got) != !signbit(want))
                ck_abort_msg("%s %04x: %a, not %a", trama_dtype_name(halves[h]), (unsigned)bits, got, want);
        }
}
END_TEST

START_TEST(every_half_comes_back_from_floats_and_doubles)
{
    for (int h = 0; h < N_HALVES; h++)
        for (int bits = 0; bits < N_BITS; bits++)
            check_number(halves[h], value(halves[h], (uint16_t)bits));
}
END_TEST

/* Halfway between two neighbours, and the next float and the next double on both sides of that. */
START_TEST(ties_go_to_even_and_their_neighbours_to_the_nearest)
{
    for (int h = 0; h < N_HALVES; h++)
        for (int bits = 0; bits + 1 < N_BITS; bits++) {
            const double low = half_value(halves[h], (uint16_t)bits);
            double high = half_value(halves[h], (uint16_t)(bits + 1));
            if (!isfinite(low) || isnan(high))
                continue;
            if (isinf(high)) /* as if the exponents went on */
                high = 2 * low - half_value(halves[h], (uint16_t)(bits - 1));
            const double tie = (low + high) / 2;
            check_number(halves[h], tie);
            check_number(halves[h], nextafterf((float)tie, INFINITY));
            check_number(halves[h], nextafterf((float)tie, -INFINITY));
            check_bits(halves[h], nextafter(tie, INFINITY), of_double(halves[h], nextafter(tie, INFINITY)));
            check_bits(halves[h], nextafter(tie, -INFINITY), of_double(halves[h], nextafter(tie, -INFINITY)));
        }
}
END_TEST

START_TEST(any_bits_of_floats_and_doubles_are_rounded_once)
{
    uint64_t seed = 1;
    for (int h = 0; h < N_HALVES; h++)
        for (int i = 0; i < 500000; i++) {
            const uint64_t word = random_next(&seed);
            const float single = trama_float_of_bits((uint32_t)word);
            double wide;
            memcpy(&wide, &word, sizeof wide);
            check_bits(halves[h], single, of_float(halves[h], single));
            check_bits(halves[h], wide, of_double(halves[h], wide));
            const double near_one = ldexp((double)(int64_t)random_next(&seed), random_below(&seed, 60) - 90);
            check_number(halves[h], near_one);
        }
}
END_TEST

START_TEST(numbers_out_of_range_become_infinite_or_zero)
{
    const double far[] = {1e300, -1e300, INFINITY, -INFINITY, 0x1p-1074, -0x1p-1074, 0.0,
                          -0.0,  NAN,    -NAN,     3.4e38,    65520,     65519.99};
    for (int h = 0; h < N_HALVES; h++)
        for (size_t i = 0; i < sizeof far / sizeof *far; i++)
            check_number(halves[h], far[i]);
}
END_TEST

START_TEST(elements_of_every_type_are_numbers)
{
    const double numbers[] = {1, 3, 100};
    for (int t = 0; t < TRAMA_N_DTYPES; t++) {
        double _Complex memory[3]; /* the largest type */
        for (int i = 0; i < 3; i++)
            element_set((trama_dtype)t, memory, i, numbers[i]);
        for (int i = 0; i < 3; i++)
            ck_assert(element_of((trama_dtype)t, memory, i) == (t == TRAMA_BOOL ? 1 : numbers[i]));
    }
}
END_TEST

START_TEST(types_have_names_and_unknown_ones_hear_them_all)
{
    static const char *const floats = "f32 f64 bf16 f16";
    trama_dtype dtype;
    for (int t = 0; t < TRAMA_N_DTYPES; t++) {
        ck_assert(!trama_dtype_parse(trama_dtype_name((trama_dtype)t), &dtype) && dtype == (trama_dtype)t);
        ck_assert_int_eq(trama_dtype_is_float(dtype), strstr(floats, trama_dtype_name(dtype)) != NULL);
    }
    ck_assert_int_eq(trama_dtype_size(TRAMA_BF16), 2);
    ck_assert_int_eq(trama_dtype_size(TRAMA_F16), 2);
    ck_assert_int_eq(trama_dtype_parse("half", &dtype), TRAMA_E_DTYPE);
    ck_assert_str_eq(trama_error(), "element type 'half' is not known; there are: f32 f64 i32 i64 u8 bf16 f16 bool i8 i16 u16 u32 u64 c64 c128");
}
END_TEST

int main(void)
{
    const TTest *tests[] = {
        every_half_is_the_number_that_its_bits_say,          every_half_comes_back_from_floats_and_doubles,
        ties_go_to_even_and_their_neighbours_to_the_nearest, any_bits_of_floats_and_doubles_are_rounded_once,
        numbers_out_of_range_become_infinite_or_zero,        elements_of_every_type_are_numbers,
        types_have_names_and_unknown_ones_hear_them_all,
    };
    return suite_run("half", NULL, NULL, tests, sizeof tests / sizeof *tests);
}
