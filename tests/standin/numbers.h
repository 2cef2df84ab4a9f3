/* SPDX-License-Identifier: Apache-2.0 */
/* Of the stand-in for CUDA (standin.h): numbers of 16 bits, and rounding to fewer bits. */
#ifndef STANDIN_NUMBERS_H
#define STANDIN_NUMBERS_H

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

namespace standin
{
inline double of_half(uint16_t bits)
{
    const int exponent = bits >> 10 & 31, mantissa = bits & 1023;
    const double size = exponent == 31 ? mantissa ? NAN : INFINITY
                        : exponent     ? std::ldexp(1024 + mantissa, exponent - 25)
                                       : std::ldexp(mantissa, -24);
    return bits >> 15 ? -size : size;
}

inline uint16_t to_half(double x)
{
    const uint16_t sign = std::signbit(x) ? 0x8000 : 0;
    if (std::isnan(x))
        return 0x7e00;
    x = std::fabs(x);
    const int exponent = x == 0 || x < 0x1p-14 ? -14 : std::min(std::ilogb(x), 16);
    const double mantissa = std::nearbyint(std::ldexp(x, 10 - exponent)); /* 1024 of them make a power of two */
    if (exponent > 15 || std::ldexp(mantissa, exponent - 10) >= 65536)
        return sign | 0x7c00;
    return (uint16_t)(sign | (uint16_t)((exponent + 14) * 1024 + (int)mantissa));
}

inline float of_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

inline uint32_t to_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* Without the last n bits, to nearest even. */
inline uint32_t shortened(uint32_t bits, int n)
{
    if ((bits & 0x7fffffff) > 0x7f800000)
        return bits | 1u << 22;
    return (bits + (1u << (n - 1)) - 1 + (bits >> n & 1)) >> n << n;
}

inline double of_bf16(uint16_t bits)
{
    return of_bits((uint32_t)bits << 16);
}

inline uint16_t to_bf16(double x)
{
    return (uint16_t)(shortened(to_bits((float)x), 16) >> 16);
}
} // namespace standin

#endif
