/* SPDX-License-Identifier: Apache-2.0 */
/* The check sum of a tensor's content. */
#include "content_sum.h"

#include <string.h>

#include "box_file.h"
#include "fast.h"

/* For a fixed place the map from words to terms is one to one. */
static inline uint64_t term(uint64_t word, uint64_t place)
{
    uint64_t x = word ^ (place + 1) * UINT64_C(0x9e3779b97f4a7c15);
    x *= UINT64_C(0xbf58476d1ce4e5b9);
    x ^= x >> 32;
    x *= UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 29;
}

#define SUM_OF(type)                                                                                                   \
    FAST static uint64_t sum_##type(const unsigned char *data, uint64_t place, int64_t n)                              \
    {                                                                                                                  \
        uint64_t sum = 0;                                                                                              \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            type word;                                                                                                 \
            memcpy(&word, data + (size_t)i * sizeof word, sizeof word);                                                \
            sum += term(word, place + (uint64_t)i);                                                                    \
        }                                                                                                              \
        return sum;                                                                                                    \
    }
SUM_OF(uint8_t)
SUM_OF(uint16_t)
SUM_OF(uint32_t)
SUM_OF(uint64_t)

uint64_t content_sum(const void *data, int64_t at, int64_t bytes, size_t word)
{
    size_t size = word > 8 ? 8 : word;
    uint64_t place = (uint64_t)at / size;
    int64_t n = bytes / (int64_t)size;
    return size == 8   ? sum_uint64_t(data, place, n)
           : size == 4 ? sum_uint32_t(data, place, n)
           : size == 2 ? sum_uint16_t(data, place, n)
                       : sum_uint8_t(data, place, n);
}

uint64_t content_sum_box(trama_shape shape, size_t word, const box *b, const void *data)
{
    uint64_t sum = 0;
    box_runs runs = box_runs_of(shape, word, b);
    for (int64_t i = 0; i < runs.n; i++)
        sum += content_sum((const char *)data + i * runs.bytes, box_run_at(&runs, i), runs.bytes, word);
    return sum;
}
