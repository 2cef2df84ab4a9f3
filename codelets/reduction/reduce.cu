/* SPDX-License-Identifier: Apache-2.0 */
/* Sums, means, products and extremes over some dims, argmax, argmin, and expand, on a GPU. Lines are reduced where the last dim is among
 * the reduced, else columns. */
#include "kernel.h"
#include "ops.h"
#include "reduce.cuh"

template <typename T> struct sum_of {
    typedef T in, out;
    typedef typename of<T>::sum kept;
    static __device__ inline kept none()
    {
        return 0;
    }
    static __device__ inline kept with(kept a, T x, int64_t, const reduction &)
    {
        return a + (kept)of<T>::load(x);
    }
    static __device__ inline kept join(kept a, kept b)
    {
        return a + b;
    }
    static __device__ inline void put(T *to, kept a, const reduction &r)
    {
        *to = of<T>::divided(a, r.average_over);
    }
};

template <typename T> struct prod_of {
    typedef T in, out;
    typedef typename of<T>::sum kept;
    static __device__ inline kept none()
    {
        return 1;
    }
    static __device__ inline kept with(kept a, T x, int64_t, const reduction &)
    {
        return a * (kept)of<T>::load(x);
    }
    static __device__ inline kept join(kept a, kept b)
    {
        return a * b;
    }
    static __device__ inline void put(T *to, kept a, const reduction &)
    {
        *to = of<T>::divided(a, 1);
    }
};

template <typename T> struct sum_square_of {
    typedef T in;
    typedef double out, kept;
    static __device__ inline double none()
    {
        return 0;
    }
    static __device__ inline double with(double a, T x, int64_t, const reduction &)
    {
        return a + (double)of<T>::load(x) * (double)of<T>::load(x);
    }
    static __device__ inline double join(double a, double b)
    {
        return a + b;
    }
    static __device__ inline void put(double *to, double a, const reduction &)
    {
        *to = a;
    }
};

template <typename T> struct max_of {
    typedef T in, out;
    typedef typename of<T>::number kept;
    static __device__ inline kept none()
    {
        return of<T>::lowest();
    }
    static __device__ inline kept with(kept a, T x, int64_t, const reduction &)
    {
        return of<T>::larger(a, of<T>::load(x));
    }
    static __device__ inline kept join(kept a, kept b)
    {
        return of<T>::larger(a, b);
    }
    static __device__ inline void put(T *to, kept a, const reduction &)
    {
        *to = of<T>::store(a);
    }
};

template <typename T> struct min_of {
    typedef T in, out;
    typedef typename of<T>::number kept;
    static __device__ inline kept none()
    {
        return of<T>::highest();
    }
    static __device__ inline kept with(kept a, T x, int64_t, const reduction &)
    {
        return of<T>::smaller(a, of<T>::load(x));
    }
    static __device__ inline kept join(kept a, kept b)
    {
        return of<T>::smaller(a, b);
    }
    static __device__ inline void put(T *to, kept a, const reduction &)
    {
        *to = of<T>::store(a);
    }
};

/* A number and its index; at -1: none. */
template <typename N> struct indexed {
    N number;
    int64_t at;
};
template <typename N> static __device__ inline indexed<N> shuffled(indexed<N> value, int with)
{
    return {shuffled(value.number, with), shuffled(value.at, with)};
}

/* The first of the largest, or least; NaN is both. With r.last terms are numbered from the end. */
template <typename T, bool least> struct place_of {
    typedef T in;
    typedef int64_t out;
    typedef typename of<T>::number number;
    typedef indexed<number> kept;
    static __device__ inline int64_t counted(int64_t at, const reduction &r)
    {
        return r.last ? r.terms.count - 1 - at : at;
    }
    static __device__ inline kept none()
    {
        return {0, -1};
    }
    static __device__ inline kept with(kept a, T x, int64_t at, const reduction &r)
    {
        return join(a, {of<T>::load(x), counted(at, r)});
    }
    static __device__ inline kept join(kept a, kept b)
    {
        const bool a_nan = of<T>::is_nan(a.number), b_nan = of<T>::is_nan(b.number);
        const bool more = least ? b.number < a.number : b.number > a.number;
        const bool after = a.at < 0 || more || (b_nan && !a_nan);
        const bool same = b.number == a.number || (b_nan && a_nan);
        return b.at >= 0 && (after || (same && b.at < a.at)) ? b : a;
    }
    static __device__ inline void put(int64_t *to, kept a, const reduction &r)
    {
        *to = a.at < 0 ? 0 : counted(a.at, r);
    }
};
template <typename T> using argmax_of = place_of<T, false>;
template <typename T> using argmin_of = place_of<T, true>;

/* Whether the last dim of more than one element is reduced. */
static bool reduces_lines(const trama_call *call)
{
    int d = call->in[0].ndim - 1;
    while (d >= 0 && call->in[0].global[d] == 1)
        d--;
    return d < 0 || is_reduced(call, d);
}

/* Divides the dims of the operand into the reduced and the kept. */
template <typename F> static void reduce(const trama_call *call, double divisor, const gpu *g, bool last = false)
{
    const trama_view *in = &call->in[0], kept = kept_view(call);
    const trama_view *const views[2] = {&call->out[0], &kept};
    reduction r = {};

    r.terms = row_major_one();
    r.average_over = divisor;
    r.last = last;
    for (int d = 0; d < in->ndim; d++)
        if (is_reduced(call, d))
            row_major_add(&r.terms, in->extent[d], in->stride[d]);
    if (grid_walk_of(&r.kept, views))
        reduce_all<F>(r, reduces_lines(call), call, g);
}

/* ---- The ops ------------------------------------------------------------------------------------- */

#define REDUCE_OP(name, with_kind, divisor)                                                                            \
    extern "C" void cuda_##name(const trama_call *call, const gpu *g)                                                  \
    {                                                                                                                  \
        with_kind(call->in[0].dtype, [&](auto zero) { reduce<name##_of<decltype(zero)>>(call, divisor, g); });         \
    }
REDUCE_OP(sum, with_dtype, 1)
REDUCE_OP(prod, with_number, 1)
REDUCE_OP(sum_square, with_float, 1)
REDUCE_OP(max, with_dtype, 1)
REDUCE_OP(min, with_dtype, 1)

/* Divides by the global extents, so that the means of pieces are terms of a sum. */
extern "C" void cuda_mean(const trama_call *call, const gpu *g)
{
    const double count = reduced_count(call);
    with_dtype(call->in[0].dtype, [&](auto zero) { reduce<sum_of<decltype(zero)>>(call, count, g); });
}

#define PLACE_OP(name)                                                                                                 \
    extern "C" void cuda_##name(const trama_call *call, const gpu *g)                                                  \
    {                                                                                                                  \
        const int64_t axes = call->attributes->integer[REDUCE_AXES];                                                   \
        const bool last = call->attributes->integer[ARGMAX_LAST];                                                      \
        if (call->out[0].dtype != TRAMA_I64 || __builtin_popcountll((uint64_t)axes) != 1)                              \
            kernel_impossible(call, "the index of an extreme is an i64 along one dim");                                \
        with_dtype(call->in[0].dtype, [&](auto zero) { reduce<name##_of<decltype(zero)>>(call, 1, g, last); });        \
    }
PLACE_OP(argmax)
PLACE_OP(argmin)

/* ---- expand ------------------------------------------------------------------------------------- */

/* out = in / divisor, N neighbours of the last dim of out at a time. */
template <typename T, int N> __global__ void divide_units(grid_walk<2> w, double divisor)
{
    const int64_t threads = (int64_t)gridDim.x * blockDim.x, step = w.step[w.ndim - 1][1];
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i * N < w.count; i += threads) {
        pack<T, N> quotients;
        int64_t at[2];
        grid_walk_at(w, i * N, at);
#pragma unroll
        for (int j = 0; j < N; j++)
            quotients.at[j] = of<T>::divided(of<T>::load(((const T *)w.data[1])[at[1] + j * step]), divisor);
        *(pack<T, N> *)((T *)w.data[0] + at[0]) = quotients;
    }
}

template <typename T> static void divide(const trama_view *out, const trama_view *in, double divisor, const gpu *g)
{
    constexpr int N = pack_of<T>;
    const trama_view *const views[] = {out, in};
    grid_walk<2> w;
    if (!grid_walk_of(&w, views))
        return;
    if (grid_walk_units(w, sizeof(T), N, 1) == N)
        GPU_LAUNCH((divide_units<T, N>), gpu_blocks(w.count / N, THREADS, g), THREADS, g, w, divisor);
    else
        GPU_LAUNCH((divide_units<T, 1>), gpu_blocks(w.count, THREADS, g), THREADS, g, w, divisor);
}

extern "C" void cuda_expand(const trama_call *call, const gpu *g)
{
    const trama_view wide = expanded_view(call);
    const double repeats = expand_repeats(call);

    if (call->attributes->integer[EXPAND_AVERAGE])
        with_dtype(wide.dtype, [&](auto zero) { divide<decltype(zero)>(&call->out[0], &wide, repeats, g); });
    else
        gpu_copy(&call->out[0], &wide, g);
}
