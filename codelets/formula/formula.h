/* SPDX-License-Identifier: Apache-2.0 */
/* The formulas of ops.def as functions, for cores and GPUs: formula_exp_TRAMA_F32(x, y, with), for each type that is
 * computed in. with: the reals of the op's attributes. This file defines the words of formulas. Division of integers
 * truncates, and by zero gives 0. */
#ifndef CODELETS_FORMULA_H
#define CODELETS_FORMULA_H

#include "ops.h"
#include "smooth.h"

/* Words that depend on the kind of the type. formula_typed.h gives them the type: formulas write ABS(x). */
#define ABS_OF(dtype, x) BY_KIND(ABS, dtype)(dtype, x)
#define ABS_REAL(dtype, x) MATH_##dtype(fabs)(x)
#define ABS_SIGNED(dtype, x) ((x) < 0 ? 0 - (WRAP_##dtype)(x) : (WRAP_##dtype)(x))
#define ABS_UNSIGNED(dtype, x) (x)
#define SIGN_OF(dtype, x) BY_KIND(SIGN, dtype)(dtype, x)
#define SIGN_REAL(dtype, x) ((x) != (x) ? (x) : (NUMBER_##dtype)(((x) > 0) - ((x) < 0)))
#define SIGN_SIGNED(dtype, x) (((x) > 0) - ((x) < 0))
#define SIGN_UNSIGNED(dtype, x) ((x) > 0)
#define DIVIDE_OF(dtype, x, y) BY_KIND(DIVIDE, dtype)(x, y)
#define CLAMP(x, low, high) ((x) < (low) ? (low) : (x) > (high) ? (high) : (x))

#define IS_NAN_OF(dtype, x) IS_NAN(dtype, x)
#define IS_NAN_COMPLEX(x) ((x) != (x))
#define IS_INF_OF(dtype, x) BY_KIND(IS_INF, dtype)(x)
#define IS_INF_REAL(x) ((x) == INFINITY || (x) == -INFINITY)
#define IS_INF_SIGNED(x) 0
#define IS_INF_UNSIGNED(x) 0
#define IS_INF_BOOL(x) 0
#define IS_INF_COMPLEX(x) (IS_INF_REAL(creal(x)) || IS_INF_REAL(cimag(x)))

/* ---- Division, powers and bits ---- */

/* Python's division: the remainder has the sign of y, and the quotient fits it. */
FORMULA int64_t modulo_signed(int64_t x, int64_t y)
{
    const int64_t rest = y == 0 || y == -1 ? 0 : x % y;
    return rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest;
}
#define MODULO_OF_REAL(dtype, type, unused)                                                                            \
    FORMULA type modulo_##dtype(type x, type y)                                                                        \
    {                                                                                                                  \
        const type rest = MATH_##dtype(fmod)(x, y);                                                                    \
        return rest == 0 ? MATH_##dtype(copysign)(rest, y) : (rest < 0) != (y < 0) ? rest + y : rest;                  \
    }                                                                                                                  \
    FORMULA type floor_divide_##dtype(type x, type y)                                                                  \
    {                                                                                                                  \
        const type quotient = (x - modulo_##dtype(x, y)) / y;                                                          \
        return y == 0 || IS_INF_REAL(quotient) ? MATH_##dtype(floor)(x / y) : MATH_##dtype(rint)(quotient);            \
    }
EACH_COMPUTED(MODULO_OF_REAL, )
#define MODULO_OF(dtype, x, y) BY_KIND(MODULO, dtype)(dtype, x, y)
#define MODULO_REAL(dtype, x, y) modulo_##dtype(x, y)
#define MODULO_SIGNED(dtype, x, y) modulo_signed(x, y)
#define MODULO_UNSIGNED(dtype, x, y) ((y) == 0 ? 0 : (x) % (y))
#define REMAINDER_OF(dtype, x, y) BY_KIND(REMAINDER, dtype)(dtype, x, y)
#define REMAINDER_REAL(dtype, x, y) MATH_##dtype(fmod)(x, y)
#define REMAINDER_SIGNED(dtype, x, y) ((y) == 0 || (y) == -1 ? 0 : (x) % (y))
#define REMAINDER_UNSIGNED(dtype, x, y) ((y) == 0 ? 0 : (x) % (y))
#define FLOOR_DIVIDE_OF(dtype, x, y) BY_KIND(FLOOR_DIVIDE, dtype)(dtype, x, y)
#define FLOOR_DIVIDE_REAL(dtype, x, y) floor_divide_##dtype(x, y)
#define FLOOR_DIVIDE_SIGNED(dtype, x, y)                                                                               \
    (divide_signed(x, y) - ((y) != 0 && (y) != -1 && (x) % (y) != 0 && ((x) < 0) != ((y) < 0)))
#define FLOOR_DIVIDE_UNSIGNED(dtype, x, y) divide_unsigned(x, y)

/* x^y modulo 2^64 by repeated squares; of a negative y the reciprocal, truncated. */
FORMULA uint64_t power_unsigned(uint64_t x, uint64_t y)
{
    uint64_t power = 1;
    for (; y; y >>= 1, x *= x)
        power *= y & 1 ? x : 1;
    return power;
}
FORMULA int64_t power_signed(int64_t x, int64_t y)
{
    if (y < 0)
        return x == 1 || (x == -1 && y % 2 == 0) ? 1 : x == -1 ? -1 : 0;
    return (int64_t)power_unsigned((uint64_t)x, (uint64_t)y);
}
#define POWER_OF(dtype, x, y) BY_KIND(POWER, dtype)(dtype, x, y)
#define POWER_REAL(dtype, x, y) MATH_##dtype(pow)(x, y)
#define POWER_COMPLEX(dtype, x, y) power_##dtype(x, y)
#define POWER_SIGNED(dtype, x, y) power_signed(x, y)
#define POWER_UNSIGNED(dtype, x, y) power_unsigned(x, y)

#define LOG2_OF(dtype, x) BY_KIND(LOG2, dtype)(dtype, x)
#define LOG2_REAL(dtype, x) MATH_##dtype(log2)(x)
#define LOG2_COMPLEX(dtype, x) (log_of_##dtype(x) * (PART_##dtype)1.44269504088896340736) /* 1 / ln 2 */
#define LOG10_OF(dtype, x) BY_KIND(LOG10, dtype)(dtype, x)
#define LOG10_REAL(dtype, x) MATH_##dtype(log10)(x)
#define LOG10_COMPLEX(dtype, x) (log_of_##dtype(x) * (PART_##dtype)0.43429448190325182765) /* 1 / ln 10 */

#define REAL_PART_OF(dtype, x) BY_KIND(REAL_PART, dtype)(x)
#define REAL_PART_REAL(x) (x)
#define REAL_PART_COMPLEX(x) (creal(x))

#define BIT_NOT_OF(dtype, x) BY_KIND(BIT_NOT, dtype)(x)
#define BIT_NOT_SIGNED(x) (~(x))
#define BIT_NOT_UNSIGNED(x) (~(x))
#define BIT_NOT_BOOL(x) (!(x))
#define IS_BIT_OF(type, y) ((uint64_t)(y) < 8 * sizeof(type))
#define SHIFT_LEFT_OF(type, x, y) (IS_BIT_OF(type, y) ? (type)((uint64_t)(x) << (y)) : 0)
#define SHIFT_RIGHT_OF(dtype, x, y) BY_KIND(SHIFT_RIGHT, dtype)(NUMBER_##dtype, x, y)
#define SHIFT_RIGHT_SIGNED(type, x, y) (IS_BIT_OF(type, y) ? (type)((x) >> (y)) : (x) < 0 ? (type)-1 : 0)
#define SHIFT_RIGHT_UNSIGNED(type, x, y) (IS_BIT_OF(type, y) ? (type)((x) >> (y)) : 0)

#define LARGER_OF(dtype, x, y) MAXIMUM(dtype, x, y)
#define SMALLER_OF(dtype, x, y) MINIMUM(dtype, x, y)

/* ---- Scaling and casts ---- */

/* Floats are scaled in their own type, integers in double, so that a factor below 1 counts. */
#define SCALE_OF(dtype, x, factor) BY_KIND(SCALE, dtype)(dtype, x, factor)
#define SCALE_REAL(dtype, x, factor) ((x) * (NUMBER_##dtype)(factor))
#define SCALE_COMPLEX(dtype, x, factor) ((x) * (PART_##dtype)(factor))
#define SCALE_SIGNED(dtype, x, factor) OF_REAL_SIGNED(dtype, (double)(x) * (factor))
#define SCALE_UNSIGNED(dtype, x, factor) OF_REAL_UNSIGNED(dtype, (double)(x) * (factor))

/* w - lr g, in the same types */
#define DESCENT_OF(dtype, w, g, lr) BY_KIND(DESCENT, dtype)(dtype, w, g, lr)
#define DESCENT_REAL(dtype, w, g, lr) ((w) - (NUMBER_##dtype)(lr) * (g))
#define DESCENT_COMPLEX(dtype, w, g, lr) ((w) - (PART_##dtype)(lr) * (g))
#define DESCENT_SIGNED(dtype, w, g, lr) OF_REAL_SIGNED(dtype, (double)(w) - (lr) * (double)(g))
#define DESCENT_UNSIGNED(dtype, w, g, lr) OF_REAL_UNSIGNED(dtype, (double)(w) - (lr) * (double)(g))

/* A double attribute as an operand of +, - and *. */
#define NUMBER_OF_OF(dtype, number) BY_KIND(NUMBER_OF, dtype)(dtype, number)
#define NUMBER_OF_REAL(dtype, number) ((NUMBER_##dtype)(number))
#define NUMBER_OF_COMPLEX(dtype, number) ((PART_##dtype)(number))
#define NUMBER_OF_SIGNED(dtype, number) ((WRAP_##dtype)(int64_t)(number))
#define NUMBER_OF_UNSIGNED(dtype, number) ((WRAP_##dtype)(int64_t)(number))

/* From one element type to another: reals are rounded or truncated, integers keep their lowest bits; a bool is whether
 * the element is not 0. A complex number becomes none but a complex one. */
#define CAST(out_dtype, dtype, x) BY_KIND(CAST, dtype)(out_dtype, LOAD(dtype, x))
#define CAST_REAL(out_dtype, x) OF_REAL(out_dtype, x)
#define CAST_HALF(out_dtype, x) OF_REAL(out_dtype, x)
#define CAST_SIGNED(out_dtype, x) STORE(out_dtype, x)
#define CAST_UNSIGNED(out_dtype, x) STORE(out_dtype, x)
#define CAST_BOOL(out_dtype, x) STORE(out_dtype, x)
#define CAST_COMPLEX(out_dtype, x) STORE(out_dtype, x)

/* ---- Complex numbers, by libm ---- */

#ifndef __cplusplus
/* 0^y is 1 for y = 0, and 0 where the real part of y is positive. e^z - 1 = e^a cos b - 1 + i e^a sin b, where
 * e^a cos b - 1 = (e^a - 1) cos b - 2 sin(b / 2)^2 does not cancel for a small z; nor does log |1 + z| as half of the
 * log1p of |1 + z|^2 - 1. The sigmoid takes the exponential of -|a| alone, and the slope of x sigmoid(x) takes no
 * 1 - sigmoid(x). */
#define COMPLEX_OF(dtype, type, unused)                                                                                \
    BY_LIBRARY(exp, dtype, type)                                                                                       \
    BY_LIBRARY(log, dtype, type)                                                                                       \
    BY_LIBRARY(sin, dtype, type)                                                                                       \
    BY_LIBRARY(cos, dtype, type)                                                                                       \
    FORMULA type power_##dtype(type x, type y)                                                                         \
    {                                                                                                                  \
        return y == 0 ? 1 : x == 0 && creal(y) > 0 ? 0 : MATH_##dtype(pow)(x, y);                                      \
    }                                                                                                                  \
    FORMULA type exp2_of_##dtype(type x)                                                                               \
    {                                                                                                                  \
        return MATH_##dtype(exp)(x * (PART_##dtype)0.69314718055994530942);                                            \
    }                                                                                                                  \
    FORMULA type expm1_of_##dtype(type x)                                                                              \
    {                                                                                                                  \
        const double a = creal(x), b = cimag(x), half = sin(b / 2);                                                    \
        return (type)CMPLX(expm1(a) * cos(b) - 2 * half * half, cimag(cexp(x)));                                       \
    }                                                                                                                  \
    FORMULA type log1p_of_##dtype(type x)                                                                              \
    {                                                                                                                  \
        const double a = creal(x), b = cimag(x);                                                                       \
        if (!(fabs(a) < 0.5 && fabs(b) < 0.5))                                                                         \
            return MATH_##dtype(log)(1 + x);                                                                           \
        return (type)CMPLX(log1p(a * (a + 2) + b * b) / 2, atan2(b, 1 + a));                                           \
    }                                                                                                                  \
    BY_LIBRARY(tanh, dtype, type)                                                                                      \
    FORMULA type sigmoid_of_##dtype(type x)                                                                            \
    {                                                                                                                  \
        const type e = MATH_##dtype(exp)(creal(x) < 0 ? x : -x);                                                       \
        return (creal(x) < 0 ? e : 1) / (1 + e);                                                                       \
    }                                                                                                                  \
    FORMULA type silu_slope_of_##dtype(type x)                                                                         \
    {                                                                                                                  \
        const type e = MATH_##dtype(exp)(creal(x) < 0 ? x : -x), inverse = 1 / (1 + e);                                \
        const type s = (creal(x) < 0 ? e : 1) * inverse, rest = (creal(x) < 0 ? 1 : e) * inverse;                      \
        return s * (1 + x * rest);                                                                                     \
    }
EACH_COMPLEX(COMPLEX_OF, )
#endif

/* ---- The functions --------------------------------------------------------------------------------- */

#define FORMULA_OF(name, dtype) FORMULA_OF_(name, dtype)
#define FORMULA_OF_(name, dtype) formula_##name##_##dtype
#define JOINED(word, dtype) JOINED_(word, dtype)
#define JOINED_(word, dtype) word##dtype

/* The types that an op has kernels for, by its column `types` in ops.def: EACH_NUMBERS lists them, and IN(NUMBERS) of
 * formula_typed.h keeps its argument where DTYPE is one of them. */
#define EACH_NUMBERS EACH_NUMBER
#define EACH_FLOATS EACH_FLOAT
#define EACH_INTEGERS EACH_INTEGER
#define EACH_BITS(X, ...) EACH_INTEGER(X, __VA_ARGS__) EACH_BOOL(X, __VA_ARGS__)
#define NUMBERS_REAL KEEP
#define NUMBERS_SIGNED KEEP
#define NUMBERS_UNSIGNED KEEP
#define NUMBERS_BOOL DROP
#define FLOATS_REAL KEEP
#define FLOATS_SIGNED DROP
#define FLOATS_UNSIGNED DROP
#define FLOATS_BOOL DROP
#define INTEGERS_REAL DROP
#define INTEGERS_SIGNED KEEP
#define INTEGERS_UNSIGNED KEEP
#define INTEGERS_BOOL DROP
#define BITS_REAL DROP
#define BITS_SIGNED KEEP
#define BITS_UNSIGNED KEEP
#define BITS_BOOL KEEP
#define NUMBERS_COMPLEX DROP
#define FLOATS_COMPLEX DROP
#define INTEGERS_COMPLEX DROP
#define BITS_COMPLEX DROP
#define FIELD_REAL KEEP
#define FIELD_SIGNED KEEP
#define FIELD_UNSIGNED KEEP
#define FIELD_BOOL DROP
#define FIELD_COMPLEX KEEP
#define ANALYTIC_REAL KEEP
#define ANALYTIC_SIGNED DROP
#define ANALYTIC_UNSIGNED DROP
#define ANALYTIC_BOOL DROP
#define ANALYTIC_COMPLEX KEEP
#define REALS_REAL KEEP
#define REALS_SIGNED KEEP
#define REALS_UNSIGNED KEEP
#define REALS_BOOL KEEP
#define REALS_COMPLEX DROP
#define KEEP(...) __VA_ARGS__
#define DROP(...)

#define DTYPE TRAMA_F32
#include "formula_typed.h"
#define DTYPE TRAMA_F64
#include "formula_typed.h"
#ifdef __cplusplus
#define DTYPE TRAMA_HALF
#include "formula_typed.h"
#endif
#define DTYPE TRAMA_I8
#include "formula_typed.h"
#define DTYPE TRAMA_I16
#include "formula_typed.h"
#define DTYPE TRAMA_I32
#include "formula_typed.h"
#define DTYPE TRAMA_I64
#include "formula_typed.h"
#define DTYPE TRAMA_U8
#include "formula_typed.h"
#define DTYPE TRAMA_U16
#include "formula_typed.h"
#define DTYPE TRAMA_U32
#include "formula_typed.h"
#define DTYPE TRAMA_U64
#include "formula_typed.h"
#define DTYPE TRAMA_BOOL
#include "formula_typed.h"
#ifndef __cplusplus
#define DTYPE TRAMA_C64
#include "formula_typed.h"
#define DTYPE TRAMA_C128
#include "formula_typed.h"
#endif

#endif
