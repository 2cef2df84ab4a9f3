/* SPDX-License-Identifier: Apache-2.0 */
/* Elements that are joined by index, on a GPU: scatter, and the sums that are the reverse of gather. One thread joins
 * all elements of one place, in the order of their indices, so that the bits are those of CPUs in every run. */
#include "index.h"
#include "number.cuh"
#include "order.cuh"

enum { THREADS = 256 };

/* ---- How elements are joined: what is there, then each element, then what is written ---- */

template <typename T> struct adding {
    typedef typename of<T>::sum kept;
    static __device__ inline kept from(T there)
    {
        return (kept)of<T>::load(there);
    }
    __device__ inline kept with(kept sum, T x) const
    {
        return sum + (kept)of<T>::load(x);
    }
    static __device__ inline T to(kept sum)
    {
        return of<T>::scaled(sum, 1);
    }
};

template <typename T> struct joining {
    trama_scatter_how how;
    typedef T kept;
    static __device__ inline T from(T there)
    {
        return there;
    }
    __device__ inline T with(T there, T x) const
    {
        typedef typename of<T>::number number;
        typedef typename of<T>::sum wide;
        const number a = of<T>::load(there), b = of<T>::load(x);
        switch (how) {
        case TRAMA_SCATTER_MULTIPLY:
            return of<T>::store((number)((wide)a * (wide)b));
        case TRAMA_SCATTER_MAX:
            return of<T>::store(of<T>::larger(a, b));
        case TRAMA_SCATTER_MIN:
            return of<T>::store(of<T>::smaller(a, b));
        default:
            return x;
        }
    }
    static __device__ inline T to(T x)
    {
        return x;
    }
};

/* ---- Whole lines ---- */

/* Indices as lists of those with one place. */
typedef struct place_lists {
    int64_t n;
    int64_t *full;  /* the place, or a name of places */
    int32_t *next;  /* the next index with this place; -1: none */
    int32_t *later; /* 1: an index before it has the same place */
} place_lists;

enum { MOST_INDICES = 65536 /* at a time: each looks for the next one of its place among all */ };

__global__ void __launch_bounds__(THREADS)
    find_places(place_lists l, const void *index, row_major order, int64_t first, indexed_dim dim, bool wide)
{
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < l.n; i += (int64_t)gridDim.x * blockDim.x) {
        l.full[i] = place(&dim, index_at(index, row_major_at(order, first + i), wide));
        l.next[i] = -1;
        l.later[i] = 0;
    }
}

__global__ void __launch_bounds__(THREADS) link_places(place_lists l)
{
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < l.n; i += (int64_t)gridDim.x * blockDim.x) {
        const int64_t k = l.full[i];
        int64_t j = i + 1;
        while (k >= 0 && j < l.n && l.full[j] != k)
            j++;
        if (k >= 0 && j < l.n) {
            l.next[i] = (int32_t)j;
            l.later[j] = 1;
        }
    }
}

/* Arrays: the result and the elements, both at the first of their indexed dims; part: the offsets of the latter. */
template <typename J, typename T>
__global__ void __launch_bounds__(THREADS)
    join_lists(grid_walk<2> w, divisor line, place_lists l, row_major part, int64_t first, int64_t step, J how)
{
    for (int64_t id = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; id < l.n * w.count;
         id += (int64_t)gridDim.x * blockDim.x) {
        const int64_t i = quotient(line, id);
        int64_t at[2];
        if (l.full[i] < 0 || l.later[i])
            continue;
        grid_walk_at(w, id - i * w.count, at);
        T *out = (T *)w.data[0] + at[0] + l.full[i] * step;
        typename J::kept kept = J::from(*out);
        for (int64_t j = i; j >= 0; j = l.next[j])
            kept = how.with(kept, ((const T *)w.data[1])[at[1] + row_major_at(part, first + j)]);
        *out = J::to(kept);
    }
}

static row_major indices_of(const trama_view *index, const int64_t *stride)
{
    row_major order = row_major_one();
    for (int d = 0; d < index->ndim; d++)
        row_major_add(&order, index->extent[d], stride[d]);
    return order;
}

/* Joins the elements x [A, I, B] by an index [I] to what out [A, n, B] holds. */
template <typename J, typename T>
static void join_whole(const trama_call *call, const trama_view *index, const trama_view *x, J how, const gpu *g)
{
    const trama_view *out = &call->out[0];
    const int axis = indexed_axis(call);
    const trama_view to = view_without_dims(out, axis, 1), from = view_without_dims(x, axis, index->ndim);
    const trama_view *const views[2] = {&to, &from};
    const indexed_dim dim = indexed_dim_of(out, axis);
    const row_major order = indices_of(index, index->stride), part = indices_of(index, x->stride + axis);
    grid_walk<2> w;
    place_lists l = {};
    int64_t most = (int64_t)(g->workspace_bytes / (sizeof *l.full + sizeof *l.next + sizeof *l.later));
    if (!grid_walk_of(&w, views) || order.count == 0)
        return;
    most = most < MOST_INDICES ? most : MOST_INDICES;
    l.full = (int64_t *)g->workspace;
    l.next = (int32_t *)(l.full + most);
    l.later = l.next + most;
    for (int64_t first = 0; first < order.count; first += l.n) {
        l.n = order.count - first < most ? order.count - first : most;
        GPU_LAUNCH(find_places, gpu_blocks(l.n, THREADS, g), THREADS, g, l, index->data, order, first, dim,
                   index->dtype == TRAMA_I64);
        GPU_LAUNCH(link_places, gpu_blocks(l.n, THREADS, g), THREADS, g, l);
        GPU_LAUNCH((join_lists<J, T>), gpu_blocks(l.n * w.count, THREADS, g), THREADS, g, w, divisor_of(w.count), l,
                   part, first, dim.step, how);
    }
}

extern "C" void cuda_gather_grad(const trama_call *call, const gpu *g)
{
    gpu_fill(&call->out[0], 0, g);
    with_dtype(call->out[0].dtype, [&](auto x) {
        typedef decltype(x) T;
        join_whole<adding<T>, T>(call, &call->in[1], &call->in[0], adding<T>(), g);
    });
}

extern "C" void cuda_scatter(const trama_call *call, const gpu *g)
{
    gpu_copy(&call->out[0], &call->in[0], g);
    with_dtype(call->out[0].dtype, [&](auto x) {
        typedef decltype(x) T;
        join_whole<joining<T>, T>(call, &call->in[1], &call->in[2], joining<T>{scatter_how(call)}, g);
    });
}

/* ---- Along lines ---- */

/* Arrays: the result, the elements and their indices, each at the first of its line; a thread for each place of a line.
 * m elements of a line, and the steps from one to the next. */
template <typename J, typename T>
__global__ void __launch_bounds__(THREADS) join_lines(grid_walk<3> w, divisor lines, indexed_dim dim, int64_t m,
                                                      int64_t step, int64_t index_step, bool wide, J how)
{
    for (int64_t id = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; id < dim.extent * w.count;
         id += (int64_t)gridDim.x * blockDim.x) {
        const int64_t k = quotient(lines, id);
        int64_t at[3];
        grid_walk_at(w, id - k * w.count, at);
        T *out = (T *)w.data[0] + at[0] + k * dim.step;
        typename J::kept kept = J::from(*out);
        for (int64_t i = 0; i < m; i++)
            if (place(&dim, index_at(w.data[2], at[2] + i * index_step, wide)) == k)
                kept = how.with(kept, ((const T *)w.data[1])[at[1] + i * step]);
        *out = J::to(kept);
    }
}

template <typename J, typename T>
static void join_along(const trama_call *call, const trama_view *index, const trama_view *x, J how, const gpu *g)
{
    const int axis = indexed_axis(call);
    const indexed_dim dim = indexed_dim_of(&call->out[0], axis);
    trama_view lines[3] = {call->out[0], *x, *index};
    const trama_view *const views[3] = {&lines[0], &lines[1], &lines[2]};
    grid_walk<3> w;
    for (int i = 0; i < 3; i++)
        lines[i].extent[axis] = 1;
    if (!grid_walk_of(&w, views) || dim.extent == 0)
        return;
    GPU_LAUNCH((join_lines<J, T>), gpu_blocks(dim.extent * w.count, THREADS, g), THREADS, g, w, divisor_of(w.count),
               dim, index->extent[axis], x->stride[axis], index->stride[axis], index->dtype == TRAMA_I64, how);
}

extern "C" void cuda_gather_along_grad(const trama_call *call, const gpu *g)
{
    gpu_fill(&call->out[0], 0, g);
    with_dtype(call->out[0].dtype, [&](auto x) {
        typedef decltype(x) T;
        join_along<adding<T>, T>(call, &call->in[1], &call->in[0], adding<T>(), g);
    });
}

extern "C" void cuda_scatter_along(const trama_call *call, const gpu *g)
{
    gpu_copy(&call->out[0], &call->in[0], g);
    with_dtype(call->out[0].dtype, [&](auto x) {
        typedef decltype(x) T;
        join_along<joining<T>, T>(call, &call->in[1], &call->in[2], joining<T>{scatter_how(call)}, g);
    });
}
