/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic per element type, for the macros that write one kernel per type. Knows numbers only, no views.
 * Integers wrap on overflow; reals that become integers are truncated and held to the range, NaN becomes 0. */
#ifndef CODELETS_NUMBER_H
#define CODELETS_NUMBER_H

#include <math.h>

#include "trama_base.h"

/* Expands X(dtype, type, ...) for the types of a kind. TRAMA_DTYPE_LIST around one of these gives all pairs. */
#define EACH_FLOAT(X, ...) X(TRAMA_F32, float, __VA_ARGS__) X(TRAMA_F64, double, __VA_ARGS__)
#define EACH_INTEGER(X, ...)                                                                                           \
    X(TRAMA_I32, int32_t, __VA_ARGS__) X(TRAMA_I64, int64_t, __VA_ARGS__) X(TRAMA_U8, uint8_t, __VA_ARGS__)
#define EACH_DTYPE(X, ...) EACH_FLOAT(X, __VA_ARGS__) EACH_INTEGER(X, __VA_ARGS__)
_Static_assert(TRAMA_N_DTYPES == 5, "EACH_DTYPE lists every element type");

/* The type in which +, - and * are computed. */
#define WRAP_TRAMA_F32 float
#define WRAP_TRAMA_F64 double
#define WRAP_TRAMA_I32 uint32_t
#define WRAP_TRAMA_I64 uint64_t
#define WRAP_TRAMA_U8 uint32_t

/* The type in which many terms are summed: f32 in double, integers modulo 2^64. */
#define SUM_TRAMA_F32 double
#define SUM_TRAMA_F64 double
#define SUM_TRAMA_I32 uint64_t
#define SUM_TRAMA_I64 uint64_t
#define SUM_TRAMA_U8 uint64_t

/* The function of libm for the type: MATH_TRAMA_F32(exp) is expf. */
#define MATH_TRAMA_F32(function) function##f
#define MATH_TRAMA_F64(function) function

#define IS_NAN_TRAMA_F32(x) ((x) != (x))
#define IS_NAN_TRAMA_F64(x) ((x) != (x))
#define IS_NAN_TRAMA_I32(x) 0
#define IS_NAN_TRAMA_I64(x) 0
#define IS_NAN_TRAMA_U8(x) 0

/* What the maximum and the minimum of nothing are. */
#define LOWEST_TRAMA_F32 (-INFINITY)
#define LOWEST_TRAMA_F64 (-INFINITY)
#define LOWEST_TRAMA_I32 INT32_MIN
#define LOWEST_TRAMA_I64 INT64_MIN
#define LOWEST_TRAMA_U8 0
#define HIGHEST_TRAMA_F32 INFINITY
#define HIGHEST_TRAMA_F64 INFINITY
#define HIGHEST_TRAMA_I32 INT32_MAX
#define HIGHEST_TRAMA_I64 INT64_MAX
#define HIGHEST_TRAMA_U8 UINT8_MAX

/* Of a and b the larger, or smaller; NaN if one is NaN. */
#define MAXIMUM(dtype, a, b) ((((b) > (a)) | IS_NAN_##dtype(b)) ? (b) : (a))
#define MINIMUM(dtype, a, b) ((((b) < (a)) | IS_NAN_##dtype(b)) ? (b) : (a))

static inline int64_t divide_integers(int64_t x, int64_t y)
{
    return y == 0 ? 0 : y == -1 ? (int64_t)(0 - (uint64_t)x) : x / y;
}
#define DIVIDE_TRAMA_F32(x, y) ((x) / (y))
#define DIVIDE_TRAMA_F64(x, y) ((x) / (y))
#define DIVIDE_TRAMA_I32(x, y) divide_integers(x, y)
#define DIVIDE_TRAMA_I64(x, y) divide_integers(x, y)
#define DIVIDE_TRAMA_U8(x, y) divide_integers(x, y)

/* A real as an integer within low..high; high may be INT64_MAX, which no double equals. */
static inline int64_t integer_of_real(double x, int64_t low, int64_t high)
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

#endif
