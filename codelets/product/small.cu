/* SPDX-License-Identifier: Apache-2.0 */
/* Small products of f32 in one kernel, with the pointwise calls behind them. A block computes a tile of the result; its
 * warps share the terms of the sums, and their parts are added in a fixed order. cuBLASLt, too, shares the terms of
 * small products, but adds the parts in a second kernel. */
#include "small.h"

#include "chain.cuh"

enum {
    TILE = 16, /* lines of x, and of y, in a block's tile */
    WARPS = 8,
    THREADS = 32 * WARPS,
    TERMS = 32,               /* terms that a warp has in shared memory at a time */
    LINE = TERMS + 4,         /* so that threads read from different banks */
    ROOM = TILE * LINE,       /* of one operand of a warp */
    ONES = TILE * TERMS / 32, /* elements of a lane */
    FOURS = ONES / 4,
    LINES_X = 2, /* of a thread; a warp is 8 x 4 threads */
    LINES_Y = 4,
    MOST_TERMS = 512,         /* of a product alone, */
    MOST_TERMS_CHAINED = 1024 /* and where it saves another kernel */
};

/* Lines of x, which are its rows, or of y: its columns. */
struct small_operand {
    const float *data;
    int lines;
    int64_t line_step, term_step;
    bool wide; /* fours of neighbours lie at multiples of 16 bytes */
};

struct small_product {
    small_operand x, y;
    float *out; /* where no call follows */
    int64_t row, column;
    int terms, each, rounds; /* each: terms of a warp in a round, a multiple of 4 */
    float alpha;
    bool adds; /* to out */
};

/* A warp's part of an operand, in shared memory. ALONG: four neighbours are terms of a line, else lines of a term. */
template <bool ALONG> struct small_part {
    static __device__ inline int line(int e)
    {
        return ALONG ? e / TERMS : e % TILE;
    }
    static __device__ inline int term(int e)
    {
        return ALONG ? e % TERMS : e / TILE;
    }
    static __device__ inline int at(int line, int term)
    {
        return ALONG ? line * LINE + term : term * TILE + line;
    }
    /* Line r of the R that thread `who` of `all` has. */
    template <int R> static __device__ inline int own(int who, int all, int r)
    {
        return ALONG ? who + r * all : who * R + r;
    }
    /* Reads a lane's elements, in fours, of the terms from `first` until `end`; those beyond are 0. */
    static __device__ inline void fetch(pack<float, 4> (&to)[FOURS], const small_operand &a, int from, int first,
                                        int end, int lane)
    {
#pragma unroll
        for (int i = 0; i < FOURS; i++) {
            const int e = (i * 32 + lane) * 4, l = from + line(e), t = first + term(e);
            to[i] = {};
            if (l < a.lines && t < end)
                to[i] = *(const pack<float, 4> *)(a.data + l * a.line_step + t * a.term_step);
        }
    }
    /* Puts them into shared memory. */
    static __device__ inline void put(float *to, const pack<float, 4> (&from)[FOURS], int lane)
    {
#pragma unroll
        for (int i = 0; i < FOURS; i++) {
            const int e = (i * 32 + lane) * 4;
            *(pack<float, 4> *)(to + at(line(e), term(e))) = from[i];
        }
    }
    /* The same one by one. */
    static __device__ inline void fetch(pack<float, 1> (&to)[ONES], const small_operand &a, int from, int first,
                                        int end, int lane)
    {
        const int l = from + line(lane), t = first + term(lane), lines = ALONG ? 1 : 0, terms = ALONG ? 0 : 32 / TILE;
        const int64_t step = ALONG ? a.line_step : terms * a.term_step;
        const float *at = a.data + l * a.line_step + t * a.term_step;
#pragma unroll
        for (int i = 0; i < ONES; i++, at += step)
            to[i].at[0] = l + i * lines < a.lines && t + i * terms < end ? *at : 0;
    }
    static __device__ inline void put(float *to, const pack<float, 1> (&from)[ONES], int lane)
    {
#pragma unroll
        for (int i = 0; i < ONES; i++)
            to[at(line(i * 32 + lane), term(i * 32 + lane))] = from[i].at[0];
    }
    /* Four terms of a thread's R lines. */
    template <int R> static __device__ inline void get(float (&to)[4][R], const float *from, int who, int all, int term)
    {
        if constexpr (ALONG) {
#pragma unroll
            for (int r = 0; r < R; r++) {
                const auto four = *(const pack<float, 4> *)(from + at(own<R>(who, all, r), term));
#pragma unroll
                for (int q = 0; q < 4; q++)
                    to[q][r] = four.at[q];
            }
        } else {
#pragma unroll
            for (int q = 0; q < 4; q++) {
                const auto lines = *(const pack<float, R> *)(from + at(who * R, term + q));
#pragma unroll
                for (int r = 0; r < R; r++)
                    to[q][r] = lines.at[r];
            }
        }
    }
};

/* Adds the terms of a warp to the sums of its threads. room [2 * ROOM]: the warp's. WIDE: both operands are; fours of
 * the next round are on their way while those of this one are multiplied. */
template <bool ALONG_X, bool ALONG_Y, bool WIDE>
static __device__ inline void sum_part(float (&sum)[LINES_X][LINES_Y], const small_product &s, float *room, int row,
                                       int column)
{
    typedef small_part<ALONG_X> part_x;
    typedef small_part<ALONG_Y> part_y;
    const int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    constexpr int each = WIDE ? 4 : 1;
    pack<float, each> x[ONES / each], y[ONES / each];
    const auto first_of = [&](int round) { return (round * WARPS + warp) * s.each; };
    const auto fetch = [&](int round) {
        const int first = first_of(round), end = min(first + s.each, s.terms);
        part_x::fetch(x, s.x, row, first, end, lane);
        part_y::fetch(y, s.y, column, first, end, lane);
    };

    if (WIDE)
        fetch(0);
#pragma unroll 1
    for (int round = 0; round < s.rounds; round++) {
        if (!WIDE)
            fetch(round);
        part_x::put(room, x, lane);
        part_y::put(room + ROOM, y, lane);
        __syncwarp();
        if (WIDE && round + 1 < s.rounds)
            fetch(round + 1);
        const int terms = min(s.each, s.terms - first_of(round));
#pragma unroll 1
        for (int t = 0; t < terms; t += 4) {
            float xs[4][LINES_X], ys[4][LINES_Y];
            part_x::template get<LINES_X>(xs, room, lane / 4, 8, t);
            part_y::template get<LINES_Y>(ys, room + ROOM, lane % 4, 4, t);
#pragma unroll
            for (int q = 0; q < 4; q++)
#pragma unroll
                for (int i = 0; i < LINES_X; i++)
#pragma unroll
                    for (int j = 0; j < LINES_Y; j++)
                        sum[i][j] = fmaf(xs[q][i], ys[q][j], sum[i][j]);
        }
        __syncwarp();
    }
}

template <bool ALONG_X, bool ALONG_Y, bool WIDE, bool CHAINED>
static __global__ void __launch_bounds__(THREADS, 2)
    multiply_small(const small_product s, const chain_walk w, const chain_program p)
{
    struct alignas(16) rooms {
        float at[WARPS][2 * ROOM];
    };
    __shared__ rooms shared;
    const int thread = (int)threadIdx.x, warp = thread / 32, lane = thread % 32;
    const int across = (s.y.lines + TILE - 1) / TILE, down = (int)blockIdx.x / across;
    const int row = down * TILE, column = ((int)blockIdx.x - down * across) * TILE;
    float sum[LINES_X][LINES_Y] = {};

    sum_part<ALONG_X, ALONG_Y, WIDE>(sum, s, shared.at[warp], row, column);
    /* each warp's part of the tile, in its own room */
#pragma unroll
    for (int i = 0; i < LINES_X; i++)
#pragma unroll
        for (int j = 0; j < LINES_Y; j++)
            shared.at[warp][small_part<ALONG_X>::template own<LINES_X>(lane / 4, 8, i) * TILE +
                            small_part<ALONG_Y>::template own<LINES_Y>(lane % 4, 4, j)] = sum[i][j];
    __syncthreads();
    const int m = row + thread / TILE, n = column + thread % TILE;
    float total = shared.at[0][thread];
#pragma unroll
    for (int part = 1; part < WARPS; part++)
        total += shared.at[part][thread];
    total *= s.alpha;
    if constexpr (CHAINED) {
        __shared__ chain_slots<float, 1, THREADS> slots;
        const uint32_t i = (uint32_t)m * (uint32_t)s.y.lines + (uint32_t)n, outer = quotient32(w.columns, i);
        const chain_place at = {outer, i - outer * (uint32_t)w.columns.by, 1};
        if (m < s.x.lines && n < s.y.lines) {
            chain_loads<float, 1, THREADS>(w, p, at, slots);
            chain_steps<float, 1, false, THREADS>(w, p, at, slots, pack<float, 1>{{total}});
        }
    } else if (m < s.x.lines && n < s.y.lines) {
        float *to = s.out + m * s.row + n * s.column;
        *to = s.adds ? *to + total : total;
    }
}
static_assert(THREADS == TILE * TILE, "a thread for each element of a tile");

/* ---- On the host --------------------------------------------------------------------------------- */

static small_operand operand_of(const void *data, int64_t lines, int64_t terms, int64_t line_step, int64_t term_step)
{
    const bool along = term_step == 1;
    const int64_t fours = along ? line_step | terms : term_step | lines;
    const bool wide = (along || line_step == 1) && fours % 4 == 0 && (uintptr_t)data % 16 == 0;
    return {(const float *)data, (int)lines, line_step, term_step, wide};
}

static int64_t tiles_of(int64_t m, int64_t n)
{
    return (m + TILE - 1) / TILE * ((n + TILE - 1) / TILE);
}

/* A tile for each multiprocessor, and a second one; sums that are not so long that more blocks should share them. */
static bool is_small(const product *p, bool chained, const gpu *g)
{
    return p->m < INT32_MAX && p->n < INT32_MAX && tiles_of(p->m, p->n) <= 2 * (int64_t)g->multiprocessors &&
           p->k <= (chained ? MOST_TERMS_CHAINED : MOST_TERMS);
}

static small_product small_of(const blas_job *job)
{
    const product *p = &job->p;
    small_product s = {};
    s.x = operand_of(job->data[1], p->m, p->k, p->row[1], p->column[1]);
    s.y = operand_of(job->data[2], p->n, p->k, p->column[2], p->row[2]);
    s.out = (float *)job->data[0];
    s.row = p->row[0];
    s.column = p->column[0];
    s.terms = (int)p->k;
    s.rounds = (s.terms + WARPS * TERMS - 1) / (WARPS * TERMS);
    s.each = ((s.terms + s.rounds * WARPS - 1) / (s.rounds * WARPS) + 3) / 4 * 4;
    s.alpha = (float)p->alpha;
    s.adds = p->beta != 0;
    return s;
}

template <bool WIDE, bool CHAINED>
static void launch(const small_product &s, const chain_walk &w, const chain_program &p, const gpu *g)
{
    const unsigned tiles = (unsigned)tiles_of(s.x.lines, s.y.lines);
    const bool along_x = s.x.term_step == 1, along_y = s.y.term_step == 1;
    if (along_x && along_y)
        GPU_LAUNCH((multiply_small<true, true, WIDE, CHAINED>), tiles, THREADS, g, s, w, p);
    else if (along_x)
        GPU_LAUNCH((multiply_small<true, false, WIDE, CHAINED>), tiles, THREADS, g, s, w, p);
    else if (along_y)
        GPU_LAUNCH((multiply_small<false, true, WIDE, CHAINED>), tiles, THREADS, g, s, w, p);
    else
        GPU_LAUNCH((multiply_small<false, false, WIDE, CHAINED>), tiles, THREADS, g, s, w, p);
}
template <bool CHAINED>
static void launch(const small_product &s, const chain_walk &w, const chain_program &p, const gpu *g)
{
    if (s.x.wide && s.y.wide)
        launch<true, CHAINED>(s, w, p, g);
    else
        launch<false, CHAINED>(s, w, p, g);
}

/* The first and the last element that an array spans. */
struct span {
    uintptr_t first, last;
};

static void span_add(span *s, int64_t extent, int64_t step)
{
    const int64_t bytes = (extent - 1) * step * (int64_t)sizeof(float);
    (bytes < 0 ? s->first : s->last) += (uintptr_t)bytes;
}

/* Whether elements of a view may lie in the memory that an operand's lines span. */
static bool overlaps(const trama_view *view, const small_operand &a, int64_t terms)
{
    span written = {(uintptr_t)view->data, (uintptr_t)view->data}, read = {(uintptr_t)a.data, (uintptr_t)a.data};
    for (int d = 0; d < view->ndim; d++)
        span_add(&written, view->extent[d], view->stride[d]);
    span_add(&read, a.lines, a.line_step);
    span_add(&read, terms, a.term_step);
    return written.first <= read.last && read.first <= written.last;
}

/* Whether the chain walks the elements of the product in their order, and writes none of its operands. */
static bool may_follow(const small_product &s, int n_more, const trama_call *more)
{
    bool may = true;
    for (int i = 0; i < n_more; i++)
        for (int o = 0; o < more[i].n_out; o++)
            may = may && !overlaps(&more[i].out[o], s.x, s.terms) && !overlaps(&more[i].out[o], s.y, s.terms);
    const trama_view *first = &more[0].out[0];
    int64_t stride = 1;
    for (int d = first->ndim - 1; d >= 0; d--) {
        may = may && (first->extent[d] == 1 || first->stride[d] == stride);
        stride *= first->extent[d];
    }
    return may && stride == (int64_t)s.x.lines * s.y.lines;
}

bool small_run(const blas_job *job, int n_more, const trama_call *more, const trama_view *product,
               const unsigned *inner, const gpu *g)
{
    if (job->dtype != TRAMA_F32 || g->tf32 || job->batches != 1 || !is_small(&job->p, n_more > 0, g))
        return false;
    const small_product s = small_of(job);
    if (!n_more) {
        launch<false>(s, {}, {}, g);
        return true;
    }
    kernel_chain chain = {};
    chain.n_calls = n_more;
    chain.calls = more;
    chain.inner = inner;
    chain.headed = true;
    chain.sum = product;
    pack_walk<CHAIN_ARRAYS> walk;
    chain_draft d;
    if (s.adds || !may_follow(s, n_more, more) || !chain_draft_of(&d, &chain) || d.casts || d.empty ||
        d.program.update >= 0 || d.dtype != TRAMA_F32 || !pack_walk_of(&walk, d.walk, d.size, 1))
        return false;
    launch<true>(s, chain_walk_of(walk), d.program, g);
    return true;
}
