/* SPDX-License-Identifier: Apache-2.0 */
/* Elements that move and do not change, on a GPU: transpose, reshape, window, reshard within one place, and
 * stop_gradient. */
#include "kernel.h"
#include "order.cuh"
#include "unit.cuh"
#include "view.h"

enum { THREADS = 256 };

extern "C" void cuda_transpose(const trama_call *call, const gpu *g)
{
    const trama_view turned = transposed_view(call);
    gpu_copy(&call->out[0], &turned, g);
}

extern "C" void cuda_window(const trama_call *call, const gpu *g)
{
    trama_view to, from;
    bool all;
    const bool some = window_views(call, &to, &from, &all);

    if (!all)
        gpu_fill(&call->out[0], 0, g);
    if (some)
        gpu_copy(&to, &from, g);
}

extern "C" void cuda_reshard(const trama_call *call, const gpu *g)
{
    gpu_copy(&call->out[0], &call->in[0], g);
}

extern "C" void cuda_stop_gradient(const trama_call *call, const gpu *g)
{
    gpu_copy(&call->out[0], &call->in[0], g);
}

/* ---- reshape ------------------------------------------------------------------------------------ */

/* The same elements in two row-major orders. */
struct reordering {
    row_major to, from;
    void *out;
    const void *in;
};

template <typename U> __global__ void reorder_units(reordering r)
{
    const int64_t threads = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < r.to.count; i += threads)
        ((U *)r.out)[row_major_at(r.to, i)] = ((const U *)r.in)[row_major_at(r.from, i)];
}

static row_major order_of(const trama_view *view)
{
    row_major order = row_major_one();
    for (int d = 0; d < view->ndim; d++)
        row_major_add(&order, view->extent[d], view->stride[d]);
    return order;
}

/* The same order of units of n neighbours. */
static row_major joined(row_major order, int n)
{
    const int last = order.ndim - 1;
    order.count /= n;
    order.extent[last] = divisor_of(order.extent[last].by / n);
    for (int d = 0; d < last; d++)
        order.stride[d] /= n;
    return order;
}

/* A box that is one run, as a view of one dim. */
static trama_view run_of(const trama_view *view, const row_major &order)
{
    trama_view run = {};
    run.data = view->data;
    run.dtype = view->dtype;
    run.ndim = 1;
    run.extent[0] = run.global[0] = order.count;
    run.stride[0] = order.stride[0];
    return run;
}

/* The largest unit of so many elements that both orders and both pointers allow. */
static int units_of(const row_major &to, const row_major &from, const reordering &r, size_t size)
{
    int units = (int)(16 / size);
    while (units > 1 && (!row_major_packs(to, units) || !row_major_packs(from, units) ||
                         ((uintptr_t)r.out | (uintptr_t)r.in) % (units * size)))
        units /= 2;
    return units;
}

/* The operand's box begins or ends elsewhere than that of the result. Element i of the result has number(i) + first in
 * the whole tensor, and `from` counts the elements of the operand by their numbers. */
struct renumbering {
    reordering r;
    row_major number;
    int64_t first, shift;
};

template <typename U> __global__ void renumber_units(renumbering n)
{
    const int64_t threads = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n.r.to.count; i += threads) {
        const int64_t from = row_major_at(n.r.from, row_major_at(n.number, i) + n.first) - n.shift;
        ((U *)n.r.out)[row_major_at(n.r.to, i)] = ((const U *)n.r.in)[from];
    }
}

static void reshape_by_number(const trama_view *out, const trama_view *in, reordering r, const gpu *g)
{
    renumbering n = {r, row_major_one(), 0, 0};
    int64_t stride[TRAMA_MAX_NDIM], times = 1;
    const size_t size = trama_dtype_size(out->dtype);

    for (int d = out->ndim - 1; d >= 0; d--) {
        stride[d] = times;
        n.first += out->offset[d] * times;
        times *= out->global[d];
    }
    for (int d = 0; d < out->ndim; d++)
        row_major_add(&n.number, out->extent[d], stride[d]);
    n.r.from = row_major_one();
    for (int d = 0; d < in->ndim; d++) {
        row_major_add(&n.r.from, in->global[d], in->stride[d]);
        n.shift += in->offset[d] * in->stride[d];
    }
    int units = units_of(n.r.to, n.r.from, n.r, size);
    while (units > 1 && (!row_major_packs(n.number, units) || (n.first | n.shift) % units))
        units /= 2;
    n.r.to = joined(n.r.to, units);
    n.r.from = joined(n.r.from, units);
    n.number = joined(n.number, units);
    n.first /= units;
    n.shift /= units;
    with_unit(units * size, [&](auto unit) {
        GPU_LAUNCH(renumber_units<decltype(unit)>, gpu_blocks(n.r.to.count, THREADS, g), THREADS, g, n);
    });
}

extern "C" void cuda_reshape(const trama_call *call, const gpu *g)
{
    const trama_view *out = &call->out[0], *in = &call->in[0];
    const size_t size = trama_dtype_size(out->dtype);
    reordering r = {order_of(out), order_of(in), out->data, in->data};

    if (r.to.count == 0)
        return;
    if (r.to.count != r.from.count) {
        reshape_check(call);
        reshape_by_number(out, in, r, g);
        return;
    }
    if (r.to.ndim == 1 && r.from.ndim == 1) {
        const trama_view to = run_of(out, r.to), from = run_of(in, r.from);
        gpu_copy(&to, &from, g);
        return;
    }
    const int units = units_of(r.to, r.from, r, size);
    r.to = joined(r.to, units);
    r.from = joined(r.from, units);
    with_unit(units * size, [&](auto unit) {
        GPU_LAUNCH(reorder_units<decltype(unit)>, gpu_blocks(r.to.count, THREADS, g), THREADS, g, r);
    });
}

extern "C" void cuda_reshape_like(const trama_call *call, const gpu *g)
{
    cuda_reshape(call, g);
}
