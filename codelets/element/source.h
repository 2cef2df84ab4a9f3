/* SPDX-License-Identifier: Apache-2.0 */
/* Random numbers, for CPUs and GPUs alike: which word of the generator belongs to an element, and its value. */
#ifndef CODELETS_SOURCE_H
#define CODELETS_SOURCE_H

#include <Random123/philox.h>

#include "ops.h"

typedef struct stream {
    philox4x32_key_t key;
    uint32_t stream, step;
    double low, width;
} stream;

static inline TRAMA_HOST_DEVICE stream stream_at(stream s, int64_t step)
{
    s.step = (uint32_t)step;
    return s;
}

static inline stream stream_of(const trama_attributes *attributes)
{
    const uint64_t seed = (uint64_t)attributes->integer[SOURCE_SEED];
    stream s;

    s.key.v[0] = (uint32_t)seed;
    s.key.v[1] = (uint32_t)(seed >> 32);
    s.stream = (uint32_t)attributes->integer[SOURCE_STREAM];
    s.step = (uint32_t)attributes->integer[SOURCE_STEP];
    s.low = attributes->real[SOURCE_LOW];
    s.width = attributes->real[SOURCE_HIGH] - s.low;
    return s;
}

/* The words of elements 4 block to 4 block + 3. */
static inline TRAMA_HOST_DEVICE philox4x32_ctr_t stream_words(const stream *s, uint64_t block)
{
    philox4x32_ctr_t counter;

    counter.v[0] = (uint32_t)block;
    counter.v[1] = (uint32_t)(block >> 32);
    counter.v[2] = s->stream;
    counter.v[3] = s->step;
    return philox4x32(counter, s->key);
}

static inline TRAMA_HOST_DEVICE double uniform_of(const stream *s, uint32_t word)
{
    return s->low + s->width * ((word >> 8) * (1.0 / (1 << 24)));
}

/* The same box with at least one dim, whole trailing dims merged where memory runs on too, so that runs are long. */
static inline trama_view whole_rows(trama_view v)
{
    if (v.ndim == 0)
        v.extent[0] = v.global[0] = v.stride[0] = v.ndim = 1, v.offset[0] = 0;
    for (int d = v.ndim - 1; d > 0; d--) {
        if (v.extent[d] != v.global[d] || v.stride[d - 1] != v.stride[d] * v.extent[d])
            break;
        v.extent[d - 1] *= v.extent[d];
        v.offset[d - 1] *= v.extent[d];
        v.global[d - 1] *= v.extent[d];
        v.stride[d - 1] = v.stride[d];
        v.ndim--;
    }
    return v;
}

#endif
