/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic per element type, for the macros that write one kernel per type. Knows numbers only, no views.
 * Integers wrap on overflow; reals that become integers are truncated and held to the range, NaN becomes 0. */
#ifndef CODELETS_NUMBER_H
#define CODELETS_NUMBER_H

#ifndef __cplusplus
#include <complex.h>
#endif
#include <math.h>

#include "trama_base.h"

/* Starts a function for formulas. It is always inlined, since a loop with a call in it does not vectorise. */
#define FORMULA static inline __attribute__((always_inline)) TRAMA_HOST_DEVICE

/* Expands X(dtype, type, ...) for the types of a kind. TRAMA_DTYPE_LIST around one of these gives all pairs. */
#define EACH_REAL(X, ...) X(TRAMA_F32, float, __VA_ARGS__) X(TRAMA_F64, double, __VA_ARGS__)
#define EACH_HALF(X, ...) X(TRAMA_BF16, trama_bf16, __VA_ARGS__) X(TRAMA_F16, trama_f16, __VA_ARGS__)
#define EACH_SIGNED(X, ...)                                                                                            \
    X(TRAMA_I8, int8_t, __VA_ARGS__)                                                                                   \
    X(TRAMA_I16, int16_t, __VA_ARGS__) X(TRAMA_I32, int32_t, __VA_ARGS__) X(TRAMA_I64, int64_t, __VA_ARGS__)
#define EACH_UNSIGNED(X, ...)                                                                                          \
    X(TRAMA_U8, uint8_t, __VA_ARGS__)                                                                                  \
    X(TRAMA_U16, uint16_t, __VA_ARGS__) X(TRAMA_U32, uint32_t, __VA_ARGS__) X(TRAMA_U64, uint64_t, __VA_ARGS__)
#define EACH_BOOL(X, ...) X(TRAMA_BOOL, bool, __VA_ARGS__)
#define EACH_INTEGER(X, ...) EACH_SIGNED(X, __VA_ARGS__) EACH_UNSIGNED(X, __VA_ARGS__)
#define EACH_FLOAT(X, ...) EACH_REAL(X, __VA_ARGS__) EACH_HALF(X, __VA_ARGS__)
#define EACH_NUMBER(X, ...) EACH_FLOAT(X, __VA_ARGS__) EACH_INTEGER(X, __VA_ARGS__)
#define EACH_DTYPE(X, ...) EACH_NUMBER(X, __VA_ARGS__) EACH_BOOL(X, __VA_ARGS__)
#define EACH_COMPLEX(X, ...) X(TRAMA_C64, trama_c64, __VA_ARGS__) X(TRAMA_C128, trama_c128, __VA_ARGS__)
/* All types; EACH_DTYPE is without the complex ones, which GPUs do not compute. */
#define EACH_ELEMENT(X, ...) EACH_DTYPE(X, __VA_ARGS__) EACH_COMPLEX(X, __VA_ARGS__)
#ifdef __cplusplus /* which has no complex numbers of C */
#define EACH_FIELD EACH_NUMBER
#define EACH_ANALYTIC EACH_FLOAT
#else
#define EACH_FIELD(X, ...) EACH_NUMBER(X, __VA_ARGS__) EACH_COMPLEX(X, __VA_ARGS__)
#define EACH_ANALYTIC(X, ...) EACH_FLOAT(X, __VA_ARGS__) EACH_COMPLEX(X, __VA_ARGS__)
#endif

/* The kind of each type. BY_KIND(WORD, dtype) is WORD_REAL for TRAMA_F32: words that depend on the kind stand below. */
#define KIND_TRAMA_F32 REAL
#define KIND_TRAMA_F64 REAL
#define KIND_TRAMA_BF16 HALF
#define KIND_TRAMA_F16 HALF
#define KIND_TRAMA_HALF REAL
#define KIND_TRAMA_I8 SIGNED
#define KIND_TRAMA_I16 SIGNED
#define KIND_TRAMA_I32 SIGNED
#define KIND_TRAMA_I64 SIGNED
#define KIND_TRAMA_U8 UNSIGNED
#define KIND_TRAMA_U16 UNSIGNED
#define KIND_TRAMA_U32 UNSIGNED
#define KIND_TRAMA_U64 UNSIGNED
#define KIND_TRAMA_BOOL BOOL
#define KIND_TRAMA_C64 COMPLEX
#define KIND_TRAMA_C128 COMPLEX
#define BY_KIND(word, dtype) BY_KIND_(word, KIND_##dtype)
#define BY_KIND_(word, kind) BY_KIND__(word, kind)
#define BY_KIND__(word, kind) word##_##kind

/* Halves are for storage only. For their elements the formula of the element type COMPUTE runs: it gets a NUMBER, and
 * its result is rounded once when it is stored. All other types compute in their own type. */
#define NUMBER_TRAMA_F32 float
#define NUMBER_TRAMA_F64 double
#define NUMBER_TRAMA_BF16 float
#define NUMBER_TRAMA_F16 float
#define NUMBER_TRAMA_HALF float
#define NUMBER_TRAMA_I8 int8_t
#define NUMBER_TRAMA_I16 int16_t
#define NUMBER_TRAMA_I32 int32_t
#define NUMBER_TRAMA_I64 int64_t
#define NUMBER_TRAMA_U8 uint8_t
#define NUMBER_TRAMA_U16 uint16_t
#define NUMBER_TRAMA_U32 uint32_t
#define NUMBER_TRAMA_U64 uint64_t
#define NUMBER_TRAMA_BOOL bool
#define NUMBER_TRAMA_C64 trama_c64
#define NUMBER_TRAMA_C128 trama_c128
#define COMPUTE_TRAMA_F32 TRAMA_F32
#define COMPUTE_TRAMA_F64 TRAMA_F64
#define COMPUTE_TRAMA_BF16 COMPUTE_HALF
#define COMPUTE_TRAMA_F16 COMPUTE_HALF
#ifdef __cplusplus /* on GPUs, with functions that keep the digits of a half (TRAMA_HALF in smooth.h) */
#define COMPUTE_HALF TRAMA_HALF
#else
#define COMPUTE_HALF TRAMA_F32
#endif
#define COMPUTE_TRAMA_I8 TRAMA_I8
#define COMPUTE_TRAMA_I16 TRAMA_I16
#define COMPUTE_TRAMA_I32 TRAMA_I32
#define COMPUTE_TRAMA_I64 TRAMA_I64
#define COMPUTE_TRAMA_U8 TRAMA_U8
#define COMPUTE_TRAMA_U16 TRAMA_U16
#define COMPUTE_TRAMA_U32 TRAMA_U32
#define COMPUTE_TRAMA_U64 TRAMA_U64
#define COMPUTE_TRAMA_BOOL TRAMA_BOOL
#define COMPUTE_TRAMA_C64 TRAMA_C64
#define COMPUTE_TRAMA_C128 TRAMA_C128
#define LOAD(dtype, x) BY_KIND(LOAD, dtype)(dtype, x)
#define LOAD_REAL(dtype, x) (x)
#define LOAD_HALF(dtype, x) FLOAT_OF_##dtype(x)
#define LOAD_SIGNED(dtype, x) (x)
#define LOAD_UNSIGNED(dtype, x) (x)
#define LOAD_BOOL(dtype, x) (x)
#define LOAD_COMPLEX(dtype, x) (x)
#define FLOAT_OF_TRAMA_BF16(x) trama_float_of_bf16(x)
#define FLOAT_OF_TRAMA_F16(x) trama_float_of_f16(x)
#define STORE(dtype, x) BY_KIND(STORE, dtype)(dtype, x)
#define STORE_REAL(dtype, x) ((NUMBER_##dtype)(x))
#define STORE_HALF(dtype, x) HALF_OF_##dtype(x)
#define STORE_SIGNED(dtype, x) ((NUMBER_##dtype)(x))
#define STORE_UNSIGNED(dtype, x) ((NUMBER_##dtype)(x))
#define STORE_BOOL(dtype, x) ((x) != 0)
#define STORE_COMPLEX(dtype, x) ((NUMBER_##dtype)(x))
#define HALF_OF_TRAMA_BF16(x) bf16_of(x)
#define HALF_OF_TRAMA_F16(x) f16_of(x)

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
#define WRAP_TRAMA_HALF float
#define WRAP_TRAMA_I8 uint32_t
#define WRAP_TRAMA_I16 uint32_t
#define WRAP_TRAMA_I32 uint32_t
#define WRAP_TRAMA_I64 uint64_t
#define WRAP_TRAMA_U8 uint32_t
#define WRAP_TRAMA_U16 uint32_t
#define WRAP_TRAMA_U32 uint32_t
#define WRAP_TRAMA_U64 uint64_t
#define WRAP_TRAMA_BOOL uint32_t
#define WRAP_TRAMA_C64 trama_c64
#define WRAP_TRAMA_C128 trama_c128

/* The type of the parts of a complex number. */
#define PART_TRAMA_C64 float
#define PART_TRAMA_C128 double

/* The type in which many terms are summed: f32 and halves in double, complex in c128, integers modulo 2^64. */
#define SUM(dtype) BY_KIND(SUM, dtype)
#define SUM_REAL double
#define SUM_HALF double
#define SUM_SIGNED uint64_t
#define SUM_UNSIGNED uint64_t
#define SUM_BOOL uint64_t
#define SUM_COMPLEX trama_c128

/* The function of libm for the type: MATH_TRAMA_F32(exp) is expf. */
#define MATH_TRAMA_F32(function) function##f
#define MATH_TRAMA_F64(function) function
#define MATH_TRAMA_HALF(function) function##f
#define MATH_TRAMA_C64(function) c##function##f
#define MATH_TRAMA_C128(function) c##function
/* FUNCTION_of_DTYPE, where the function of libm is taken as it is. */
#define BY_LIBRARY(function, dtype, type)                                                                              \
    FORMULA type function##_of_##dtype(type x)                                                                         \
    {                                                                                                                  \
        return MATH_##dtype(function)(x);                                                                              \
    }

/* Whether a NUMBER is NaN. */
#define IS_NAN(dtype, x) BY_KIND(IS_NAN, dtype)(x)
#define IS_NAN_REAL(x) ((x) != (x))
#define IS_NAN_HALF(x) ((x) != (x))
#define IS_NAN_SIGNED(x) 0
#define IS_NAN_UNSIGNED(x) 0
#define IS_NAN_BOOL(x) 0

/* The maximum, and the minimum, of no elements. */
#define LOWEST_TRAMA_F32 (-INFINITY)
#define LOWEST_TRAMA_F64 (-INFINITY)
#define LOWEST_TRAMA_BF16 (-INFINITY)
#define LOWEST_TRAMA_F16 (-INFINITY)
#define LOWEST_TRAMA_I8 INT8_MIN
#define LOWEST_TRAMA_I16 INT16_MIN
#define LOWEST_TRAMA_I32 INT32_MIN
#define LOWEST_TRAMA_I64 INT64_MIN
#define LOWEST_TRAMA_U8 0
#define LOWEST_TRAMA_U16 0
#define LOWEST_TRAMA_U32 0
#define LOWEST_TRAMA_U64 0
#define LOWEST_TRAMA_BOOL 0
#define HIGHEST_TRAMA_F32 INFINITY
#define HIGHEST_TRAMA_F64 INFINITY
#define HIGHEST_TRAMA_BF16 INFINITY
#define HIGHEST_TRAMA_F16 INFINITY
#define HIGHEST_TRAMA_I8 INT8_MAX
#define HIGHEST_TRAMA_I16 INT16_MAX
#define HIGHEST_TRAMA_I32 INT32_MAX
#define HIGHEST_TRAMA_I64 INT64_MAX
#define HIGHEST_TRAMA_U8 UINT8_MAX
#define HIGHEST_TRAMA_U16 UINT16_MAX
#define HIGHEST_TRAMA_U32 UINT32_MAX
#define HIGHEST_TRAMA_U64 UINT64_MAX
#define HIGHEST_TRAMA_BOOL 1

/* The larger, or smaller, of a and b; NaN if one is NaN. */
#define MAXIMUM(dtype, a, b) ((((b) > (a)) | IS_NAN(dtype, b)) ? (b) : (a))
#define MINIMUM(dtype, a, b) ((((b) < (a)) | IS_NAN(dtype, b)) ? (b) : (a))

FORMULA int64_t divide_signed(int64_t x, int64_t y)
{
    return y == 0 ? 0 : y == -1 ? (int64_t)(0 - (uint64_t)x) : x / y;
}
FORMULA uint64_t divide_unsigned(uint64_t x, uint64_t y)
{
    return y == 0 ? 0 : x / y;
}
#define DIVIDE_REAL(x, y) ((x) / (y))
#define DIVIDE_SIGNED(x, y) divide_signed(x, y)
#define DIVIDE_UNSIGNED(x, y) divide_unsigned(x, y)
#define DIVIDE_COMPLEX(x, y) ((x) / (y))

/* A real as an integer within low..high; high may be the largest of 64 bits, which no double equals. */
FORMULA int64_t signed_of_real(double x, int64_t low, int64_t high)
{
    if (!(x > (double)low))
        return x != x ? 0 : low;
    return x >= (double)high ? high : (int64_t)x;
}
FORMULA uint64_t unsigned_of_real(double x, uint64_t high)
{
    return !(x > 0) ? 0 : x >= (double)high ? high : (uint64_t)x;
}
#define OF_REAL(dtype, x) BY_KIND(OF_REAL, dtype)(dtype, x)
#define OF_REAL_REAL(dtype, x) ((NUMBER_##dtype)(x))
#define OF_REAL_HALF(dtype, x) HALF_OF_##dtype(x)
#define OF_REAL_SIGNED(dtype, x) ((NUMBER_##dtype)signed_of_real(x, LOWEST_##dtype, HIGHEST_##dtype))
#define OF_REAL_UNSIGNED(dtype, x) ((NUMBER_##dtype)unsigned_of_real(x, HIGHEST_##dtype))
#define OF_REAL_BOOL(dtype, x) ((x) != 0)
#define OF_REAL_COMPLEX(dtype, x) ((NUMBER_##dtype)(x))

/* A sum or an extreme, multiplied or divided by a real, as an element. Integers are modulo 2^64, and then read as
 * signed or unsigned. */
#define SCALED(dtype, x, scale) BY_KIND(SCALED, dtype)(dtype, x, scale)
#define SCALED_REAL(dtype, x, scale) ((NUMBER_##dtype)((x) * (scale)))
#define SCALED_HALF(dtype, x, scale) HALF_OF_##dtype((x) * (scale))
#define SCALED_SIGNED(dtype, x, scale)                                                                                 \
    ((scale) == 1 ? (NUMBER_##dtype)(x) : OF_REAL_SIGNED(dtype, (double)(int64_t)(x) * (scale)))
#define SCALED_UNSIGNED(dtype, x, scale)                                                                               \
    ((scale) == 1 ? (NUMBER_##dtype)(x) : OF_REAL_UNSIGNED(dtype, (double)(uint64_t)(x) * (scale)))
#define SCALED_COMPLEX(dtype, x, scale) ((NUMBER_##dtype)((x) * (scale)))
#define SCALED_BOOL(dtype, x, scale) ((x) != 0 && (scale) != 0)
#define QUOTIENT(dtype, x, divisor) BY_KIND(QUOTIENT, dtype)(dtype, x, divisor)
#define QUOTIENT_REAL(dtype, x, divisor) ((NUMBER_##dtype)((x) / (divisor)))
#define QUOTIENT_HALF(dtype, x, divisor) HALF_OF_##dtype((x) / (divisor))
#define QUOTIENT_SIGNED(dtype, x, divisor) ((NUMBER_##dtype)divide_signed((int64_t)(x), (int64_t)(divisor)))
#define QUOTIENT_UNSIGNED(dtype, x, divisor) ((NUMBER_##dtype)divide_unsigned((uint64_t)(x), (uint64_t)(divisor)))
#define QUOTIENT_BOOL(dtype, x, divisor) ((x) != 0)
#define QUOTIENT_COMPLEX(dtype, x, divisor) ((NUMBER_##dtype)((x) / (divisor)))

#endif
