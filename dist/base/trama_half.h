/* SPDX-License-Identifier: Apache-2.0 */
/* The two 16-bit float types, which C does not have, and their conversions. The conversions work on bits: they give the
 * same results on all CPUs, and loops over them vectorise. GPU instructions give the same results, except for the
 * payload of a NaN. */
#ifndef TRAMA_HALF_H
#define TRAMA_HALF_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Marks a function for host and device when nvcc compiles it. */
#ifdef __CUDACC__
#define TRAMA_HOST_DEVICE __host__ __device__
#else
#define TRAMA_HOST_DEVICE
#endif

/* A 16-bit float, the upper half of a float: 8 bits of exponent, 7 of mantissa. */
typedef struct trama_bf16 {
    uint16_t bits; /* sign, exponent, mantissa */
} trama_bf16;

/* A 16-bit float, binary16 of IEEE 754: 5 bits of exponent, 10 of mantissa. The maximum is 65504, the smallest positive
 * number 2^-24. */
typedef struct trama_f16 {
    uint16_t bits; /* sign, exponent, mantissa */
} trama_f16;

/* The bits of a float. */
static inline TRAMA_HOST_DEVICE uint32_t trama_bits_of_float(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* The float with these bits. */
static inline TRAMA_HOST_DEVICE float trama_float_of_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Converts exactly. */
static inline TRAMA_HOST_DEVICE float trama_float_of_bf16(trama_bf16 x)
{
    return trama_float_of_bits((uint32_t)x.bits << 16);
}

/* Rounds to nearest even, above the range of bf16 to infinity; NaN stays NaN. */
static inline TRAMA_HOST_DEVICE trama_bf16 trama_bf16_of_float(float x)
{
    trama_bf16 result;
#if defined __CUDA_ARCH__ && __CUDA_ARCH__ >= 800

    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(result.bits) : "f"(x));
#else
    const uint32_t bits = trama_bits_of_float(x);
    const uint32_t rounded = bits + 0x7fff + (bits >> 16 & 1), quiet = bits | 0x400000;

    result.bits = (uint16_t)((x != x ? quiet : rounded) >> 16);
#endif
    return result;
}

/* Returns yes if holds, else no, without a branch, which would prevent vectorisation. */
static inline TRAMA_HOST_DEVICE uint32_t trama_bits_if(bool holds, uint32_t yes, uint32_t no)
{
    const uint32_t mask = 0u - (uint32_t)holds;
    return (yes & mask) | (no & ~mask);
}

/* Converts exactly. A subnormal number is m 2^-24 = (1 + m/1024) 2^-14 - 2^-14. */
static inline TRAMA_HOST_DEVICE float trama_float_of_f16(trama_f16 x)
{
#ifdef __CUDA_ARCH__
    float result;

    asm("cvt.f32.f16 %0, %1;" : "=f"(result) : "h"(x.bits));
    return result;
#else
    const uint32_t size = (uint32_t)(x.bits & 0x7fff) << 13, sign = (uint32_t)(x.bits & 0x8000) << 16;
    const uint32_t normal = size + trama_bits_if(size >= 0x0f800000, 224u << 23, 112u << 23);
    const float subnormal = trama_float_of_bits(size + (113u << 23)) - 6.103515625e-5f;

    return trama_float_of_bits(trama_bits_if(size < 1u << 23, trama_bits_of_float(subnormal), normal) | sign);
#endif
}

/* Rounds to nearest even, from 65520 on to infinity; NaN stays NaN. Below 2^-14 the addition of 0.5, whose last bit is
 * 2^-24, rounds. */
static inline TRAMA_HOST_DEVICE trama_f16 trama_f16_of_float(float x)
{
#ifdef __CUDA_ARCH__
    trama_f16 result;

    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(result.bits) : "f"(x));
    return result;
#else
    const uint32_t bits = trama_bits_of_float(x), size = bits & 0x7fffffff;
    const uint32_t normal = (size - (112u << 23) + 0xfff + (size >> 13 & 1)) >> 13;
    const uint32_t subnormal = trama_bits_of_float(trama_float_of_bits(size) + 0.5f) - 0x3f000000;
    const uint32_t special = 0x7c00 | trama_bits_if(size > 0x7f800000, 0x200, 0);
    const uint32_t finite = trama_bits_if(size < 113u << 23, subnormal, normal);
    trama_f16 result;

    result.bits = (uint16_t)(trama_bits_if(size >= 143u << 23, special, finite) | (bits >> 16 & 0x8000));
    return result;
#endif
}

/* x truncated to a float; the last bit is 1 if digits were lost (round to odd), so that a further rounding rounds x
 * once. */
static inline TRAMA_HOST_DEVICE float trama_float_to_round(double x)
{
    const float nearest = (float)x;
    const bool beyond = nearest > 0 ? nearest > x : nearest < 0 && nearest < x;

    return nearest == x ? nearest : trama_float_of_bits((trama_bits_of_float(nearest) - beyond) | 1);
}

/* Like trama_bf16_of_float, with one rounding. */
static inline TRAMA_HOST_DEVICE trama_bf16 trama_bf16_of_double(double x)
{
    return trama_bf16_of_float(trama_float_to_round(x));
}

/* Like trama_f16_of_float, with one rounding. */
static inline TRAMA_HOST_DEVICE trama_f16 trama_f16_of_double(double x)
{
    return trama_f16_of_float(trama_float_to_round(x));
}

#ifdef __cplusplus
}
#endif
#endif
