/* SPDX-License-Identifier: Apache-2.0 */
/* Pointwise arithmetic, casts and dropout of ONNX. */
#include <math.h>

#include "onnx_ops.h"

ONNX_BUILD(build_unary)
{
    out[0] = n->op->unary(n->where, node_in(n, 0));
}

ONNX_BUILD(build_binary)
{
    trama_value *x = node_in(n, 0), *y = node_in(n, 1);
    out[0] = n->op->binary(n->where, x, y);
}

/* Before operator set 7 the dims of operand 1 [c] stand for those of operand 0 [a, c, b] from `axis` on. */
static trama_value *aligned(onnx_node *n, trama_value *x, trama_value *y)
{
    if (!x || !y || !attribute_int(n, "broadcast", 0) || !attribute_has(n, "axis"))
        return y;
    int axis = node_dim(n, attribute_int(n, "axis", 0), x->shape.ndim);
    trama_shape shape = y->shape;
    if (axis < 0 || axis + shape.ndim > x->shape.ndim)
        return node_fail(n, TRAMA_E_SHAPE, "operand 1 has more dims than operand 0 has from 'axis' on");
    while (axis + shape.ndim < x->shape.ndim)
        shape.dim[shape.ndim++] = 1;
    return trama_reshape_at(n->where, y, shape);
}

ONNX_BUILD(build_binary_by_axis)
{
    trama_value *x = node_in(n, 0), *y = aligned(n, x, node_in(n, 1));
    out[0] = n->op->binary(n->where, x, y);
}

ONNX_BUILD(build_first)
{
    out[0] = node_in(n, 0);
}

ONNX_BUILD(build_reciprocal)
{
    out[0] = trama_scalar_div_at(n->where, 1, node_in(n, 0));
}

/* ---- bool, which is u8 with 0 and 1 ---- */

ONNX_BUILD(build_not)
{
    out[0] = trama_logical_not_at(n->where, node_in(n, 0));
}

/* ---- Choices ---- */

/* Products with 0 and 1 choose among integers; of floats 0 times infinity would be NaN. */
static bool check_integers(onnx_node *n, const trama_value *x)
{
    return x && (!trama_dtype_is_float(x->dtype) ||
                 node_fail(n, TRAMA_E_UNSUPPORTED, "it takes integers, not %s", trama_dtype_name(x->dtype)));
}

ONNX_BUILD(build_where)
{
    trama_value *condition = node_in(n, 0), *x = node_in(n, 1), *y = node_in(n, 2);
    if (!check_integers(n, x) || !y)
        return;
    trama_value *chosen = trama_cast_at(n->where, condition, x->dtype);
    trama_value *first = trama_mul_at(n->where, chosen, x);
    out[0] = trama_add_at(n->where, first, trama_mul_at(n->where, trama_affine_at(n->where, chosen, -1, 1), y));
}

/* The triangle of the last two dims from diagonal k on, or up to it. */
ONNX_BUILD(build_triangle)
{
    trama_value *x = node_in(n, 0);
    bool upper = attribute_int(n, "upper", 1);
    double k;
    if (!node_number(n, 1, 0, &k))
        node_fail(n, TRAMA_E_UNSUPPORTED, "operand 1 (k) must be a constant");
    if (!check_integers(n, x))
        return;
    int ndim = x->shape.ndim;
    if (ndim < 2) {
        node_fail(n, TRAMA_E_SHAPE, "operand 0 has %d dims, and 2 are the least", ndim);
        return;
    }
    trama_shape shape = TRAMA_SHAPE(x->shape.dim[ndim - 2], x->shape.dim[ndim - 1]);
    int64_t count = trama_shape_count(shape);
    double *mask = count >= 0 && count <= 1 << 26 ? trama_try_alloc((size_t)count * sizeof *mask) : NULL;
    if (!mask)
        node_fail(n, TRAMA_E_UNSUPPORTED, "the extents are only known when fed, or too large");
    for (int64_t i = 0; mask && i < count; i++) {
        double diagonal = (double)(i % shape.dim[1]) - (double)(i / shape.dim[1]);
        mask[i] = upper ? diagonal >= k : diagonal <= k;
    }
    if (mask)
        out[0] = trama_mul_at(n->where, x, build_constant(n, x->dtype, shape, mask));
    free(mask);
}

/* ---- Powers and limits ---- */

ONNX_BUILD(build_power)
{
    double exponent;
    trama_value *x = node_in(n, 0);
    bool known = node_number(n, 1, 1, &exponent) && node_shape(n, 1).ndim <= node_shape(n, 0).ndim;
    if (!known)
        node_fail(n, TRAMA_E_UNSUPPORTED, "the exponent must be a constant number");
    else if (exponent == 1)
        out[0] = x;
    else if (exponent == 2)
        out[0] = trama_square_at(n->where, x);
    else if (exponent == 3)
        out[0] = trama_mul_at(n->where, x, trama_square_at(n->where, x));
    else if (exponent == 0.5)
        out[0] = trama_sqrt_at(n->where, x);
    else if (exponent == -1)
        out[0] = trama_scalar_div_at(n->where, 1, x);
    else
        node_fail(n, TRAMA_E_UNSUPPORTED, "the exponent %g is none of -1, 0.5, 1, 2 and 3", exponent);
}

/* Limits are attributes, constants or values. */
ONNX_BUILD(build_clip)
{
    double low = attribute_real(n, "min", -INFINITY), high = attribute_real(n, "max", INFINITY);
    trama_value *x = node_in(n, 0);
    bool known = node_number(n, 1, low, &low) && node_number(n, 2, high, &high);
    out[0] = x;
    if (x && known && trama_dtype_is_float(x->dtype)) {
        out[0] = isinf(low) && isinf(high) ? x : trama_clamp_at(n->where, x, low, high);
        return;
    }
    if (node_has(n, 1))
        out[0] = build_extreme(n, out[0], node_in(n, 1), trama_max_at);
    if (node_has(n, 2))
        out[0] = build_extreme(n, out[0], node_in(n, 2), trama_min_at);
}

ONNX_BUILD(build_sum)
{
    out[0] = node_in(n, 0);
    for (int i = 1; i < node_inputs(n); i++)
        out[0] = trama_add_at(n->where, out[0], node_in(n, i));
}

ONNX_BUILD(build_mean)
{
    build_sum(n, out);
    out[0] = trama_div_scalar_at(n->where, out[0], node_inputs(n));
}

/* ---- Casts ---- */

enum { ONNX_BOOL = 9 };

/* 1 where x is not 0. */
static trama_value *truth(onnx_node *n, trama_value *x)
{
    if (!x)
        return NULL;
    trama_value *zero = trama_fill_at(n->where, n->graph->program, x->dtype, TRAMA_SCALAR, 0);
    return trama_not_equal_at(n->where, x, zero);
}

ONNX_BUILD(build_cast)
{
    int64_t to = attribute_int(n, "to", 0);
    trama_dtype dtype;
    const char *name;
    if (host_dtype((int32_t)to, &dtype, &name))
        node_fail(n, TRAMA_E_UNSUPPORTED, "elements %s are not supported", name);
    else
        out[0] = to == ONNX_BOOL ? truth(n, node_in(n, 0)) : trama_cast_at(n->where, node_in(n, 0), dtype);
}

ONNX_BUILD(build_cast_like)
{
    trama_value *like = node_in(n, 1);
    out[0] = trama_cast_at(n->where, node_in(n, 0), trama_value_dtype(like));
}

/* ---- Dropout, as of inference ---- */

ONNX_BUILD(build_dropout)
{
    double ratio, training;
    trama_value *x = node_in(n, 0);
    bool known = node_number(n, 1, 0.5, &ratio) && node_number(n, 2, 0, &training);
    if (!known || (training && ratio))
        node_fail(n, TRAMA_E_UNSUPPORTED, "dropout is supported for inference only: training_mode must be false");
    out[0] = x;
    if (x && trama_shape_count(x->shape) >= 0)
        out[1] = trama_fill_at(n->where, n->graph->program, TRAMA_BOOL, x->shape, 1);
}
