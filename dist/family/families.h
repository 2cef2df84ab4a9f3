/* SPDX-License-Identifier: Apache-2.0 */
/* The functions that ops.def names, and helpers that op families share. */
#ifndef FAMILIES_H
#define FAMILIES_H

#include "program.h"
#include "trama_ops.h"

typedef trama_status infer_function(trama_rule *rule, const trama_node *node);
typedef trama_status dtype_function(const trama_node *node, trama_dtype *dtype);
typedef void gradient_function(const trama_node *node, trama_value *const *d_out, trama_value **d_in);
typedef void split_form_function(const trama_node *node, int dim, int64_t n, trama_value **out);
typedef bool view_function(const trama_attributes *a, const trama_view *x, trama_view *y, int64_t *at);

infer_function matmul_infer, div_infer, scale_infer, affine_infer, div_scalar_infer, cast_infer, sum_infer, max_infer,
    min_infer, whole_infer, expand_infer, softmax_infer, transpose_infer, window_infer, source_infer;
dtype_function comparison_dtype, select_dtype, cast_dtype, argmax_dtype, expand_dtype, cross_entropy_dtype,
    source_dtype, draw_dtype, affine_dtype, part_dtype, complex_of_dtype, f64_dtype, tensors_dtype, update_dtype,
    schedule_dtype;
gradient_function matmul_gradient, cast_gradient, select_gradient, expand_gradient, softmax_gradient,
    softmax_grad_gradient, cross_entropy_gradient, cross_entropy_grad_gradient, transpose_gradient,
    window_gradient, reshard_gradient, conj_gradient, real_gradient, imag_gradient, complex_of_gradient,
    magnitude_gradient;
split_form_function softmax_split_form, softmax_grad_split_form, argmax_split_form, argmin_split_form;
view_function transpose_view, window_view, expand_view;
/* dist/array */
infer_function gather_infer, gather_along_infer, gather_grad_infer, gather_along_grad_infer, scatter_infer,
    scatter_along_infer, reshape_infer, concat_infer, stride_infer, flip_infer, recurrence_infer, top_k_infer, rfft_infer;
dtype_function index_dtype, scatter_dtype, places_dtype, rfft_dtype;
gradient_function gather_gradient, gather_along_gradient, gather_grad_gradient, gather_along_grad_gradient,
    scatter_gradient, scatter_along_gradient, reshape_gradient, concat_gradient, stride_gradient, flip_gradient, cumsum_gradient,
    cumprod_gradient, recurrence_gradient, places_gradient, fft_gradient, rfft_gradient;
split_form_function reshape_split_form, cumsum_split_form, cumprod_split_form, recurrence_split_form, cummax_split_form, cummin_split_form,
    prod_split_form, top_k_split_form;
view_function reshape_view, stride_view;
/* dist/network */
infer_function attention_infer, norm_infer, norm_grad_infer, conv_infer, pool_infer;
dtype_function attention_dtype, norm_dtype, norm_grad_dtype, unpool_dtype;
gradient_function attention_gradient, attention_grad_gradient, norm_gradient, norm_grad_gradient, conv_gradient,
    pool_gradient;
split_form_function attention_split_form, norm_split_form, norm_grad_split_form, cross_entropy_split_form,
    cross_entropy_grad_split_form;
/* The sum of two windows of values that lie beside each other, and 0 elsewhere, as one of both, without an addition;
 * NULL where they are none. */
trama_value *joined_windows(trama_where where, trama_value *x, trama_value *y);
#define POINTWISE(form, name, ...) gradient_function name##_gradient;
#define REDUCTION(name, ...) gradient_function name##_gradient;
#include "ops.def"

/* For gradients of reductions. gradient_expand repeats x along the reduced dims to the shape of the operand; average
 * divides by the repetitions. gradient_of_extremum gives g in equal shares to the elements equal to the extremum.
 * gradient_product_of_others is, for each element, the product of the others over the reduced dims. */
trama_value *gradient_expand(const trama_node *node, trama_value *x, bool average);
trama_value *gradient_of_extremum(const trama_node *node, trama_value *g);
trama_value *gradient_product_of_others(const trama_node *node, trama_value *x);

bool is_complex(const trama_value *x);
/* Whether x is not complex; NULL is not. False with an error of the builder `name` on the program. */
bool is_real(trama_where where, const char *name, const trama_value *x);

/* A scalar of the element type of x, on whose program it is; NULL for NULL. */
trama_value *scalar_like(trama_where where, trama_value *x, double number);

/* The pattern, computed of sources alone, on the mesh of x, replicated. In a compiled program it has no mesh yet, and
 * completion finds one. */
trama_value *pattern_for(trama_where where, trama_value *pattern, trama_value *x);

/* v, [channels] or NULL, as [channels, 1, ..] for x [n, channels, ..]. */
trama_value *along_channels(trama_where where, const trama_value *x, trama_value *v);

/* Append an op of one or two operands without attributes. */
trama_value *apply1(trama_where where, const trama_op *op, trama_value *x);
trama_value *apply2(trama_where where, const trama_op *op, trama_value *x, trama_value *y);
/* For split forms: a half as f32, others as they are. */
trama_value *widened(trama_where where, trama_value *x);
/* 0, step, .. (n - 1) step as i64 along dim d of ndim */
trama_value *indices_along(const trama_node *node, int d, int ndim, int64_t n, int64_t step);
/* e^(x - the largest along the axis), divided by its sum */
trama_value *softmax_by_parts(trama_where where, trama_value *x, int axis);

/* A shape as attributes: its number of dims in a slot, and its extents behind. One filled in by hand may have too many
 * dims, and one that is read may be the user's (trama_apply), so get_shape checks it; fed: dims may be TRAMA_ANY. */
void put_shape(trama_attributes *a, int slot, trama_shape shape);
trama_status get_shape(const trama_node *node, int slot, trama_dtype dtype, bool fed, trama_shape *shape);

/* trama_reshape, or with `like` trama_reshape_like. Where it is not plain which dims that are only known when fed become
 * which, `cuts` has a RESHAPE_CUT(d, e) for each d and e such that dims [0, d) of x become dims [0, e). */
trama_value *reshape_cut(trama_where where, trama_value *x, trama_shape shape, trama_value *like, int64_t cuts);

/* [extent] of true for a dim of x, of which the shape alone counts; and their number, an i64 scalar: the extent. */
trama_value *trues_along(trama_where where, trama_value *x, int dim);
trama_value *count_trues(trama_where where, trama_value *trues);

/* Appends a reduction over dims [n], or over all dims if n is 0. */
trama_value *reduce_dims(trama_where where, const trama_op *op, trama_value *x, int n, const int *dims, bool keep_dim);

/* Reshards the gradient of x to the mesh of x. */
trama_value *reshard_colocated(trama_where where, trama_value *gradient, trama_value *x);

#endif
