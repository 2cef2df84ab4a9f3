/* SPDX-License-Identifier: Apache-2.0 */
/* An arena: many small allocations that are freed at once. */
#ifndef ARENA_H
#define ARENA_H

#include "base.h"

typedef struct arena {
    struct arena_block *blocks; /* the newest first */
    size_t used, room;          /* of the newest block */
    size_t total;               /* bytes taken so far, a first size for the next arena of this use */
} arena;

/* Zeroed memory, 16-byte aligned. A zeroed arena is empty and valid; `expected` sizes its first block. */
void *arena_take(arena *a, size_t bytes, size_t expected);
void arena_free(arena *a);

#endif
