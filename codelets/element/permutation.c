/* SPDX-License-Identifier: Apache-2.0 */
/* A Feistel network over the smallest power of two that holds n, whose round function is Philox4x32-10, and walks along
 * its cycles until a number is below n: Black and Rogaway, "Ciphers with arbitrary finite domains", CT-RSA 2002,
 * methods 2 and 3. At least half of the numbers are below n, so the walks are short. */
#include "permutation.h"

#include <Random123/philox.h>

enum { ROUNDS = 8 /* even: the halves end as wide as they began */ };

/* Swaps the halves, and mixes the left one, which becomes the right one: (l, r) becomes (r, l ^ f(r)). */
static uint64_t network(philox4x32_key_t key, uint64_t epoch, int bits, uint64_t x)
{
    int low = (bits + 1) / 2, high = bits - low; /* widths of r and of l */
    uint64_t r = x & ((UINT64_C(1) << low) - 1), l = x >> low;
    for (uint32_t round = 0; round < ROUNDS; round++) {
        const philox4x32_ctr_t at = {{(uint32_t)r, round, (uint32_t)epoch, (uint32_t)(epoch >> 32)}};
        uint64_t mixed = (l ^ philox4x32(at, key).v[0]) & ((UINT64_C(1) << high) - 1);
        l = r;
        r = mixed;
        int swapped = low;
        low = high;
        high = swapped;
    }
    return l << low | r;
}

int64_t permutation_at(uint64_t seed, uint64_t epoch, int64_t n, int64_t i)
{
    const philox4x32_key_t key = {{(uint32_t)seed, (uint32_t)(seed >> 32)}};
    int bits = 2;
    while (bits < 62 && INT64_C(1) << bits < n)
        bits++;
    uint64_t x = (uint64_t)i;
    do
        x = network(key, epoch, bits, x);
    while (x >= (uint64_t)n);
    return (int64_t)x;
}
