/* SPDX-License-Identifier: Apache-2.0 */
/* New values on a GPU: constants, and random numbers, which depend on the global index of an element, not on its
 * place. */
#include "kernel.h"
#include "number.cuh"
#include "order.cuh"
#include "source.h"
#include "view.h"

enum { THREADS = 256 };

extern "C" void cuda_fill(const trama_call *call, const gpu *g)
{
    gpu_fill(&call->out[0], call->attributes->real[SOURCE_VALUE], g);
}

/* Rows of neighbours in the tensor. One item is a block of the generator's words; a row has `items` of them at most. */
struct random_rows {
    void *data;
    stream s;
    const int64_t *step_of_run; /* NULL: the stream's own */
    int ndim; /* of the dims before the last */
    divisor extent[TRAMA_MAX_NDIM], items;
    int64_t stride[TRAMA_MAX_NDIM];
    int64_t weight[TRAMA_MAX_NDIM]; /* elements of the tensor from one index to the next */
    int64_t first;                  /* number of the first element in the tensor */
    int64_t rows, n, step;          /* n elements in a row, `step` from one to the next */
};

/* The place of row number `row` in memory, and the number of its first element in the tensor. */
static __device__ inline void row_start(const random_rows &r, int64_t row, int64_t *at, int64_t *index)
{
    *at = 0;
    *index = r.first;
    for (int d = r.ndim - 1; d >= 0; d--) {
        const int64_t rest = quotient(r.extent[d], row), i = row - rest * r.extent[d].by;
        *at += i * r.stride[d];
        *index += i * r.weight[d];
        row = rest;
    }
}

template <typename T> __global__ void uniform_blocks(random_rows r)
{
    const int64_t threads = (int64_t)gridDim.x * blockDim.x, all = r.rows * r.items.by;
    const stream s = r.step_of_run ? stream_at(r.s, *r.step_of_run) : r.s;
    for (int64_t item = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; item < all; item += threads) {
        const int64_t row = quotient(r.items, item);
        int64_t at, index;
        row_start(r, row, &at, &index);
        const uint64_t block = (uint64_t)index / 4 + (uint64_t)(item - row * r.items.by);
        const int64_t i = (int64_t)block * 4 - index; /* index of word 0 in the row; below 0: before the row */
        const philox4x32_ctr_t words = stream_words(&s, block);
        T *out = (T *)r.data + at + i * r.step;
        pack<T, 4> four;
#pragma unroll
        for (int w = 0; w < 4; w++)
            four.at[w] = of<T>::real(uniform_of(&s, words.v[w]));
        if (i >= 0 && i + 4 <= r.n && r.step == 1 && (uintptr_t)out % sizeof four == 0) {
            *(pack<T, 4> *)out = four;
            continue;
        }
#pragma unroll
        for (int w = 0; w < 4; w++)
            if (i + w >= 0 && i + w < r.n)
                out[w * r.step] = four.at[w];
    }
}

static random_rows rows_of(const trama_view &v)
{
    const int last = v.ndim - 1;
    int64_t weight = v.global[last];
    random_rows r = {};

    r.data = v.data;
    r.ndim = last;
    r.rows = 1;
    r.first = v.offset[last];
    r.n = v.extent[last];
    r.step = v.stride[last];
    r.items = divisor_of((r.n + 2) / 4 + 1);
    for (int d = last - 1; d >= 0; d--) {
        r.extent[d] = divisor_of(v.extent[d] > 0 ? v.extent[d] : 1);
        r.stride[d] = v.stride[d];
        r.weight[d] = weight;
        r.first += v.offset[d] * weight;
        r.rows *= v.extent[d];
        weight *= v.global[d];
    }
    return r;
}

static void uniform(const trama_call *call, const int64_t *step, const gpu *g)
{
    random_rows r = rows_of(whole_rows(call->out[0]));
    const int64_t all = r.rows * r.items.by;

    r.s = stream_of(call->attributes);
    r.step_of_run = step;
    if (r.n == 0 || r.rows == 0)
        return;
    with_float(call->out[0].dtype, [&](auto zero) {
        GPU_LAUNCH(uniform_blocks<decltype(zero)>, gpu_blocks(all, THREADS, g), THREADS, g, r);
    });
}

extern "C" void cuda_uniform(const trama_call *call, const gpu *g)
{
    uniform(call, NULL, g);
}

extern "C" void cuda_draw(const trama_call *call, const gpu *g)
{
    uniform(call, (const int64_t *)call->in[0].data, g);
}

template <typename T> __global__ void arange_elements(random_rows r, double start, double by)
{
    const int64_t threads = (int64_t)gridDim.x * blockDim.x, all = r.rows * r.n;
    for (int64_t item = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; item < all; item += threads) {
        const int64_t row = quotient(r.items, item), i = item - row * r.n;
        int64_t at, index;
        row_start(r, row, &at, &index);
        ((T *)r.data)[at + i * r.step] = of<T>::real(start + by * (double)(index + i));
    }
}

extern "C" void cuda_arange(const trama_call *call, const gpu *g)
{
    random_rows r = rows_of(whole_rows(call->out[0]));
    const double *real = call->attributes->real;
    if (r.n == 0 || r.rows == 0)
        return;
    r.items = divisor_of(r.n); /* an element each */
    with_number(call->out[0].dtype, [&](auto zero) {
        GPU_LAUNCH(arange_elements<decltype(zero)>, gpu_blocks(r.rows * r.n, THREADS, g), THREADS, g, r,
                   real[ARANGE_START], real[ARANGE_STEP]);
    });
}
