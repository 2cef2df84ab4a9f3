/* SPDX-License-Identifier: Apache-2.0 */
/* sin and cos of f32 that vectorise: no branch and no call, but a look-up. Within 1 unit in the last place over the
 * whole range (test_sine); infinities and NaN give NaN. All instruction sets give the same bits where the compiler does
 * not contract a * b + c (-ffp-contract=off). GPUs, and f64, take the functions of their library. */
#ifndef CODELETS_SINE_H
#define CODELETS_SINE_H

#include <string.h>

#include "number.h"

BY_LIBRARY(sin, TRAMA_F64, double)
BY_LIBRARY(cos, TRAMA_F64, double)
#ifdef __CUDACC__
BY_LIBRARY(sin, TRAMA_F32, float)
BY_LIBRARY(cos, TRAMA_F32, float)
#else
/* Pair i: 2^i 2/pi modulo 4, the quarter turns of a step of 2^i radians, as a part of 29 bits and the rest (Payne and
 * Hanek 1983). A product of the first part with a number of 24 bits is exact. The last pair: infinities and NaN. */
static const double quarter_turns[] = {
    0x1.45f306dp-1, 0x1.9391054a7f09dp-30, 0x1.45f306dp0, 0x1.9391054a7f09dp-29,
    0x1.45f306dp1, 0x1.9391054a7f09dp-28, 0x1.17cc1b7p0, 0x1.391054a7f09d6p-31,
    0x1.17cc1b7p1, 0x1.391054a7f09d6p-30, 0x1.7cc1b72p-2, 0x1.c882a53f84ebp-32,
    0x1.7cc1b72p-1, 0x1.c882a53f84ebp-31, 0x1.7cc1b72p0, 0x1.c882a53f84ebp-30,
    0x1.7cc1b72p1, 0x1.c882a53f84ebp-29, 0x1.f306dc9p0, 0x1.91054a7f09d5fp-29,
    0x1.f306dc9p1, 0x1.91054a7f09d5fp-28, 0x1.e60db93p1, 0x1.220a94fe13abfp-28,
    0x1.cc1b727p1, 0x1.1054a7f09d5f4p-30, 0x1.9836e4ep1, 0x1.1054a7f09d5f4p-29,
    0x1.306dc9cp1, 0x1.1054a7f09d5f4p-28, 0x1.836e4e4p-1, 0x1.054a7f09d5f48p-31,
    0x1.836e4e4p0, 0x1.054a7f09d5f48p-30, 0x1.836e4e4p1, 0x1.054a7f09d5f48p-29,
    0x1.06dc9c8p1, 0x1.054a7f09d5f48p-28, 0x1.b72722p-4, 0x1.529fc2757d1f5p-33,
    0x1.b72722p-3, 0x1.529fc2757d1f5p-32, 0x1.b72722p-2, 0x1.529fc2757d1f5p-31,
    0x1.b72722p-1, 0x1.529fc2757d1f5p-30, 0x1.b72722p0, 0x1.529fc2757d1f5p-29,
    0x1.b72722p1, 0x1.529fc2757d1f5p-28, 0x1.6e4e441p1, 0x1.4a7f09d5f47d5p-29,
    0x1.b939105p0, 0x1.29fc2757d1f53p-30, 0x1.b939105p1, 0x1.29fc2757d1f53p-29,
    0x1.727220ap1, 0x1.29fc2757d1f53p-28, 0x1.c9c882ap0, 0x1.4fe13abe8fa9ap-30,
    0x1.c9c882ap1, 0x1.4fe13abe8fa9ap-29, 0x1.9391054p1, 0x1.4fe13abe8fa9ap-28,
    0x1.27220a9p1, 0x1.3f84eafa3ea6ap-29, 0x1.391054ap-1, 0x1.fc2757d1f534ep-31,
    0x1.391054ap0, 0x1.fc2757d1f534ep-30, 0x1.391054ap1, 0x1.fc2757d1f534ep-29,
    0x1.c882a53p-1, 0x1.f09d5f47d4d37p-30, 0x1.c882a53p0, 0x1.f09d5f47d4d37p-29,
    0x1.c882a53p1, 0x1.f09d5f47d4d37p-28, 0x1.91054a7p1, 0x1.e13abe8fa9a6fp-28,
    0x1.220a94fp1, 0x1.c2757d1f534dep-28, 0x1.1054a7fp-1, 0x1.3abe8fa9a6eep-34,
    0x1.1054a7fp0, 0x1.3abe8fa9a6eep-33, 0x1.1054a7fp1, 0x1.3abe8fa9a6eep-32,
    0x1.054a7fp-2, 0x1.3abe8fa9a6eep-31, 0x1.054a7fp-1, 0x1.3abe8fa9a6eep-30,
    0x1.054a7fp0, 0x1.3abe8fa9a6eep-29, 0x1.054a7fp1, 0x1.3abe8fa9a6eep-28,
    0x1.529fc27p-4, 0x1.5f47d4d377037p-34, 0x1.529fc27p-3, 0x1.5f47d4d377037p-33,
    0x1.529fc27p-2, 0x1.5f47d4d377037p-32, 0x1.529fc27p-1, 0x1.5f47d4d377037p-31,
    0x1.529fc27p0, 0x1.5f47d4d377037p-30, 0x1.529fc27p1, 0x1.5f47d4d377037p-29,
    0x1.4a7f09dp0, 0x1.7d1f534ddc0dbp-30, 0x1.4a7f09dp1, 0x1.7d1f534ddc0dbp-29,
    0x1.29fc275p0, 0x1.f47d4d377036ep-30, 0x1.29fc275p1, 0x1.f47d4d377036ep-29,
    0x1.4fe13abp-1, 0x1.d1f534ddc0db6p-30, 0x1.4fe13abp0, 0x1.d1f534ddc0db6p-29,
    0x1.4fe13abp1, 0x1.d1f534ddc0db6p-28, 0x1.3f84eafp0, 0x1.47d4d377036d9p-29,
    0x1.3f84eafp1, 0x1.47d4d377036d9p-28, 0x1.fc2757dp-1, 0x1.f534ddc0db629p-33,
    0x1.fc2757dp0, 0x1.f534ddc0db629p-32, 0x1.fc2757dp1, 0x1.f534ddc0db629p-31,
    0x1.f84eafap1, 0x1.f534ddc0db629p-30, 0x1.f09d5f4p1, 0x1.f534ddc0db629p-29,
    0x1.e13abe8p1, 0x1.f534ddc0db629p-28, 0x1.c2757d1p1, 0x1.ea69bb81b6c53p-28,
    0x1.84eafa3p1, 0x1.d4d377036d8a5p-28, 0x1.09d5f47p1, 0x1.a9a6ee06db14bp-28,
    0x1.3abe8fap-3, 0x1.34ddc0db6295ap-32, 0x1.3abe8fap-2, 0x1.34ddc0db6295ap-31,
    0x1.3abe8fap-1, 0x1.34ddc0db6295ap-30, 0x1.3abe8fap0, 0x1.34ddc0db6295ap-29,
    0x1.3abe8fap1, 0x1.34ddc0db6295ap-28, 0x1.d5f47d4p-1, 0x1.a6ee06db14acdp-30,
    0x1.d5f47d4p0, 0x1.a6ee06db14acdp-29, 0x1.d5f47d4p1, 0x1.a6ee06db14acdp-28,
    0x1.abe8fa9p1, 0x1.4ddc0db629599p-28, 0x1.57d1f53p1, 0x1.377036d8a5665p-29,
    0x1.5f47d4dp0, 0x1.bb81b6c52b328p-31, 0x1.5f47d4dp1, 0x1.bb81b6c52b328p-30,
    0x1.7d1f534p0, 0x1.bb81b6c52b328p-29, 0x1.7d1f534p1, 0x1.bb81b6c52b328p-28,
    0x1.f47d4d3p0, 0x1.dc0db6295993cp-30, 0x1.f47d4d3p1, 0x1.dc0db6295993cp-29,
    0x1.e8fa9a6p1, 0x1.dc0db6295993cp-28, 0x1.d1f534dp1, 0x1.b81b6c52b3279p-28,
    0x1.a3ea69bp1, 0x1.7036d8a5664f1p-28, 0x1.47d4d37p1, 0x1.c0db6295993c4p-29,
    0x1.1f534ddp0, 0x1.81b6c52b32788p-29, 0x1.1f534ddp1, 0x1.81b6c52b32788p-28,
    0x1.f534ddcp-2, 0x1.b6c52b3278872p-35, 0x1.f534ddcp-1, 0x1.b6c52b3278872p-34,
    0x1.f534ddcp0, 0x1.b6c52b3278872p-33, 0x1.f534ddcp1, 0x1.b6c52b3278872p-32,
    0x1.ea69bb8p1, 0x1.b6c52b3278872p-31, 0x1.d4d377p1, 0x1.b6c52b3278872p-30,
    0x1.a9a6eep1, 0x1.b6c52b3278872p-29, 0x1.534ddcp1, 0x1.b6c52b3278872p-28,
    0x1.4d37703p0, 0x1.b6295993c439p-30, 0x1.4d37703p1, 0x1.b6295993c439p-29,
    0x1.34ddc0dp0, 0x1.6c52b32788721p-29,
    NAN, NAN};

/* sin(x + quarters pi / 2). x is a number of at most 24 bits times 2^i, and pair i makes it quarter turns. k of them
 * are whole; of the rest, at most half of one, Taylor's series give sine and cosine. GCC 12 vectorises the look-up for
 * an index of 64 bits only. */
FORMULA float turned_sine(float x, uint64_t quarters)
{
    uint32_t word;
    memcpy(&word, &x, sizeof word);
    const uint64_t exponent = word >> 23 & 255, i = exponent > 150 ? exponent - 150 : 0;
    word -= (uint32_t)i << 23;
    float number;
    memcpy(&number, &word, sizeof number);
    const double turns = number * quarter_turns[2 * i], shifted = turns + 0x1.8p52, k = shifted - 0x1.8p52;
    const double a = ((turns - k) + number * quarter_turns[2 * i + 1]) * 1.57079632679489661923, z = a * a;
    uint64_t n;
    memcpy(&n, &shifted, sizeof n);
    n += quarters;
    const double sine = a * (1 + z * (-1.0 / 6 + z * (1.0 / 120 + z * (-1.0 / 5040 + z * (1.0 / 362880)))));
    const double cosine =
        1 + z * (-0.5 + z * (1.0 / 24 + z * (-1.0 / 720 + z * (1.0 / 40320 + z * (-1.0 / 3628800)))));
    const double result = n & 1 ? cosine : sine;
    return (float)(n & 2 ? -result : result);
}
FORMULA float sin_of_TRAMA_F32(float x)
{
    return turned_sine(x, 0);
}
FORMULA float cos_of_TRAMA_F32(float x)
{
    return turned_sine(x, 1);
}
#endif

#endif
