/* SPDX-License-Identifier: Apache-2.0 */
/* Activations of ONNX out of the ops of Trama. */
#include "onnx_ops.h"

/* a x+ + b x-, where x+ is max(x, 0) and x- is max(-x, 0) */
static trama_value *positive(onnx_node *n, trama_value *x)
{
    return trama_relu_at(n->where, x);
}

static trama_value *negative(onnx_node *n, trama_value *x)
{
    return trama_relu_at(n->where, trama_neg_at(n->where, x));
}

ONNX_BUILD(build_leaky_relu)
{
    trama_value *x = node_in(n, 0), *above = positive(n, x);
    double alpha = attribute_real(n, "alpha", n->op->numbers[0]);
    out[0] = trama_sub_at(n->where, above, trama_scale_at(n->where, negative(n, x), alpha));
}

/* Before operator set 7 a slope [c] belongs to dim 1. */
ONNX_BUILD(build_prelu)
{
    trama_value *x = node_in(n, 0), *slope = node_in(n, 1), *above = positive(n, x);
    if (x && slope && n->opset < 7 && slope->shape.ndim == 1 && x->shape.ndim > 1)
        slope = build_reshaped(n, slope, 1, x->shape.ndim);
    trama_value *below = trama_mul_at(n->where, negative(n, x), slope);
    out[0] = trama_sub_at(n->where, above, below);
}

/* min(exp(x) - 1, 0) */
static trama_value *exponential_below(onnx_node *n, trama_value *x)
{
    trama_value *below = trama_neg_at(n->where, negative(n, x));
    return trama_affine_at(n->where, trama_exp_at(n->where, below), 1, -1);
}

ONNX_BUILD(build_elu)
{
    trama_value *x = node_in(n, 0), *above = positive(n, x);
    double alpha = attribute_real(n, "alpha", n->op->numbers[0]);
    double gamma = attribute_real(n, "gamma", n->op->numbers[1]);
    trama_value *below = trama_scale_at(n->where, exponential_below(n, x), alpha);
    trama_value *y = trama_add_at(n->where, above, below);
    out[0] = gamma == 1 ? y : trama_scale_at(n->where, y, gamma);
}

ONNX_BUILD(build_celu)
{
    trama_value *x = node_in(n, 0), *above = positive(n, x);
    double alpha = attribute_real(n, "alpha", 1);
    trama_value *below = exponential_below(n, trama_scale_at(n->where, x, 1 / alpha));
    out[0] = trama_add_at(n->where, above, trama_scale_at(n->where, below, alpha));
}

ONNX_BUILD(build_hard_sigmoid)
{
    double alpha = attribute_real(n, "alpha", n->op->numbers[0]), beta = attribute_real(n, "beta", n->op->numbers[1]);
    out[0] = trama_clamp_at(n->where, trama_affine_at(n->where, node_in(n, 0), alpha, beta), 0, 1);
}

ONNX_BUILD(build_hard_swish)
{
    trama_value *x = node_in(n, 0);
    trama_value *gate = trama_clamp_at(n->where, trama_affine_at(n->where, x, 1.0 / 6, 0.5), 0, 1);
    out[0] = trama_mul_at(n->where, x, gate);
}

/* log(1 + exp(x)) = max(x, 0) + log(1 + exp(-|x|)), which does not overflow */
ONNX_BUILD(build_softplus)
{
    trama_value *x = node_in(n, 0), *above = positive(n, x);
    trama_value *tail = trama_exp_at(n->where, trama_neg_at(n->where, trama_abs_at(n->where, x)));
    out[0] = trama_add_at(n->where, above, trama_log_at(n->where, trama_affine_at(n->where, tail, 1, 1)));
}

ONNX_BUILD(build_softsign)
{
    trama_value *x = node_in(n, 0);
    out[0] = trama_div_at(n->where, x, trama_affine_at(n->where, trama_abs_at(n->where, x), 1, 1));
}

/* The tanh form is 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))). */
ONNX_BUILD(build_gelu)
{
    trama_value *x = node_in(n, 0);
    if (attribute_is(n, "approximate", "none", "none")) {
        out[0] = trama_gelu_at(n->where, x);
        return;
    }
    if (!attribute_is(n, "approximate", "none", "tanh"))
        node_fail(n, TRAMA_E_ARGUMENT, "'approximate' is neither none nor tanh");
    const double scale = 0.79788456080286535588;
    trama_value *slope = trama_affine_at(n->where, trama_square_at(n->where, x), 0.044715 * scale, scale);
    trama_value *bent = trama_tanh_at(n->where, trama_mul_at(n->where, x, slope));
    out[0] = trama_mul_at(n->where, x, trama_affine_at(n->where, bent, 0.5, 0.5));
}

/* ---- Along a dim ---- */

trama_value *along_softmax(onnx_node *n, trama_value *x, int dim)
{
    return trama_softmax_at(n->where, x, dim);
}

trama_value *along_log_softmax(onnx_node *n, trama_value *x, int dim)
{
    trama_value *most = trama_stop_gradient_at(n->where, trama_max_at(n->where, x, 1, &dim, true));
    trama_value *below = trama_sub_at(n->where, x, most);
    trama_value *sum = trama_sum_at(n->where, trama_exp_at(n->where, below), 1, &dim, true);
    return trama_sub_at(n->where, below, trama_log_at(n->where, sum));
}

/* 1 at the first largest element along dim, else 0 */
trama_value *along_hardmax(onnx_node *n, trama_value *x, int dim)
{
    if (!x)
        return NULL;
    trama_value *at = trama_argmax_at(n->where, x, dim, true);
    trama_value *index = build_arange(n, TRAMA_I64, x->shape.dim[dim], x->shape.ndim, dim);
    return trama_cast_at(n->where, trama_equal_at(n->where, index, at), x->dtype);
}

ONNX_BUILD(build_along)
{
    trama_value *x = node_in(n, 0);
    int dim = x ? node_dim(n, attribute_int(n, "axis", (int64_t)n->op->numbers[0]), x->shape.ndim) : -1;
    if (dim >= 0)
        out[0] = n->op->along(n, x, dim);
}

static int64_t product_of(trama_shape shape, int from, int to)
{
    int64_t count = 1;
    for (int d = from; d < to; d++)
        count *= shape.dim[d];
    return count;
}

/* Before operator set 13 all dims from `axis` on are one. */
ONNX_BUILD(build_along_rows)
{
    trama_value *x = node_in(n, 0);
    int ndim = x ? x->shape.ndim : 0;
    int64_t axis = attribute_int(n, "axis", 1);
    int dim = !x ? -1 : axis == ndim ? ndim : node_dim(n, axis, ndim);
    if (dim < 0)
        return;
    if (dim == ndim - 1) {
        out[0] = n->op->along(n, x, dim);
        return;
    }
    if (trama_shape_count(x->shape) < 0)
        node_fail(n, TRAMA_E_UNSUPPORTED, "rows of several dims, one of which is only known when fed");
    trama_shape rows = TRAMA_SHAPE(product_of(x->shape, 0, dim), product_of(x->shape, dim, ndim));
    trama_value *y = n->op->along(n, trama_reshape_at(n->where, x, rows), 1);
    out[0] = trama_reshape_at(n->where, y, x->shape);
}
