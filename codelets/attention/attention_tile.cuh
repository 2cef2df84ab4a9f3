/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of attention on a GPU between its products: they work on a tile of scores, which lies in scratch memory.
 * Scores are numbers: f32, or f64 of f64. */
#ifndef CODELETS_ATTENTION_TILE_CUH
#define CODELETS_ATTENTION_TILE_CUH

#include "line.cuh"

/* Probabilities of f16 are stored as so many times their size, since those of many keys are below its range. */
template <typename T> constexpr int probability_scale = is_same<T, trama_f16> ? 1024 : 1;

/* A number for each query of each head. */
struct query_numbers {
    void *data; /* at query i of the tile's first head */
    int64_t head, row;
};

/* The scores of `heads` heads, `rows` queries and `columns` keys: (h, r, c) is number (h rows + r) ld + c. */
struct score_tile {
    int64_t heads, columns, ld;
    divisor rows;
    int64_t visible;  /* of the first query, so many of these keys; of each next query one more */
    const void *mask; /* at the first query and key; NULL: none */
    int64_t mask_head, mask_row, mask_column;
    bool hides; /* the mask is bool; else its type is that of the operands */
    int team;
};

/* The place of line l of a tile: a query of a head. */
struct score_line {
    int64_t head, row, first, visible; /* first: of its scores */
    __device__ inline score_line(const score_tile &t, int64_t l) : head(quotient(t.rows, l)), first(l * t.ld)
    {
        row = l - head * t.rows.by;
        visible = t.visible + row;
        visible = visible < 0 ? 0 : visible < t.columns ? visible : t.columns;
    }
};

template <typename T>
static __device__ inline typename of<T>::number *number_of(const query_numbers &q, const score_line &l)
{
    return (typename of<T>::number *)q.data + l.head * q.head + l.row * q.row;
}

/* A score with its mask. */
template <typename T>
static __device__ inline typename of<T>::number masked(const score_tile &t, const score_line &l, int64_t c,
                                                       typename of<T>::number score)
{
    const int64_t at = l.head * t.mask_head + l.row * t.mask_row + c * t.mask_column;
    if (!t.mask)
        return score;
    if (t.hides)
        return ((const bool *)t.mask)[at] ? score : -INFINITY;
    return score + of<T>::load(((const T *)t.mask)[at]);
}

/* The logarithm of the sum of two exponentials, of which one is not 0. */
static __device__ inline double log_sum(double a, double b)
{
    const double most = top_of(a, b);
    return most + log(exp(a - most) + exp(b - most));
}

/* Scores become probabilities p, times probability_scale [of type T, in their place where T is a number]. Where factor
 * is not NULL, lse has that of other keys, which the probabilities count too; what these gave is to be multiplied by
 * factor [head][row]. A team of threads has a line, in E registers each; lines that are longer it reads again. */
template <typename T, int E, bool HELD>
__global__ void LINE_BOUNDS(T, E)
    soften_tile(score_tile t, const typename of<T>::number *scores, T *p, query_numbers lse, double *factor)
{
    typedef typename of<T>::number number;
    const int rank = (int)threadIdx.x % t.team;
    const int64_t line = row_team::line(t.team, blockIdx.x), lines = t.heads * t.rows.by;
    const score_line l(t, line < lines ? line : 0);
    const number *own = scores + l.first;
    const double before =
        factor ? (double)*number_of<T>(lse, l) : -INFINITY; /* read before the joins, written behind */
    number at[E], top = -INFINITY;
    double sum = 0;

    const auto read = [&](int64_t from) {
#pragma unroll
        for (int e = 0; e < E; e++) {
            const int64_t c = from + (int64_t)e * t.team + rank;
            at[e] = c < l.visible ? masked<T>(t, l, c, own[c]) : (number)-INFINITY;
        }
    };
    for (int64_t from = 0; from < (HELD ? 1 : l.visible); from += (int64_t)E * t.team) {
        read(from);
#pragma unroll
        for (int e = 0; e < E; e++)
            top = top_of(top, at[e]);
    }
    top = team_join(top, t.team, [](number a, number b) { return top_of(a, b); });
    const number base = top == -INFINITY ? 0 : top;
    const auto exponentials = [&](int64_t from) {
        if (!HELD)
            read(from);
#pragma unroll
        for (int e = 0; e < E; e++)
            at[e] = exp_of<T>(at[e] - base);
    };
    for (int64_t from = 0; from < (HELD ? 1 : l.visible); from += (int64_t)E * t.team) {
        exponentials(from);
        sum += sum_of(at);
    }
    sum = team_join(sum, t.team, [](double a, double b) { return a + b; });
    __syncwarp(); /* all threads of the team have read lse */
    if (line >= lines)
        return;
    const double own_lse = sum == 0 ? -INFINITY : (double)base + log(sum);
    const double both = before == -INFINITY ? own_lse : sum == 0 ? before : log_sum(before, own_lse);
    const number by = (number)(sum == 0              ? 0
                               : before == -INFINITY ? probability_scale<T> / sum
                                                     : probability_scale<T> * exp((double)base - both));
    for (int64_t from = 0; from < (HELD ? 1 : t.columns); from += (int64_t)E * t.team) {
        if (!HELD)
            exponentials(from);
#pragma unroll
        for (int e = 0; e < E; e++) {
            const int64_t c = from + (int64_t)e * t.team + rank;
            if (c < t.columns)
                p[l.first + c] = of<T>::store(at[e] * by);
        }
    }
    if (rank)
        return;
    *number_of<T>(lse, l) = (number)both;
    if (factor)
        factor[line] = before == -INFINITY ? 0 : exp(before - both);
}

/* Scores become probabilities p = exp(score - lse), times probability_scale, and their gradients slopes p (slope -
 * delta), of type T, in their place where T is a number; those of a query whose lse is -infinity become 0. */
template <typename T>
__global__ void derive_tile(score_tile t, divisor columns, const typename of<T>::number *scores,
                            const typename of<T>::number *slopes, T *p, T *slope, query_numbers lse,
                            query_numbers delta)
{
    typedef typename of<T>::number number;
    const int64_t count = t.heads * t.rows.by * columns.by, threads = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += threads) {
        const int64_t line = quotient(columns, i), c = i - line * columns.by;
        const score_line l(t, line);
        const number sum = *number_of<T>(lse, l);
        const bool seen = c < l.visible && sum != -INFINITY;
        const number of_score = seen ? exp_of<T>(masked<T>(t, l, c, scores[l.first + c]) - sum) : 0;
        const number of_slope = seen ? of_score * (slopes[l.first + c] - *number_of<T>(delta, l)) : 0;
        p[l.first + c] = of<T>::store(of_score * probability_scale<T>);
        slope[l.first + c] = of<T>::store(of_slope);
    }
}

/* The matrices `to` become `from`, which may be the same, times factor [head][row]; NULL: once. */
struct matrix_steps {
    void *data;
    int64_t head, row, column;
};
template <typename T, typename FROM>
__global__ void put_rows(divisor rows, divisor columns, int64_t heads, matrix_steps to, matrix_steps from,
                         const double *factor)
{
    typedef typename of<T>::number number;
    const int64_t count = heads * rows.by * columns.by, threads = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += threads) {
        const int64_t line = quotient(columns, i), c = i - line * columns.by, h = quotient(rows, line),
                      r = line - h * rows.by;
        const number x =
            (number)of<FROM>::load(((const FROM *)from.data)[h * from.head + r * from.row + c * from.column]);
        ((T *)to.data)[h * to.head + r * to.row + c * to.column] =
            of<T>::store(factor ? (number)(factor[line] * (double)x) : x);
    }
}

#endif
