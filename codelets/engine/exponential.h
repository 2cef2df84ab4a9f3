/* SPDX-License-Identifier: Apache-2.0 */
/* exp, exp2, expm1 and tanh that vectorise: no branch, no table, no call. exp and exp2 are within 2 units in the last
 * place, the others within 4 (test_exponential); infinities, overflow, subnormal results and NaN as in libm. All
 * instruction sets give the same bits where the compiler does not contract a * b + c (-ffp-contract=off). On GPUs those
 * of f32 are CUDA's, within as many units. */
#ifndef CODELETS_EXPONENTIAL_H
#define CODELETS_EXPONENTIAL_H

#include <string.h>

#include "number.h"

/* e^r - 1 for |r| <= ln(2)/2 by Taylor's series, r (1 + r/2 (1 + r/3 (...))), here from the term behind k */
#define SERIES(type, r, k, rest) (1 + (r) * (type)(1.0 / (k)) * (rest))
#define SERIES_TRAMA_F32(r) SERIES_FROM_3(float, r, SERIES_4_TO_7(float, r))
#define SERIES_TRAMA_F64(r) SERIES_FROM_3(double, r, SERIES_4_TO_13(double, r))
#define SERIES_FROM_3(type, r, rest) ((r) + (r) * (r) * ((type)0.5 + (r) * (type)(1.0 / 6) * (rest)))
#define SERIES_4_TO_7(type, r) SERIES(type, r, 4, SERIES(type, r, 5, SERIES(type, r, 6, SERIES(type, r, 7, 1))))
#define SERIES_4_TO_13(type, r)                                                                                        \
    SERIES(type, r, 4, SERIES(type, r, 5, SERIES(type, r, 6, SERIES(type, r, 7, SERIES_8_TO_13(type, r)))))
#define SERIES_8_TO_13(type, r)                                                                                        \
    SERIES(type, r, 8,                                                                                                 \
           SERIES(type, r, 9, SERIES(type, r, 10, SERIES(type, r, 11, SERIES(type, r, 12, SERIES(type, r, 13, 1))))))

/* Cody and Waite: e^x = 2^k e^r, r = x - k ln 2. Adding MAGIC = 1.5 * 2^mantissa rounds to an integer, which then
 * stands in the low bits. ln 2 is given in two parts, of which k times the first is exact. */
#define EXPONENTIAL(dtype, type, bits, mantissa, bias, magic, ln2_high, ln2_low, lowest, highest, flat)                \
    FORMULA type rounded_##dtype(type x)                                                                               \
    {                                                                                                                  \
        return (x + (type)magic) - (type)magic;                                                                        \
    }                                                                                                                  \
    FORMULA type power_of_2_##dtype(type k)                                                                            \
    {                                                                                                                  \
        type result = k + (type)magic;                                                                                 \
        bits word;                                                                                                     \
        memcpy(&word, &result, sizeof word);                                                                           \
        word = (word + bias) << mantissa;                                                                              \
        memcpy(&result, &word, sizeof word);                                                                           \
        return result;                                                                                                 \
    }                                                                                                                  \
    FORMULA type exp_less_1_##dtype(type x, type k)                                                                    \
    {                                                                                                                  \
        const type r = (x - k * (type)ln2_high) - k * (type)ln2_low;                                                   \
        return SERIES_##dtype(r);                                                                                      \
    }                                                                                                                  \
    FORMULA type exp_of_##dtype(type x)                                                                                \
    {                                                                                                                  \
        const type above = x < (type)lowest ? (type)lowest : x, held = above > (type)highest ? (type)highest : above;  \
        const type k = rounded_##dtype(held * (type)1.44269504088896340736), half = rounded_##dtype(k * (type)0.5);    \
        return (1 + exp_less_1_##dtype(held, k)) * power_of_2_##dtype(half) * power_of_2_##dtype(k - half);            \
    }                                                                                                                  \
    FORMULA type exp2_of_##dtype(type x)                                                                               \
    {                                                                                                                  \
        const type low = (type)(lowest * 1.44269504088896340736), high = (type)(highest * 1.44269504088896340736);     \
        const type above = x < low ? low : x, held = above > high ? high : above;                                      \
        const type k = rounded_##dtype(held), half = rounded_##dtype(k * (type)0.5);                                   \
        const type r = (held - k) * (type)0.69314718055994530942;                                                      \
        return (1 + SERIES_##dtype(r)) * power_of_2_##dtype(half) * power_of_2_##dtype(k - half);                      \
    }                                                                                                                  \
    /* -1 where flat; without the - 1 of 2^k - 1 where no digit of it counts, so that 2^k may overflow */              \
    FORMULA type expm1_of_##dtype(type x)                                                                              \
    {                                                                                                                  \
        const type above = x < (type)(-2 * flat) ? (type)(-2 * flat) : x;                                              \
        const type held = above > (type)highest ? (type)highest : above;                                               \
        const type k = rounded_##dtype(held * (type)1.44269504088896340736), half = rounded_##dtype(k * (type)0.5);    \
        const type less_1 = exp_less_1_##dtype(held, k), a = power_of_2_##dtype(half),                                 \
                   b = power_of_2_##dtype(k - half);                                                                   \
        const type result = k > mantissa + 2 ? (1 + less_1) * a * b : less_1 * (a * b) + (a * b - 1);                  \
        return x == 0 ? x : result;                                                                                    \
    }                                                                                                                  \
    /* (e^2x - 1) / (e^2x + 1); equal to 1 where flat */                                                               \
    FORMULA type tanh_of_##dtype(type x)                                                                               \
    {                                                                                                                  \
        const type size = MATH_##dtype(fabs)(x), y = 2 * (size > flat ? flat : size);                                  \
        const type k = rounded_##dtype(y * (type)1.44269504088896340736), power = power_of_2_##dtype(k);               \
        const type less_1 = power * exp_less_1_##dtype(y, k) + (power - 1);                                            \
        return MATH_##dtype(copysign)(less_1 / (less_1 + 2), x);                                                       \
    }
#ifdef __CUDA_ARCH__
BY_LIBRARY(exp, TRAMA_F32, float)
BY_LIBRARY(exp2, TRAMA_F32, float)
BY_LIBRARY(expm1, TRAMA_F32, float)
BY_LIBRARY(tanh, TRAMA_F32, float)
#else
EXPONENTIAL(TRAMA_F32, float, uint32_t, 23, 127, 0x1.8p23, 0x1.62e4p-1, 0x1.7f7d1cf79abcap-20, -104, 89, 10)
#endif
#ifdef __cplusplus
/* For halves, within 2^-17: the square of 2^(x / (2 ln 2)), which is never subnormal where e^x counts. */
FORMULA float exp_of_TRAMA_HALF(float x)
{
#ifdef __CUDA_ARCH__
    float root;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(root) : "f"(x * 0.72134752044448170368f));
    return root * root;
#else
    return exp_of_TRAMA_F32(x);
#endif
}
#endif
EXPONENTIAL(TRAMA_F64, double, uint64_t, 52, 1023, 0x1.8p52, 0x1.62e42fefa38p-1, 0x1.ef35793c7673p-45, -746, 710, 20)

#endif
