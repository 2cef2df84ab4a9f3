/* SPDX-License-Identifier: Apache-2.0 */
/* Address space for buffers, at multiples of a large page. */
#ifndef MAPPING_H
#define MAPPING_H

#include <stddef.h>

#define LARGE_PAGE ((size_t)2 << 20)
#define LARGE_BUFFER (2 * LARGE_PAGE) /* least bytes of a buffer in large pages */

static inline size_t mapping_padded(size_t bytes, size_t unit)
{
    return (bytes + unit - 1) / unit * unit;
}

/* Maps private memory at a multiple of `alignment`; bytes and alignment are multiples of a page. protection, flags: of
 * mmap, besides MAP_PRIVATE and MAP_ANONYMOUS. NULL where that fails. */
void *mapping_make(size_t bytes, size_t alignment, int protection, int flags);

#endif
