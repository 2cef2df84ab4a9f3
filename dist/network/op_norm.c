/* SPDX-License-Identifier: Apache-2.0 */
/* Layer norm and its like: the op norm, its gradient, and the builders that flatten dims and apply weights. */
#include "families.h"
#include "trama_composed.h"
#include "trama_network.h"

/* ---- Rules ---- */

/* All tensors have the dims of operand 0 but `reduced`, whose axis has the extent 1. The axis is never split. */
static trama_status lines_infer(trama_rule *rule, const trama_node *node, int reduced)
{
    const trama_shape *x = &node->in[0]->shape;
    const int64_t axis = node->attributes->integer[NORM_AXIS];
    if (axis < 0 || axis >= x->ndim)
        return trama_fail(node->where, TRAMA_E_SHAPE, "%s of %s: axis is %lld, and it has %d dims", node->op->name,
                          node->in[0]->name, (long long)axis, x->ndim);
    for (int d = 0; d < x->ndim; d++) {
        int f = rule_add_factor(rule, x->dim[d]);
        rule->factor[f].whole = d == axis;
        for (int t = 0; t < rule->n_in + rule->n_out; t++)
            rule_add_dim(&rule->tensor[t], t == reduced && d == axis ? -1 : f);
    }
    for (int t = 1; t < rule->n_in; t++) {
        trama_shape wanted = *x;
        wanted.dim[axis] = t == reduced ? 1 : x->dim[axis];
        if (!trama_shape_equal(wanted, node->in[t]->shape))
            return trama_fail(node->where, TRAMA_E_SHAPE, "%s: the shape of %s does not fit that of %s", node->op->name,
                              node->in[t]->name, node->in[0]->name);
    }
    return TRAMA_OK;
}

trama_status norm_infer(trama_rule *rule, const trama_node *node)
{
    return lines_infer(rule, node, 2);
}

trama_status norm_grad_infer(trama_rule *rule, const trama_node *node)
{
    return lines_infer(rule, node, 2);
}

static trama_dtype scale_dtype(trama_dtype dtype)
{
    return dtype == TRAMA_F64 ? TRAMA_F64 : TRAMA_F32;
}

trama_status norm_dtype(const trama_node *node, trama_dtype *dtype)
{
    dtype[0] = node->in[0]->dtype;
    dtype[1] = scale_dtype(dtype[0]);
    return TRAMA_OK;
}

trama_status norm_grad_dtype(const trama_node *node, trama_dtype *dtype)
{
    *dtype = node->in[0]->dtype;
    if (node->in[1]->dtype == *dtype && node->in[2]->dtype == scale_dtype(*dtype))
        return TRAMA_OK;
    return trama_fail(node->where, TRAMA_E_DTYPE, "norm_grad of %s: the types of %s and %s do not fit",
                      node->in[0]->name, node->in[1]->name, node->in[2]->name);
}

/* ---- Builders ---- */

/* The norm of the last `dims` dims, as one dim. */
static trama_value *normalised(trama_where where, const char *name, trama_value *x, int dims, double eps, bool centred)
{
    if (!is_real(where, name, x))
        return NULL;
    if (dims < 1 || dims > x->shape.ndim || !(eps >= 0))
        return program_fail(x->program, where, TRAMA_E_ARGUMENT,
                            "%s of %s over %d dims, eps %g: it has %d dims, and eps is 0 or more", name, x->name, dims,
                            eps, x->shape.ndim);
    const int first = x->shape.ndim - dims;
    trama_value *flat = dims > 1 ? trama_flatten_at(where, x, first, -1) : x;
    const trama_attributes a = {.integer = {[NORM_AXIS] = first, [NORM_CENTRED] = centred}, .real = {[NORM_EPS] = eps}};
    trama_value *y = flat ? program_append(NULL, where, &trama_op_norm, 1, &flat, &a) : NULL;
    return y && dims > 1 ? trama_reshape_at(where, y, x->shape) : y;
}

static trama_value *with_weights(trama_where where, trama_value *y, trama_value *weight, trama_value *bias)
{
    y = weight ? trama_mul_at(where, y, weight) : y;
    return bias ? trama_add_at(where, y, bias) : y;
}

trama_value *trama_layer_norm_at(trama_where where, trama_value *x, int dims, trama_value *weight, trama_value *bias,
                                 double eps)
{
    return x ? with_weights(where, normalised(where, "layer_norm", x, dims, eps, true), weight, bias) : NULL;
}

trama_value *trama_rms_norm_at(trama_where where, trama_value *x, int dims, trama_value *weight, double eps)
{
    return x ? with_weights(where, normalised(where, "rms_norm", x, dims, eps, false), weight, NULL) : NULL;
}

trama_value *along_channels(trama_where where, const trama_value *x, trama_value *v)
{
    if (v && !trama_shape_equal(v->shape, TRAMA_SHAPE(x->shape.dim[1])))
        return program_fail(x->program, where, TRAMA_E_SHAPE, "%s has not the shape [%lld], the channels of %s",
                            v->name, (long long)x->shape.dim[1], x->name);
    trama_shape shape = {.ndim = x->shape.ndim - 1, .dim = {v ? v->shape.dim[0] : 0}};
    for (int d = 1; d < shape.ndim; d++)
        shape.dim[d] = 1;
    return v ? trama_reshape_at(where, v, shape) : NULL;
}

trama_value *trama_group_norm_at(trama_where where, trama_value *x, int64_t groups, trama_value *weight,
                                 trama_value *bias, double eps)
{
    if (!x)
        return NULL;
    const int64_t channels = x->shape.ndim > 1 ? x->shape.dim[1] : 0;
    if (channels < 1 || groups < 1 || channels % groups)
        return program_fail(x->program, where, TRAMA_E_SHAPE,
                            "group_norm of %s: %lld groups of its %lld channels, the extent of dim 1", x->name,
                            (long long)groups, (long long)channels);
    trama_shape apart = {.ndim = x->shape.ndim + 1, .dim = {x->shape.dim[0], groups, channels / groups}};
    if (apart.ndim > TRAMA_MAX_NDIM)
        return program_fail(x->program, where, TRAMA_E_SHAPE, "group_norm of %s: it has too many dims", x->name);
    for (int d = 2; d < x->shape.ndim; d++)
        apart.dim[d + 1] = x->shape.dim[d];
    trama_value *y = trama_reshape_at(where, x, apart);
    y = y ? normalised(where, "group_norm", y, apart.ndim - 2, eps, true) : NULL;
    return with_weights(where, y ? trama_reshape_at(where, y, x->shape) : NULL, along_channels(where, x, weight),
                        along_channels(where, x, bias));
}

static bool has_channels(trama_where where, const char *name, const trama_value *x, double eps)
{
    if (!is_real(where, name, x))
        return false;
    if (x->shape.ndim >= 2 && eps >= 0)
        return true;
    program_fail(x->program, where, TRAMA_E_ARGUMENT,
                 "%s of %s with %d dims, eps %g: it needs [n, channels, ..] and eps of 0 or more", name, x->name,
                 x->shape.ndim, eps);
    return false;
}

trama_value *trama_batch_norm_at(trama_where where, trama_value *x, trama_value *weight, trama_value *bias, double eps,
                                 trama_value **mean, trama_value **variance)
{
    int dims[TRAMA_MAX_NDIM], n = 0;
    if (!x || !has_channels(where, "batch_norm", x, eps))
        return NULL;
    for (int d = 0; d < x->shape.ndim; d++)
        if (d != 1)
            dims[n++] = d;
    const trama_shape channels = TRAMA_SHAPE(x->shape.dim[1]);
    trama_value *m = trama_mean_at(where, x, n, dims, true), *centred = trama_sub_at(where, x, m);
    trama_value *squares = trama_square_at(where, centred), *v = trama_mean_at(where, squares, n, dims, true);
    trama_value *scale = trama_rsqrt_at(where, trama_affine_at(where, v, 1, eps));
    if (mean)
        *mean = m ? trama_reshape_at(where, m, channels) : NULL;
    if (variance)
        *variance = squares ? trama_variance_at(where, x, n, dims, false, 1) : NULL;
    return with_weights(where, trama_mul_at(where, centred, scale), along_channels(where, x, weight),
                        along_channels(where, x, bias));
}

trama_value *trama_batch_norm_with_at(trama_where where, trama_value *x, trama_value *mean, trama_value *variance,
                                      trama_value *weight, trama_value *bias, double eps)
{
    if (!x || !mean || !variance || !has_channels(where, "batch_norm", x, eps))
        return NULL;
    trama_value *scale = trama_rsqrt_at(where, trama_affine_at(where, variance, 1, eps));
    trama_value *centred = trama_sub_at(where, x, along_channels(where, x, mean));
    return with_weights(where, trama_mul_at(where, centred, along_channels(where, x, scale)),
                        along_channels(where, x, weight), along_channels(where, x, bias));
}

trama_value *trama_running_at(trama_where where, trama_value *state, trama_value *value, double momentum)
{
    if (!state || !value)
        return NULL;
    if (!(momentum >= 0 && momentum <= 1))
        return program_fail(state->program, where, TRAMA_E_ARGUMENT, "running of %s: the momentum is %g, not 0 to 1",
                            state->name, momentum);
    trama_value *kept = trama_scale_at(where, state, 1 - momentum);
    return trama_assign_at(where, state, trama_add_at(where, kept, trama_scale_at(where, value, momentum)));
}

/* ---- Gradients ---- */

static trama_value *mean_of_line(const trama_node *node, trama_value *x)
{
    const int axis = (int)node->attributes->integer[NORM_AXIS];
    return trama_mean_at(node->where, x, 1, &axis, true);
}

/* dr/dx = -r^2 y / n */
void norm_gradient(const trama_node *node, trama_value *const *d_out, trama_value **d_in)
{
    trama_where where = node->where;
    trama_value *y = node->out[0], *r = node->out[1];
    trama_attributes a = *node->attributes;
    a.real[NORM_EPS] = 0;
    if (d_out[0])
        d_in[0] = program_append(NULL, where, &trama_op_norm_grad, 3, (trama_value *[]){d_out[0], y, r}, &a);
    if (!d_out[1])
        return;
    const int64_t n = node->in[0]->shape.dim[node->attributes->integer[NORM_AXIS]];
    trama_value *slope =
        trama_scale_at(where, trama_mul_at(where, d_out[1], trama_square_at(where, r)), -1.0 / (double)n);
    trama_value *through_r = trama_mul_at(where, y, trama_cast_at(where, slope, y->dtype));
    d_in[0] = d_in[0] ? trama_add_at(where, d_in[0], through_r) : through_r;
}

/* u: the gradient of r (g - mean g - y mean(g y)), whose map of g is its own adjoint. */
void norm_grad_gradient(const trama_node *node, trama_value *const *d_out, trama_value **d_in)
{
    trama_where where = node->where;
    trama_value *u = d_out[0], *g = node->in[0], *y = node->in[1], *r = node->in[2];
    trama_value *scale = trama_cast_at(where, r, y->dtype);
    d_in[0] = program_append(NULL, where, &trama_op_norm_grad, 3, (trama_value *[]){u, y, r}, node->attributes);
    trama_value *of_g = trama_mul_at(where, u, mean_of_line(node, trama_mul_at(where, g, y)));
    trama_value *of_u = trama_mul_at(where, g, mean_of_line(node, trama_mul_at(where, u, y)));
    d_in[1] = trama_neg_at(where, trama_mul_at(where, scale, trama_add_at(where, of_g, of_u)));
    const int axis = (int)node->attributes->integer[NORM_AXIS];
    trama_value *sum = trama_sum_at(where, trama_mul_at(where, u, node->out[0]), 1, &axis, true);
    d_in[2] = trama_div_at(where, trama_cast_at(where, sum, r->dtype), r);
}

/* ---- Split forms ---- */

/* Squares of large numbers overflow f32, so their sum is f64. */
void norm_split_form(const trama_node *node, int dim, int64_t n, trama_value **out)
{
    const trama_where where = node->where;
    const int64_t length = node->in[0]->shape.dim[dim];
    if (length == TRAMA_ANY)
        return;
    trama_value *x = widened(where, node->in[0]);
    if (node->attributes->integer[NORM_CENTRED])
        x = trama_sub_at(where, x, mean_of_line(node, x));
    trama_value *squares = trama_sum_square_at(where, x, 1, &dim, true);
    trama_value *r =
        trama_rsqrt_at(where, trama_affine_at(where, squares, 1 / (double)length, node->attributes->real[NORM_EPS]));
    out[1] = trama_cast_at(where, r, node->out[1]->dtype);
    out[0] = trama_cast_at(where, trama_mul_at(where, x, out[1]), node->out[0]->dtype);
}

/* r (g - mean of g, if centred - y mean of g y) */
void norm_grad_split_form(const trama_node *node, int dim, int64_t n, trama_value **out)
{
    const trama_where where = node->where;
    trama_value *g = widened(where, node->in[0]), *y = widened(where, node->in[1]), *r = node->in[2];
    trama_value *along = trama_mul_at(where, y, mean_of_line(node, trama_mul_at(where, g, y)));
    if (node->attributes->integer[NORM_CENTRED])
        along = trama_add_at(where, along, mean_of_line(node, g));
    trama_value *d = trama_mul_at(where, r, trama_sub_at(where, g, along));
    out[0] = trama_cast_at(where, d, node->out[0]->dtype);
}
