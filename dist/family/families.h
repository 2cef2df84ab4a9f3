/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of the op families that ops.def names, and what families share. */
#ifndef FAMILIES_H
#define FAMILIES_H

#include "program.h"
#include "trama_ops.h"

typedef trama_status infer_function(trama_rule *rule, const trama_node *node);
typedef trama_status dtype_function(const trama_node *node, trama_dtype *dtype);
typedef void gradient_function(const trama_node *node, trama_value *const *d_out, trama_value **d_in);

infer_function matmul_infer, scale_infer, affine_infer, div_scalar_infer, cast_infer, reduce_infer, argmax_infer, expand_infer, softmax_infer,
    transpose_infer, reshape_infer, window_infer, source_infer;
dtype_function float_dtype, equal_dtype, cast_dtype, argmax_dtype, expand_dtype, cross_entropy_dtype, source_dtype,
    draw_dtype, affine_dtype, f64_dtype, tensors_dtype, update_dtype, schedule_dtype;
gradient_function matmul_gradient, add_gradient, sub_gradient, mul_gradient, div_gradient, neg_gradient, abs_gradient,
    square_gradient, sqrt_gradient, exp_gradient, log_gradient, scale_gradient, div_scalar_gradient,
    scalar_div_gradient, clamp_gradient, cast_gradient,
    relu_gradient, gelu_gradient, tanh_gradient, sigmoid_gradient, sum_gradient, sum_square_gradient, mean_gradient,
    extremum_gradient, expand_gradient, softmax_gradient, cross_entropy_gradient, transpose_gradient, reshape_gradient,
    window_gradient, reshard_gradient;

/* One or two operands, no attributes. */
trama_value *apply1(trama_where where, const trama_op *op, trama_value *x);
trama_value *apply2(trama_where where, const trama_op *op, trama_value *x, trama_value *y);

/* The gradient of x, brought back to the mesh of x. */
trama_value *reshard_beside(trama_where where, trama_value *gradient, trama_value *x);

#endif
