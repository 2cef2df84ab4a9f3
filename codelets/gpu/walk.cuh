/* SPDX-License-Identifier: Apache-2.0 */
/* The walk of walk.h as an argument of a kernel: element i of the walk, and its offset in each of N arrays. */
#ifndef CODELETS_WALK_CUH
#define CODELETS_WALK_CUH

#include "launch.cuh"
#include "walk.h"

/* A number to divide by. Division is slow on GPUs, so kernels multiply by about 2^64 / by instead (Granlund and
 * Montgomery 1994, "Division by Invariant Integers using Multiplication"), or 2^32 / by where both numbers are below
 * 2^31. */
struct divisor {
    int64_t by; /* > 0 */
    uint64_t wide_multiplier;
    uint32_t multiplier;
    int shift;
};

static inline divisor divisor_of(int64_t by)
{
    divisor d = {by, 0, 0, 0};
    while ((UINT64_C(1) << d.shift) < (uint64_t)by)
        d.shift++;
    const uint64_t rest = (UINT64_C(1) << d.shift) - (uint64_t)by;
    d.wide_multiplier = (uint64_t)(((unsigned __int128)rest << 64) / (uint64_t)by) + 1;
    d.multiplier = by >> 31 ? 0 : (uint32_t)((rest << 32) / (uint64_t)by) + 1;
    return d;
}

/* n / by for n >= 0 */
static __device__ inline int64_t quotient(const divisor &d, int64_t n)
{
    if ((n | d.by) >> 31)
        return (int64_t)((__umul64hi((uint64_t)n, d.wide_multiplier) + (uint64_t)n) >> d.shift);
    return (int64_t)((__umulhi((uint32_t)n, d.multiplier) + (uint32_t)n) >> d.shift);
}

/* The same where both numbers are below 2^31. */
static __host__ __device__ inline uint32_t quotient32(const divisor &d, uint32_t n)
{
    return ((uint32_t)((uint64_t)n * d.multiplier >> 32) + n) >> d.shift;
}

template <int N> struct grid_walk {
    int ndim;
    int64_t count; /* elements */
    divisor extent[TRAMA_MAX_NDIM];
    int64_t step[TRAMA_MAX_NDIM][N];
    void *data[N];
};

/* False where there is no element. */
template <int N> static bool grid_walk_of(grid_walk<N> *g, const trama_view *const *view)
{
    int64_t steps[TRAMA_MAX_NDIM * N];
    walk w;
    if (!walk_of(&w, N, view, steps))
        return false;
    g->ndim = w.ndim;
    g->count = 1;
    for (int d = 0; d < w.ndim; d++) {
        g->extent[d] = divisor_of(w.extent[d]);
        g->count *= w.extent[d];
        for (int a = 0; a < N; a++)
            g->step[d][a] = w.step[d][a];
    }
    for (int a = 0; a < N; a++)
        g->data[a] = view[a]->data;
    return true;
}

/* Halves the walk into parts of at most `most` elements, and calls each(part). size: bytes of an element of each
 * array. */
template <int N, typename F>
static void grid_walk_parts(const grid_walk<N> &g, const size_t (&size)[N], int64_t most, const F &each)
{
    int d = 0;
    while (d < g.ndim - 1 && g.extent[d].by == 1)
        d++;
    if (g.count <= most) {
        each(g);
        return;
    }
    const int64_t all = g.extent[d].by, half = (all + 1) / 2, even = (half + 63) / 64 * 64;
    const int64_t cut = even < all ? even : half; /* the second part is as aligned as the first */
    for (int64_t first = 0; first < all; first += cut) {
        grid_walk<N> part = g;
        part.extent[d] = divisor_of(first ? all - cut : cut);
        part.count = g.count / all * part.extent[d].by;
        for (int a = 0; a < N; a++)
            part.data[a] = (char *)part.data[a] + first * g.step[d][a] * (int64_t)size[a];
        grid_walk_parts(part, size, most, each);
    }
}

/* Turns the walk into one over units of so many neighbours of its last dim, as grid_walk_units has found them to
 * fit. */
template <int N> static void grid_walk_join(grid_walk<N> *g, int64_t neighbours)
{
    const int last = g->ndim - 1;
    g->count /= neighbours;
    g->extent[last] = divisor_of(g->extent[last].by / neighbours);
    for (int d = 0; d < last; d++)
        for (int a = 0; a < N; a++)
            g->step[d][a] /= neighbours;
}

/* The largest power of two, up to `most`, of neighbours that each of the first `arrays` can move at once: they have no
 * gap, and lie at multiples of their bytes. size: bytes of an element in these arrays. */
template <int N> static int grid_walk_units(const grid_walk<N> &g, size_t size, int most, int arrays = N)
{
    const int last = g.ndim - 1;
    uint64_t all = (uint64_t)g.extent[last].by * size;
    int units = most;

    for (int a = 0; a < arrays; a++) {
        if (g.step[last][a] != 1 && g.extent[last].by > 1)
            return 1;
        all |= (uint64_t)(uintptr_t)g.data[a];
        for (int d = 0; d < last; d++)
            all |= (uint64_t)g.step[d][a] * size;
    }
    while (units > 1 && all % (units * size))
        units /= 2;
    return units;
}

/* The offset of element i in each array, in elements from data. */
template <int N> static __device__ inline void grid_walk_at(const grid_walk<N> &g, int64_t i, int64_t (&at)[N])
{
    for (int a = 0; a < N; a++)
        at[a] = 0;
    for (int d = g.ndim - 1; d > 0; d--) {
        const int64_t rest = quotient(g.extent[d], i), index = i - rest * g.extent[d].by;
        for (int a = 0; a < N; a++)
            at[a] += index * g.step[d][a];
        i = rest;
    }
    for (int a = 0; a < N; a++)
        at[a] += i * g.step[0][a];
}

/* The same in a walk of less than 2^31 elements. */
template <int N>
static __host__ __device__ inline void grid_walk_at32(const grid_walk<N> &g, uint32_t i, int64_t (&at)[N])
{
    for (int a = 0; a < N; a++)
        at[a] = 0;
    for (int d = g.ndim - 1; d > 0; d--) {
        const uint32_t rest = quotient32(g.extent[d], i), index = i - rest * (uint32_t)g.extent[d].by;
        for (int a = 0; a < N; a++)
            at[a] += index * g.step[d][a];
        i = rest;
    }
    for (int a = 0; a < N; a++)
        at[a] += i * g.step[0][a];
}

/* On the host: the offsets of index i of the first `ndim` dims. */
template <int N> static inline void grid_walk_outer(const grid_walk<N> &g, int ndim, int64_t i, int64_t (&at)[N])
{
    for (int a = 0; a < N; a++)
        at[a] = 0;
    for (int d = ndim - 1; d >= 0; d--) {
        for (int a = 0; a < N; a++)
            at[a] += i % g.extent[d].by * g.step[d][a];
        i /= g.extent[d].by;
    }
}

#endif
