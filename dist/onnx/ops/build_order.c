/* SPDX-License-Identifier: Apache-2.0 */
/* Infinities, thresholds and places of maxima of ONNX; cumulative sums. */
#include "onnx_ops.h"

#include <math.h>

/* ---- Infinities ---- */

static trama_value *scalar_like(onnx_node *n, const trama_value *x, double value)
{
    return x ? trama_fill_at(n->where, n->graph->program, x->dtype, TRAMA_SCALAR, value) : NULL;
}

ONNX_BUILD(build_is_infinite)
{
    trama_value *x = node_in(n, 0);
    bool above = attribute_int(n, "detect_positive", 1), below = attribute_int(n, "detect_negative", 1);
    if (!above && !below)
        node_fail(n, TRAMA_E_UNSUPPORTED, "it detects nothing");
    else if (above && below)
        out[0] = trama_isinf_at(n->where, x);
    else
        out[0] = trama_equal_at(n->where, x, scalar_like(n, x, above ? INFINITY : -INFINITY));
}

/* ---- Thresholds ---- */

ONNX_BUILD(build_thresholded_relu)
{
    trama_value *x = node_in(n, 0);
    trama_value *above = trama_greater_at(n->where, x, scalar_like(n, x, attribute_real(n, "alpha", 1)));
    out[0] = trama_select_at(n->where, above, x, scalar_like(n, x, 0));
}

/* x + bias below -lambd, x - bias above lambd, 0 between */
ONNX_BUILD(build_shrink)
{
    trama_value *x = node_in(n, 0), *zero = scalar_like(n, x, 0);
    const double threshold = attribute_real(n, "lambd", 0.5), bias = attribute_real(n, "bias", 0);
    trama_value *above = trama_greater_at(n->where, x, scalar_like(n, x, threshold)),
                *below = trama_less_at(n->where, x, scalar_like(n, x, -threshold));
    trama_value *high = trama_select_at(n->where, above, trama_affine_at(n->where, x, 1, -bias), zero);
    out[0] = trama_select_at(n->where, below, trama_affine_at(n->where, x, 1, bias), high);
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
