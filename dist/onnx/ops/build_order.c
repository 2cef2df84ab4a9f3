/* SPDX-License-Identifier: Apache-2.0 */
/* Infinities and thresholds of ONNX; places of maxima, cumulative sums and the first k along a dim. */
#include "onnx_ops.h"
#include "trama_array.h"

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

/* ---- Along one dim ---- */

/* The dim of an attribute `axis`; -1 with an error, or without an operand. */
static int axis_of(onnx_node *n, const trama_value *x, int64_t otherwise)
{
    return x ? node_dim(n, attribute_int(n, "axis", otherwise), x->shape.ndim) : -1;
}

ONNX_BUILD(build_place)
{
    trama_value *x = node_in(n, 0);
    const int dim = axis_of(n, x, 0);
    const bool keep_dim = attribute_int(n, "keepdims", 1), last = attribute_int(n, "select_last_index", 0);
    const bool largest = n->op->reduce == trama_max_at;
    if (dim < 0)
        return;
    if (last)
        out[0] = (largest ? trama_argmax_last_at : trama_argmin_last_at)(n->where, x, dim, keep_dim);
    else
        out[0] = (largest ? trama_argmax_at : trama_argmin_at)(n->where, x, dim, keep_dim);
}

ONNX_BUILD(build_cumulative_sum)
{
    trama_value *x = node_in(n, 0);
    double axis;
    if (!node_number(n, 1, 0, &axis))
        node_fail(n, TRAMA_E_UNSUPPORTED, "operand 1 (axis) must be a constant");
    int dim = x ? node_dim(n, (int64_t)axis, x->shape.ndim) : -1;
    if (dim >= 0)
        out[0] = trama_cumsum_at(n->where, x, dim, attribute_int(n, "exclusive", 0), attribute_int(n, "reverse", 0));
}

/* The elements are in order whether or not the node asks for that. */
ONNX_BUILD(build_top_k)
{
    trama_value *x = node_in(n, 0);
    const int dim = axis_of(n, x, -1);
    double k;
    if (!node_number(n, 1, (double)attribute_int(n, "k", 0), &k))
        node_fail(n, TRAMA_E_UNSUPPORTED, "operand 1 (K) must be a constant");
    if (dim < 0)
        return;
    out[0] = trama_top_k_at(n->where, x, (int64_t)k, dim, attribute_int(n, "largest", 1));
    out[1] = trama_result(out[0], 1);
}
