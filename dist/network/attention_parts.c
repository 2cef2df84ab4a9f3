/* SPDX-License-Identifier: Apache-2.0 */
/* The split form of attention over keys that are split, as those of a cache while a text is generated: the attention
 * over each part of the keys, and their mean, weighted by the parts' sums of exponents (Dao, Haziza, Massa, Sizov 2023,
 * Flash-Decoding). */
#include <math.h>

#include "attention_scores.h"
#include "split_parts.h"
#include "trama_array.h"
#include "trama_composed.h"

/* Operands become [.., groups, parts, heads of a group, rows, columns]; from the end, parts are dim 4. */
enum { PARTS = 4 };

/* x [.., heads, rows, columns] with one part. One head for all stays one. */
static trama_value *grouped(trama_where where, trama_value *x, int64_t groups)
{
    trama_shape shape = x->shape;
    const int h = shape.ndim - 3;
    const int64_t heads = shape.dim[h];
    shape.ndim += 2;
    shape.dim[h + 4] = x->shape.dim[h + 2];
    shape.dim[h + 3] = x->shape.dim[h + 1];
    shape.dim[h] = heads == 1 ? 1 : groups;
    shape.dim[h + 2] = heads == 1 ? 1 : heads / groups;
    shape.dim[h + 1] = 1;
    return trama_reshape_at(where, x, shape);
}

/* Keys or values [.., groups, m, columns], which all heads of a group share. */
static trama_value *keys_by_parts(const parts *p, trama_value *x)
{
    parts own = *p;
    own.dim = x->shape.ndim - 2;
    return trama_unsqueeze_at(p->node->where, parts_divide(&own, x, 0), own.dim + 1);
}

/* The mask, or one that hides the padding; NULL where there is nothing to hide. */
static trama_value *mask_by_parts(const parts *p, const trama_node *node, int64_t groups)
{
    const trama_where where = p->node->where;
    trama_value *mask = attention_mask(node);
    if (!mask && p->padded == p->length)
        return NULL;
    if (!mask)
        return trama_reshape_at(where, parts_own(p, 1), TRAMA_SHAPE(p->n, 1, 1, p->padded / p->n));
    while (mask->shape.ndim < 3)
        mask = trama_unsqueeze_at(where, mask, 0);
    trama_shape shape = mask->shape;
    shape.dim[shape.ndim - 1] = p->length;
    mask = grouped(where, trama_broadcast_to_at(where, mask, shape), groups);

    parts own = *p;
    int order[TRAMA_MAX_NDIM];
    own.dim = mask->shape.ndim - 1;
    mask = parts_divide(&own, mask, mask->dtype == TRAMA_BOOL ? 0 : -INFINITY);
    const int n = mask->shape.ndim;
    for (int d = 0; d < n; d++)
        order[d] = d == n - 2 ? n - 5 : d == n - 5 ? n - 2 : d; /* the parts and the 1 in their place */
    mask = trama_transpose_at(where, mask, order);
    shape = mask->shape;
    shape.dim[n - 2] = shape.dim[n - 1];
    shape.ndim--;
    return trama_reshape_at(where, mask, shape);
}

/* Whether all extents are known, and operands can have three dims more. */
static bool can_divide(const trama_node *node)
{
    bool can = true;
    for (int t = 0; t < node->op->n_in; t++) {
        can &= node->in[t]->shape.ndim + 3 <= TRAMA_MAX_NDIM;
        for (int d = 0; d < node->in[t]->shape.ndim; d++)
            can &= node->in[t]->shape.dim[d] != TRAMA_ANY;
    }
    return can;
}

/* A causal call stays whole: its masks would take room for all scores, and its keys come in turn where its queries are
 * split too. A query without a key has lse -inf, and gets 0. */
void attention_split_form(const trama_node *node, int dim, int64_t n, trama_value **out)
{
    const trama_where where = node->where;
    trama_value *q = node->in[0], *k = node->in[1], *v = node->in[2];
    parts p;
    if (dim != k->shape.ndim - 2 || node->attributes->integer[ATTENTION_CAUSAL] || !can_divide(node) ||
        k->shape.dim[k->shape.ndim - 3] == 0 || !parts_find(node, k, dim, n, &p))
        return;
    const int64_t groups = k->shape.dim[k->shape.ndim - 3];
    trama_value *mask = mask_by_parts(&p, node, groups);
    mask = mask && mask->dtype != TRAMA_BOOL ? widened(where, mask) : mask;
    q = widened(where, q);
    k = widened(where, k);
    v = widened(where, v);
    trama_value *in[4] = {grouped(where, q, groups), keys_by_parts(&p, k), keys_by_parts(&p, v), mask};
    trama_attributes a = *node->attributes;
    trama_value *each =
        program_append(NULL, where, mask ? &trama_op_attention_masked : &trama_op_attention, mask ? 4 : 3, in, &a);

    trama_value *lse = trama_unsqueeze_at(where, trama_result(each, 1), -1);
    const int along = lse->shape.ndim - PARTS;
    trama_value *top = trama_max_at(where, lse, 1, &along, true);
    top = trama_masked_fill_at(where, top, trama_isinf_at(where, top), 0);
    trama_value *weight = trama_exp_at(where, trama_sub_at(where, lse, top));
    trama_value *sum = trama_sum_at(where, weight, 1, &along, true);
    trama_value *none = trama_equal_at(where, sum, scalar_like(where, sum, 0));
    trama_value *mean = trama_sum_at(where, trama_mul_at(where, each, weight), 1, &along, true);
    mean = trama_div_at(where, mean, trama_masked_fill_at(where, sum, none, 1));
    out[0] = trama_cast_at(where, trama_reshape_at(where, mean, node->out[0]->shape), node->out[0]->dtype);
    lse = trama_add_at(where, top, trama_log_at(where, sum));
    out[1] = trama_reshape_at(where, lse, node->out[1]->shape);
}
