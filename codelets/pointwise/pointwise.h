/* SPDX-License-Identifier: Apache-2.0 */
/* The arithmetic of pointwise.c, for every side that runs it: what each op makes of one element. Division of integers
 * truncates, and by zero gives 0. */
#ifndef CODELETS_POINTWISE_H
#define CODELETS_POINTWISE_H

#include "exponential.h"
#include "ops.h"

/* X(form, EACH, name, VALUE): an op of one element type, whether it has one operand or two, the types that it has, and
 * VALUE(dtype, type, x, y, with), where `with` are the reals of its attributes. */
#define POINTWISE_OPS(X)                                                                                               \
    X(BINARY, EACH_DTYPE, add, ADD)                                                                                    \
    X(BINARY, EACH_DTYPE, sub, SUB)                                                                                    \
    X(BINARY, EACH_DTYPE, mul, MUL)                                                                                    \
    X(BINARY, EACH_DTYPE, div, DIV)                                                                                    \
    X(UNARY, EACH_DTYPE, neg, NEG)                                                                                     \
    X(UNARY, EACH_DTYPE, abs, ABS)                                                                                     \
    X(UNARY, EACH_DTYPE, sign, SIGN)                                                                                   \
    X(UNARY, EACH_DTYPE, square, SQUARE)                                                                               \
    X(UNARY, EACH_FLOAT, sqrt, SQRT)                                                                                   \
    X(UNARY, EACH_FLOAT, exp, EXP)                                                                                     \
    X(UNARY, EACH_FLOAT, log, LOG)                                                                                     \
    X(UNARY, EACH_DTYPE, scale, SCALE)                                                                                 \
    X(UNARY, EACH_DTYPE, affine, AFFINE)                                                                               \
    X(UNARY, EACH_FLOAT, div_scalar, DIV_SCALAR)                                                                       \
    X(UNARY, EACH_FLOAT, scalar_div, SCALAR_DIV)                                                                       \
    X(UNARY, EACH_FLOAT, clamp, CLAMP)

#define ADD(dtype, type, x, y, with) ((WRAP_##dtype)(x) + (WRAP_##dtype)(y))
#define SUB(dtype, type, x, y, with) ((WRAP_##dtype)(x) - (WRAP_##dtype)(y))
#define MUL(dtype, type, x, y, with) ((WRAP_##dtype)(x) * (WRAP_##dtype)(y))
#define DIV(dtype, type, x, y, with) DIVIDE_##dtype(x, y)

#define NEG(dtype, type, x, y, with) (-(WRAP_##dtype)(x))
#define ABS(dtype, type, x, y, with) ABS_##dtype(x)
#define ABS_TRAMA_F32(x) fabsf(x)
#define ABS_TRAMA_F64(x) fabs(x)
#define ABS_TRAMA_I32(x) ((x) < 0 ? 0 - (uint32_t)(x) : (uint32_t)(x))
#define ABS_TRAMA_I64(x) ((x) < 0 ? 0 - (uint64_t)(x) : (uint64_t)(x))
#define ABS_TRAMA_U8(x) (x)
#define SIGN(dtype, type, x, y, with) (IS_NAN_##dtype(x) ? (x) : (type)(((x) > 0) - SIGN_BELOW_##dtype(x)))
#define SIGN_BELOW_TRAMA_F32(x) ((x) < 0)
#define SIGN_BELOW_TRAMA_F64(x) ((x) < 0)
#define SIGN_BELOW_TRAMA_I32(x) ((x) < 0)
#define SIGN_BELOW_TRAMA_I64(x) ((x) < 0)
#define SIGN_BELOW_TRAMA_U8(x) 0
#define SQUARE(dtype, type, x, y, with) MUL(dtype, type, x, x, with)

#define SQRT(dtype, type, x, y, with) MATH_##dtype(sqrt)(x)
#define EXP(dtype, type, x, y, with) exp_of_##dtype(x)
#define LOG(dtype, type, x, y, with) MATH_##dtype(log)(x)

/* Floats are scaled in their own type, integers in double. */
#define REAL_OF(with, slot) (((const double *)(with))[slot])
#define SCALE(dtype, type, x, y, with) SCALE_##dtype(x, REAL_OF(with, SCALE_FACTOR))
#define SCALE_TRAMA_F32(x, factor) ((x) * (float)(factor))
#define SCALE_TRAMA_F64(x, factor) ((x) * (factor))
#define SCALE_TRAMA_I32(x, factor) OF_REAL_TRAMA_I32((x) * (factor))
#define SCALE_TRAMA_I64(x, factor) OF_REAL_TRAMA_I64((double)(x) * (factor))
#define SCALE_TRAMA_U8(x, factor) OF_REAL_TRAMA_U8((x) * (factor))

#define AFFINE(dtype, type, x, y, with)                                                                                \
    ((WRAP_##dtype)(x) * NUMBER_TO_##dtype(REAL_OF(with, SCALE_FACTOR)) +                                              \
     NUMBER_TO_##dtype(REAL_OF(with, AFFINE_OFFSET)))
#define NUMBER_TO_TRAMA_F32(number) (float)(number)
#define NUMBER_TO_TRAMA_F64(number) (number)
#define NUMBER_TO_TRAMA_I32(number) (uint32_t)(int64_t)(number)
#define NUMBER_TO_TRAMA_I64(number) (uint64_t)(int64_t)(number)
#define NUMBER_TO_TRAMA_U8(number) (uint8_t)(int64_t)(number)
#define DIV_SCALAR(dtype, type, x, y, with) ((x) / (type)REAL_OF(with, SCALAR_NUMBER))
#define SCALAR_DIV(dtype, type, x, y, with) ((type)REAL_OF(with, SCALAR_NUMBER) / (x))

#define CLAMP(dtype, type, x, y, with) CLAMPED(x, (type)REAL_OF(with, CLAMP_LOW), (type)REAL_OF(with, CLAMP_HIGH))
#define CLAMPED(x, low, high) ((x) < (low) ? (low) : (x) > (high) ? (high) : (x))

/* Of two element types: reals are rounded or truncated, integers keep their lowest bits. */
#define EQUAL(dtype, x, y) (LOAD_##dtype(x) == LOAD_##dtype(y))
#define CAST(out_dtype, out_type, dtype, x) REAL_OR_WRAP_##dtype(out_dtype, out_type, LOAD_##dtype(x))
#define REAL_OR_WRAP_TRAMA_F32(out_dtype, out_type, x) OF_REAL_##out_dtype(x)
#define REAL_OR_WRAP_TRAMA_F64(out_dtype, out_type, x) OF_REAL_##out_dtype(x)
#define REAL_OR_WRAP_TRAMA_BF16(out_dtype, out_type, x) OF_REAL_##out_dtype(x)
#define REAL_OR_WRAP_TRAMA_F16(out_dtype, out_type, x) OF_REAL_##out_dtype(x)
#define REAL_OR_WRAP_TRAMA_I32(out_dtype, out_type, x) STORE_##out_dtype(x)
#define REAL_OR_WRAP_TRAMA_I64(out_dtype, out_type, x) STORE_##out_dtype(x)
#define REAL_OR_WRAP_TRAMA_U8(out_dtype, out_type, x) STORE_##out_dtype(x)

#endif
