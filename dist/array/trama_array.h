/* SPDX-License-Identifier: Apache-2.0 */
/* Elements by index, joins, other arrangements of the elements of tensors, and ops along one dim. trama_program.h tells
 * errors; dims are negative from the end, shapes are global. An index is i32 or i64; other integers are cast. Indices
 * count from the end where they are negative. One that is not there reads NaN, 0 of integers, and writes nothing. */
#ifndef TRAMA_ARRAY_H
#define TRAMA_ARRAY_H

#include "trama_op.h"
#include "trama_program.h"

TRAMA_API_BEGIN

/* ---- Elements by index ---- */

/* Parts of x along dim, in the order of an index of any dims: x [5, 7], index [2, 3], dim 0 -> [2, 3, 7], where element
 * (i, j, k) is x[index[i, j], k]. Where dim is split, each process reads the indices that it has, and the result is a
 * sum of terms: x is not gathered. The gradient of x adds up the gradients of one index, in the order of the indices.
 */
#define trama_gather(x, index, dim) trama_gather_at(TRAMA_HERE, x, index, dim)
trama_value *trama_gather_at(trama_where where, trama_value *x, trama_value *index, int dim);
/* Rows of a table [n, width] for tokens [...] -> [..., width]. */
#define trama_embedding(table, tokens) trama_embedding_at(TRAMA_HERE, table, tokens)
trama_value *trama_embedding_at(trama_where where, trama_value *table, trama_value *tokens);
/* Element by element: x [5, 7], index [5, 3], dim 1 -> [5, 3], where element (i, j) is x[i, index[i, j]]. All dims but
 * dim are those of x. */
#define trama_gather_along(x, index, dim) trama_gather_along_at(TRAMA_HERE, x, index, dim)
trama_value *trama_gather_along_at(trama_where where, trama_value *x, trama_value *index, int dim);
/* Tuples of indices: the last dim of the index [..., k] stands for k dims of x behind its first `batch` dims, which
 * both have and whose extents are known. x [4, 5, 7], index [3, 2], batch 0 -> [3, 7]: row i is x[index[i, 0],
 * index[i, 1]]. */
#define trama_gather_nd(x, index, batch) trama_gather_nd_at(TRAMA_HERE, x, index, batch)
trama_value *trama_gather_nd_at(trama_where where, trama_value *x, trama_value *index, int batch);

/* x with elements of u put in, and joined as `how` says (trama_op.h), where a gather of the same index would read: x
 * [5, 7], index [3], u [3, 7], dim 0 -> [5, 7]. u has the shape of that gather. Gradients are those of PyTorch's scatter
 * and scatter_reduce: of a set, u gets those of all its elements, whether or not another of the same index came later; of
 * max and min, all elements that are the extreme share its gradient. */
#define trama_scatter(x, index, u, dim, how) trama_scatter_at(TRAMA_HERE, x, index, u, dim, how)
trama_value *trama_scatter_at(trama_where where, trama_value *x, trama_value *index, trama_value *u, int dim,
                              trama_scatter_how how);
#define trama_scatter_along(x, index, u, dim, how) trama_scatter_along_at(TRAMA_HERE, x, index, u, dim, how)
trama_value *trama_scatter_along_at(trama_where where, trama_value *x, trama_value *index, trama_value *u, int dim,
                                    trama_scatter_how how);
#define trama_scatter_nd(x, index, u, how) trama_scatter_nd_at(TRAMA_HERE, x, index, u, how)
trama_value *trama_scatter_nd_at(trama_where where, trama_value *x, trama_value *index, trama_value *u,
                                 trama_scatter_how how);

/* ---- Einstein's sums ---- */

/* The sum over all indices that the result has not, of the products of n operands (1 to 32), as numpy's einsum:
 *
 *     trama_value *products = trama_einsum("bij,bjk->bik", 2, ((trama_value *[]){x, y}));
 *     trama_value *trace = trama_einsum("ii", 1, &x);
 *
 * A letter stands for a dim, "..." for further dims in front, which align at the right; a letter that an operand has
 * twice takes its diagonal. Extents of 1 broadcast. Without "->" the result has the dims of "..." and then the letters
 * that stand once, in the order of the alphabet. Of up to 5 operands the order of products with the fewest
 * multiplications is taken, of more opt_einsum's greedy one. E_ARGUMENT for a text that does not fit the operands. */
#define trama_einsum(letters, n, x) trama_einsum_at(TRAMA_HERE, letters, n, x)
trama_value *trama_einsum_at(trama_where where, const char *letters, int n, trama_value *const *x);

/* ---- Joins and parts ---- */

/* n values, one behind the other along dim; other extents are equal: [2, 3], [4, 3], dim 0 -> [6, 3]. Extents along dim
 * may be TRAMA_ANY; then the result's is, too. Each process reads of the values no more than its part of the result
 * needs. */
#define trama_concat(dim, n, x) trama_concat_at(TRAMA_HERE, dim, n, x)
trama_value *trama_concat_at(trama_where where, int dim, int n, trama_value *const *x);
/* n values of one shape along a new dim: two of [3] at dim 0 -> [2, 3]. */
#define trama_stack(dim, n, x) trama_stack_at(TRAMA_HERE, dim, n, x)
trama_value *trama_stack_at(trama_where where, int dim, int n, trama_value *const *x);
/* Part i, from 0 on, of the parts of x along dim; the last ones may be smaller: 7 in 3 parts gives 3, 3 and 1.
 * trama_slice takes parts of any extent. */
#define trama_part(x, dim, parts, i) trama_part_at(TRAMA_HERE, x, dim, parts, i)
trama_value *trama_part_at(trama_where where, trama_value *x, int dim, int parts, int i);
/* `extent` elements of x: from, from + step, ...; the step may be negative, as in 9, 7, 5. */
#define trama_slice_by(x, dim, from, extent, step) trama_slice_by_at(TRAMA_HERE, x, dim, from, extent, step)
trama_value *trama_slice_by_at(trama_where where, trama_value *x, int dim, int64_t from, int64_t extent, int64_t step);
/* The diagonals of the matrices of the last two dims: 0 the main one, 1 the one above it. [4, 3, 5], 1 -> [4, 3] */
#define trama_diagonal(x, offset) trama_diagonal_at(TRAMA_HERE, x, offset)
trama_value *trama_diagonal_at(trama_where where, trama_value *x, int64_t offset);

/* ---- Order and repetition ---- */

/* x in reverse order along dims [n]. */
#define trama_flip(x, /* n, dims */...) trama_flip_at(TRAMA_HERE, x, __VA_ARGS__)
trama_value *trama_flip_at(trama_where where, trama_value *x, int n, const int *dims);
/* Element i goes to i + by; those beyond the end come in at the other end. */
#define trama_roll(x, dim, by) trama_roll_at(TRAMA_HERE, x, dim, by)
trama_value *trama_roll_at(trama_where where, trama_value *x, int dim, int64_t by);
/* x in a shape that it broadcasts to: [3, 1] -> [2, 3, 5]. A TRAMA_ANY dim stays. */
#define trama_broadcast_to(x, shape) trama_broadcast_to_at(TRAMA_HERE, x, shape)
trama_value *trama_broadcast_to_at(trama_where where, trama_value *x, trama_shape shape);
#define trama_repeat(x, dim, times) trama_repeat_at(TRAMA_HERE, x, dim, times) /* a b -> a b a b */
trama_value *trama_repeat_at(trama_where where, trama_value *x, int dim, int64_t times);
#define trama_repeat_each(x, dim, times) trama_repeat_each_at(TRAMA_HERE, x, dim, times) /* a b -> a a b b */
trama_value *trama_repeat_each_at(trama_where where, trama_value *x, int dim, int64_t times);

/* The elements of a pad. */
typedef enum trama_pad_mode {
    TRAMA_PAD_CONSTANT, /* the value */
    TRAMA_PAD_EDGE,     /* a b c -> a a | a b c | c c */
    TRAMA_PAD_REFLECT,  /* a b c -> c b | a b c | b a, and on to and fro */
    TRAMA_PAD_WRAP      /* a b c -> b c | a b c | a b, and round again */
} trama_pad_mode;
/* x with elements before and after it along dim. The value is for TRAMA_PAD_CONSTANT; trama_pad adds zeros. */
#define trama_pad_with(x, dim, before, after, mode, value)                                                             \
    trama_pad_with_at(TRAMA_HERE, x, dim, before, after, mode, value)
trama_value *trama_pad_with_at(trama_where where, trama_value *x, int dim, int64_t before, int64_t after,
                               trama_pad_mode mode, double value);

/* Blocks of images: x [batch, c, h, w] -> [batch, c block^2, h / block, w / block], and back. Channel (i block + j) c +
 * k has the elements at row i and column j of the blocks of channel k. */
#define trama_space_to_depth(x, block) trama_space_to_depth_at(TRAMA_HERE, x, block)
trama_value *trama_space_to_depth_at(trama_where where, trama_value *x, int64_t block);
#define trama_depth_to_space(x, block) trama_depth_to_space_at(TRAMA_HERE, x, block)
trama_value *trama_depth_to_space_at(trama_where where, trama_value *x, int64_t block);

/* ---- Along one dim, which completion keeps whole on each process, but where a comment says otherwise ---- */

/* Cumulative sum and product of numbers along dim, in the shape of x: [1, 2, 3] -> [1, 3, 6] and [1, 2, 6]. With
 * reverse they begin with the last element: sums [6, 5, 3]. With exclusive, element i is the result over the elements
 * before it: sums [0, 1, 3]. f32 and halves are added and multiplied in f64 and rounded once; integers wrap around. The
 * gradient of the product is right where elements are 0. Where dim is split, processes exchange totals of parts. */
#define trama_cumsum(x, dim) trama_cumsum_at(TRAMA_HERE, x, dim, false, false)
#define trama_cumsum_over(x, dim, exclusive, reverse) trama_cumsum_at(TRAMA_HERE, x, dim, exclusive, reverse)
trama_value *trama_cumsum_at(trama_where where, trama_value *x, int dim, bool exclusive, bool reverse);
#define trama_cumprod(x, dim) trama_cumprod_at(TRAMA_HERE, x, dim, false, false)
#define trama_cumprod_over(x, dim, exclusive, reverse) trama_cumprod_at(TRAMA_HERE, x, dim, exclusive, reverse)
trama_value *trama_cumprod_at(trama_where where, trama_value *x, int dim, bool exclusive, bool reverse);

/* The linear recurrence y_i = b_i + a_i y_(i-1) along dim, with y_(-1) = 0, of floats or complex a and b of one shape,
 * which is that of the result. With reverse it begins with the last element: y_i = b_i + a_i y_(i+1). Computed in f64.
 * Where dim is split, processes exchange two numbers of each part. */
#define trama_recurrence(a, b, dim, reverse) trama_recurrence_at(TRAMA_HERE, a, b, dim, reverse)
trama_value *trama_recurrence_at(trama_where where, trama_value *a, trama_value *b, int dim, bool reverse);

/* Ops that choose elements along dim. Result 0 has the elements, result 1 (trama_result) their indices, i64. NaN is larger
 * than all numbers, so that it is last in ascending order. The gradient goes to the elements that were chosen. */

/* x in ascending or descending order along dim; equal elements keep their order. trama_argsort gives the indices. */
#define trama_sort(x, dim, descending) trama_sort_at(TRAMA_HERE, x, dim, descending)
trama_value *trama_sort_at(trama_where where, trama_value *x, int dim, bool descending);
#define trama_argsort(x, dim, descending) trama_argsort_at(TRAMA_HERE, x, dim, descending)
trama_value *trama_argsort_at(trama_where where, trama_value *x, int dim, bool descending);
/* The k largest elements, the largest first, or the k least, the least first: [5, 9], k 3, dim 1 -> [5, 3]. Of equal
 * elements those with lower indices come first. The extent of dim must be known and at least k, E_SHAPE otherwise.
 * Where dim of floats is split, processes exchange k elements of each part. */
#define trama_top_k(x, k, dim, largest) trama_top_k_at(TRAMA_HERE, x, k, dim, largest)
trama_value *trama_top_k_at(trama_where where, trama_value *x, int64_t k, int dim, bool largest);
/* The largest, or least, element so far along dim: [1, 3, 2] -> [1, 3, 3]; exclusive and reverse as of trama_cumsum. Of
 * equal elements the first gives the index and gets the gradient, where PyTorch takes the last. NaN is both the largest
 * and the least. With exclusive the first result is -inf, or inf, of integers the lowest or highest number; its index is
 * the extent of dim. Where dim is split, processes exchange one element and index of each part; not of a reverse one
 * whose parts are uneven. */
#define trama_cummax(x, dim) trama_cummax_at(TRAMA_HERE, x, dim, false, false)
#define trama_cummax_over(x, dim, exclusive, reverse) trama_cummax_at(TRAMA_HERE, x, dim, exclusive, reverse)
trama_value *trama_cummax_at(trama_where where, trama_value *x, int dim, bool exclusive, bool reverse);
#define trama_cummin(x, dim) trama_cummin_at(TRAMA_HERE, x, dim, false, false)
#define trama_cummin_over(x, dim, exclusive, reverse) trama_cummin_at(TRAMA_HERE, x, dim, exclusive, reverse)
trama_value *trama_cummin_at(trama_where where, trama_value *x, int dim, bool exclusive, bool reverse);

TRAMA_API_END
#endif
