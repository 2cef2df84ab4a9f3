/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of activations, and what GPUs compute of halves (TRAMA_HALF). */
#ifndef CODELETS_SMOOTH_H
#define CODELETS_SMOOTH_H

#include "exponential.h"
#include "logarithm.h"
#include "sine.h"

/* The real types that are computed in. TRAMA_HALF: a float of which only the digits of a half count. */
#ifdef __cplusplus
#define EACH_COMPUTED(X, ...) EACH_REAL(X, __VA_ARGS__) X(TRAMA_HALF, float, __VA_ARGS__)
#else
#define EACH_COMPUTED EACH_REAL
#endif

/* Within functions of f32 such as erf: a b + c, on GPUs rounded once, so that it is one instruction, and 1 / x for x >= 1,
 * there within a unit in the last place. What formulas write with +, * and / is rounded as on cores. */
#ifdef __CUDA_ARCH__
#define MULTIPLY_ADD(a, b, c) fmaf(a, b, c)
#else
#define MULTIPLY_ADD(a, b, c) ((a) * (b) + (c))
#endif
FORMULA float reciprocal_of(float x)
{
#ifdef __CUDA_ARCH__
    float result;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
    return result;
#else
    return 1 / x;
#endif
}
/* x / y for y >= 1 */
#define OVER_TRAMA_F32(x, y) ((x) / (y))
#define OVER_TRAMA_F64(x, y) ((x) / (y))
#ifdef __CUDA_ARCH__
#define OVER_TRAMA_HALF(x, y) ((x) * reciprocal_of(y))
#else
#define OVER_TRAMA_HALF(x, y) ((x) / (y))
#endif

/* p[0] + p[1] x + ... by Horner's rule, given the terms from p[10] or p[11] on, divided by x^10 or x^11 */
#define POLYNOMIAL_11(p, x, end) POLYNOMIAL_10(p, x, MULTIPLY_ADD(end, x, (p)[10]))
#define POLYNOMIAL_10(p, x, end)                                                                                       \
    POLYNOMIAL_5(p, x, MULTIPLY_ADD(POLYNOMIAL_STEP_4((p) + 6, x, end), x, (p)[5]))
#define POLYNOMIAL_5(p, x, end) MULTIPLY_ADD(POLYNOMIAL_STEP_4((p) + 1, x, end), x, (p)[0])
#define POLYNOMIAL_STEP_4(p, x, end)                                                                                   \
    MULTIPLY_ADD(MULTIPLY_ADD(MULTIPLY_ADD(MULTIPLY_ADD(end, x, (p)[3]), x, (p)[2]), x, (p)[1]), x, (p)[0])

/* The normal distribution at x, given e = exp(-x^2/2). For f32 erfc(z) = e t p(t), t = 1/(1 + z/2), with p the
 * polynomial through the exact values in 13 Chebyshev points of 0..1 (error 2e-9); for f64 libm's. */
FORMULA float normal_cdf_TRAMA_F32(float x, float e)
{
    static const float p[] = {0.2820947920034086f,  0.28209471553609405f,  0.24683683353185504f,  0.17623899714294328f,
                              0.08428571845716021f, -0.00559183696300206f, -0.06577722275082298f, 0.024762004544162507f,
                              -0.2800418715171064f, 0.5878506987145729f,   -0.5104317601878906f,  0.21373257947257884f,
                              -0.03605364879141343f};
    const float t = reciprocal_of(MULTIPLY_ADD(fabsf(x), 0.35355339059327376220f, 1));
    const float sum = POLYNOMIAL_11(p, t, MULTIPLY_ADD(p[12], t, p[11]));
    const float tail = 0.5f * e * t * sum;
    return x > 0 ? 1 - tail : tail;
}

FORMULA double normal_cdf_TRAMA_F64(double x, double e)
{
    (void)e;
    return 0.5 * erfc(x * -0.70710678118654752440);
}

#ifdef __cplusplus
/* With the polynomial through 7 points, halved (error 3e-5). */
FORMULA float normal_cdf_TRAMA_HALF(float x, float e)
{
    static const float p[] = {0.141051410543f,  0.140653364151f, 0.129766329448f, 0.0497903437312f,
                              0.15009269641f, -0.146474165672f, 0.0351188809938f};
    const float t = reciprocal_of(MULTIPLY_ADD(fabsf(x), 0.35355339059327376220f, 1));
    const float tail = e * t * POLYNOMIAL_5(p, t, MULTIPLY_ADD(p[6], t, p[5]));
    return x > 0 ? 1 - tail : tail;
}
#endif

/* erf: for f32 below 1 Taylor's series, 2 / sqrt(pi) x (1 - x^2 / 3 + x^4 / (2! 5) - ...), above it by the normal
 * distribution; for f64 libm's. Within 4 units in the last place (test_logarithm). */
FORMULA float erf_of_TRAMA_F32(float x)
{
#define ERF_TERM(n, factorial) ((n) % 2 ? -1 : 1) * 1.12837916709551257390f / ((factorial) * (2.0f * (n) + 1))
    static const float p[] = {ERF_TERM(0, 1),     ERF_TERM(1, 1),      ERF_TERM(2, 2),       ERF_TERM(3, 6),
                              ERF_TERM(4, 24),    ERF_TERM(5, 120),    ERF_TERM(6, 720),     ERF_TERM(7, 5040),
                              ERF_TERM(8, 40320), ERF_TERM(9, 362880), ERF_TERM(10, 3628800)};
#undef ERF_TERM
    const float size = fabsf(x), z = size > 4 ? 4 : size, square = z * z;
    const float sum = POLYNOMIAL_10(p, square, p[10]);
    const float tail = 2 * normal_cdf_TRAMA_F32(z * -1.41421356237309504880f, exp_of_TRAMA_F32(-square));
    return size < 1 ? x * sum : copysignf(1 - tail, x);
}

BY_LIBRARY(erf, TRAMA_F64, double)

#define GELU_OF(dtype, type, unused)                                                                                   \
    FORMULA type gelu_of_##dtype(type x)                                                                               \
    {                                                                                                                  \
        return x * normal_cdf_##dtype(x, exp_of_##dtype((type)-0.5 * x * x));                                          \
    }
EACH_COMPUTED(GELU_OF, )
#define GELU_SLOPE_OF(dtype, type, unused)                                                                             \
    FORMULA type gelu_slope_of_##dtype(type x)                                                                         \
    {                                                                                                                  \
        const type e = exp_of_##dtype((type)-0.5 * x * x), inverse_sqrt_2_pi = (type)0.39894228040143267794;           \
        return normal_cdf_##dtype(x, e) + x * e * inverse_sqrt_2_pi;                                                   \
    }
EACH_REAL(GELU_SLOPE_OF, )

/* exp of a negative number only, so that it never overflows */
#define SIGMOID_OF(dtype, type, unused)                                                                                \
    FORMULA type sigmoid_of_##dtype(type x)                                                                            \
    {                                                                                                                  \
        const type e = exp_of_##dtype(-MATH_##dtype(fabs)(x));                                                         \
        return OVER_##dtype(x < 0 ? e : 1, 1 + e);                                                                     \
    }
EACH_COMPUTED(SIGMOID_OF, )

/* The slope of x sigmoid(x), where 1 - sigmoid(x) does not cancel; log(1 + e^x), which never overflows; the slope of
 * x t, t = tanh(log(1 + e^x)) = ((1 + e^x)^2 - 1) / ((1 + e^x)^2 + 1), by e^-|x|, so that neither 1 - t^2 cancels nor
 * e^x overflows; gelu by tanh, and its slope. */
#define SELU_ALPHA 1.6732632423543772848
#define SELU_SCALE 1.0507009873554804934
#define SMOOTH_OF(dtype, type, unused)                                                                                 \
    FORMULA type silu_slope_of_##dtype(type x)                                                                         \
    {                                                                                                                  \
        const type e = exp_of_##dtype(-MATH_##dtype(fabs)(x)), inverse = 1 / (1 + e);                                  \
        const type s = (x < 0 ? e : 1) * inverse, rest = (x < 0 ? 1 : e) * inverse;                                    \
        return s * (1 + x * rest);                                                                                     \
    }                                                                                                                  \
    FORMULA type softplus_of_##dtype(type x)                                                                           \
    {                                                                                                                  \
        const type e = exp_of_##dtype(-MATH_##dtype(fabs)(x)), u = 1 + e;                                              \
        return (x < 0 ? 0 : x) + log_plus_##dtype(u, (e - (u - 1)) / u);                                               \
    }                                                                                                                  \
    FORMULA type mish_slope_of_##dtype(type x)                                                                         \
    {                                                                                                                  \
        const type e = exp_of_##dtype(-MATH_##dtype(fabs)(x)), over = x < 0 ? e * (e + 2) : 1 + 2 * e;                 \
        const type inverse = 1 / (x < 0 ? over + 2 : over + 2 * e * e);                                                \
        return over * inverse + x * (4 * e * (1 + e)) * (x < 0 ? 1 : e) * inverse * inverse;                           \
    }                                                                                                                  \
    FORMULA type gelu_tanh_of_##dtype(type x)                                                                          \
    {                                                                                                                  \
        return (type)0.5 * x * (1 + tanh_of_##dtype((type)0.79788456080286535588 * (x + (type)0.044715 * x * x * x))); \
    }                                                                                                                  \
    FORMULA type gelu_tanh_slope_of_##dtype(type x)                                                                    \
    {                                                                                                                  \
        const type t = tanh_of_##dtype((type)0.79788456080286535588 * (x + (type)0.044715 * x * x * x));               \
        const type inner = (type)0.79788456080286535588 * (1 + (type)0.134145 * x * x);                                \
        return (type)0.5 * (1 + t) + (type)0.5 * x * (1 - t * t) * inner;                                              \
    }
EACH_REAL(SMOOTH_OF, )

#ifdef __cplusplus
/* All others are as for f32. Slopes have zeros, near which two terms cancel. */
#define AS_F32(function)                                                                                               \
    FORMULA float function##_of_TRAMA_HALF(float x)                                                                    \
    {                                                                                                                  \
        return function##_of_TRAMA_F32(x);                                                                             \
    }
AS_F32(exp2)
AS_F32(expm1)
AS_F32(tanh)
AS_F32(log)
AS_F32(log1p)
AS_F32(sin)
AS_F32(cos)
AS_F32(erf)
AS_F32(gelu_slope)
AS_F32(softplus)
AS_F32(silu_slope)
AS_F32(mish_slope)
AS_F32(gelu_tanh)
AS_F32(gelu_tanh_slope)
#endif

#endif
