/* SPDX-License-Identifier: Apache-2.0 */
/* Cumulative sums and products, and linear recurrences, along one dim. */
#include "families.h"
#include "trama_array.h"
#include "trama_complex.h"

/* ---- Builders ---- */

/* Sets the attribute axis to dim. False with an error on the program where x has no such dim. */
static bool set_axis(trama_where where, const trama_op *op, const trama_value *x, int dim, trama_attributes *a)
{
    const int ndim = x->shape.ndim;
    a->integer[SCAN_AXIS] = dim < 0 ? dim + ndim : dim;
    if (dim >= -ndim && dim < ndim)
        return true;
    program_fail(x->program, where, TRAMA_E_SHAPE, "%s of %s: dim %d is not there (%d dims)", op->name, x->name, dim,
                 ndim);
    return false;
}

static trama_value *scan(trama_where where, const trama_op *op, trama_value *x, int dim, bool exclusive, bool reverse)
{
    trama_attributes a = {.integer = {[SCAN_EXCLUSIVE] = exclusive, [SCAN_REVERSE] = reverse}};
    if (!x || !set_axis(where, op, x, dim, &a))
        return NULL;
    return program_append(NULL, where, op, 1, &x, &a);
}

trama_value *trama_cumsum_at(trama_where where, trama_value *x, int dim, bool exclusive, bool reverse)
{
    return scan(where, &trama_op_cumsum, x, dim, exclusive, reverse);
}

trama_value *trama_cumprod_at(trama_where where, trama_value *x, int dim, bool exclusive, bool reverse)
{
    return scan(where, &trama_op_cumprod, x, dim, exclusive, reverse);
}

trama_value *trama_recurrence_at(trama_where where, trama_value *a, trama_value *b, int dim, bool reverse)
{
    trama_attributes attributes = {.integer = {[SCAN_REVERSE] = reverse}};
    if (!a || !b || !set_axis(where, &trama_op_recurrence, a, dim, &attributes))
        return NULL;
    return program_append(NULL, where, &trama_op_recurrence, 2, (trama_value *[]){a, b}, &attributes);
}

/* ---- Rules ---- */

/* Checks the flags, since attributes may be the user's (trama_apply). */
trama_status recurrence_infer(trama_rule *rule, const trama_node *node)
{
    if (node->attributes->integer[SCAN_EXCLUSIVE] && node->attributes->integer[SCAN_LATE])
        return trama_fail(node->where, TRAMA_E_ARGUMENT, "recurrence of %s: it is exclusive or late, not both",
                          node->in[1]->name);
    return softmax_infer(rule, node);
}

/* ---- Gradients ---- */

/* The same op in the other direction. */
static trama_attributes reversed(const trama_node *node)
{
    trama_attributes a = *node->attributes;
    a.integer[SCAN_REVERSE] = !a.integer[SCAN_REVERSE];
    return a;
}

/* A recurrence along the dim of node, in its direction or reversed, and in another form. */
static trama_value *recurrence(const trama_node *node, trama_value *a, trama_value *b, bool reverse, bool exclusive,
                               bool late)
{
    trama_attributes with = reverse ? reversed(node) : *node->attributes;
    with.integer[SCAN_EXCLUSIVE] = exclusive;
    with.integer[SCAN_LATE] = late;
    return program_append(NULL, node->where, &trama_op_recurrence, 2, (trama_value *[]){a, b}, &with);
}

void cumsum_gradient(const trama_node *node, trama_value *const *d_out, trama_value **d_in)
{
    const trama_attributes a = reversed(node);
    d_in[0] = program_append(NULL, node->where, &trama_op_cumsum, 1, &d_out[0], &a);
}

/* The product of the elements before i, times the sum over the results from i on of their gradients times their
 * factors behind i, which is a recurrence. No element is divided by, so that zeros are none of its business. Factors
 * of complex gradients are conjugate (trama_complex.h). */
void cumprod_gradient(const trama_node *node, trama_value *const *d_out, trama_value **d_in)
{
    const bool exclusive = node->attributes->integer[SCAN_EXCLUSIVE];
    trama_attributes before = *node->attributes;
    before.integer[SCAN_EXCLUSIVE] = true;
    trama_value *x = trama_conj_at(node->where, node->in[0]);
    trama_value *product = program_append(NULL, node->where, &trama_op_cumprod, 1, &x, &before);
    d_in[0] = trama_mul_at(node->where, product, recurrence(node, x, d_out[0], true, exclusive, !exclusive));
}

/* With s_i = b_i + a_i s_j: the gradient of b_i is that of s_i, and the gradient of a_i is that times s_j. */
void recurrence_gradient(const trama_node *node, trama_value *const *d_out, trama_value **d_in)
{
    trama_value *a = trama_conj_at(node->where, node->in[0]), *g = d_out[0];
    const bool exclusive = node->attributes->integer[SCAN_EXCLUSIVE], late = node->attributes->integer[SCAN_LATE];
    trama_value *d = recurrence(node, a, g, true, exclusive, !exclusive && !late);
    d_in[1] = d;
    if (!node_wants(node, 0))
        return;
    trama_value *s = trama_conj_at(node->where, node->out[0]);
    if (late)
        d_in[0] = trama_mul_at(node->where, recurrence(node, a, g, true, true, false), s);
    else
        d_in[0] = trama_mul_at(
            node->where, d,
            exclusive ? s : recurrence(node, a, trama_conj_at(node->where, node->in[1]), false, true, false));
}

/* For the gradient of a product over dims: the product of all other elements of these dims, dim by dim. */
trama_value *gradient_product_of_others(const trama_node *node, trama_value *x)
{
    trama_value *others = NULL;
    for (int d = 0; d < node->in[0]->shape.ndim; d++) {
        if (!(node->attributes->integer[REDUCE_AXES] >> d & 1))
            continue;
        trama_value *here = trama_mul_at(node->where, trama_cumprod_at(node->where, x, d, true, false),
                                         trama_cumprod_at(node->where, x, d, true, true));
        others = others ? trama_mul_at(node->where, others, here) : here;
        x = trama_prod_at(node->where, x, 1, &d, true);
    }
    return others;
}
