/* SPDX-License-Identifier: Apache-2.0 */
/* An allocator that refuses: for programs that are linked with REFUSES_MEMORY_ (tests/CMakeLists.txt), whose requests,
 * Trama's and Check's but no shared library's, come here. */
#ifndef REFUSAL_H
#define REFUSAL_H

#include <stddef.h>

enum {
    RESERVE = 4 << 20 /* dist/base/memory.c: the request for it is nobody's own, and granted where one is refused */
};

/* Refuses requests first to first + n - 1 from now on, counted from 0; none where first is below 0. */
void refuse(long first, long n);
long refusal_asked(void);   /* requests since refuse() */
long refusal_refused(void); /* those of them that were refused */
size_t refusal_bytes(void); /* the bytes of all of them */

#endif
