/* SPDX-License-Identifier: Apache-2.0 */
/* Activations of ONNX out of the ops of Trama. */
#include "onnx_ops.h"
#include "trama_composed.h"

ONNX_BUILD(build_leaky_relu)
{
    out[0] = trama_leaky_relu_at(n->where, node_in(n, 0), attribute_real(n, "alpha", n->op->numbers[0]));
}

/* Before operator set 7 a slope [c] belongs to dim 1. */
ONNX_BUILD(build_prelu)
{
    trama_value *x = node_in(n, 0), *slope = node_in(n, 1);
    if (x && slope && n->opset < 7 && slope->shape.ndim == 1 && x->shape.ndim > 1)
        slope = build_reshaped(n, slope, 1, x->shape.ndim);
    out[0] = trama_prelu_at(n->where, x, slope);
}

ONNX_BUILD(build_elu)
{
    const double gamma = attribute_real(n, "gamma", n->op->numbers[1]);
    out[0] = trama_elu_at(n->where, node_in(n, 0), attribute_real(n, "alpha", n->op->numbers[0]));
    if (gamma != 1)
        out[0] = trama_scale_at(n->where, out[0], gamma);
}

ONNX_BUILD(build_celu)
{
    out[0] = trama_celu_at(n->where, node_in(n, 0), attribute_real(n, "alpha", 1));
}

ONNX_BUILD(build_hard_sigmoid)
{
    double alpha = attribute_real(n, "alpha", n->op->numbers[0]), beta = attribute_real(n, "beta", n->op->numbers[1]);
    out[0] = trama_clamp_at(n->where, trama_affine_at(n->where, node_in(n, 0), alpha, beta), 0, 1);
}

ONNX_BUILD(build_gelu)
{
    if (attribute_is(n, "approximate", "none", "none"))
        out[0] = trama_gelu_at(n->where, node_in(n, 0));
    else if (attribute_is(n, "approximate", "none", "tanh"))
        out[0] = trama_gelu_tanh_at(n->where, node_in(n, 0));
    else
        node_fail(n, TRAMA_E_ARGUMENT, "'approximate' is neither none nor tanh");
}

/* ---- Along a dim ---- */

trama_value *along_softmax(onnx_node *n, trama_value *x, int dim)
{
    return trama_softmax_at(n->where, x, dim);
}

trama_value *along_log_softmax(onnx_node *n, trama_value *x, int dim)
{
    return trama_log_softmax_at(n->where, x, dim);
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
