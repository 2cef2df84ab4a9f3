/* SPDX-License-Identifier: Apache-2.0 */
/* Builders whose results other ops compute. Gradients and layouts follow from these ops, so the reduced dims may be
 * split over processes. trama_program.h tells errors; dims are negative from the end. */
#ifndef TRAMA_COMPOSED_H
#define TRAMA_COMPOSED_H

#include "trama_program.h"

TRAMA_API_BEGIN

#define trama_squeeze(x, dim) trama_squeeze_at(TRAMA_HERE, x, dim) /* without a dim of extent 1, E_SHAPE for others */
trama_value *trama_squeeze_at(trama_where where, trama_value *x, int dim);
#define trama_unsqueeze(x, dim) trama_unsqueeze_at(TRAMA_HERE, x, dim) /* with a new dim of extent 1 at dim */
trama_value *trama_unsqueeze_at(trama_where where, trama_value *x, int dim);
/* Dims first to last become one: [2, 3, 5], 0, 1 -> [6, 5]. */
#define trama_flatten(x, first, last) trama_flatten_at(TRAMA_HERE, x, first, last)
trama_value *trama_flatten_at(trama_where where, trama_value *x, int first, int last);
#define trama_outer(x, y) trama_outer_at(TRAMA_HERE, x, y) /* x [m], y [n] -> x_i y_j [m, n] */
trama_value *trama_outer_at(trama_where where, trama_value *x, trama_value *y);

/* Reductions over dims [n], as trama_sum_over (trama_ops.h). any_true and all_true give bool: whether an element, or
 * each, is not 0. norm_1 is the sum of |x|, norm_2 the square root of the sum of |x|^2. variance divides the sum of
 * |x - mean|^2 by the number of elements less `less` (0 of a population, 1 of a sample); deviation is its square root.
 * log_sum_exp is log(sum of e^x), which does not overflow. any_true and all_true take all types, norm_1 numbers, the
 * others floats. All but log_sum_exp take complex numbers too, of which norms, variance and deviation are real, as in
 * PyTorch. */
#define trama_any_true(x) trama_any_true_at(TRAMA_HERE, x, 0, NULL, false)
#define trama_all_true(x) trama_all_true_at(TRAMA_HERE, x, 0, NULL, false)
#define trama_norm_1(x) trama_norm_1_at(TRAMA_HERE, x, 0, NULL, false)
#define trama_norm_2(x) trama_norm_2_at(TRAMA_HERE, x, 0, NULL, false)
#define trama_variance(x, less) trama_variance_at(TRAMA_HERE, x, 0, NULL, false, less)
#define trama_deviation(x, less) trama_deviation_at(TRAMA_HERE, x, 0, NULL, false, less)
#define trama_log_sum_exp(x) trama_log_sum_exp_at(TRAMA_HERE, x, 0, NULL, false)
#define trama_any_true_over(x, /* n, dims, keep_dim */...) trama_any_true_at(TRAMA_HERE, x, __VA_ARGS__)
#define trama_all_true_over(x, /* n, dims, keep_dim */...) trama_all_true_at(TRAMA_HERE, x, __VA_ARGS__)
#define trama_norm_1_over(x, /* n, dims, keep_dim */...) trama_norm_1_at(TRAMA_HERE, x, __VA_ARGS__)
#define trama_norm_2_over(x, /* n, dims, keep_dim */...) trama_norm_2_at(TRAMA_HERE, x, __VA_ARGS__)
#define trama_variance_over(x, /* n, dims, keep_dim, less */...) trama_variance_at(TRAMA_HERE, x, __VA_ARGS__)
#define trama_deviation_over(x, /* n, dims, keep_dim, less */...) trama_deviation_at(TRAMA_HERE, x, __VA_ARGS__)
#define trama_log_sum_exp_over(x, /* n, dims, keep_dim */...) trama_log_sum_exp_at(TRAMA_HERE, x, __VA_ARGS__)
trama_value *trama_any_true_at(trama_where where, trama_value *x, int n, const int *dims, bool keep_dim);
trama_value *trama_all_true_at(trama_where where, trama_value *x, int n, const int *dims, bool keep_dim);
trama_value *trama_norm_1_at(trama_where where, trama_value *x, int n, const int *dims, bool keep_dim);
trama_value *trama_norm_2_at(trama_where where, trama_value *x, int n, const int *dims, bool keep_dim);
trama_value *trama_variance_at(trama_where where, trama_value *x, int n, const int *dims, bool keep_dim, double less);
trama_value *trama_deviation_at(trama_where where, trama_value *x, int n, const int *dims, bool keep_dim, double less);
trama_value *trama_log_sum_exp_at(trama_where where, trama_value *x, int n, const int *dims, bool keep_dim);
#define trama_log_softmax(x, dim) trama_log_softmax_at(TRAMA_HERE, x, dim) /* log(softmax(x)) along dim, of floats */
trama_value *trama_log_softmax_at(trama_where where, trama_value *x, int dim);

/* labels [...], integers -> [..., n] of dtype: 1 at the label, else 0; labels outside of 0 to n - 1 give zeros. */
#define trama_one_hot(labels, n, dtype) trama_one_hot_at(TRAMA_HERE, labels, n, dtype)
trama_value *trama_one_hot_at(trama_where where, trama_value *labels, int64_t n, trama_dtype dtype);
#define trama_eye(program, dtype, rows, columns)                                                                       \
    trama_eye_at(TRAMA_HERE, program, dtype, rows, columns) /* the unit matrix */
trama_value *trama_eye_at(trama_where where, trama_program *program, trama_dtype dtype, int64_t rows, int64_t columns);
/* The matrices of the last two dims with zeros above, or below, a diagonal: 0 the main one, 1 the one above it. The
 * extents of these dims must be known. */
#define trama_tril(x, diagonal) trama_tril_at(TRAMA_HERE, x, diagonal)
trama_value *trama_tril_at(trama_where where, trama_value *x, int64_t diagonal);
#define trama_triu(x, diagonal) trama_triu_at(TRAMA_HERE, x, diagonal)
trama_value *trama_triu_at(trama_where where, trama_value *x, int64_t diagonal);

TRAMA_API_END
#endif
