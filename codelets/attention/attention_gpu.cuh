/* SPDX-License-Identifier: Apache-2.0 */
/* Attention on a GPU: tiles of scores of some heads, queries and keys are products of cuBLASLt, which uses tensor
 * cores, and lie in the scratch memory of a worker, which the GPU's cache holds. Memory does not grow with n times m.
 */
#ifndef CODELETS_ATTENTION_GPU_CUH
#define CODELETS_ATTENTION_GPU_CUH

#include "attention_call.h"
#include "attention_tile.cuh"
#include "matrices.cuh"
#include "ops.h"

/* The queries of a tile: the fewest for which keys are divided, and the most of a causal call, since keys that no query
 * of a tile sees are left out. The most products of a batch. */
enum { FEWEST_QUERIES = 16, MOST_CAUSAL_QUERIES = 256, MOST_HEADS = 32768, TILE_THREADS = 256 };

static inline matrix_steps steps_of(const matrices &m)
{
    return {m.data, m.step, m.row, m.column};
}

static inline query_numbers numbers_of(const matrices &m)
{
    return {m.data, m.step, m.row};
}

/* ---- Calls ----------------------------------------------------------------------------------------- */

/* Heads that are computed side by side: heads of one group, or groups that have one head each. */
struct heads {
    int64_t n;
    bool of_group;
};

/* A call with N tensors. Index i of its dims but those of the heads side by side gives their matrices. */
template <int N> struct call_walk {
    grid_walk<N> groups;
    attention_array array[N];
    trama_dtype dtype[N];
    int outer; /* dims of groups */
    int64_t count;
    heads side;

    /* From head h of those side by side. */
    void matrices_at(int64_t i, int64_t h, matrices (&all)[N]) const
    {
        int64_t offset[N];
        grid_walk_outer(groups, outer, i, offset);
        for (int a = 0; a < N; a++) {
            const attention_matrix &first = array[a].first;
            const int64_t step = side.of_group ? array[a].head : groups.step[groups.ndim - 1][a];
            all[a] = {(char *)groups.data[a] + (offset[a] + h * step) * (int64_t)first.size, dtype[a], step, first.row,
                      first.column};
        }
    }
};

/* Views of [.., heads, rows, columns], of which `lines` (bit a: view a) lack the columns. NULL: no tensor. False where
 * there is nothing to compute. */
template <int N>
static bool call_walk_of(call_walk<N> *w, const attention *a, const trama_view *const (&view)[N], unsigned lines)
{
    trama_view groups[N] = {};
    const trama_view *all[N];
    for (int t = 0; t < N; t++) {
        if (view[t]) {
            w->array[t] = attention_array_of(a, view[t], lines >> t & 1 ? 1 : 2, &groups[t]);
            w->dtype[t] = view[t]->dtype;
        } else {
            w->array[t] = {};
            w->dtype[t] = TRAMA_F32;
        }
        all[t] = &groups[t];
    }
    if (a->heads == 0 || !grid_walk_of(&w->groups, all))
        return false;
    w->side.of_group = a->heads > 1;
    w->side.n = a->heads > 1 ? a->heads : w->groups.extent[w->groups.ndim - 1].by;
    w->outer = w->groups.ndim - (a->heads > 1 ? 0 : 1);
    w->count = a->heads > 1 ? w->groups.count : w->groups.count / w->side.n;
    return true;
}

/* ---- Tiles ----------------------------------------------------------------------------------------- */

/* The most heads, queries and keys of a tile. */
struct tiling {
    int64_t heads, rows, keys;
};

/* score: bytes of scratch memory that a score takes; key: those of a key beside its scores, for each head. Each line
 * takes room for a factor. */
static inline tiling tiling_of(const product_worker *w, const attention *a, int64_t n_heads, int64_t score, int64_t key)
{
    const bool causal = a->ahead < a->m;
    const int64_t bytes = w->bytes - 512; /* for parts to begin at multiples of 256 */
    const int64_t room = bytes / FEWEST_QUERIES / score, beside = key ? bytes / 2 / key : room;
    const int64_t keys = most(1, least(rounded_up(a->m, 8), least(room, beside) / 8 * 8));
    const int64_t line = rounded_up(keys, 8) * score + (int64_t)sizeof(double), others = keys * key;
    if (others + line > bytes)
        kernel_impossible(w->call, "a key with its features does not fit in the scratch memory of a GPU");
    const int64_t rows = most(1, least(causal ? least(a->n, MOST_CAUSAL_QUERIES) : a->n, (bytes - others) / line));
    return {most(1, least(least(n_heads, MOST_HEADS), bytes / (line * rows + others))), rows, keys};
}

/* The reverse of the factor with which probabilities are stored. */
static inline double probability_factor(trama_dtype dtype)
{
    return dtype == TRAMA_F16 ? 1.0 / probability_scale<trama_f16> : 1;
}

/* Scores of n_heads heads and as many queries, in scratch memory, which is taken from *room. */
static inline matrices take_scores(char **room, trama_dtype dtype, int64_t n_heads, int64_t rows, int64_t ld)
{
    const matrices scores = {*room, dtype, rows * ld, ld, 1};
    *room += n_heads * rows * ld * (int64_t)trama_dtype_size(dtype);
    return scores;
}

static inline score_tile tile_of(const attention *a, const matrices &scores, int64_t n_heads, int64_t rows,
                                 int64_t columns, int64_t i, int64_t j, const matrices &mask)
{
    score_tile t = {};
    t.heads = n_heads;
    t.rows = divisor_of(rows);
    t.columns = columns;
    t.ld = scores.row;
    t.visible = i + a->ahead - j;
    if (a->masked) {
        t.mask = mask.data + (i * mask.row + j * mask.column) * (int64_t)trama_dtype_size(mask.dtype);
        t.mask_head = mask.step;
        t.mask_row = mask.row;
        t.mask_column = mask.column;
        t.hides = mask.dtype == TRAMA_BOOL;
    }
    return t;
}

/* put_rows for elements of a type; from NULL: `to` itself. */
static inline void put(const matrices &to, const matrices *from, int64_t n_heads, int64_t rows, int64_t columns,
                       const double *factor, const gpu *g)
{
    if (rows == 0 || columns == 0)
        return;
    const unsigned blocks = gpu_blocks(n_heads * rows * columns, TILE_THREADS, g);
    const divisor lines = divisor_of(rows), each = divisor_of(columns);
    with_float(to.dtype, [&](auto zero) {
        typedef decltype(zero) T;
        if (from)
            GPU_LAUNCH((put_rows<T, typename of<T>::number>), blocks, TILE_THREADS, g, lines, each, n_heads,
                       steps_of(to), steps_of(*from), factor);
        else
            GPU_LAUNCH((put_rows<T, T>), blocks, TILE_THREADS, g, lines, each, n_heads, steps_of(to), steps_of(to),
                       factor);
    });
}

#endif
