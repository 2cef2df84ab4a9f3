/* SPDX-License-Identifier: Apache-2.0 */
/* The library's one hash: of texts, structs and contents, for tables and for comparing ranks. Ranks of one byte order
 * get equal numbers. It is not cryptographic: collisions can be constructed. */
#ifndef HASH_H
#define HASH_H

#include <stddef.h>
#include <stdint.h>

#define HASH_START UINT64_C(0xcbf29ce484222325)

/* Extends a hash by one word. */
static inline uint64_t hash_word(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 29;
}

/* Extends a hash by an address, which differs from rank to rank and from run to run. */
static inline uint64_t hash_address(uint64_t hash, const void *address)
{
    return hash_word(hash, (uint64_t)(uintptr_t)address);
}

/* Extends a hash by bytes, at the speed of memory. Structs must be zeroed before they are filled. */
uint64_t hash_bytes(uint64_t hash, const void *at, size_t bytes);
uint64_t hash_text(uint64_t hash, const char *text); /* without the final 0 */

#endif
