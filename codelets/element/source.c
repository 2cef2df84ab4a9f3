/* SPDX-License-Identifier: Apache-2.0 */
/* New values: constants, and random numbers, which depend on the global index of an element, not on its place. */
#include "source.h"
#include "kernel.h"
#include "loop.h"

void cpu_fill(const trama_call *call)
{
    kernel_fill(&call->out[0], call->attributes->real[SOURCE_VALUE]);
}

/* Elements first, first + 1, ... of the stream; four words come from one call of the generator. */
#define UNIFORM_RUN(dtype, type, unused)                                                                               \
    static void uniform_##dtype(const void *with, void *data, int64_t step, uint64_t first, int64_t n)                 \
    {                                                                                                                  \
        const stream *s = with;                                                                                        \
        type *out = data;                                                                                              \
        for (int64_t i = 0; i < n;) {                                                                                  \
            const uint64_t at = first + (uint64_t)i, block = at / 4;                                                   \
            const philox4x32_ctr_t words = stream_words(s, block);                                                     \
            for (unsigned w = at % 4; w < 4 && i < n; w++, i++)                                                        \
                out[i * step] = OF_REAL(dtype, uniform_of(s, words.v[w]));                                             \
        }                                                                                                              \
    }
EACH_FLOAT(UNIFORM_RUN, )
typedef void source_run(const void *with, void *data, int64_t step, uint64_t first, int64_t n);
static source_run *const uniform_runs[TRAMA_N_DTYPES] = {EACH_FLOAT(ROW_ENTRY, uniform)};

/* with: start and step */
#define ARANGE_RUN(dtype, type, unused)                                                                                \
    static void arange_##dtype(const void *with, void *data, int64_t step, uint64_t first, int64_t n)                  \
    {                                                                                                                  \
        const double *real = with;                                                                                     \
        type *out = data;                                                                                              \
        for (int64_t i = 0; i < n; i++)                                                                                \
            out[i * step] = OF_REAL(dtype, real[ARANGE_START] + real[ARANGE_STEP] * (double)((int64_t)first + i));     \
    }
EACH_NUMBER(ARANGE_RUN, )
static source_run *const arange_runs[TRAMA_N_DTYPES] = {EACH_NUMBER(ROW_ENTRY, arange)};

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

/* Runs the source over the rows of the result. */
static void each_row(const trama_call *call, source_run *const runs[TRAMA_N_DTYPES], const void *with)
{
    const trama_view v = whole_rows(call->out[0]);
    const int last = v.ndim - 1;
    const int64_t n = v.extent[last], rows = n ? view_count(&v) / n : 0;
    const int64_t size = (int64_t)trama_dtype_size(v.dtype);

    if (!runs[v.dtype])
        kernel_impossible(call, "no kernel for this element type");
    for (int64_t row = 0; row < rows; row++) {
        int64_t at;
        uint64_t first;
        row_start(&v, row, &at, &first);
        runs[v.dtype](with, (char *)v.data + at * size, v.stride[last], first, n);
    }
}

void cpu_arange(const trama_call *call)
{
    each_row(call, arange_runs, call->attributes->real);
}

static void uniform(const trama_call *call, const stream s)
{
    each_row(call, uniform_runs, &s);
}

void cpu_uniform(const trama_call *call)
{
    uniform(call, stream_of(call->attributes));
}

void cpu_draw(const trama_call *call)
{
    uniform(call, stream_at(stream_of(call->attributes), *(const int64_t *)call->in[0].data));
}
