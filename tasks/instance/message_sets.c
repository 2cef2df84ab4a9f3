/* SPDX-License-Identifier: Apache-2.0 */
#include "message_sets.h"

#include <string.h>

enum { MOST_WORDS = 1 << 23 }; /* of all sets: 64 MiB */

static uint64_t *new_set(message_sets *s)
{
    for (int i = 0; i < s->words; i++)
        *ARRAY_PUSH(&s->bits) = 0;
    return &s->bits.at[(size_t)s->n * (size_t)s->words];
}

static const uint64_t *bits_of(const message_sets *s, int set)
{
    return &s->bits.at[(size_t)set * (size_t)s->words];
}

message_sets message_sets_begin(int n_messages)
{
    message_sets s = {.words = (n_messages + 63) / 64};
    new_set(&s);
    s.n = 1;
    return s;
}

void message_sets_end(message_sets *s)
{
    ARRAY_FREE(&s->bits);
    hash_table_free(&s->by_bits);
}

static bool is_known(const message_sets *s, int a, int b)
{
    return a >= 0 && b >= 0 && (int64_t)(s->n + 1) * s->words <= MOST_WORDS;
}

/* Of the set that was written behind the last one: an older number of it, or its own. */
static int number_of_new(message_sets *s)
{
    const size_t bytes = (size_t)s->words * sizeof(uint64_t);
    const uint64_t hash = hash_bytes(HASH_START, bits_of(s, s->n), bytes);
    int probe = 0, found;
    while ((found = hash_table_find(&s->by_bits, hash, &probe)) >= 0)
        if (!memcmp(bits_of(s, found), bits_of(s, s->n), bytes)) {
            s->bits.n -= s->words;
            return found;
        }
    hash_table_add(&s->by_bits, hash, s->n);
    return s->n++;
}

int message_sets_with(message_sets *s, int set, int message)
{
    if (!is_known(s, set, set))
        return --s->unknown;
    uint64_t *bits = new_set(s);
    memcpy(bits, bits_of(s, set), (size_t)s->words * sizeof *bits);
    bits[message / 64] |= UINT64_C(1) << message % 64;
    return number_of_new(s);
}

int message_sets_union(message_sets *s, int a, int b)
{
    if (a == b || b == NO_MESSAGES)
        return a;
    if (a == NO_MESSAGES)
        return b;
    if (!is_known(s, a, b))
        return --s->unknown;
    uint64_t *bits = new_set(s), more_than_a = 0, more_than_b = 0;
    const uint64_t *of_a = bits_of(s, a), *of_b = bits_of(s, b);
    for (int i = 0; i < s->words; i++) {
        bits[i] = of_a[i] | of_b[i];
        more_than_a |= bits[i] ^ of_a[i];
        more_than_b |= bits[i] ^ of_b[i];
    }
    if (more_than_a && more_than_b)
        return number_of_new(s);
    s->bits.n -= s->words;
    return more_than_a ? b : a;
}
