/* SPDX-License-Identifier: Apache-2.0 */
/* log and log1p that vectorise: no branch, no table, no call. Within 2 and 4 units in the last place (test_logarithm);
 * zeros, infinities, subnormal numbers and NaN as in libm. All instruction sets give the same bits where the compiler
 * does not contract a * b + c (-ffp-contract=off). */
#ifndef CODELETS_LOGARITHM_H
#define CODELETS_LOGARITHM_H

#include <stdbool.h>
#include <string.h>

#include "number.h"

/* fdlibm's e_log.c: x = 2^k (1 + f) with 1 + f within sqrt(1/2)..sqrt(2), s = f / (2 + f) and log(1 + f) =
 * f - (f^2/2 - s (f^2/2 + R(s^2))), where R approximates 2/3 s^2 + 2/5 s^4 + ... */
#define LOG_SERIES_TRAMA_F32(z)                                                                                        \
    ((z) * (0x1.555554p-1f + (z) * (0x1.999c26p-2f + (z) * (0x1.23d3dcp-2f + (z)*0x1.f13c4cp-3f))))
#define LOG_SERIES_TRAMA_F64(z)                                                                                        \
    ((z) *                                                                                                             \
     (6.666666666666735130e-01 +                                                                                       \
      (z) * (3.999999999940941908e-01 +                                                                                \
             (z) * (2.857142874366239149e-01 + (z) * (2.222219843214978396e-01 + (z)*LOG_SERIES_END_TRAMA_F64(z))))))
#define LOG_SERIES_END_TRAMA_F64(z)                                                                                    \
    (1.818357216161805012e-01 + (z) * (1.531383769920937332e-01 + (z)*1.479819860511658591e-01))

/* log_plus: log(x) + rest for a positive, finite x. Exponents become numbers in the low bits of 2^mantissa. */
#define LOGARITHM(dtype, type, bits, mantissa, bias, whole, root, smallest, scale, scaled_by, ln2_high, ln2_low)       \
    FORMULA type log_plus_##dtype(type x, type rest)                                                                   \
    {                                                                                                                  \
        const bool small = x < (type)smallest;                                                                         \
        type part = small ? x * (type)scale : x, k = (type)whole;                                                      \
        bits word, number;                                                                                             \
        memcpy(&word, &part, sizeof word);                                                                             \
        memcpy(&number, &k, sizeof number);                                                                            \
        word += ((bits)bias << mantissa) - (bits)root;                                                                 \
        number |= word >> mantissa;                                                                                    \
        word = (word & (((bits)1 << mantissa) - 1)) + (bits)root;                                                      \
        memcpy(&k, &number, sizeof k);                                                                                 \
        memcpy(&part, &word, sizeof part);                                                                             \
        k = (k - (type)whole) - (small ? bias + scaled_by : bias);                                                     \
        const type f = part - 1, s = f / (2 + f), half = (type)0.5 * f * f;                                            \
        const type low = s * (half + LOG_SERIES_##dtype(s * s)) + (k * (type)ln2_low + rest);                          \
        return k * (type)ln2_high - ((half - low) - f);                                                                \
    }                                                                                                                  \
    FORMULA type log_of_##dtype(type x)                                                                                \
    {                                                                                                                  \
        const type result = x == (type)INFINITY ? x : log_plus_##dtype(x, 0);                                          \
        return x > 0 ? result : x == 0 ? (type)-INFINITY : (type)NAN;                                                  \
    }                                                                                                                  \
    FORMULA type log1p_of_##dtype(type x)                                                                              \
    {                                                                                                                  \
        const type u = 1 + x, lost = (x - (u - 1)) / u;                                                                \
        const type result = x == (type)INFINITY || x == 0 ? x : log_plus_##dtype(u, lost);                             \
        return x > -1 ? result : x == -1 ? (type)-INFINITY : (type)NAN;                                                \
    }
LOGARITHM(TRAMA_F32, float, uint32_t, 23, 127, 0x1p23, 0x3f3504f3, 0x1p-126, 0x1p25, 25, 6.9313812256e-01,
          9.0580006145e-06)
LOGARITHM(TRAMA_F64, double, uint64_t, 52, 1023, 0x1p52, 0x3fe6a09e667f3bcd, 0x1p-1022, 0x1p54, 54,
          6.93147180369123816490e-01, 1.90821492927058770002e-10)

#endif
