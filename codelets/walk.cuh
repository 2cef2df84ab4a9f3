/* SPDX-License-Identifier: Apache-2.0 */
/* The walk of walk.h as an argument of a kernel: element i of the walk, and where each of N arrays has it. */
#ifndef CODELETS_WALK_CUH
#define CODELETS_WALK_CUH

#include "launch.cuh"
#include "walk.h"

template <int N> struct grid_walk {
    int ndim;
    int64_t count; /* elements */
    int64_t extent[TRAMA_MAX_NDIM], step[TRAMA_MAX_NDIM][N];
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
        g->extent[d] = w.extent[d];
        g->count *= w.extent[d];
        for (int a = 0; a < N; a++)
            g->step[d][a] = w.step[d][a];
    }
    for (int a = 0; a < N; a++)
        g->data[a] = view[a]->data;
    return true;
}

/* Where element i lies in each array, in elements from data. */
template <int N> static __device__ inline void grid_walk_at(const grid_walk<N> &g, int64_t i, int64_t (&at)[N])
{
    for (int a = 0; a < N; a++)
        at[a] = 0;
    for (int d = g.ndim - 1; d > 0; d--) {
        const int64_t rest = i / g.extent[d], index = i - rest * g.extent[d];
        for (int a = 0; a < N; a++)
            at[a] += index * g.step[d][a];
        i = rest;
    }
    for (int a = 0; a < N; a++)
        at[a] += i * g.step[0][a];
}

#endif
