/* SPDX-License-Identifier: Apache-2.0 */
/* Elements of every type as doubles, read and written by C's own conversions, and the facts about each type. */
#ifndef TESTS_ELEMENTS_H
#define TESTS_ELEMENTS_H

#include <math.h>

#include "halves.h"

/* The complex types come last; ops without complex kernels are tested on the types before them. */
enum { N_REAL_DTYPES = TRAMA_C64 };

/* X(dtype, type) for the types that C has. */
#define C_TYPES(X)                                                                                                     \
    X(TRAMA_F32, float)                                                                                                \
    X(TRAMA_F64, double)                                                                                               \
    X(TRAMA_BOOL, bool)                                                                                                \
    X(TRAMA_I8, int8_t)                                                                                                \
    X(TRAMA_I16, int16_t)                                                                                              \
    X(TRAMA_I32, int32_t)                                                                                              \
    X(TRAMA_I64, int64_t)                                                                                              \
    X(TRAMA_U8, uint8_t)                                                                                               \
    X(TRAMA_U16, uint16_t)                                                                                             \
    X(TRAMA_U32, uint32_t)                                                                                             \
    X(TRAMA_U64, uint64_t)

static inline double read_as(trama_dtype dtype, const void *from)
{
    switch (dtype) {
#define READ_AS(name, type)                                                                                            \
    case name:                                                                                                         \
        return (double)*(const type *)from;
        C_TYPES(READ_AS)
    case TRAMA_C64: /* of complex numbers the real part */
        return *(const float *)from;
    case TRAMA_C128:
        return *(const double *)from;
    default:
        return half_value(dtype, *(const uint16_t *)from);
    }
}

static inline void write_as(trama_dtype dtype, void *to, double x)
{
    switch (dtype) {
#define WRITE_AS(name, type)                                                                                           \
    case name:                                                                                                         \
        *(type *)to = (type)x;                                                                                         \
        break;
        C_TYPES(WRITE_AS)
    case TRAMA_C64:
        *(trama_c64 *)to = (float)x;
        break;
    case TRAMA_C128:
        *(trama_c128 *)to = x;
        break;
    default:
        *(uint16_t *)to = half_bits(dtype, half_round(dtype, x));
    }
}

static inline bool is_unsigned(trama_dtype dtype)
{
    return dtype == TRAMA_BOOL || (dtype >= TRAMA_U16 && dtype <= TRAMA_U64) || dtype == TRAMA_U8;
}

/* Whether elements may be any real: floats, and the real parts of complex numbers. */
static inline bool holds_reals(trama_dtype dtype)
{
    return trama_dtype_is_float(dtype) || trama_dtype_kind_of(dtype) == TRAMA_KIND_COMPLEX;
}

/* The range of an element type, as doubles. */
static inline double highest_of(trama_dtype dtype)
{
    if (holds_reals(dtype) || dtype == TRAMA_BOOL)
        return dtype == TRAMA_BOOL ? 1 : INFINITY;
    const int bits = 8 * (int)trama_dtype_size(dtype) - !is_unsigned(dtype);
    return bits > 52 ? ldexp(1, bits) : ldexp(1, bits) - 1;
}
static inline double lowest_of(trama_dtype dtype)
{
    if (holds_reals(dtype) || is_unsigned(dtype))
        return is_unsigned(dtype) ? 0 : -INFINITY;
    return -ldexp(1, 8 * (int)trama_dtype_size(dtype) - 1);
}

/* A number of up to 53 bits as an element: integers keep their lowest bits; as a bool it is whether it is not 0. */
static inline double element_wrapped(trama_dtype dtype, double x)
{
    if (holds_reals(dtype) || dtype == TRAMA_BOOL)
        return dtype == TRAMA_BOOL ? x != 0 : x;
    if (x >= lowest_of(dtype) && x <= highest_of(dtype))
        return x;
    const double range = ldexp(1, 8 * (int)trama_dtype_size(dtype)), low = x - range * floor(x / range);
    return low > highest_of(dtype) ? low - range : low;
}

/* A real as an element: integers are truncated and held to their range. */
static inline double element_held(trama_dtype dtype, double x)
{
    if (holds_reals(dtype) || dtype == TRAMA_BOOL)
        return dtype == TRAMA_BOOL ? x != 0 : x;
    return isnan(x) ? 0 : fmin(fmax(trunc(x), lowest_of(dtype)), highest_of(dtype));
}

/* The next element type of real numbers, halves and integers included, bool and complex not; the first is 0. */
static inline int next_number(int dtype)
{
    do
        dtype++;
    while (dtype == TRAMA_BOOL || trama_dtype_kind_of((trama_dtype)dtype) == TRAMA_KIND_COMPLEX);
    return dtype;
}

/* The next element type of real numbers; the first is 0. */
static inline int next_float(int dtype)
{
    do
        dtype++;
    while (dtype < TRAMA_N_DTYPES && !trama_dtype_is_float((trama_dtype)dtype));
    return dtype;
}

#endif
