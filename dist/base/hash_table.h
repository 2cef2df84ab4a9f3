/* SPDX-License-Identifier: Apache-2.0 */
/* The library's one hash table: from hashes to numbers, which are the caller's places in an array of its own. Nothing
 * is removed; a table whose array changes otherwise is cleared and filled again. */
#ifndef HASH_TABLE_H
#define HASH_TABLE_H

#include "hash.h"

typedef struct hash_table {
    struct hash_table_entry {
        uint64_t hash;
        int number; /* plus 1; 0: free */
    } *at;
    int n, room; /* room: a power of 2 */
} hash_table;

/* Several numbers may have one hash. */
void hash_table_add(hash_table *t, uint64_t hash, int number);

/* The next number with this hash, in the order of adding; -1: there is none. *probe is 0 before the first call. */
int hash_table_find(const hash_table *t, uint64_t hash, int *probe);

void hash_table_clear(hash_table *t); /* keeps the memory */
void hash_table_free(hash_table *t);

#endif
