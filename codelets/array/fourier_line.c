/* SPDX-License-Identifier: Apache-2.0 */
/* Lengths, tables and passes of Fourier transforms. */
#include "fourier_line.h"

#include <math.h>
#include <string.h>

#include "loop.h"

/* LARGEST: the largest prime factor of a length that goes in passes. */
enum { LARGEST = 13 };

/* ---- Lengths ---- */

/* Factors 4 first, then the primes; false where one is larger than LARGEST. */
static bool factors_of(int64_t n, int *n_factors, int *factor)
{
    int count = 0;
    for (; n % 4 == 0 && n > 0; n /= 4)
        factor[count++] = 4;
    for (int p = 2; p <= LARGEST; p++)
        for (; n % p == 0 && n > 0; n /= p)
            factor[count++] = p;
    *n_factors = count;
    return n == 1;
}

int64_t fourier_smooth(int64_t n)
{
    int64_t best = 1;
    while (best < n)
        best *= 2;
    for (int64_t fives = 1; fives < best; fives *= 5)
        for (int64_t threes = fives; threes < best; threes *= 3) {
            int64_t m = threes;
            while (m < n)
                m *= 2;
            best = m < best ? m : best;
        }
    return best;
}

/* ---- Tables ---- */

void fourier_turn(int64_t k, int64_t n, double *re, double *im)
{
    const double eighth = 0.78539816339744830962; /* pi / 4 */
    k %= n;
    k += k < 0 ? n : 0;
    const int64_t octant = k * 8 / n, in_eighths = k * 8 - octant * n; /* in_eighths / n of an eighth turn */
    const bool odd = octant & 1;
    const double angle = eighth * (double)(odd ? n - in_eighths : in_eighths) / (double)n;
    double c = cos(angle), s = sin(angle);
    if (((octant + 1) & 2) != 0) { /* the octants nearer to the imaginary axis */
        const double swap = c;
        c = s;
        s = swap;
    }
    *re = octant >= 2 && octant < 6 ? -c : c;
    *im = octant < 4 ? -s : s;
}

#define TYPE float
#define NAME(name) name##_f32
#include "fourier_typed.h"

#define TYPE double
#define NAME(name) name##_f64
#include "fourier_typed.h"
