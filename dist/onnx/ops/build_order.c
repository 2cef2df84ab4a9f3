/* SPDX-License-Identifier: Apache-2.0 */
/* Maxima, comparisons and places of maxima of ONNX; cumulative sums. */
#include "onnx_ops.h"

#include <math.h>

/* ---- Of two operands ---- */

/* x as element i of two along a new dim 0, beside a zero */
static trama_value *one_of_two(onnx_node *n, trama_value *x, int i)
{
    if (!x)
        return NULL;
    trama_shape shape = {.ndim = x->shape.ndim + 1, .dim = {1}};
    if (shape.ndim > TRAMA_MAX_NDIM)
        return node_fail(n, TRAMA_E_UNSUPPORTED, "operands of %d dims", x->shape.ndim);
    for (int d = 0; d < x->shape.ndim; d++)
        shape.dim[d + 1] = x->shape.dim[d];
    return trama_pad_at(n->where, trama_reshape_at(n->where, x, shape), 0, i, 1 - i);
}

trama_value *build_extreme(onnx_node *n, trama_value *x, trama_value *y, onnx_reducer *reduce)
{
    const int over = 0;
    if (!x || !y)
        return NULL;
    if (x->dtype != y->dtype)
        return node_fail(n, TRAMA_E_DTYPE, "operands of %s and %s", trama_dtype_name(x->dtype),
                         trama_dtype_name(y->dtype));
    trama_value *wide_x = build_broadcast(n, x, y->shape), *wide_y = build_broadcast(n, y, x->shape);
    trama_value *first = one_of_two(n, wide_x, 0), *second = one_of_two(n, wide_y, 1);
    return reduce(n->where, trama_add_at(n->where, first, second), 1, &over, false);
}

ONNX_BUILD(build_extremes)
{
    out[0] = node_in(n, 0);
    for (int i = 1; i < node_inputs(n); i++)
        out[0] = build_extreme(n, out[0], node_in(n, i), n->op->reduce);
}

/* 1 where x is the extreme of x and y; with `strict` only where they differ. NaN is neither. */
static trama_value *is_extreme(onnx_node *n, trama_value *x, trama_value *y, onnx_reducer *reduce, bool strict)
{
    trama_value *reached = trama_equal_at(n->where, build_extreme(n, x, y, reduce), x);
    return strict ? trama_logical_and_at(n->where, reached, trama_not_equal_at(n->where, x, y)) : reached;
}

ONNX_BUILD(build_compare)
{
    trama_value *x = node_in(n, 0);
    out[0] = is_extreme(n, x, node_in(n, 1), n->op->reduce, n->op->numbers[0] != 0);
}

/* ---- Of a number ---- */

static trama_value *scalar_like(onnx_node *n, const trama_value *x, double value)
{
    return trama_fill_at(n->where, n->graph->program, x->dtype, TRAMA_SCALAR, value);
}

ONNX_BUILD(build_is_nan)
{
    trama_value *x = node_in(n, 0);
    out[0] = trama_isnan_at(n->where, x);
}

ONNX_BUILD(build_is_infinite)
{
    trama_value *x = node_in(n, 0);
    bool above = attribute_int(n, "detect_positive", 1), below = attribute_int(n, "detect_negative", 1);
    if (!above && !below)
        node_fail(n, TRAMA_E_UNSUPPORTED, "it detects nothing");
    else if (x)
        out[0] = trama_equal_at(n->where, above && below ? trama_abs_at(n->where, x) : x,
                                scalar_like(n, x, above ? INFINITY : -INFINITY));
}

/* x - bias where x is above the threshold, which is not negative; else 0, also for infinite x. */
static trama_value *above(onnx_node *n, trama_value *x, double threshold, double bias)
{
    if (!x)
        return NULL;
    if (threshold < 0)
        return node_fail(n, TRAMA_E_UNSUPPORTED, "the threshold %g is negative", threshold);
    trama_value *is_above = is_extreme(n, x, scalar_like(n, x, threshold), trama_max_at, true);
    trama_value *beyond = trama_affine_at(n->where, trama_relu_at(n->where, x), 1, -bias);
    return trama_mul_at(n->where, beyond, trama_cast_at(n->where, is_above, x->dtype));
}

ONNX_BUILD(build_thresholded_relu)
{
    out[0] = above(n, node_in(n, 0), attribute_real(n, "alpha", 1), 0);
}

ONNX_BUILD(build_shrink)
{
    trama_value *x = node_in(n, 0);
    double threshold = attribute_real(n, "lambd", 0.5), bias = attribute_real(n, "bias", 0);
    trama_value *high = above(n, x, threshold, bias);
    out[0] = trama_sub_at(n->where, high, above(n, trama_neg_at(n->where, x), threshold, bias));
}

/* ---- Places of extremes ---- */

/* The greatest of the numbers 0, 1, .. n - 1, or of the reverse, where x is the extreme of its dim. */
static trama_value *greatest_place(onnx_node *n, trama_value *x, int dim, bool keep_dim, bool reverse)
{
    int64_t extent = x->shape.dim[dim];
    trama_value *place = build_arange(n, TRAMA_I64, extent, x->shape.ndim, dim);
    if (reverse)
        place = trama_affine_at(n->where, place, -1, (double)(extent - 1));
    trama_value *hit = trama_equal_at(n->where, x, n->op->reduce(n->where, x, 1, &dim, true));
    trama_value *places = trama_mul_at(n->where, trama_cast_at(n->where, hit, TRAMA_I64), place);
    return trama_max_at(n->where, places, 1, &dim, keep_dim);
}

/* The first place of a maximum is an op of Trama; that of a minimum of floats is the one of their negatives. */
ONNX_BUILD(build_place)
{
    trama_value *x = node_in(n, 0);
    int dim = x ? node_dim(n, attribute_int(n, "axis", 0), x->shape.ndim) : -1;
    bool keep_dim = attribute_int(n, "keepdims", 1), last = attribute_int(n, "select_last_index", 0);
    if (dim < 0)
        return;
    if (!last && n->op->reduce == trama_max_at)
        out[0] = trama_argmax_at(n->where, x, dim, keep_dim);
    else if (!last && trama_dtype_is_float(x->dtype))
        out[0] = trama_argmax_at(n->where, trama_neg_at(n->where, x), dim, keep_dim);
    else
        out[0] = greatest_place(n, x, dim, keep_dim, !last);
    if (!last && n->op->reduce != trama_max_at && !trama_dtype_is_float(x->dtype))
        out[0] = trama_affine_at(n->where, out[0], -1, (double)(x->shape.dim[dim] - 1));
}

/* ---- Cumulative sums ---- */

/* Sums of 1, 2, 4, .. elements that end at each place. */
ONNX_BUILD(build_cumulative_sum)
{
    trama_value *x = node_in(n, 0);
    double axis;
    if (!node_number(n, 1, 0, &axis))
        node_fail(n, TRAMA_E_UNSUPPORTED, "operand 1 (axis) must be a constant");
    int dim = x ? node_dim(n, (int64_t)axis, x->shape.ndim) : -1;
    int64_t forward = attribute_int(n, "reverse", 0) ? -1 : 1;
    if (dim < 0)
        return;
    if (x->shape.dim[dim] == TRAMA_ANY) {
        node_fail(n, TRAMA_E_UNSUPPORTED, "the extent of dim %d is only known when fed", dim);
        return;
    }
    out[0] = attribute_int(n, "exclusive", 0) ? trama_shift_at(n->where, x, dim, forward) : x;
    for (int64_t by = 1; by < x->shape.dim[dim]; by *= 2)
        out[0] = trama_add_at(n->where, out[0], trama_shift_at(n->where, out[0], dim, by * forward));
}
