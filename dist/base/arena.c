/* SPDX-License-Identifier: Apache-2.0 */
/* Arenas: a chain of blocks. */
#include "arena.h"

enum { LEAST_BLOCK = 1024 };

struct arena_block {
    struct arena_block *next;
    max_align_t data[];
};

void *arena_take(arena *a, size_t bytes, size_t expected)
{
    bytes = (bytes + 15) / 16 * 16;
    if (!a->blocks || a->room - a->used < bytes) {
        size_t room = expected > bytes ? expected : bytes;
        room = room > LEAST_BLOCK ? room : LEAST_BLOCK;
        struct arena_block *block = trama_alloc(sizeof *block + room);
        block->next = a->blocks;
        a->blocks = block;
        a->used = 0;
        a->room = room;
    }
    void *taken = (char *)a->blocks->data + a->used;
    a->used += bytes;
    a->total += bytes;
    return taken;
}

void arena_free(arena *a)
{
    while (a->blocks) {
        struct arena_block *next = a->blocks->next;
        free(a->blocks);
        a->blocks = next;
    }
    *a = (arena){0};
}
