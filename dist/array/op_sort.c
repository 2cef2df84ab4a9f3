/* SPDX-License-Identifier: Apache-2.0 */
/* Ops along one dim that choose elements and tell their places: sorting, the k largest, extremes so far. */
#include "families.h"
#include "trama_array.h"

/* ---- Builders ---- */

/* Appends an op along dim, negative from the end. */
static trama_value *choose(trama_where where, const trama_op *op, trama_value *x, int dim, trama_attributes a)
{
    if (!x)
        return NULL;
    const int ndim = x->shape.ndim;
    a.integer[SORT_AXIS] = dim < 0 ? dim + ndim : dim;
    if (dim < -ndim || dim >= ndim)
        return program_fail(x->program, where, TRAMA_E_SHAPE, "%s of %s: dim %d is not there (%d dims)", op->name,
                            x->name, dim, ndim);
    return program_append(NULL, where, op, 1, &x, &a);
}

trama_value *trama_sort_at(trama_where where, trama_value *x, int dim, bool descending)
{
    return choose(where, &trama_op_sort, x, dim, (trama_attributes){.integer = {[SORT_DESCENDING] = descending}});
}

trama_value *trama_argsort_at(trama_where where, trama_value *x, int dim, bool descending)
{
    return is_real(where, "argsort", x) ? trama_result(trama_sort_at(where, x, dim, descending), 1) : NULL;
}

trama_value *trama_top_k_at(trama_where where, trama_value *x, int64_t k, int dim, bool largest)
{
    return choose(where, &trama_op_top_k, x, dim,
                  (trama_attributes){.integer = {[SORT_DESCENDING] = largest, [TOP_K] = k}});
}

trama_value *trama_cummax_at(trama_where where, trama_value *x, int dim, bool exclusive, bool reverse)
{
    return choose(where, &trama_op_cummax, x, dim,
                  (trama_attributes){.integer = {[SCAN_EXCLUSIVE] = exclusive, [SCAN_REVERSE] = reverse}});
}

trama_value *trama_cummin_at(trama_where where, trama_value *x, int dim, bool exclusive, bool reverse)
{
    return choose(where, &trama_op_cummin, x, dim,
                  (trama_attributes){.integer = {[SCAN_EXCLUSIVE] = exclusive, [SCAN_REVERSE] = reverse}});
}

/* ---- Rules ---- */

trama_status top_k_infer(trama_rule *rule, const trama_node *node)
{
    const trama_value *x = node->in[0];
    const int64_t axis = node->attributes->integer[SORT_AXIS], k = node->attributes->integer[TOP_K];
    if (axis < 0 || axis >= x->shape.ndim)
        return trama_fail(node->where, TRAMA_E_SHAPE, "top_k of %s: axis is %lld, and it has %d dims", x->name,
                          (long long)axis, x->shape.ndim);
    const int64_t n = x->shape.dim[axis];
    if (n == TRAMA_ANY)
        return trama_fail(node->where, TRAMA_E_SHAPE, "top_k of %s: the extent of dim %lld is only known when fed",
                          x->name, (long long)axis);
    if (k < 0 || k > n)
        return trama_fail(node->where, TRAMA_E_SHAPE, "top_k of %s: k is %lld, and dim %lld has %lld elements", x->name,
                          (long long)k, (long long)axis, (long long)n);
    for (int d = 0; d < x->shape.ndim; d++) {
        const int f = rule_add_factor(rule, x->shape.dim[d]), kept = d == axis ? rule_add_factor(rule, k) : f;
        rule->factor[f].whole = rule->factor[kept].whole = d == axis;
        rule_add_dim(&rule->tensor[0], f);
        rule_add_dim(&rule->tensor[1], kept);
        rule_add_dim(&rule->tensor[2], kept);
    }
    return TRAMA_OK;
}

trama_status places_dtype(const trama_node *node, trama_dtype *dtype)
{
    dtype[0] = node->in[0]->dtype;
    dtype[1] = TRAMA_I64;
    return TRAMA_OK;
}

/* ---- Gradients ---- */

/* Each element gets the gradients of the results that it was chosen for. */
void places_gradient(const trama_node *node, trama_value *const *d_out, trama_value **d_in)
{
    const trama_attributes a = {.integer = {[INDEX_AXIS] = node->attributes->integer[SORT_AXIS]}};
    if (d_out[0])
        d_in[0] = program_append(NULL, node->where, &trama_op_gather_along_grad, 3,
                                 (trama_value *[]){d_out[0], node->out[1], node->in[0]}, &a);
}
