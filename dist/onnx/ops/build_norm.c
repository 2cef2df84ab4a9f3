/* SPDX-License-Identifier: Apache-2.0 */
/* Normalizations and losses of ONNX. */
#include "onnx_ops.h"

/* ---- Moments ---- */

typedef struct moments {
    trama_value *mean, *centred, *variance;
} moments;

static int list_dims(unsigned set, int *dims)
{
    int n = 0;
    for (int d = 0; d < TRAMA_MAX_NDIM; d++)
        if (set >> d & 1)
            dims[n++] = d;
    return n;
}

/* Mean and variance of x over a set of dims, which stay with extent 1. */
static moments moments_of(onnx_node *n, trama_value *x, unsigned set)
{
    int dims[TRAMA_MAX_NDIM], count = list_dims(set, dims);
    moments m = {.mean = x, .centred = x, .variance = x};
    if (!x || !count)
        return node_fail(n, TRAMA_E_SHAPE, "there is no dim to normalize over"), m;
    m.mean = trama_mean_at(n->where, x, count, dims, true);
    m.centred = trama_sub_at(n->where, x, m.mean);
    m.variance = trama_mean_at(n->where, trama_square_at(n->where, m.centred), count, dims, true);
    return m;
}

/* 1 / sqrt(variance + epsilon) */
static trama_value *inverse_deviation(onnx_node *n, trama_value *variance, double epsilon)
{
    trama_value *deviation = trama_sqrt_at(n->where, trama_affine_at(n->where, variance, 1, epsilon));
    return trama_scalar_div_at(n->where, 1, deviation);
}

static unsigned dims_from(int from, int to)
{
    unsigned set = 0;
    for (int d = from; d < to; d++)
        set |= 1u << d;
    return set;
}

/* ---- Normalizations ---- */

/* Keeps `momentum` of the running statistic, and takes the rest of the batch's: all [c]. */
static trama_value *running(onnx_node *n, trama_value *kept, trama_value *batch, double momentum)
{
    trama_value *of_batch = batch && kept ? trama_reshape_at(n->where, batch, kept->shape) : NULL;
    trama_value *old = trama_scale_at(n->where, kept, momentum);
    return trama_add_at(n->where, old, trama_scale_at(n->where, of_batch, 1 - momentum));
}

/* x [n, c, ...]; scale, bias, mean and variance [c] */
ONNX_BUILD(build_batch_norm)
{
    trama_value *x = node_in(n, 0), *scale = node_in(n, 1), *bias = node_in(n, 2);
    trama_value *mean = node_state(n, 3), *variance = node_state(n, 4);
    if (!x || !mean || !variance)
        return;
    int ndim = x->shape.ndim;
    if (ndim < 2 || !attribute_int(n, "spatial", 1))
        node_fail(n, TRAMA_E_UNSUPPORTED, "statistics of each element (spatial 0), and operands of one dim");
    trama_value *m = mean, *v = variance;
    if (attribute_int(n, "training_mode", 0)) {
        double momentum = attribute_real(n, "momentum", 0.9);
        moments batch = moments_of(n, x, dims_from(0, ndim) & ~2u);
        out[1] = running(n, mean, batch.mean, momentum);
        out[2] = running(n, variance, batch.variance, momentum);
        m = trama_reshape_at(n->where, batch.mean, mean->shape);
        v = trama_reshape_at(n->where, batch.variance, variance->shape);
    }
    trama_value *factor = trama_mul_at(n->where, scale, inverse_deviation(n, v, attribute_real(n, "epsilon", 1e-5)));
    trama_value *shift = trama_sub_at(n->where, bias, trama_mul_at(n->where, m, factor));
    trama_value *scaled = trama_mul_at(n->where, x, build_reshaped(n, factor, 1, ndim));
    out[0] = trama_add_at(n->where, scaled, build_reshaped(n, shift, 1, ndim));
}

/* x [n, c, ...]; scale and bias [c] */
ONNX_BUILD(build_instance_norm)
{
    trama_value *x = node_in(n, 0), *scale = node_in(n, 1), *bias = node_in(n, 2);
    int ndim = x ? x->shape.ndim : 0;
    moments m = moments_of(n, x, dims_from(2, ndim));
    trama_value *inverse = inverse_deviation(n, m.variance, attribute_real(n, "epsilon", 1e-5));
    trama_value *factor = trama_mul_at(n->where, inverse, build_reshaped(n, scale, 1, ndim));
    trama_value *scaled = trama_mul_at(n->where, m.centred, factor);
    out[0] = trama_add_at(n->where, scaled, build_reshaped(n, bias, 1, ndim));
}

/* Over the dims from `axis` on. 16-bit floats are normalized in f32, unless stash_type asks for bf16. */
ONNX_BUILD(build_layer_norm)
{
    trama_value *x = node_in(n, 0), *scale = node_in(n, 1);
    int axis = x ? node_dim(n, attribute_int(n, "axis", -1), x->shape.ndim) : -1;
    if (axis < 0 || !scale)
        return;
    bool narrow = trama_dtype_size(x->dtype) == 2 && attribute_int(n, "stash_type", 1) == 1;
    trama_value *wide = narrow ? trama_cast_at(n->where, x, TRAMA_F32) : x;
    moments m = moments_of(n, wide, dims_from(axis, x->shape.ndim));
    trama_value *inverse = inverse_deviation(n, m.variance, attribute_real(n, "epsilon", 1e-5));
    trama_value *normal = trama_mul_at(n->where, m.centred, inverse);
    out[0] = trama_mul_at(n->where, narrow ? trama_cast_at(n->where, normal, x->dtype) : normal, scale);
    if (node_has(n, 2))
        out[0] = trama_add_at(n->where, out[0], node_in(n, 2));
    out[1] = m.mean;
    out[2] = inverse;
}

/* (x - mean) / (deviation + 1e-9) */
ONNX_BUILD(build_mean_variance_norm)
{
    trama_value *x = node_in(n, 0);
    onnx_ints axes = attribute_ints(n, "axes");
    if (!axes.given)
        axes = (onnx_ints){.n = 3, .at = {0, 2, 3}};
    moments m = moments_of(n, x, x ? node_dims(n, &axes, x->shape.ndim) : 0);
    trama_value *deviation = trama_affine_at(n->where, trama_sqrt_at(n->where, m.variance), 1, 1e-9);
    out[0] = trama_div_at(n->where, m.centred, deviation);
}

/* x / (bias + alpha / size * sum of x^2 over `size` neighbours in dim 1)^beta */
ONNX_BUILD(build_lrn)
{
    trama_value *x = node_in(n, 0), *squares = trama_square_at(n->where, x), *sum = squares;
    int64_t size = attribute_int(n, "size", 0), before = (size - 1) / 2, after = size - 1 - before;
    if (size < 1 || size > 1000 || (x && x->shape.ndim < 2)) {
        node_fail(n, TRAMA_E_ARGUMENT, "'size' is not from 1 to 1000, or operand 0 has no dim 1");
        return;
    }
    for (int64_t by = -after; by <= before; by++)
        if (by)
            sum = trama_add_at(n->where, sum, trama_shift_at(n->where, squares, 1, by));
    double alpha = attribute_real(n, "alpha", 1e-4), beta = attribute_real(n, "beta", 0.75);
    trama_value *base = trama_affine_at(n->where, sum, alpha / (double)size, attribute_real(n, "bias", 1));
    trama_value *power = trama_exp_at(n->where, trama_scale_at(n->where, trama_log_at(n->where, base), -beta));
    out[0] = trama_mul_at(n->where, x, power);
}

/* ---- Losses ---- */

/* The weight of each class at each place: [n, c, ...], 0 but for the class that the label [n, ...] names. */
static trama_value *class_weights(onnx_node *n, trama_value *x, trama_value *labels)
{
    trama_shape shape = {.ndim = x->shape.ndim, .dim = {labels->shape.dim[0], 1}};
    for (int d = 2; d < shape.ndim; d++)
        shape.dim[d] = labels->shape.dim[d - 1];
    trama_value *label = trama_reshape_at(n->where, labels, shape);
    trama_value *classes = build_arange(n, labels->dtype, x->shape.dim[1], shape.ndim, 1);
    trama_value *chosen = trama_equal_at(n->where, label, classes);
    if (attribute_has(n, "ignore_index")) {
        double ignored = (double)attribute_int(n, "ignore_index", 0);
        trama_value *label_ignored = trama_fill_at(n->where, n->graph->program, labels->dtype, TRAMA_SCALAR, ignored);
        trama_value *kept = trama_not_equal_at(n->where, label, label_ignored);
        chosen = trama_logical_and_at(n->where, chosen, kept);
    }
    trama_value *weights = trama_cast_at(n->where, chosen, x->dtype);
    return node_has(n, 2) ? trama_mul_at(n->where, weights, build_reshaped(n, node_in(n, 2), 1, shape.ndim)) : weights;
}

/* Of the logarithms x [n, c, ...] of probabilities, and labels [n, ...]. */
static trama_value *loss_of(onnx_node *n, trama_value *x, trama_value *labels)
{
    const int dim = 1;
    if (!x || !labels)
        return NULL;
    if (x->shape.ndim < 2 || labels->shape.ndim != x->shape.ndim - 1)
        return node_fail(n, TRAMA_E_SHAPE, "operands of %d and %d dims do not fit", x->shape.ndim, labels->shape.ndim);
    trama_value *weights = class_weights(n, x, labels);
    trama_value *each =
        trama_neg_at(n->where, trama_sum_at(n->where, trama_mul_at(n->where, weights, x), 1, &dim, false));
    if (attribute_is(n, "reduction", "mean", "none"))
        return each;
    trama_value *sum = trama_sum_at(n->where, each, 0, NULL, false);
    if (attribute_is(n, "reduction", "mean", "sum"))
        return sum;
    if (!attribute_is(n, "reduction", "mean", "mean"))
        return node_fail(n, TRAMA_E_ARGUMENT, "'reduction' is none of none, sum and mean");
    return trama_div_at(n->where, sum, trama_sum_at(n->where, weights, 0, NULL, false));
}

ONNX_BUILD(build_nll_loss)
{
    trama_value *x = node_in(n, 0);
    out[0] = loss_of(n, x, node_in(n, 1));
}

ONNX_BUILD(build_cross_entropy_loss)
{
    trama_value *x = node_in(n, 0);
    if (x && x->shape.ndim < 2)
        node_fail(n, TRAMA_E_SHAPE, "scores of %d dims have no classes", x->shape.ndim);
    else
        out[1] = along_log_softmax(n, x, 1);
    out[0] = loss_of(n, out[1], node_in(n, 1));
}
