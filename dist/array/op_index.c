/* SPDX-License-Identifier: Apache-2.0 */
/* Gather and scatter: elements of one dim by an index, for whole lines (gather, scatter) or element by element (along).
 */
#include "families.h"
#include "trama_array.h"
#include "trama_composed.h"

/* ---- Rules ---- */

/* The tensors of an op, operands and then results, as bit masks: those with the indexed dim, and those with the dims of
 * the index in its place. Operand 1 is the index. */
typedef struct indexing {
    unsigned full, part;
    bool along;
    bool in_order; /* the index is never split */
} indexing;

static rule_factor *add_dims(trama_rule *rule, unsigned tensors, int64_t extent)
{
    int f = rule_add_factor(rule, extent);
    rule->factor[f].reduce = TRAMA_SUM;
    for (int t = 0; t < rule->n_in + rule->n_out; t++)
        if (tensors >> t & 1)
            rule_add_dim(&rule->tensor[t], f);
    return &rule->factor[f];
}

/* The operand whose shape differs from that of the rule; -1 where all agree. */
static int odd_operand(const trama_rule *rule, const trama_node *node)
{
    for (int t = 0; t < rule->n_in; t++) {
        const rule_tensor *tensor = &rule->tensor[t];
        const trama_shape *shape = &node->in[t]->shape;
        if (tensor->ndim != shape->ndim)
            return t;
        for (int d = 0; d < shape->ndim; d++)
            if (rule->factor[(int)tensor->dim[d].factor[0]].extent != shape->dim[d])
                return t;
    }
    return -1;
}

static trama_status indexed_infer(trama_rule *rule, const trama_node *node, indexing how)
{
    enum { INDEX = 1 << 1 };
    const trama_value *x = node->in[__builtin_ctz(how.full)], *index = node->in[1];
    const trama_shape *full = &x->shape, *at = &index->shape;
    const int64_t axis = node->attributes->integer[INDEX_AXIS];
    if (axis < 0 || axis >= full->ndim)
        return trama_fail(node->where, TRAMA_E_SHAPE, "%s of %s: axis is %lld, and it has %d dims", node->op->name,
                          x->name, (long long)axis, full->ndim);
    if (how.along ? at->ndim != full->ndim : full->ndim - 1 + at->ndim > TRAMA_MAX_NDIM)
        return trama_fail(node->where, TRAMA_E_SHAPE, "%s of %s: the index %s has %d dims; %s", node->op->name, x->name,
                          index->name, at->ndim,
                          how.along ? "it needs those of the tensor" : "the result has too many");
    const bool makes_all = how.full >> rule->n_in; /* a result has the indexed dim: work is its lines and the index's */
    for (int d = 0; d < full->ndim; d++) {
        if (d != axis) {
            add_dims(rule, how.full | how.part | (how.along ? INDEX : 0), full->dim[d]);
            continue;
        }
        rule_factor *lines = add_dims(rule, how.full, full->dim[d]);
        lines->addend = makes_all;
        lines->no_work = !makes_all;
        for (int i = how.along ? d : 0; i < (how.along ? d + 1 : at->ndim); i++) {
            rule_factor *index_dim = add_dims(rule, how.part | INDEX, at->dim[i]);
            index_dim->addend = makes_all ? 2 : 0;
            index_dim->whole = how.in_order;
        }
    }
    const int odd = odd_operand(rule, node);
    if (odd < 0)
        return TRAMA_OK;
    text t = {0};
    for (int i = 0; i < rule->n_in; i++) {
        text_add(&t, i ? ", " : "");
        value_text(&t, node->in[i]);
    }
    trama_fail(node->where, TRAMA_E_SHAPE, "%s along dim %lld: the shape of %s does not fit those of the others: %s",
               node->op->name, (long long)axis, node->in[odd]->name, t.at);
    free(t.at);
    return TRAMA_E_SHAPE;
}

#define DEFINE_INFER(name, ...)                                                                                        \
    trama_status name##_infer(trama_rule *rule, const trama_node *node)                                                \
    {                                                                                                                  \
        return indexed_infer(rule, node, (indexing){__VA_ARGS__});                                                     \
    }
DEFINE_INFER(gather, .full = 1 << 0, .part = 1 << 2)
DEFINE_INFER(gather_along, .full = 1 << 0, .part = 1 << 2, .along = true)
DEFINE_INFER(gather_grad, .full = 1 << 2 | 1 << 3, .part = 1 << 0)
DEFINE_INFER(gather_along_grad, .full = 1 << 2 | 1 << 3, .part = 1 << 0, .along = true)

/* Elements that are set are chosen from x and u. */
static trama_status scatter_rule(trama_rule *rule, const trama_node *node, bool along)
{
    enum { CHOSEN = PASS_JOINT | 1 << TRAMA_AVG | PASS_MONOTONE };
    static const struct {
        unsigned x, u;
    } pass[] = {[TRAMA_SCATTER_SET] = {CHOSEN, CHOSEN},
                [TRAMA_SCATTER_MULTIPLY] = {PASS_LINEAR, 0},
                [TRAMA_SCATTER_MAX] = {PASS_MONOTONE, 1 << TRAMA_MAX},
                [TRAMA_SCATTER_MIN] = {PASS_MONOTONE, 1 << TRAMA_MIN}};
    const int64_t how = node->attributes->integer[SCATTER_HOW]; /* that of scatter_dtype, which was asked before */
    rule->tensor[0].pass = pass[how].x;
    rule->tensor[2].pass = pass[how].u;
    return indexed_infer(rule, node,
                         (indexing){.full = 1 << 0 | 1 << 3, .part = 1 << 2, .along = along, .in_order = true});
}

trama_status scatter_infer(trama_rule *rule, const trama_node *node)
{
    return scatter_rule(rule, node, false);
}

trama_status scatter_along_infer(trama_rule *rule, const trama_node *node)
{
    return scatter_rule(rule, node, true);
}

trama_status index_dtype(const trama_node *node, trama_dtype *dtype)
{
    const trama_value *index = node->in[1];
    if (index->dtype != TRAMA_I32 && index->dtype != TRAMA_I64)
        return trama_fail(node->where, TRAMA_E_DTYPE, "%s: the index %s is %s; an index is i32 or i64 (trama_cast)",
                          node->op->name, index->name, trama_dtype_name(index->dtype));
    *dtype = node->in[0]->dtype;
    return TRAMA_OK;
}

trama_status scatter_dtype(const trama_node *node, trama_dtype *dtype)
{
    const trama_value *x = node->in[0], *u = node->in[2];
    const int64_t how = node->attributes->integer[SCATTER_HOW];
    if (x->dtype != u->dtype)
        return trama_fail(node->where, TRAMA_E_DTYPE, "%s: %s is %s, and %s is %s", node->op->name, x->name,
                          trama_dtype_name(x->dtype), u->name, trama_dtype_name(u->dtype));
    if (how < TRAMA_SCATTER_SET || how > TRAMA_SCATTER_MIN || how == TRAMA_SCATTER_ADD)
        return trama_fail(node->where, TRAMA_E_ARGUMENT,
                          "%s: how is %lld; it is set, multiply, max or min, and trama_%s adds", node->op->name,
                          (long long)how, node->op->name);
    if (trama_dtype_kind_of(x->dtype) == TRAMA_KIND_COMPLEX && how >= TRAMA_SCATTER_MAX)
        return trama_fail(node->where, TRAMA_E_DTYPE, "%s: %s is %s, whose elements have no order: set or multiply",
                          node->op->name, x->name, trama_dtype_name(x->dtype));
    return index_dtype(node, dtype);
}

/* ---- Builders ---- */

/* Appends an op of the operands, the second an index, along dim, negative from the end of `full`. */
static trama_value *indexed(trama_where where, const trama_op *op, int n, trama_value *const *in,
                            const trama_value *full, int dim, trama_scatter_how how)
{
    for (int i = 0; i < n; i++)
        if (!in[i])
            return NULL;
    const int ndim = full->shape.ndim;
    if (dim < -ndim || dim >= ndim)
        return program_fail(full->program, where, TRAMA_E_SHAPE, "%s of %s: dim %d is not there (%d dims)", op->name,
                            full->name, dim, ndim);
    trama_value *with_index[3] = {in[0], in[1], n > 2 ? in[2] : NULL};
    if (trama_dtype_is_integer(in[1]->dtype) && in[1]->dtype != TRAMA_I32)
        with_index[1] = trama_cast_at(where, in[1], TRAMA_I64);
    const trama_attributes a = {.integer = {[INDEX_AXIS] = dim < 0 ? dim + ndim : dim, [SCATTER_HOW] = how}};
    return with_index[1] ? program_append(NULL, where, op, n, with_index, &a) : NULL;
}

trama_value *trama_gather_at(trama_where where, trama_value *x, trama_value *index, int dim)
{
    return indexed(where, &trama_op_gather, 2, (trama_value *[]){x, index}, x, dim, 0);
}

trama_value *trama_embedding_at(trama_where where, trama_value *table, trama_value *tokens)
{
    return trama_gather_at(where, table, tokens, 0);
}

trama_value *trama_gather_along_at(trama_where where, trama_value *x, trama_value *index, int dim)
{
    return indexed(where, &trama_op_gather_along, 2, (trama_value *[]){x, index}, x, dim, 0);
}

/* Sums are taken by the reverse of a gather, whose index may be split. */
static trama_value *scatter(trama_where where, const trama_op *op, const trama_op *sums, trama_value *x,
                            trama_value *index, trama_value *u, int dim, trama_scatter_how how)
{
    if (how != TRAMA_SCATTER_ADD)
        return indexed(where, op, 3, (trama_value *[]){x, index, u}, x, dim, how);
    if (x && u && x->dtype != u->dtype)
        return program_fail(x->program, where, TRAMA_E_DTYPE, "%s: %s is %s, and %s is %s", op->name, x->name,
                            trama_dtype_name(x->dtype), u->name, trama_dtype_name(u->dtype));
    return trama_add_at(where, x, indexed(where, sums, 3, (trama_value *[]){u, index, x}, x, dim, 0));
}

trama_value *trama_scatter_at(trama_where where, trama_value *x, trama_value *index, trama_value *u, int dim,
                              trama_scatter_how how)
{
    return scatter(where, &trama_op_scatter, &trama_op_gather_grad, x, index, u, dim, how);
}

trama_value *trama_scatter_along_at(trama_where where, trama_value *x, trama_value *index, trama_value *u, int dim,
                                    trama_scatter_how how)
{
    return scatter(where, &trama_op_scatter_along, &trama_op_gather_along_grad, x, index, u, dim, how);
}

/* ---- Extents that are only known when fed ---- */

trama_value *trues_along(trama_where where, trama_value *x, int dim)
{
    const trama_attributes all = {.integer = {[REDUCE_AXES] = (INT64_C(1) << (x ? x->shape.ndim : 0)) - 1}};
    for (int d = 0; x && d < x->shape.ndim; d++)
        if (d != dim)
            x = trama_gather_at(where, x, trama_fill_at(where, x->program, TRAMA_I64, TRAMA_SHAPE(1), 0), d);
    if (!x)
        return NULL;
    trama_value *one = trama_fill_at(where, x->program, TRAMA_BOOL, TRAMA_SCALAR, 1);
    x = program_append(NULL, where, &trama_op_expand, 2, (trama_value *[]){one, x}, &all);
    return x && x->shape.ndim > 1 ? trama_reshape_at(where, x, TRAMA_SHAPE(x->shape.dim[dim])) : x;
}

trama_value *count_trues(trama_where where, trama_value *trues)
{
    return trues ? trama_sum_at(where, trama_cast_at(where, trues, TRAMA_I64), 0, NULL, false) : NULL;
}

/* ---- Tuples of indices ---- */

/* The extent of a dim of x, of the type of `at`, i64. */
static trama_value *end_of(trama_where where, trama_value *x, int dim, trama_value *at)
{
    const int64_t extent = x->shape.dim[dim];
    return extent == TRAMA_ANY ? count_trues(where, trues_along(where, x, dim))
                               : scalar_like(where, at, (double)extent);
}

/* Component i of the tuples as indices from 0 to `end`; one that is not there becomes so negative that no sum with
 * other components is an index. */
static trama_value *component(trama_where where, trama_value *index, int i, trama_value *end)
{
    const int last = index->shape.ndim - 1;
    trama_value *at = trama_squeeze_at(where, trama_slice_at(where, index, last, i, 1), last);
    trama_value *zero = scalar_like(where, at, 0);
    at = trama_select_at(where, trama_less_at(where, at, zero), trama_add_at(where, at, end), at);
    trama_value *there =
        trama_logical_and_at(where, trama_greater_equal_at(where, at, zero), trama_less_at(where, at, end));
    return trama_select_at(where, there, at, scalar_like(where, at, -0x1p60));
}

/* The number of each element in the first `batch` dims of a shape, [b0, .., 1, ..] of ndim dims. */
static trama_value *batch_number(trama_where where, trama_program *program, trama_shape shape, int batch, int ndim)
{
    int64_t count = 1;
    trama_shape wide = {.ndim = ndim};
    for (int d = 0; d < ndim; d++) {
        wide.dim[d] = d < batch ? shape.dim[d] : 1;
        count *= wide.dim[d];
    }
    return trama_reshape_at(where, trama_arange_at(where, program, TRAMA_I64, count, 0, 1), wide);
}

/* The dims of x that tuples of an index stand for, after `batch` dims that both have. */
typedef struct tuples {
    int batch, length;
    trama_shape joined; /* the shape of x with the batch and these dims as one */
} tuples;

static bool is_fed(const tuples *t)
{
    return t->joined.dim[0] == TRAMA_ANY;
}

static bool find_tuples(trama_where where, const trama_value *x, const trama_value *index, int batch, tuples *t)
{
    const int last = index->shape.ndim - 1;
    const int64_t length = last >= 0 ? index->shape.dim[last] : -1;
    bool fits = batch >= 0 && batch <= last && length >= 1 && length <= x->shape.ndim - batch;
    *t = (tuples){batch, (int)length, {.ndim = 1, .dim = {1}}};
    for (int d = 0; fits && d < x->shape.ndim; d++) {
        const int64_t extent = x->shape.dim[d];
        if (d >= batch + length)
            t->joined.dim[t->joined.ndim++] = extent;
        else
            t->joined.dim[0] = is_fed(t) || extent == TRAMA_ANY ? TRAMA_ANY : t->joined.dim[0] * extent;
        fits = d >= batch || (extent == index->shape.dim[d] && extent != TRAMA_ANY);
    }
    if (fits)
        return true;
    text both = {0};
    value_text(&both, x);
    text_add(&both, " and ");
    value_text(&both, index);
    program_fail(x->program, where, TRAMA_E_SHAPE,
                 "%s: the last dim of the index is the number of dims that it stands for behind %d dims that both "
                 "have, of known extents",
                 both.at, batch);
    free(both.at);
    return false;
}

static trama_value *join(trama_where where, trama_value *x, const tuples *t)
{
    return reshape_cut(where, x, t->joined, NULL, is_fed(t) ? RESHAPE_CUT(t->batch + t->length, 1) : 0);
}

/* The tuples as indices into the joined dim. */
static trama_value *flat_index(trama_where where, trama_value *x, trama_value *index, const tuples *t)
{
    trama_value *flat = t->batch ? batch_number(where, x->program, x->shape, t->batch, index->shape.ndim - 1) : NULL;
    flat = flat ? pattern_for(where, flat, index) : NULL;
    index = trama_cast_at(where, index, TRAMA_I64);
    for (int i = 0; i < t->length && index; i++) {
        const int64_t extent = x->shape.dim[t->batch + i];
        trama_value *end = end_of(where, x, t->batch + i, index), *at = component(where, index, i, end);
        if (flat)
            flat = extent == TRAMA_ANY ? trama_mul_at(where, flat, end) : trama_scale_at(where, flat, (double)extent);
        flat = flat ? trama_add_at(where, flat, at) : at;
    }
    return flat;
}

trama_value *trama_gather_nd_at(trama_where where, trama_value *x, trama_value *index, int batch)
{
    tuples t;
    if (!x || !index || !find_tuples(where, x, index, batch, &t))
        return NULL;
    return trama_gather_at(where, join(where, x, &t), flat_index(where, x, index, &t), 0);
}

trama_value *trama_scatter_nd_at(trama_where where, trama_value *x, trama_value *index, trama_value *u,
                                 trama_scatter_how how)
{
    tuples t;
    if (!x || !index || !u || !find_tuples(where, x, index, 0, &t))
        return NULL;
    trama_value *joined = join(where, x, &t), *flat = flat_index(where, x, index, &t);
    return reshape_cut(where, trama_scatter_at(where, joined, flat, u, 0, how), x->shape, is_fed(&t) ? x : NULL,
                       is_fed(&t) ? RESHAPE_CUT(1, t.length) : 0);
}

/* ---- Gradients ---- */

static int axis_of(const trama_node *node)
{
    return (int)node->attributes->integer[INDEX_AXIS];
}

void gather_gradient(const trama_node *node, trama_value *const *d_out, trama_value **d_in)
{
    d_in[0] = indexed(node->where, &trama_op_gather_grad, 3, (trama_value *[]){d_out[0], node->in[1], node->in[0]},
                      node->in[0], axis_of(node), 0);
}

void gather_along_gradient(const trama_node *node, trama_value *const *d_out, trama_value **d_in)
{
    d_in[0] = indexed(node->where, &trama_op_gather_along_grad, 3,
                      (trama_value *[]){d_out[0], node->in[1], node->in[0]}, node->in[0], axis_of(node), 0);
}

void gather_grad_gradient(const trama_node *node, trama_value *const *d_out, trama_value **d_in)
{
    d_in[0] = trama_gather_at(node->where, d_out[0], node->in[1], axis_of(node));
}

void gather_along_grad_gradient(const trama_node *node, trama_value *const *d_out, trama_value **d_in)
{
    d_in[0] = trama_gather_along_at(node->where, d_out[0], node->in[1], axis_of(node));
}
