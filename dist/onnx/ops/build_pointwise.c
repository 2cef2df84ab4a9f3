/* SPDX-License-Identifier: Apache-2.0 */
/* Pointwise arithmetic, casts and dropout of ONNX. */
#include <math.h>

#include "onnx_ops.h"
#include "trama_composed.h"

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

ONNX_BUILD(build_many)
{
    out[0] = node_in(n, 0);
    for (int i = 1; i < node_inputs(n); i++)
        out[0] = n->op->binary(n->where, out[0], node_in(n, i));
}

ONNX_BUILD(build_mean)
{
    build_many(n, out);
    out[0] = trama_div_scalar_at(n->where, out[0], node_inputs(n));
}

/* The remainder has the sign of the divisor, or with fmod that of the dividend. */
ONNX_BUILD(build_mod)
{
    trama_value *x = node_in(n, 0), *y = node_in(n, 1);
    out[0] = attribute_int(n, "fmod", 0) ? trama_fmod_at(n->where, x, y) : trama_mod_at(n->where, x, y);
}

ONNX_BUILD(build_shift)
{
    trama_value *x = node_in(n, 0), *y = node_in(n, 1);
    if (attribute_is(n, "direction", "", "LEFT"))
        out[0] = trama_left_shift_at(n->where, x, y);
    else if (attribute_is(n, "direction", "", "RIGHT"))
        out[0] = trama_right_shift_at(n->where, x, y);
    else
        node_fail(n, TRAMA_E_ARGUMENT, "'direction' is neither LEFT nor RIGHT");
}

/* ---- Choices ---- */

ONNX_BUILD(build_where)
{
    out[0] = trama_select_at(n->where, node_in(n, 0), node_in(n, 1), node_in(n, 2));
}

/* The triangle of the last two dims from diagonal k on, or up to it. */
ONNX_BUILD(build_triangle)
{
    trama_value *x = node_in(n, 0);
    double k;
    if (!node_number(n, 1, 0, &k))
        node_fail(n, TRAMA_E_UNSUPPORTED, "operand 1 (k) must be a constant");
    else if (attribute_int(n, "upper", 1))
        out[0] = trama_triu_at(n->where, x, (int64_t)k);
    else
        out[0] = trama_tril_at(n->where, x, (int64_t)k);
}

/* ---- Powers and limits ---- */

/* The result has the type of x. Where the exponent has another, floats are computed in the wider of both. */
static trama_value *power_of(onnx_node *n, trama_value *x, trama_value *y)
{
    if (!x || !y || x->dtype == y->dtype)
        return trama_pow_at(n->where, x, y);
    bool by_exponent = trama_dtype_is_float(y->dtype) && !trama_dtype_is_float(x->dtype);
    trama_dtype of = by_exponent ? y->dtype : x->dtype;
    trama_value *power = trama_pow_at(n->where, trama_cast_at(n->where, x, of), trama_cast_at(n->where, y, of));
    return trama_cast_at(n->where, power, x->dtype);
}

ONNX_BUILD(build_power)
{
    double exponent;
    trama_value *x = node_in(n, 0);
    bool known = node_number(n, 1, 1, &exponent) && node_shape(n, 1).ndim <= node_shape(n, 0).ndim;
    if (known && exponent == 2)
        out[0] = trama_square_at(n->where, x);
    else if (known && exponent == 0.5 && x && trama_dtype_is_float(x->dtype))
        out[0] = trama_sqrt_at(n->where, x);
    else
        out[0] = power_of(n, x, node_in(n, 1));
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
    out[0] = trama_clip_at(n->where, x, node_has(n, 1) ? node_in(n, 1) : NULL, node_has(n, 2) ? node_in(n, 2) : NULL);
}

/* ---- Casts ---- */

ONNX_BUILD(build_cast)
{
    int64_t to = attribute_int(n, "to", 0);
    trama_dtype dtype;
    const char *name;
    if (host_dtype((int32_t)to, &dtype, &name))
        node_fail(n, TRAMA_E_UNSUPPORTED, "elements %s are not supported", name);
    else
        out[0] = trama_cast_at(n->where, node_in(n, 0), dtype);
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
