/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic per element type, for the macros that write one kernel per type. Knows numbers only, no views.
 * Integers wrap on overflow; reals that become integers are truncated and held to the range, NaN becomes 0. */
#ifndef CODELETS_NUMBER_H
#define CODELETS_NUMBER_H

#include <math.h>

#include "trama_base.h"

/* Starts a function for formulas. It is always inlined, since a loop with a call in it does not vectorise. */
#define FORMULA static inline __attribute__((always_inline)) TRAMA_HOST_DEVICE

/* Expands X(dtype, type, ...) for the types of a kind. TRAMA_DTYPE_LIST around one of these gives all pairs. */
#define EACH_REAL(X, ...) X(TRAMA_F32, float, __VA_ARGS__) X(TRAMA_F64, double, __VA_ARGS__)
#define EACH_HALF(X, ...) X(TRAMA_BF16, trama_bf16, __VA_ARGS__) X(TRAMA_F16, trama_f16, __VA_ARGS__)
#define EACH_INTEGER(X, ...)                                                                                           \
    X(TRAMA_I32, int32_t, __VA_ARGS__) X(TRAMA_I64, int64_t, __VA_ARGS__) X(TRAMA_U8, uint8_t, __VA_ARGS__)
#define EACH_FLOAT(X, ...) EACH_REAL(X, __VA_ARGS__) EACH_HALF(X, __VA_ARGS__)
#define EACH_NUMBER(X, ...) EACH_REAL(X, __VA_ARGS__) EACH_INTEGER(X, __VA_ARGS__)
#define EACH_DTYPE(X, ...) EACH_FLOAT(X, __VA_ARGS__) EACH_INTEGER(X, __VA_ARGS__)

/* Halves are for storage only. For their elements the formula of the element type COMPUTE runs: it gets a NUMBER, and
 * its result is rounded once when it is stored. All other types compute in their own type. */
#define NUMBER_TRAMA_F32 float
#define NUMBER_TRAMA_F64 double
#define NUMBER_TRAMA_I32 int32_t
#define NUMBER_TRAMA_I64 int64_t
#define NUMBER_TRAMA_U8 uint8_t
#define NUMBER_TRAMA_BF16 float
#define NUMBER_TRAMA_F16 float
#define COMPUTE_TRAMA_F32 TRAMA_F32
#define COMPUTE_TRAMA_F64 TRAMA_F64
#define COMPUTE_TRAMA_I32 TRAMA_I32
#define COMPUTE_TRAMA_I64 TRAMA_I64
#define COMPUTE_TRAMA_U8 TRAMA_U8
#define COMPUTE_TRAMA_BF16 TRAMA_F32
#define COMPUTE_TRAMA_F16 TRAMA_F32
#define LOAD_TRAMA_F32(x) (x)
#define LOAD_TRAMA_F64(x) (x)
#define LOAD_TRAMA_I32(x) (x)
#define LOAD_TRAMA_I64(x) (x)
#define LOAD_TRAMA_U8(x) (x)
#define LOAD_TRAMA_BF16(x) trama_float_of_bf16(x)
#define LOAD_TRAMA_F16(x) trama_float_of_f16(x)
#define STORE_TRAMA_F32(x) ((float)(x))
#define STORE_TRAMA_F64(x) ((double)(x))
#define STORE_TRAMA_I32(x) ((int32_t)(x))
#define STORE_TRAMA_I64(x) ((int64_t)(x))
#define STORE_TRAMA_U8(x) ((uint8_t)(x))
#define STORE_TRAMA_BF16(x) bf16_of(x)
#define STORE_TRAMA_F16(x) f16_of(x)

/* A half of any number, rounded once; 64-bit integers become doubles first. */
#ifdef __cplusplus
template <typename number> static inline TRAMA_HOST_DEVICE trama_bf16 bf16_of(number x)
{
    return trama_bf16_of_double((double)x);
}
static inline TRAMA_HOST_DEVICE trama_bf16 bf16_of(float x)
{
    return trama_bf16_of_float(x);
}
template <typename number> static inline TRAMA_HOST_DEVICE trama_f16 f16_of(number x)
{
    return trama_f16_of_double((double)x);
}
static inline TRAMA_HOST_DEVICE trama_f16 f16_of(float x)
{
    return trama_f16_of_float(x);
}
#else
#define bf16_of(x) _Generic((x), float : trama_bf16_of_float, default : trama_bf16_of_double)(x)
#define f16_of(x) _Generic((x), float : trama_f16_of_float, default : trama_f16_of_double)(x)
#endif

/* MACRO with its arguments expanded first: formulas join the type that COMPUTE gives to names. */
#define EXPANDED(MACRO, ...) MACRO(__VA_ARGS__)

/* The type in which +, - and * are computed. */
#define WRAP_TRAMA_F32 float
#define WRAP_TRAMA_F64 double
#define WRAP_TRAMA_I32 uint32_t
#define WRAP_TRAMA_I64 uint64_t
#define WRAP_TRAMA_U8 uint32_t

/* The type in which many terms are summed: f32 and halves in double, integers modulo 2^64. */
#define SUM_TRAMA_F32 double
#define SUM_TRAMA_F64 double
#define SUM_TRAMA_I32 uint64_t
#define SUM_TRAMA_I64 uint64_t
#define SUM_TRAMA_U8 uint64_t
#define SUM_TRAMA_BF16 double
#define SUM_TRAMA_F16 double

/* The function of libm for the type: MATH_TRAMA_F32(exp) is expf. */
#define MATH_TRAMA_F32(function) function##f
#define MATH_TRAMA_F64(function) function

#define IS_NAN_TRAMA_F32(x) ((x) != (x))
#define IS_NAN_TRAMA_F64(x) ((x) != (x))
#define IS_NAN_TRAMA_I32(x) 0
#define IS_NAN_TRAMA_I64(x) 0
#define IS_NAN_TRAMA_U8(x) 0
#define IS_NAN_TRAMA_BF16(x) ((x) != (x)) /* of NUMBERs */
#define IS_NAN_TRAMA_F16(x) ((x) != (x))

/* The maximum, and the minimum, of no elements. */
#define LOWEST_TRAMA_F32 (-INFINITY)
#define LOWEST_TRAMA_F64 (-INFINITY)
#define LOWEST_TRAMA_I32 INT32_MIN
#define LOWEST_TRAMA_I64 INT64_MIN
#define LOWEST_TRAMA_U8 0
#define LOWEST_TRAMA_BF16 (-INFINITY)
#define LOWEST_TRAMA_F16 (-INFINITY)
#define HIGHEST_TRAMA_F32 INFINITY
#define HIGHEST_TRAMA_F64 INFINITY
#define HIGHEST_TRAMA_I32 INT32_MAX
#define HIGHEST_TRAMA_I64 INT64_MAX
#define HIGHEST_TRAMA_U8 UINT8_MAX
#define HIGHEST_TRAMA_BF16 INFINITY
#define HIGHEST_TRAMA_F16 INFINITY

/* The larger, or smaller, of a and b; NaN if one is NaN. */
#define MAXIMUM(dtype, a, b) ((((b) > (a)) | IS_NAN_##dtype(b)) ? (b) : (a))
#define MINIMUM(dtype, a, b) ((((b) < (a)) | IS_NAN_##dtype(b)) ? (b) : (a))

FORMULA int64_t divide_integers(int64_t x, int64_t y)
{
    return y == 0 ? 0 : y == -1 ? (int64_t)(0 - (uint64_t)x) : x / y;
}
#define DIVIDE_TRAMA_F32(x, y) ((x) / (y))
#define DIVIDE_TRAMA_F64(x, y) ((x) / (y))
#define DIVIDE_TRAMA_I32(x, y) divide_integers(x, y)
#define DIVIDE_TRAMA_I64(x, y) divide_integers(x, y)
#define DIVIDE_TRAMA_U8(x, y) divide_integers(x, y)

/* A real as an integer within low..high; high may be INT64_MAX, which no double equals. */
FORMULA int64_t integer_of_real(double x, int64_t low, int64_t high)
{
    if (!(x > (double)low))
        return x != x ? 0 : low;
    return x >= (double)high ? high : (int64_t)x;
}
#define OF_REAL_TRAMA_F32(x) ((float)(x))
#define OF_REAL_TRAMA_F64(x) ((double)(x))
#define OF_REAL_TRAMA_I32(x) ((int32_t)integer_of_real(x, INT32_MIN, INT32_MAX))
#define OF_REAL_TRAMA_I64(x) integer_of_real(x, INT64_MIN, INT64_MAX)
#define OF_REAL_TRAMA_U8(x) ((uint8_t)integer_of_real(x, 0, UINT8_MAX))
#define OF_REAL_TRAMA_BF16(x) bf16_of(x)
#define OF_REAL_TRAMA_F16(x) f16_of(x)

/* A sum or an extreme, multiplied or divided by a real, as an element. Integers are modulo 2^64, and then read as
 * signed. */
#define SCALED_TRAMA_F32(x, scale) OF_REAL_TRAMA_F32((x) * (scale))
#define SCALED_TRAMA_F64(x, scale) ((x) * (scale))
#define SCALED_TRAMA_BF16(x, scale) OF_REAL_TRAMA_BF16((x) * (scale))
#define SCALED_TRAMA_F16(x, scale) OF_REAL_TRAMA_F16((x) * (scale))
#define SCALED_INTEGER(dtype, type, x, scale)                                                                          \
    ((scale) == 1 ? (type)(x) : OF_REAL_##dtype((double)(int64_t)(x) * (scale)))
#define SCALED_TRAMA_I32(x, scale) SCALED_INTEGER(TRAMA_I32, int32_t, x, scale)
#define SCALED_TRAMA_I64(x, scale) SCALED_INTEGER(TRAMA_I64, int64_t, x, scale)
#define SCALED_TRAMA_U8(x, scale) SCALED_INTEGER(TRAMA_U8, uint8_t, x, scale)
#define DIVIDED_TRAMA_F32(x, divisor) ((float)((x) / (divisor)))
#define DIVIDED_TRAMA_F64(x, divisor) ((x) / (divisor))
#define DIVIDED_TRAMA_BF16(x, divisor) OF_REAL_TRAMA_BF16((x) / (divisor))
#define DIVIDED_TRAMA_F16(x, divisor) OF_REAL_TRAMA_F16((x) / (divisor))
#define DIVIDED_TRAMA_I32(x, divisor) ((int32_t)divide_integers((int64_t)(x), (int64_t)(divisor)))
#define DIVIDED_TRAMA_I64(x, divisor) divide_integers((int64_t)(x), (int64_t)(divisor))
#define DIVIDED_TRAMA_U8(x, divisor) ((uint8_t)divide_integers((int64_t)(x), (int64_t)(divisor)))

#endif
