/* SPDX-License-Identifier: Apache-2.0 */
/* Hashing, 8 bytes at a time. */
#include "hash.h"

#include <string.h>

enum { LANES = 4 /* independent multiplications */ };

uint64_t hash_bytes(uint64_t hash, const void *at, size_t bytes)
{
    const unsigned char *next = at;
    uint64_t lane[LANES], word[LANES];
    size_t left = bytes;
    for (unsigned i = 0; i < LANES; i++)
        lane[i] = hash + i;
    for (; left >= sizeof word; left -= sizeof word, next += sizeof word) {
        memcpy(word, next, sizeof word);
        for (int i = 0; i < LANES; i++)
            lane[i] = hash_word(lane[i], word[i]);
    }
    memset(word, 0, sizeof word);
    if (left)
        memcpy(word, next, left);
    for (int i = 0; i < LANES; i++)
        hash = hash_word(hash_word(hash, lane[i]), word[i]);
    return hash_word(hash, bytes);
}

uint64_t hash_text(uint64_t hash, const char *text)
{
    return hash_bytes(hash, text, strlen(text));
}
