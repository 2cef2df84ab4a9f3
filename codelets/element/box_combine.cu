/* SPDX-License-Identifier: Apache-2.0 */
/* Sums and extremes of boxes, element by element, on a GPU. It knows no op. */
#include "kernel.h"
#include "number.cuh"
#include "view.h"
#include "walk.cuh"

enum { THREADS = 256, TERMS = 4 /* the most terms that one kernel reads */ };

/* Between kernels the accumulators of a part of the elements are kept in the workspace. */
struct combination {
    grid_walk<1 + TERMS> walk;
    int n;                /* terms of this kernel */
    bool continues, ends; /* it begins with kept; it writes the result, not kept */
    int64_t first, count; /* units of the walk */
    void *kept;           /* [count units] */
    double scale;
    int part; /* of complex elements: 0 real, 1 imaginary */
};

template <typename T> struct combine_sum {
    typedef typename of<T>::sum kept;
    static __device__ inline kept join(kept a, kept b)
    {
        return a + b;
    }
};
template <typename T> struct combine_max {
    typedef typename of<T>::number kept;
    static __device__ inline kept join(kept a, kept b)
    {
        return of<T>::larger(a, b);
    }
};
template <typename T> struct combine_min {
    typedef typename of<T>::number kept;
    static __device__ inline kept join(kept a, kept b)
    {
        return of<T>::smaller(a, b);
    }
};

/* Elements in units of N neighbours. */
template <typename T, typename F, int N> __global__ void combine_terms(combination c)
{
    typedef typename F::kept kept;
    const int64_t threads = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < c.count; i += threads) {
        int64_t at[1 + TERMS];
        pack<T, N> x[TERMS], out;
        kept acc[N];
        grid_walk_at(c.walk, c.first + i, at);
#pragma unroll
        for (int s = 0; s < TERMS; s++)
            if (s < c.n)
                x[s] = ((const pack<T, N> *)c.walk.data[1 + s])[at[1 + s]];
#pragma unroll
        for (int j = 0; j < N; j++)
            acc[j] = c.continues ? ((const kept *)c.kept)[i * N + j] : (kept)of<T>::load(x[0].at[j]);
#pragma unroll
        for (int s = 0; s < TERMS; s++)
            if (s < c.n && (s > 0 || c.continues))
#pragma unroll
                for (int j = 0; j < N; j++)
                    acc[j] = F::join(acc[j], (kept)of<T>::load(x[s].at[j]));
#pragma unroll
        for (int j = 0; j < N; j++) {
            out.at[j] = of<T>::scaled(acc[j], c.scale);
            if (!c.ends)
                ((kept *)c.kept)[i * N + j] = acc[j];
        }
        if (c.ends)
            ((pack<T, N> *)c.walk.data[0])[at[0]] = out;
    }
}

/* The walk over the destination and n terms. The destination stands for each term that is missing to TERMS. */
static bool terms_walk(combination *c, const trama_view *destination, int n, const trama_view *sources)
{
    trama_view parts[1 + TERMS];
    const trama_view *views[1 + TERMS];
    for (int s = 0; s <= TERMS; s++) {
        parts[s] = view_part(s > 0 && s <= n ? &sources[s - 1] : destination, c->part);
        views[s] = &parts[s];
    }
    c->n = n;
    return grid_walk_of(&c->walk, views);
}

template <typename T, typename F> static void combine_part(combination c, const gpu *g)
{
    constexpr int most = pack_of<T>;
    if (grid_walk_units(c.walk, sizeof(T), most) == most) {
        grid_walk_join(&c.walk, most);
        c.first /= most;
        c.count /= most;
        GPU_LAUNCH((combine_terms<T, F, most>), gpu_blocks(c.count, THREADS, g), THREADS, g, c);
    } else {
        GPU_LAUNCH((combine_terms<T, F, 1>), gpu_blocks(c.count, THREADS, g), THREADS, g, c);
    }
}

/* Elements first to first + count, TERMS terms at a time. */
template <typename T, typename F>
static void combine_slab(const trama_view *destination, int n, const trama_view *sources, combination c, const gpu *g)
{
    for (int s = 0; s < n; s += TERMS) {
        c.continues = s > 0;
        c.ends = s + TERMS >= n;
        terms_walk(&c, destination, c.ends ? n - s : TERMS, sources + s);
        combine_part<T, F>(c, g);
    }
}

template <typename T, typename F>
static void combine_all(const trama_view *destination, int n, const trama_view *sources, double scale, const gpu *g,
                        int part = 0)
{
    const int64_t room = (int64_t)(g->workspace_bytes / sizeof(typename F::kept)) / pack_of<T> * pack_of<T>;
    combination c = {};
    c.part = part;

    if (!terms_walk(&c, destination, n < TERMS ? n : TERMS, sources))
        return;
    const int64_t count = c.walk.count, slab = n > TERMS && room < count ? room : count;
    c.kept = g->workspace;
    c.scale = scale;
    for (c.first = 0; c.first < count; c.first += slab) {
        c.count = count - c.first < slab ? count - c.first : slab;
        combine_slab<T, F>(destination, n, sources, c, g);
    }
}

void gpu_reduce(const trama_view *destination, int n, const trama_view *sources, kernel_combine combine, double scale,
                const gpu *g)
{
    for (int part = 0; part < 2; part++) { /* complex numbers have sums, and no extremes */
        if (destination->dtype == TRAMA_C64)
            combine_all<float, combine_sum<float>>(destination, n, sources, scale, g, part);
        if (destination->dtype == TRAMA_C128)
            combine_all<double, combine_sum<double>>(destination, n, sources, scale, g, part);
    }
    with_dtype(destination->dtype, [&](auto zero) {
        typedef decltype(zero) T;
        if (combine == COMBINE_MAX)
            combine_all<T, combine_max<T>>(destination, n, sources, scale, g);
        else if (combine == COMBINE_MIN)
            combine_all<T, combine_min<T>>(destination, n, sources, scale, g);
        else
            combine_all<T, combine_sum<T>>(destination, n, sources, scale, g);
    });
}
