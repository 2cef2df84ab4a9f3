/* SPDX-License-Identifier: Apache-2.0 */
/* A walk in packs, by which pointwise kernels read and write up to 16 bytes at once, for any number of elements and
 * with repeated operands. It knows no op. */
#ifndef CODELETS_PACK_CUH
#define CODELETS_PACK_CUH

#include "number.cuh"
#include "walk.cuh"

/* A launch counts packs with 32 bits. */
enum { PACKS_MOST = 1 << 30 };

template <int N> struct pack_walk {
    grid_walk<N> packs;
    int64_t elements; /* the last pack may lack some */
    bool repeated[N]; /* one element fills each pack */
};

/* Whether array a, with elements of so many bytes, has the packs of the last dim in its memory, or one element for
 * each. */
template <int N> static bool has_packs(const grid_walk<N> &g, int a, size_t size, int pack)
{
    const int last = g.ndim - 1;
    if (g.step[last][a] == 0 || pack == 1)
        return true;
    for (int d = 0; d < last; d++)
        if (g.step[d][a] % pack)
            return false;
    return g.step[last][a] == 1 && (uintptr_t)g.data[a] % (pack * size) == 0;
}

/* False where the arrays cannot be walked in packs of so many elements. Packs of 1 are always possible. */
template <int N> static bool pack_walk_of(pack_walk<N> *p, const grid_walk<N> &g, const size_t (&size)[N], int pack)
{
    const int last = g.ndim - 1;
    const int64_t extent = g.extent[last].by;

    if (pack > 1 && (g.step[last][0] != 1 || (last > 0 && extent % pack)))
        return false;
    p->packs = g;
    p->packs.extent[last] = divisor_of((extent + pack - 1) / pack);
    p->packs.count = g.count / extent * p->packs.extent[last].by;
    p->elements = g.count;
    for (int a = 0; a < N; a++) {
        if (!has_packs(g, a, size[a], pack))
            return false;
        p->repeated[a] = g.step[last][a] == 0;
        p->packs.step[last][a] *= pack;
    }
    return true;
}

/* The number of elements in pack i. */
template <int E, int N> static __device__ inline int pack_size(const pack_walk<N> &p, uint32_t i)
{
    const int64_t rest = p.elements - (int64_t)i * E;
    return E == 1 || rest >= E ? E : (int)rest;
}

/* The first n >= 1 elements at `from`, or one element repeated. Elements behind the n have any value. */
template <typename T, int E> static __device__ inline pack<T, E> pack_read(const T *from, bool repeated, int n)
{
    if (!repeated && n == E)
        return *(const pack<T, E> *)from;
    pack<T, E> x;
    x.at[0] = from[0];
#pragma unroll
    for (int e = 1; e < E; e++)
        x.at[e] = repeated || e >= n ? x.at[0] : from[e];
    return x;
}

template <typename T, int E> static __device__ inline void pack_write(T *to, const pack<T, E> &x, int n)
{
    if (n == E) {
        *(pack<T, E> *)to = x;
        return;
    }
#pragma unroll
    for (int e = 0; e < E; e++)
        if (e < n)
            to[e] = x.at[e];
}

#endif
