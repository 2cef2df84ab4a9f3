/* SPDX-License-Identifier: Apache-2.0 */
/* Open addressing with linear probing. */
#include "hash_table.h"

#include <stdlib.h>
#include <string.h>

#include "base.h"

enum { FIRST_ROOM = 16 };

/* Entries of one hash stay in the order in which they came, also when the table grows: each goes behind the last. */
static void put(hash_table *t, uint64_t hash, int number)
{
    uint64_t i = hash;
    while (t->at[i & (uint64_t)(t->room - 1)].number)
        i++;
    t->at[i & (uint64_t)(t->room - 1)] = (struct hash_table_entry){hash, number};
}

static void grow(hash_table *t)
{
    const hash_table before = *t;
    int start = 0;
    t->room = before.room ? 2 * before.room : FIRST_ROOM;
    t->at = trama_alloc((size_t)t->room * sizeof *t->at);
    while (start < before.room && before.at[start].number) /* begin behind a free entry, so that no run is cut */
        start++;
    for (int i = 0; i < before.room; i++) {
        const struct hash_table_entry *e = &before.at[(start + i) & (before.room - 1)];
        if (e->number)
            put(t, e->hash, e->number);
    }
    free(before.at);
}

void hash_table_add(hash_table *t, uint64_t hash, int number)
{
    if (2 * (t->n + 1) > t->room)
        grow(t);
    put(t, hash, number + 1);
    t->n++;
}

int hash_table_find(const hash_table *t, uint64_t hash, int *probe)
{
    for (; t->room; ++*probe) {
        const struct hash_table_entry *e = &t->at[(hash + (uint64_t)*probe) & (uint64_t)(t->room - 1)];
        if (!e->number)
            return -1;
        if (e->hash == hash) {
            ++*probe;
            return e->number - 1;
        }
    }
    return -1;
}

void hash_table_clear(hash_table *t)
{
    if (t->n)
        memset(t->at, 0, (size_t)t->room * sizeof *t->at);
    t->n = 0;
}

void hash_table_free(hash_table *t)
{
    free(t->at);
    *t = (hash_table){0};
}
