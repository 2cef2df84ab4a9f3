/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions, argmax and expand (a reduction's reverse); softmax and cross entropy. */
#include <string.h>

#include "families.h"

/* ---- Builders ---- */

/* Sets the bit mask of the listed dims. False with an error on the program for a missing list, and for a dim that is
 * out of range or listed twice. */
static bool dim_mask(trama_where where, const char *name, const trama_value *x, int n, const int *dims, int64_t *mask)
{
    int ndim = x->shape.ndim;
    if (n < 0 || (n && !dims))
        return program_fail(x->program, where, TRAMA_E_ARGUMENT, "%s of %s: a list of %d dims%s; 0 stands for all",
                            name, x->name, n, n < 0 ? "" : ", which is NULL"),
               false;
    *mask = n ? 0 : ((int64_t)1 << ndim) - 1;
    for (int i = 0; i < n; i++) {
        int dim = dims[i] < 0 ? dims[i] + ndim : dims[i];
        bool there = dim >= 0 && dim < ndim;
        if (!there || (*mask >> dim & 1))
            return program_fail(x->program, where, TRAMA_E_SHAPE, "%s of %s: dim %d is %s (%d dims)", name, x->name,
                                dims[i], there ? "named twice" : "not there", ndim),
                   false;
        *mask |= (int64_t)1 << dim;
    }
    return true;
}

trama_value *reduce_dims(trama_where where, const trama_op *op, trama_value *x, int n, const int *dims, bool keep_dim)
{
    trama_attributes a = {.integer = {[REDUCE_KEEP_DIM] = keep_dim}};
    if (!x || !dim_mask(where, op->name, x, n, dims, &a.integer[REDUCE_AXES]))
        return NULL;
    return program_append(NULL, where, op, 1, &x, &a);
}

static trama_value *place_of(trama_where where, const trama_op *op, trama_value *x, int dim, bool keep_dim, bool last)
{
    trama_attributes a = {.integer = {[REDUCE_KEEP_DIM] = keep_dim, [ARGMAX_LAST] = last}};
    if (!x || !dim_mask(where, op->name, x, 1, &dim, &a.integer[REDUCE_AXES]))
        return NULL;
    return program_append(NULL, where, op, 1, &x, &a);
}

#define DEFINE_PLACE(builder, op, last)                                                                                \
    trama_value *builder(trama_where where, trama_value *x, int dim, bool keep_dim)                                    \
    {                                                                                                                  \
        return place_of(where, &op, x, dim, keep_dim, last);                                                           \
    }
DEFINE_PLACE(trama_argmax_at, trama_op_argmax, false)
DEFINE_PLACE(trama_argmin_at, trama_op_argmin, false)
DEFINE_PLACE(trama_argmax_last_at, trama_op_argmax, true)
DEFINE_PLACE(trama_argmin_last_at, trama_op_argmin, true)

trama_value *trama_softmax_at(trama_where where, trama_value *x, int dim)
{
    int64_t mask;
    trama_attributes a = {0};
    if (!x || !dim_mask(where, "softmax", x, 1, &dim, &mask))
        return NULL;
    a.integer[SOFTMAX_AXIS] = dim < 0 ? dim + x->shape.ndim : dim;
    return program_append(NULL, where, &trama_op_softmax, 1, &x, &a);
}

/* ---- Rules ---- */

/* Checks the axes, since attributes may be the user's (trama_apply). */
static trama_status check_axes(const trama_node *node, const trama_shape *full)
{
    int64_t axes = node->attributes->integer[REDUCE_AXES];
    if (axes >> full->ndim == 0)
        return TRAMA_OK;
    return trama_fail(node->where, TRAMA_E_SHAPE, "%s of %s: axes is %lld; it has a bit for each of %d dims",
                      node->op->name, node->in[0]->name, (long long)axes, full->ndim);
}

/* Adds a factor for each dim of a shape to `all`. `kept` gets the dims that are not reduced, and with keep_dim extents
 * of 1. */
static void reduced_dims(trama_rule *rule, const trama_node *node, const trama_shape *full, rule_tensor *all,
                         rule_tensor *kept, trama_reduce kind, bool whole)
{
    for (int d = 0; d < full->ndim; d++) {
        int f = rule_add_factor(rule, full->dim[d]);
        bool reduced = node->attributes->integer[REDUCE_AXES] >> d & 1;
        rule->factor[f].reduce = kind;
        rule->factor[f].whole = reduced && whole;
        rule_add_dim(all, f);
        if (!reduced || node->attributes->integer[REDUCE_KEEP_DIM])
            rule_add_dim(kept, reduced ? -1 : f);
    }
}

#define DEFINE_INFER(name, kind, whole)                                                                                \
    trama_status name##_infer(trama_rule *rule, const trama_node *node)                                                \
    {                                                                                                                  \
        const trama_shape *full = &node->in[0]->shape;                                                                 \
        reduced_dims(rule, node, full, &rule->tensor[0], &rule->tensor[1], kind, whole);                               \
        return check_axes(node, full);                                                                                 \
    }
DEFINE_INFER(sum, TRAMA_SUM, false)
DEFINE_INFER(max, TRAMA_MAX, false)
DEFINE_INFER(min, TRAMA_MIN, false)
DEFINE_INFER(whole, TRAMA_MAX, true)

trama_status expand_infer(trama_rule *rule, const trama_node *node)
{
    reduced_dims(rule, node, &node->in[1]->shape, &rule->tensor[1], &rule->tensor[0], TRAMA_SUM, false);
    rule->tensor[2] = rule->tensor[1];
    trama_shape want = {.ndim = rule->tensor[0].ndim};
    for (int d = 0; d < want.ndim; d++)
        want.dim[d] = rule->tensor[0].dim[d].n ? rule->factor[(int)rule->tensor[0].dim[d].factor[0]].extent : 1;
    return trama_shape_equal(want, node->in[0]->shape)
               ? check_axes(node, &node->in[1]->shape)
               : trama_fail(node->where, TRAMA_E_SHAPE, "expand: %s does not fit the shape of %s", node->in[0]->name,
                            node->in[1]->name);
}

/* Repeated elements are one element, at a stride of 0. */
bool expand_view(const trama_attributes *a, const trama_view *x, trama_view *y, int64_t *at)
{
    bool within = !a->integer[EXPAND_AVERAGE];
    *at = 0;
    for (int d = 0, from = 0; d < y->ndim; d++) {
        const bool repeated = a->integer[REDUCE_AXES] >> d & 1;
        y->stride[d] = 0;
        if (!repeated) {
            const int64_t lo = y->offset[d] - x->offset[from];
            within &= lo >= 0 && lo + y->extent[d] <= x->extent[from];
            y->stride[d] = x->stride[from];
            *at += lo * x->stride[from];
        }
        from += !repeated || a->integer[REDUCE_KEEP_DIM];
    }
    return within;
}

trama_status softmax_infer(trama_rule *rule, const trama_node *node)
{
    int64_t axis = node->attributes->integer[SOFTMAX_AXIS];
    if (axis < 0 || axis >= node->in[0]->shape.ndim)
        return trama_fail(node->where, TRAMA_E_SHAPE, "%s of %s: axis is %lld, and it has %d dims", node->op->name,
                          node->in[0]->name, (long long)axis, node->in[0]->shape.ndim);
    for (int d = 0; d < node->in[0]->shape.ndim; d++) {
        int f = rule_add_factor(rule, node->in[0]->shape.dim[d]);
        rule->factor[f].whole = d == node->attributes->integer[SOFTMAX_AXIS];
        for (int t = 0; t < rule->n_in + rule->n_out; t++)
            rule_add_dim(&rule->tensor[t], f);
    }
    for (int t = 1; t < rule->n_in; t++)
        if (!trama_shape_equal(node->in[0]->shape, node->in[t]->shape))
            return trama_fail(node->where, TRAMA_E_SHAPE, "%s: the operands have different shapes", node->op->name);
    return TRAMA_OK;
}

trama_status argmax_dtype(const trama_node *node, trama_dtype *dtype)
{
    (void)node;
    *dtype = TRAMA_I64;
    return TRAMA_OK;
}

/* The square of a large f32 overflows f32, so sums of squares are f64. */
trama_status f64_dtype(const trama_node *node, trama_dtype *dtype)
{
    (void)node;
    *dtype = TRAMA_F64;
    return TRAMA_OK;
}

trama_status expand_dtype(const trama_node *node, trama_dtype *dtype)
{
    *dtype = node->in[0]->dtype;
    return TRAMA_OK;
}

trama_status cross_entropy_dtype(const trama_node *node, trama_dtype *dtype)
{
    const trama_value *z = node->in[0], *labels = node->in[1];
    if (!trama_dtype_is_float(z->dtype) || trama_dtype_is_float(labels->dtype))
        return trama_fail(node->where, TRAMA_E_DTYPE,
                          "%s takes float logits and integer labels, not %s (%s) and %s (%s)", node->op->name, z->name,
                          trama_dtype_name(z->dtype), labels->name, trama_dtype_name(labels->dtype));
    *dtype = z->dtype;
    return TRAMA_OK;
}

/* ---- Gradients ---- */

trama_value *gradient_expand(const trama_node *node, trama_value *x, bool average)
{
    trama_attributes a = *node->attributes;
    a.integer[EXPAND_AVERAGE] = average;
    return program_append(NULL, node->where, &trama_op_expand, 2, (trama_value *[]){x, node->in[0]}, &a);
}

/* The elements that equal the extremum share its gradient evenly. */
trama_value *gradient_of_extremum(const trama_node *node, trama_value *g)
{
    trama_where where = node->where;
    trama_value *x = node->in[0], *y = gradient_expand(node, node->out[0], false);
    trama_value *hit = trama_cast_at(where, trama_equal_at(where, x, y), x->dtype);
    trama_value *hits = program_append(NULL, where, &trama_op_sum, 1, &hit, node->attributes);
    return trama_mul_at(where, gradient_expand(node, trama_div_at(where, g, hits), false), hit);
}

/* The gradient of expand sums, or averages, over the repetitions. */
void expand_gradient(const trama_node *node, trama_value *const *d_out, trama_value **d_in)
{
    if (!node_wants(node, 0))
        return;
    const trama_op *op = node->attributes->integer[EXPAND_AVERAGE] ? &trama_op_mean : &trama_op_sum;
    trama_attributes a = *node->attributes;
    a.integer[EXPAND_AVERAGE] = 0;
    d_in[0] = program_append(NULL, node->where, op, 1, &d_out[0], &a);
}

void softmax_gradient(const trama_node *node, trama_value *const *d_out, trama_value **d_in)
{
    trama_value *in[] = {d_out[0], node->out[0]};
    d_in[0] = program_append(NULL, node->where, &trama_op_softmax_grad, 2, in, node->attributes);
}

/* Of y (g - sum of g y), which is its own adjoint in g. */
void softmax_grad_gradient(const trama_node *node, trama_value *const *d_out, trama_value **d_in)
{
    trama_where where = node->where;
    trama_value *u = d_out[0], *g = node->in[0], *y = node->in[1];
    const int axis = (int)node->attributes->integer[SOFTMAX_AXIS];
    d_in[0] = program_append(NULL, where, &trama_op_softmax_grad, 2, (trama_value *[]){u, y}, node->attributes);
    trama_value *of_g = trama_sum_at(where, trama_mul_at(where, g, y), 1, &axis, true);
    trama_value *of_u = trama_sum_at(where, trama_mul_at(where, u, y), 1, &axis, true);
    d_in[1] = trama_sub_at(where, trama_mul_at(where, u, trama_sub_at(where, g, of_g)), trama_mul_at(where, g, of_u));
}

/* Of g / batch (softmax(z) - one-hot). The batch is counted, since it may be known only when fed. */
void cross_entropy_grad_gradient(const trama_node *node, trama_value *const *d_out, trama_value **d_in)
{
    trama_where where = node->where;
    trama_value *u = d_out[0], *z = node->in[0], *labels = node->in[1], *g = node->in[2];
    const trama_attributes along = {.integer = {[SOFTMAX_AXIS] = 1}};
    trama_value *each = trama_cast_at(where, trama_equal_at(where, labels, labels), z->dtype);
    trama_value *in[] = {u, trama_softmax_at(where, z, 1)};
    trama_value *through = program_append(NULL, where, &trama_op_softmax_grad, 2, in, &along);
    trama_value *share = trama_div_at(where, g, trama_sum_at(where, each, 0, NULL, false));
    d_in[0] = trama_mul_at(where, through, share);
    trama_value *alone[] = {z, labels, scalar_like(where, g, 1)};
    trama_value *of_one = program_append(NULL, where, &trama_op_cross_entropy_grad, 3, alone, NULL);
    d_in[2] = trama_sum_at(where, trama_mul_at(where, u, of_one), 0, NULL, false);
}

void cross_entropy_gradient(const trama_node *node, trama_value *const *d_out, trama_value **d_in)
{
    trama_value *in[] = {node->in[0], node->in[1], d_out[0]};
    if (node_wants(node, 0))
        d_in[0] = program_append(NULL, node->where, &trama_op_cross_entropy_grad, 3, in, NULL);
}
