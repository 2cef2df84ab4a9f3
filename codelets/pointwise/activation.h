/* SPDX-License-Identifier: Apache-2.0 */
/* The arithmetic of activation.c, for every side that runs it. gelu is exact: x times the normal distribution at x. */
#ifndef CODELETS_ACTIVATION_H
#define CODELETS_ACTIVATION_H

#include "exponential.h"

/* As POINTWISE_OPS. */
#define ACTIVATION_OPS(X)                                                                                              \
    X(UNARY, EACH_DTYPE, relu, RELU)                                                                                   \
    X(BINARY, EACH_DTYPE, relu_grad, RELU_GRAD)                                                                        \
    X(UNARY, EACH_FLOAT, gelu, GELU)                                                                                   \
    X(BINARY, EACH_FLOAT, gelu_grad, GELU_GRAD)                                                                        \
    X(UNARY, EACH_FLOAT, tanh, TANH)                                                                                   \
    X(BINARY, EACH_FLOAT, tanh_grad, TANH_GRAD)                                                                        \
    X(UNARY, EACH_FLOAT, sigmoid, SIGMOID)                                                                             \
    X(BINARY, EACH_FLOAT, sigmoid_grad, SIGMOID_GRAD)

/* <= keeps NaN */
#define RELU(dtype, type, x, y, with) ((x) <= 0 ? 0 : (x))
#define RELU_GRAD(dtype, type, g, y, with) ((y) > 0 ? (g) : 0)

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
#define GELU(dtype, type, x, y, with) gelu_of_##dtype(x)
#define GELU_GRAD(dtype, type, g, x, with) ((g)*gelu_slope_##dtype(x))

#define TANH(dtype, type, x, y, with) tanh_of_##dtype(x)
#define TANH_GRAD(dtype, type, g, y, with) ((g) * (1 - (y) * (y)))

/* exp of a negative number only, so that it never overflows */
#define SIGMOID_OF(dtype, type, unused)                                                                                \
    FORMULA type sigmoid_of_##dtype(type x)                                                                            \
    {                                                                                                                  \
        const type e = exp_of_##dtype(-MATH_##dtype(fabs)(x));                                                         \
        return (x < 0 ? e : 1) / (1 + e);                                                                              \
    }
EACH_REAL(SIGMOID_OF, )
#define SIGMOID(dtype, type, x, y, with) sigmoid_of_##dtype(x)
#define SIGMOID_GRAD(dtype, type, g, y, with) ((g) * (y) * (1 - (y)))

#endif
