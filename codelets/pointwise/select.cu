/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses between two operands by a bool, element by element with broadcasting, on a GPU. */
#include "kernel.h"
#include "unit.cuh"
#include "view.h"
#include "walk.cuh"

enum { THREADS = 256 };

template <typename U> __global__ void select_units(grid_walk<4> w)
{
    const int64_t threads = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < w.count; i += threads) {
        int64_t at[4];
        grid_walk_at(w, i, at);
        const U *from = ((const bool *)w.data[1])[at[1]] ? (const U *)w.data[2] + at[2] : (const U *)w.data[3] + at[3];
        ((U *)w.data[0])[at[0]] = *from;
    }
}

extern "C" void cuda_select(const trama_call *call, const gpu *g)
{
    const trama_view *view[] = {&call->out[0], &call->in[0], &call->in[1], &call->in[2]};
    grid_walk<4> w;
    if (call->in[0].dtype != TRAMA_BOOL)
        kernel_impossible(call, "the condition is bool");
    if (grid_walk_of(&w, view))
        with_unit(trama_dtype_size(call->out[0].dtype), [&](auto unit) {
            typedef decltype(unit) U;
            GPU_LAUNCH(select_units<U>, gpu_blocks(w.count, THREADS, g), THREADS, g, w);
        });
}
