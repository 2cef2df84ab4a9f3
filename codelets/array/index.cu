/* SPDX-License-Identifier: Apache-2.0 */
/* Gather on a GPU: a thread for each element of the result. */
#include "index.h"
#include "unit.cuh"
#include "walk.cuh"

enum { THREADS = 256 };

/* The bits of 0 and of NaN, which is 0 in integers: an element elsewhere, and one that is nowhere. */
template <typename U> struct blanks {
    U elsewhere, nowhere;
};

/* Arrays: the result, the index, and x at the first element of its dim. */
template <typename U>
__global__ void __launch_bounds__(THREADS) gather_elements(grid_walk<3> w, indexed_dim dim, bool wide, blanks<U> blank)
{
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < w.count;
         i += (int64_t)gridDim.x * blockDim.x) {
        int64_t at[3];
        grid_walk_at(w, i, at);
        const int64_t k = place(&dim, index_at(w.data[1], at[1], wide));
        ((U *)w.data[0])[at[0]] = k >= 0           ? ((const U *)w.data[2])[at[2] + k * dim.step]
                                  : k == ELSEWHERE ? blank.elsewhere
                                                   : blank.nowhere;
    }
}

template <typename U> static U blank_of(trama_dtype dtype, double number)
{
    U blank = {};
    trama_view view = {};
    view.data = &blank;
    view.dtype = dtype;
    kernel_fill(&view, number);
    return blank;
}

/* index and x have the dims of the result, with extent 1 where they repeat. */
static void gather(const trama_call *call, const trama_view *index, const trama_view *x, const gpu *g)
{
    const trama_view *const views[3] = {&call->out[0], index, x};
    const trama_dtype dtype = call->out[0].dtype;
    const indexed_dim dim = indexed_dim_of(&call->in[0], indexed_axis(call));
    grid_walk<3> w;
    if (!grid_walk_of(&w, views))
        return;
    with_unit(trama_dtype_size(dtype), [&](auto unit) {
        typedef decltype(unit) U;
        const blanks<U> blank = {blank_of<U>(dtype, 0), blank_of<U>(dtype, NAN)};
        GPU_LAUNCH(gather_elements<U>, gpu_blocks(w.count, THREADS, g), THREADS, g, w, dim, index->dtype == TRAMA_I64,
                   blank);
    });
}

extern "C" void cuda_gather_along(const trama_call *call, const gpu *g)
{
    trama_view x = call->in[0];
    x.extent[indexed_axis(call)] = 1;
    gather(call, &call->in[1], &x, g);
}

/* Dims of the result [A, I, B], of which a tensor has those in [from, from + n), and others with extent 1. */
static trama_view spread(const trama_view *v, int ndim, int from)
{
    trama_view s = *v;
    s.ndim = ndim;
    for (int d = 0; d < ndim; d++) {
        const bool has = d >= from && d < from + v->ndim;
        s.extent[d] = has ? v->extent[d - from] : 1;
        s.stride[d] = has ? v->stride[d - from] : 0;
    }
    return s;
}

extern "C" void cuda_gather(const trama_call *call, const gpu *g)
{
    const trama_view *x = &call->in[0], *index = &call->in[1];
    const int ndim = call->out[0].ndim, axis = indexed_axis(call);
    const trama_view i = spread(index, ndim, axis);
    trama_view from = spread(x, ndim, 0);
    for (int d = axis; d < ndim; d++) {
        const int of = d - index->ndim + 1; /* the dim of x behind the axis */
        const bool has = d >= axis + index->ndim;
        from.extent[d] = has ? x->extent[of] : 1;
        from.stride[d] = has ? x->stride[of] : 0;
    }
    gather(call, &i, &from, g);
}
