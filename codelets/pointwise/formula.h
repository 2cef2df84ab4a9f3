/* SPDX-License-Identifier: Apache-2.0 */
/* The formulas of ops.def as functions, for cores and GPUs: formula_exp_TRAMA_F32(x, y, with), for each type that is
 * computed in. with: the reals of the op's attributes. This file defines the words of formulas. A word that depends on
 * the type ends in it, as ABS_TRAMA_F32; formula_typed.h lets formulas write ABS. Division of integers truncates, and
 * by zero gives 0. */
#ifndef CODELETS_FORMULA_H
#define CODELETS_FORMULA_H

#include "exponential.h"
#include "ops.h"

#define ABS_TRAMA_F32(x) fabsf(x)
#define ABS_TRAMA_F64(x) fabs(x)
#define ABS_TRAMA_I32(x) ((x) < 0 ? 0 - (uint32_t)(x) : (uint32_t)(x))
#define ABS_TRAMA_I64(x) ((x) < 0 ? 0 - (uint64_t)(x) : (uint64_t)(x))
#define ABS_TRAMA_U8(x) (x)
#define SIGN_OF(dtype, type, unused)                                                                                   \
    FORMULA type sign_of_##dtype(type x)                                                                               \
    {                                                                                                                  \
        return IS_NAN_##dtype(x) ? x : (type)((x > 0) - SIGN_BELOW_##dtype(x));                                        \
    }
#define SIGN_BELOW_TRAMA_F32(x) ((x) < 0)
#define SIGN_BELOW_TRAMA_F64(x) ((x) < 0)
#define SIGN_BELOW_TRAMA_I32(x) ((x) < 0)
#define SIGN_BELOW_TRAMA_I64(x) ((x) < 0)
#define SIGN_BELOW_TRAMA_U8(x) 0
EACH_NUMBER(SIGN_OF, )
#define CLAMP(x, low, high) ((x) < (low) ? (low) : (x) > (high) ? (high) : (x))

/* Floats are scaled in their own type, integers in double. */
#define SCALE_TRAMA_F32(x, factor) ((x) * (float)(factor))
#define SCALE_TRAMA_F64(x, factor) ((x) * (factor))
#define SCALE_TRAMA_I32(x, factor) OF_REAL_TRAMA_I32((x) * (factor))
#define SCALE_TRAMA_I64(x, factor) OF_REAL_TRAMA_I64((double)(x) * (factor))
#define SCALE_TRAMA_U8(x, factor) OF_REAL_TRAMA_U8((x) * (factor))

#define NUMBER_TO_TRAMA_F32(number) (float)(number)
#define NUMBER_TO_TRAMA_F64(number) (number)
#define NUMBER_TO_TRAMA_I32(number) (uint32_t)(int64_t)(number)
#define NUMBER_TO_TRAMA_I64(number) (uint64_t)(int64_t)(number)
#define NUMBER_TO_TRAMA_U8(number) (uint8_t)(int64_t)(number)

/* w - lr g. Floats in their own type; integers in double, so that a rate below 1 counts. */
#define DESCENT_TRAMA_F32(w, g, lr) ((w) - (float)(lr) * (g))
#define DESCENT_TRAMA_F64(w, g, lr) ((w) - (lr) * (g))
#define DESCENT_TRAMA_I32(w, g, lr) OF_REAL_TRAMA_I32((w) - (lr) * (g))
#define DESCENT_TRAMA_I64(w, g, lr) OF_REAL_TRAMA_I64((double)(w) - (lr) * (double)(g))
#define DESCENT_TRAMA_U8(w, g, lr) OF_REAL_TRAMA_U8((w) - (lr) * (g))

/* From one element type to another: reals are rounded or truncated, integers keep their lowest bits. */
#define CAST(out_dtype, out_type, dtype, x) REAL_OR_WRAP_##dtype(out_dtype, out_type, LOAD_##dtype(x))
#define REAL_OR_WRAP_TRAMA_F32(out_dtype, out_type, x) OF_REAL_##out_dtype(x)
#define REAL_OR_WRAP_TRAMA_F64(out_dtype, out_type, x) OF_REAL_##out_dtype(x)
#define REAL_OR_WRAP_TRAMA_BF16(out_dtype, out_type, x) OF_REAL_##out_dtype(x)
#define REAL_OR_WRAP_TRAMA_F16(out_dtype, out_type, x) OF_REAL_##out_dtype(x)
#define REAL_OR_WRAP_TRAMA_I32(out_dtype, out_type, x) STORE_##out_dtype(x)
#define REAL_OR_WRAP_TRAMA_I64(out_dtype, out_type, x) STORE_##out_dtype(x)
#define REAL_OR_WRAP_TRAMA_U8(out_dtype, out_type, x) STORE_##out_dtype(x)

/* ---- Activations --------------------------------------------------------------------------------- */

/* The normal distribution at x, given e = exp(-x^2/2). For f32 erfc(z) = e t p(t), t = 1/(1 + z/2), with p the
 * polynomial through the exact values in 13 Chebyshev points of 0..1 (error 2e-9); for f64 libm's. */
FORMULA float normal_cdf_TRAMA_F32(float x, float e)
{
    static const float p[] = {0.2820947920034086f,  0.28209471553609405f,  0.24683683353185504f,  0.17623899714294328f,
                              0.08428571845716021f, -0.00559183696300206f, -0.06577722275082298f, 0.024762004544162507f,
                              -0.2800418715171064f, 0.5878506987145729f,   -0.5104317601878906f,  0.21373257947257884f,
                              -0.03605364879141343f};
    const float t = 1 / (1 + fabsf(x) * 0.35355339059327376220f);
    float sum = p[12];
    sum = sum * t + p[11], sum = sum * t + p[10], sum = sum * t + p[9], sum = sum * t + p[8];
    sum = sum * t + p[7], sum = sum * t + p[6], sum = sum * t + p[5], sum = sum * t + p[4];
    sum = sum * t + p[3], sum = sum * t + p[2], sum = sum * t + p[1], sum = sum * t + p[0];
    const float tail = 0.5f * e * t * sum;
    return x > 0 ? 1 - tail : tail;
}

FORMULA double normal_cdf_TRAMA_F64(double x, double e)
{
    (void)e;
    return 0.5 * erfc(x * -0.70710678118654752440);
}

#define GELU_OF(dtype, type, unused)                                                                                   \
    FORMULA type gelu_of_##dtype(type x)                                                                               \
    {                                                                                                                  \
        return x * normal_cdf_##dtype(x, exp_of_##dtype((type)-0.5 * x * x));                                          \
    }                                                                                                                  \
    FORMULA type gelu_slope_##dtype(type x)                                                                            \
    {                                                                                                                  \
        const type e = exp_of_##dtype((type)-0.5 * x * x), inverse_sqrt_2_pi = (type)0.39894228040143267794;           \
        return normal_cdf_##dtype(x, e) + x * e * inverse_sqrt_2_pi;                                                   \
    }
EACH_REAL(GELU_OF, )

/* exp of a negative number only, so that it never overflows */
#define SIGMOID_OF(dtype, type, unused)                                                                                \
    FORMULA type sigmoid_of_##dtype(type x)                                                                            \
    {                                                                                                                  \
        const type e = exp_of_##dtype(-MATH_##dtype(fabs)(x));                                                         \
        return (x < 0 ? e : 1) / (1 + e);                                                                              \
    }
EACH_REAL(SIGMOID_OF, )

/* ---- The functions --------------------------------------------------------------------------------- */

#define FORMULA_OF(name, dtype) FORMULA_OF_(name, dtype)
#define FORMULA_OF_(name, dtype) formula_##name##_##dtype
#define JOINED(word, dtype) JOINED_(word, dtype)
#define JOINED_(word, dtype) word##dtype

#define FLOATS_ONLY(...) __VA_ARGS__
#define DTYPE TRAMA_F32
#include "formula_typed.h"
#define DTYPE TRAMA_F64
#include "formula_typed.h"
#undef FLOATS_ONLY

#define FLOATS_ONLY(...)
#define DTYPE TRAMA_I32
#include "formula_typed.h"
#define DTYPE TRAMA_I64
#include "formula_typed.h"
#define DTYPE TRAMA_U8
#include "formula_typed.h"
#undef FLOATS_ONLY

/* The types that an op has kernels for, by its column `types` in ops.def. */
#define EACH_ALL EACH_DTYPE
#define EACH_FLOATS EACH_FLOAT

#endif
