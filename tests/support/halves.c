/* SPDX-License-Identifier: Apache-2.0 */
/* Halves by their definition. */
#include "halves.h"

#include <math.h>

typedef struct format {
    int mantissa, lowest; /* bits behind the point, exponent of the smallest normal number */
} format;

static format format_of(trama_dtype dtype)
{
    return dtype == TRAMA_BF16 ? (format){7, -126} : (format){10, -14};
}

double half_value(trama_dtype dtype, uint16_t bits)
{
    const format f = format_of(dtype);
    const int mantissa = bits & ((1 << f.mantissa) - 1), all = (1 << (15 - f.mantissa)) - 1;
    const int exponent = bits >> f.mantissa & all;
    double size = ldexp(mantissa, f.lowest - f.mantissa);

    if (exponent == all)
        size = mantissa ? NAN : INFINITY;
    else if (exponent > 0)
        size = ldexp((1 << f.mantissa) + mantissa, f.lowest + exponent - 1 - f.mantissa);
    return bits >> 15 ? -size : size;
}

double half_round(trama_dtype dtype, double x)
{
    const format f = format_of(dtype);
    if (!isfinite(x) || x == 0)
        return x;
    const int own = ilogb(x), exponent = own < f.lowest ? f.lowest : own;
    const double unit = ldexp(1, exponent - f.mantissa), rounded = nearbyint(x / unit) * unit;
    return fabs(rounded) < ldexp(1, 2 - f.lowest) ? copysign(rounded, x) : copysign(INFINITY, x);
}

uint16_t half_bits(trama_dtype dtype, double x)
{
    const format f = format_of(dtype);
    const unsigned sign = signbit(x) ? 0x8000 : 0, infinite = ((1u << (15 - f.mantissa)) - 1) << f.mantissa;
    const double size = fabs(x);
    if (isnan(x) || isinf(x))
        return (uint16_t)(sign | infinite | (isnan(x) ? 1u << (f.mantissa - 1) : 0));
    if (size < ldexp(1, f.lowest))
        return (uint16_t)(sign | (unsigned)ldexp(size, f.mantissa - f.lowest));
    const int exponent = ilogb(size);
    const unsigned mantissa = (unsigned)ldexp(size, f.mantissa - exponent) - (1u << f.mantissa);
    return (uint16_t)(sign | (unsigned)(exponent - f.lowest + 1) << f.mantissa | mantissa);
}
