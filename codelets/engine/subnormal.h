/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic without subnormal numbers, those below the least normal one (1.2e-38 in f32): operands and results that
 * are subnormal become 0. x86 computes with subnormals in microcode, 20 to 100 times as slowly. */
#ifndef CODELETS_SUBNORMAL_H
#define CODELETS_SUBNORMAL_H

#if defined(__SSE2__)
#include <immintrin.h>

enum { SUBNORMALS_ARE_ZERO = 0x8040 }; /* of results and of operands */

/* For the calling thread, until subnormals_restore gets the result. */
static inline unsigned subnormals_off(void)
{
    const unsigned before = _mm_getcsr();
    _mm_setcsr(before | SUBNORMALS_ARE_ZERO);
    return before;
}

static inline void subnormals_restore(unsigned before)
{
    _mm_setcsr((_mm_getcsr() & ~(unsigned)SUBNORMALS_ARE_ZERO) | (before & SUBNORMALS_ARE_ZERO));
}
#else
static inline unsigned subnormals_off(void)
{
    return 0;
}

static inline void subnormals_restore(unsigned before)
{
    (void)before;
}
#endif

#endif
