/* SPDX-License-Identifier: Apache-2.0 */
/* The builders and folds that onnx_ops.def names. */
#ifndef ONNX_OPS_H
#define ONNX_OPS_H

#include "onnx.h"

typedef void onnx_builder(onnx_node *n, trama_value **out);
typedef host_tensor *onnx_folder(onnx_node *n);
typedef number onnx_of_numbers(const number *operand);
typedef trama_value *onnx_along(onnx_node *n, trama_value *x, int dim);
typedef trama_value *onnx_reducer(trama_where where, trama_value *x, int n, const int *dims, bool keep_dim);

/* build_pointwise.c, build_activation.c */
onnx_builder build_unary, build_binary, build_binary_by_axis, build_first, build_many, build_mod, build_shift,
    build_where, build_triangle, build_power, build_clip, build_mean, build_cast, build_cast_like, build_dropout;
onnx_builder build_leaky_relu, build_prelu, build_elu, build_celu, build_hard_sigmoid, build_gelu, build_along,
    build_along_rows;
/* build_reduce.c */
onnx_builder build_matmul, build_gemm, build_reduce, build_global_pool;
onnx_reducer reduce_sum_square, reduce_norm_2, reduce_log_sum;
/* build_order.c, build_index.c */
onnx_builder build_is_infinite, build_thresholded_relu, build_shrink, build_place, build_cumulative_sum, build_dft,
    build_top_k, build_gather, build_gather_elements, build_gather_nd, build_scatter_elements, build_scatter_nd;
/* build_conv.c, build_pool.c */
onnx_builder build_conv, build_conv_transpose, build_average_pool, build_max_pool;
/* build_norm.c */
onnx_builder build_batch_norm, build_instance_norm, build_layer_norm, build_mean_variance_norm, build_lrn,
    build_nll_loss, build_cross_entropy_loss;
/* build_shape.c, build_reshape.c, build_repeat.c, build_move.c */
onnx_builder build_constant_of_shape, build_reshape, build_flatten, build_squeeze, build_unsqueeze, build_transpose,
    build_expand, build_tile, build_range;
onnx_builder build_einsum, build_concat, build_split, build_slice, build_pad, build_one_hot, build_space_to_depth,
    build_depth_to_space;
/* The elements of a Slice along one dim; step 1 for a whole dim. False with an error. */
typedef struct slice_range {
    int64_t from, extent, step;
    int64_t origin; /* of an extent that is only known when fed: up to it; else 0 */
    int64_t start;  /* the same, or minus a number: from it on, up to `origin` or to the end of a dim */
    bool picked;    /* of a dim that is only known when fed, whose element `from`, 0 or -1, is taken */
} slice_range;
bool slice_ranges(onnx_node *n, trama_shape shape, slice_range *ranges);
/* The value of a ConstantOfShape, [1]; NULL with an error. */
host_tensor *fold_fill_value(onnx_node *n);
/* Of one dim, for build_along: log_softmax is log(softmax(x)), hardmax 1 at the first largest element, else 0. */
onnx_along along_softmax, along_log_softmax, along_hardmax;
/* fold_number.c, fold_shape.c */
onnx_folder fold_numbers, fold_cast, fold_copy, fold_product, fold_range;
onnx_of_numbers number_add, number_sub, number_mul, number_div, number_equal, number_where, number_max, number_min,
    number_neg, number_abs, number_less, number_greater, number_sqrt, number_floor, number_ceil, number_not;
onnx_folder fold_constant, fold_constant_of_shape, fold_shape, fold_size, fold_eye, fold_reshape, fold_squeeze,
    fold_unsqueeze, fold_transpose, fold_concat, fold_slice, fold_gather;

#endif
