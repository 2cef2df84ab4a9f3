/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions on a GPU, for any way to join terms. The terms of a result are numbered row-major and cut into segments;
 * the terms of a segment go to lanes in turn. The numbers of segments and lanes depend on the number of terms, and on
 * whether lines or columns are reduced; so does the order of a sum. They never depend on places in memory, the number
 * of results, or the size of the GPU. Several segments are joined through the workspace. */
#ifndef CODELETS_REDUCE_CUH
#define CODELETS_REDUCE_CUH

#include "number.cuh"
#include "order.cuh"
#include "team.cuh"
#include "view.h"

enum { THREADS = 256 };

struct reduction {
    row_major terms;     /* of a result */
    grid_walk<2> kept;   /* the results, and where the terms of each begin */
    double average_over; /* divides a sum */
    double alpha, beta;  /* of a product with weights */
    const void *weights; /* one per term, in the type of terms */
    int64_t weight_step;
    int64_t first, n;         /* results of this launch */
    int64_t length;           /* of a segment */
    divisor segments, groups; /* segments of a result; groups of results that one thread computes */
    int64_t part_step, segment_step;
    void *parts; /* the outcome of each segment, where there are several */
    int team;
    bool last;   /* of equal elements the last counts */
    bool packed; /* neighbours in the last dim can be read as packs */
};

/* A class F says how terms become a result:
 *   in, out, kept            types of terms and results, and the type in which terms are joined
 *   none()                   the kept of no term
 *   with(kept, in, i, r)     kept joined with term i
 *   join(kept, kept)         the kept of two threads joined
 *   put(out *, kept, r)      writes the result */

/* ---- Kernels ------------------------------------------------------------------------------------ */

/* Writes the outcome of a segment of result i of this launch. */
template <typename F>
static __device__ inline void put(const reduction &r, int64_t i, int64_t segment, typename F::kept made)
{
    if (r.segments.by > 1) {
        ((typename F::kept *)r.parts)[i * r.part_step + segment * r.segment_step] = made;
        return;
    }
    int64_t at[2];
    grid_walk_at(r.kept, r.first + i, at);
    F::put((typename F::out *)r.kept.data[0] + at[0], made, r);
}

/* The offset of term i. ONE: the terms lie along one dim, so that no division is needed. */
template <bool ONE> static __device__ inline int64_t term_at(const row_major &terms, int64_t i)
{
    if constexpr (ONE)
        return i * terms.stride[0];
    return row_major_at(terms, i);
}

/* The last dim is reduced: a team per segment of a result, whose threads take packs of N neighbours in turn. */
template <typename F, int N, bool ONE> __global__ void __launch_bounds__(THREADS) reduce_lines(reduction r)
{
    enum { IN_FLIGHT = 4 };
    typedef typename F::in in;
    const int64_t item = (int64_t)blockIdx.x * (THREADS / r.team) + threadIdx.x / r.team;
    const int64_t result = quotient(r.segments, item), segment = item - result * r.segments.by;
    const int rank = (int)threadIdx.x % r.team, step = r.team * N;
    const bool there = result < r.n;
    const int64_t begin = segment * r.length, left = r.terms.count - begin;
    const int end = !there ? 0 : (int)(left < r.length ? left : r.length); /* of the segment's terms */
    typename F::kept acc = F::none();
    int64_t at[2] = {0, 0};

    if (there)
        grid_walk_at(r.kept, r.first + result, at);
    const in *x = (const in *)r.kept.data[1] + at[1] + (ONE ? term_at<ONE>(r.terms, begin) : 0);
    int i = rank * N;
    for (; r.packed && i < end; i += step * IN_FLIGHT) {
        pack<in, N> held[IN_FLIGHT];
#pragma unroll
        for (int k = 0; k < IN_FLIGHT; k++)
            if (i + k * step < end)
                held[k] =
                    *(const pack<in, N> *)(x + (ONE ? i + k * step : term_at<ONE>(r.terms, begin + i + k * step)));
#pragma unroll
        for (int k = 0; k < IN_FLIGHT; k++)
            if (i + k * step < end)
#pragma unroll
                for (int j = 0; j < N; j++)
                    acc = F::with(acc, held[k].at[j], begin + i + k * step + j, r);
    }
    for (; i < end; i += step)
#pragma unroll 1
        for (int j = i; j < i + N && j < end; j++)
            acc = F::with(acc, x[term_at<ONE>(r.terms, ONE ? j : begin + j)], begin + j, r);
    acc = team_join(acc, r.team, F::join);
    if (there && rank == 0)
        put<F>(r, result, segment, acc);
}

/* The last dim is kept: a thread has N neighbouring results, and LANES threads share a segment of them. */
enum { ACROSS = 32, LANES = THREADS / ACROSS };
template <typename F, int N, bool ONE> __global__ void __launch_bounds__(THREADS) reduce_columns(reduction r)
{
    typedef typename F::in in;
    constexpr int most = 64 / (int)sizeof(pack<in, N>), IN_FLIGHT = most < 8 ? most : 8;
    __shared__ typename F::kept parts[LANES][N][ACROSS];
    const int64_t item = (int64_t)blockIdx.x * ACROSS + threadIdx.x;
    const int64_t segment = quotient(r.groups, item), result = (item - segment * r.groups.by) * N;
    const bool there = segment < r.segments.by;
    const int64_t begin = segment * r.length;
    const int64_t end = !there ? begin : begin + r.length < r.terms.count ? begin + r.length : r.terms.count;
    typename F::kept acc[N];
    int64_t at[2] = {0, 0};

    for (int j = 0; j < N; j++)
        acc[j] = F::none();
    if (there)
        grid_walk_at(r.kept, r.first + result, at);
    const in *x = (const in *)r.kept.data[1] + at[1];
    for (int64_t i = begin + threadIdx.y; i < end; i += LANES * IN_FLIGHT) {
        pack<in, N> held[IN_FLIGHT];
#pragma unroll
        for (int k = 0; k < IN_FLIGHT; k++)
            if (i + k * LANES < end)
                held[k] = *(const pack<in, N> *)(x + term_at<ONE>(r.terms, i + k * LANES));
#pragma unroll
        for (int k = 0; k < IN_FLIGHT; k++)
            if (i + k * LANES < end)
#pragma unroll
                for (int j = 0; j < N; j++)
                    acc[j] = F::with(acc[j], held[k].at[j], i + k * LANES, r);
    }
#pragma unroll
    for (int j = 0; j < N; j++)
        parts[threadIdx.y][j][threadIdx.x] = acc[j];
    __syncthreads();
    for (int j = (int)threadIdx.y; there && j < N; j += LANES) {
        typename F::kept all = parts[0][j][threadIdx.x];
        for (int lane = 1; lane < LANES; lane++)
            all = F::join(all, parts[lane][j][threadIdx.x]);
        put<F>(r, result + j, segment, all);
    }
}

/* Joins the segments of each result. */
template <typename F> __global__ void __launch_bounds__(THREADS) reduce_segments(reduction r)
{
    const int64_t i = (int64_t)blockIdx.x * (THREADS / r.team) + threadIdx.x / r.team;
    const int rank = (int)threadIdx.x % r.team;
    const typename F::kept *parts = (const typename F::kept *)r.parts + i * r.part_step;
    typename F::kept acc = F::none();
    int64_t at[2];

    if (i < r.n)
#pragma unroll 8
        for (int64_t s = rank; s < r.segments.by; s += r.team)
            acc = F::join(acc, parts[s * r.segment_step]);
    acc = team_join(acc, r.team, F::join);
    if (i >= r.n || rank != 0)
        return;
    grid_walk_at(r.kept, r.first + i, at);
    F::put((typename F::out *)r.kept.data[0] + at[0], acc, r);
}

/* ---- Cutting a call ------------------------------------------------------------------------------- */

/* Cuts the terms into at most `most` segments of at least `least` terms. */
enum { MOST_SEGMENTS = 4096, LINE_SEGMENT = 8192, COLUMN_SEGMENT = 128, MOST_COLUMN_SEGMENTS = 1024 };
static void cut_terms(reduction *r, int64_t least, int64_t most)
{
    const int64_t even = (r->terms.count + most - 1) / most, longer = (even + least - 1) / least * least;
    r->length = longer > least ? longer : least;
    const int64_t segments = (r->terms.count + r->length - 1) / r->length;
    r->segments = divisor_of(segments > 1 ? segments : 1);
}

/* Whether the terms of each result can be read in packs of n, each at a multiple of its bytes. */
template <typename T> static bool has_packs(const reduction &r, int n)
{
    int64_t all = 0;
    for (int d = 0; d < r.kept.ndim; d++)
        all |= r.kept.extent[d].by > 1 ? r.kept.step[d][1] : 0;
    return row_major_packs(r.terms, n) && all % n == 0 && (uintptr_t)r.kept.data[1] % (n * sizeof(T)) == 0;
}

template <typename F> static void lines(reduction r, const gpu *g)
{
    constexpr int N = pack_of<typename F::in>;
    const int64_t terms = r.terms.count < r.length ? r.terms.count : r.length;
    r.packed = has_packs<typename F::in>(r, N);
    r.team = team_size(terms, 4 * N, THREADS);
    r.part_step = r.segments.by;
    r.segment_step = 1;
    const int64_t teams = THREADS / r.team, blocks = (r.n * r.segments.by + teams - 1) / teams;
    if (r.terms.ndim == 1)
        GPU_LAUNCH((reduce_lines<F, N, true>), (unsigned)blocks, THREADS, g, r);
    else
        GPU_LAUNCH((reduce_lines<F, N, false>), (unsigned)blocks, THREADS, g, r);
}

/* Whether N neighbouring results have neighbouring terms. */
template <typename F, int N> static bool has_columns(const reduction &r)
{
    int64_t all = r.kept.extent[r.kept.ndim - 1].by;
    for (int d = 0; d < r.terms.ndim; d++)
        all |= r.terms.stride[d];
    for (int d = 0; d < r.kept.ndim - 1; d++)
        all |= r.kept.step[d][1];
    return r.kept.step[r.kept.ndim - 1][1] == 1 && all % N == 0 &&
           (uintptr_t)r.kept.data[1] % (N * sizeof(typename F::in)) == 0;
}

template <typename F, int N> static void columns(reduction r, const gpu *g)
{
    r.groups = divisor_of(r.n / N);
    r.part_step = 1;
    r.segment_step = r.n;
    const int64_t blocks = (r.groups.by * r.segments.by + ACROSS - 1) / ACROSS;
    if (r.terms.ndim == 1)
        GPU_LAUNCH((reduce_columns<F, N, true>), (unsigned)blocks, dim3(ACROSS, LANES), g, r);
    else
        GPU_LAUNCH((reduce_columns<F, N, false>), (unsigned)blocks, dim3(ACROSS, LANES), g, r);
}

template <typename F> static void segments(reduction r, bool by_lines, const gpu *g)
{
    r.part_step = by_lines ? r.segments.by : 1;
    r.segment_step = by_lines ? 1 : r.n;
    r.team = r.segments.by > 32 ? 32 : 1;
    const int64_t teams = THREADS / r.team;
    GPU_LAUNCH(reduce_segments<F>, (unsigned)((r.n + teams - 1) / teams), THREADS, g, r);
}

/* Reduces with F, along lines or columns: as many results at a time as have room for their segments in the
 * workspace. Columns are read in packs where these are enough for every multiprocessor. */
template <typename F> static void reduce_all(reduction r, bool by_lines, const trama_call *call, const gpu *g)
{
    constexpr int N = pack_of<typename F::in>;

    r.parts = g->workspace;
    cut_terms(&r, by_lines ? LINE_SEGMENT : COLUMN_SEGMENT, by_lines ? MOST_SEGMENTS : MOST_COLUMN_SEGMENTS);
    const int64_t room = (int64_t)(g->workspace_bytes / sizeof(typename F::kept)) / r.segments.by / N * N;
    const int64_t slab = r.segments.by == 1 || room > r.kept.count ? r.kept.count : room;
    if (slab == 0)
        kernel_impossible(call, "the workspace is too small");
    for (r.first = 0; r.first < r.kept.count; r.first += slab) {
        r.n = r.kept.count - r.first < slab ? r.kept.count - r.first : slab;
        if (by_lines)
            lines<F>(r, g);
        else if (r.n / N * r.segments.by >= (int64_t)ACROSS * g->multiprocessors && has_columns<F, N>(r))
            columns<F, N>(r, g);
        else
            columns<F, 1>(r, g);
        if (r.segments.by > 1)
            segments<F>(r, by_lines, g);
    }
}

#endif
