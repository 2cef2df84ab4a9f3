/* SPDX-License-Identifier: Apache-2.0 */
/* Values out of nothing: constants, and random numbers that depend on the global index of an element alone. */
#include <Random123/philox.h>

#include "kernel.h"
#include "loop.h"
#include "ops.h"

void cpu_fill(const trama_call *call)
{
    kernel_fill(&call->out[0], call->attributes->real[SOURCE_VALUE]);
}

typedef struct stream {
    philox4x32_key_t key;
    uint32_t stream, step;
    double low, width;
} stream;

static double uniform_of(const stream *s, uint32_t word)
{
    return s->low + s->width * ((word >> 8) * 0x1p-24);
}

/* Elements first, first + 1, ... of the stream; four words come from one call of the generator. */
#define UNIFORM_RUN(dtype, type, unused)                                                                               \
    static void uniform_##dtype(const stream *s, void *data, int64_t step, uint64_t first, int64_t n)                  \
    {                                                                                                                  \
        type *out = data;                                                                                              \
        for (int64_t i = 0; i < n;) {                                                                                  \
            const uint64_t at = first + (uint64_t)i, block = at / 4;                                                   \
            const philox4x32_ctr_t counter = {{(uint32_t)block, (uint32_t)(block >> 32), s->stream, s->step}};         \
            const philox4x32_ctr_t words = philox4x32(counter, s->key);                                                \
            for (unsigned w = at % 4; w < 4 && i < n; w++, i++)                                                        \
                out[i * step] = OF_REAL_##dtype(uniform_of(s, words.v[w]));                                            \
        }                                                                                                              \
    }
EACH_DTYPE(UNIFORM_RUN, )
typedef void uniform_run(const stream *s, void *data, int64_t step, uint64_t first, int64_t n);
static uniform_run *const uniform_runs[TRAMA_N_DTYPES] = {EACH_DTYPE(ROW_ENTRY, uniform)};

static stream stream_of(const trama_attributes *attributes)
{
    const uint64_t seed = (uint64_t)attributes->integer[SOURCE_SEED];
    const double low = attributes->real[SOURCE_LOW];

    return (stream){.key = {{(uint32_t)seed, (uint32_t)(seed >> 32)}},
                    .stream = (uint32_t)attributes->integer[SOURCE_STREAM],
                    .step = (uint32_t)attributes->integer[SOURCE_STEP],
                    .low = low,
                    .width = attributes->real[SOURCE_HIGH] - low};
}

/* The same box with at least one dim, whole trailing dims merged where memory runs on too, so that runs are long. */
static trama_view merged(trama_view v)
{
    if (v.ndim == 0)
        return (trama_view){.data = v.data, .dtype = v.dtype, .ndim = 1, .extent = {1}, .stride = {1}, .global = {1}};
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

/* Row number row (row-major) of the box: its place in memory, and the global index of its first element. */
static void row_start(const trama_view *v, int64_t row, int64_t *at, uint64_t *index)
{
    const int last = v->ndim - 1;
    uint64_t weight = (uint64_t)v->global[last];

    *at = 0;
    *index = (uint64_t)v->offset[last];
    for (int d = last - 1; d >= 0; d--) {
        const int64_t i = row % v->extent[d];
        row /= v->extent[d];
        *at += i * v->stride[d];
        *index += (uint64_t)(v->offset[d] + i) * weight;
        weight *= (uint64_t)v->global[d];
    }
}

void cpu_uniform(const trama_call *call)
{
    const stream s = stream_of(call->attributes);
    const trama_view v = merged(call->out[0]);
    const int last = v.ndim - 1;
    const int64_t n = v.extent[last], rows = n ? view_count(&v) / n : 0;
    const int64_t size = (int64_t)trama_dtype_size(v.dtype);

    for (int64_t row = 0; row < rows; row++) {
        int64_t at;
        uint64_t first;
        row_start(&v, row, &at, &first);
        uniform_runs[v.dtype](&s, (char *)v.data + at * size, v.stride[last], first, n);
    }
}
