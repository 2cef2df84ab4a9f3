/* SPDX-License-Identifier: Apache-2.0 */
/* Philox4x32-10: ten rounds of two 32 by 32 bit products, as the paper's figure 2 has them. */
#include "philox.h"

uint32_t philox_word(uint64_t seed, uint32_t stream, uint32_t step, uint64_t i)
{
    uint32_t c[4] = {(uint32_t)(i / 4), (uint32_t)(i / 4 >> 32), stream, step};
    uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    for (int round = 0; round < 10; round++) {
        uint64_t first = (uint64_t)c[0] * 0xd2511f53u, second = (uint64_t)c[2] * 0xcd9e8d57u;
        c[0] = (uint32_t)(second >> 32) ^ c[1] ^ key[0];
        c[1] = (uint32_t)second;
        c[2] = (uint32_t)(first >> 32) ^ c[3] ^ key[1];
        c[3] = (uint32_t)first;
        key[0] += 0x9e3779b9u;
        key[1] += 0xbb67ae85u;
    }
    return c[i % 4];
}
