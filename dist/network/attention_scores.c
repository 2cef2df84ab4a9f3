/* SPDX-License-Identifier: Apache-2.0 */
/* Derivatives of attention out of products, sums and pointwise ops, which follow from its formulas (attention_grad.c):
 *   p = exp(scale q k' + mask - lse), t = g v' - delta, dv = p' g, ds = p t, dq = scale ds k, dk = scale ds' q
 * With a, b, c the gradients of dq, dk, dv, those of ds and p are
 *   x = scale (a k' + q b'), y = x t + g c'
 * Several groups of heads are a dim of their own, so that the dims of keys and values repeat. */
#include "attention_scores.h"

#include <math.h>
#include <string.h>

#include "trama_composed.h"

/* Operands as they repeat, in the type of lse. */
typedef struct scores {
    trama_where where;
    const trama_node *node;
    bool grouped;
    int64_t groups, heads; /* of a group */
    double scale;
    trama_dtype dtype;
    trama_value *q, *k, *v, *mask, *lse, *delta, *g, *p, *t;
} scores;

/* A tensor [.., heads, rows, columns], or [.., groups or 1, rows, columns], in the type of lse; NULL for NULL. */
static trama_value *repeating(const scores *s, trama_value *x)
{
    if (!x)
        return NULL;
    if (x->dtype != s->dtype && x->dtype != TRAMA_BOOL)
        x = trama_cast_at(s->where, x, s->dtype);
    if (!x || !s->grouped || x->shape.ndim < 3)
        return x;
    trama_shape shape = x->shape;
    const int h = shape.ndim - 3;
    if (shape.dim[h] != s->groups * s->heads)
        return trama_unsqueeze_at(s->where, x, h + (shape.dim[h] == s->groups));
    memmove(&shape.dim[h + 1], &shape.dim[h], (size_t)(shape.ndim++ - h) * sizeof *shape.dim);
    shape.dim[h] = s->groups;
    shape.dim[h + 1] = s->heads;
    return trama_reshape_at(s->where, x, shape);
}

/* The gradient of operand i, as it repeats, in its own shape and type. */
static trama_value *of_operand(const scores *s, trama_value *d, trama_value *as, int i)
{
    trama_value *operand = s->node->in[i];
    d = gradient_unbroadcast(d, as);
    if (d && !trama_shape_equal(d->shape, operand->shape))
        d = trama_reshape_at(s->where, d, operand->shape);
    return d && d->dtype != operand->dtype ? trama_cast_at(s->where, d, operand->dtype) : d;
}

/* x y, or of x or y the transposed; NULL for NULL. */
static trama_value *times(const scores *s, trama_value *x, bool x_turned, trama_value *y, bool y_turned)
{
    return x && y ? trama_matmul_at(s->where, x, y, x_turned, y_turned) : NULL;
}

/* The sum of what is not NULL. */
static trama_value *plus(const scores *s, trama_value *x, trama_value *y)
{
    return x && y ? trama_add_at(s->where, x, y) : x ? x : y;
}

static trama_value *scaled(const scores *s, trama_value *x)
{
    return x ? trama_scale_at(s->where, x, s->scale) : NULL;
}

static trama_value *each(const scores *s, trama_value *x, trama_value *y)
{
    return x ? trama_mul_at(s->where, x, y) : NULL;
}

/* The probabilities; those of a query without a key are 0. */
static trama_value *probabilities(const scores *s)
{
    trama_where where = s->where;
    trama_value *sum = trama_masked_fill_at(where, s->lse, trama_isinf_at(where, s->lse), 0);
    trama_value *p = scaled(s, times(s, s->q, false, s->k, true));
    const bool hides = s->mask && s->mask->dtype == TRAMA_BOOL;
    if (s->mask && !hides)
        p = trama_add_at(where, p, s->mask);
    p = trama_exp_at(where, trama_sub_at(where, p, sum));
    if (hides)
        p = trama_select_at(where, s->mask, p, scalar_like(where, p, 0));
    return s->node->attributes->integer[ATTENTION_CAUSAL] ? trama_tril_at(where, p, 0) : p;
}

/* False with an error on the program where the scale is not known. */
static bool scores_of(scores *s, const trama_node *node, trama_value *lse, trama_value *delta, trama_value *g)
{
    const trama_value *q = node->in[0], *k = node->in[1];
    const int64_t d = q->shape.dim[q->shape.ndim - 1], heads = q->shape.dim[q->shape.ndim - 3];
    *s = (scores){
        .where = node->where, .node = node, .scale = node->attributes->real[ATTENTION_SCALE], .dtype = lse->dtype};
    s->groups = k->shape.dim[k->shape.ndim - 3];
    s->heads = s->groups ? heads / s->groups : 0;
    s->grouped = s->groups > 1 && s->heads > 1;
    if (s->scale == 0 && d == TRAMA_ANY)
        return program_fail(node->program, node->where, TRAMA_E_SHAPE,
                            "attention of %s: this gradient needs its number of features, or a scale", q->name),
               false;
    s->scale = s->scale == 0 ? 1 / sqrt((double)d) : s->scale;
    s->q = repeating(s, node->in[0]);
    s->k = repeating(s, node->in[1]);
    s->v = repeating(s, node->in[2]);
    s->mask = repeating(s, attention_mask(node));
    s->lse = repeating(s, trama_unsqueeze_at(node->where, lse, -1));
    s->delta = repeating(s, trama_unsqueeze_at(node->where, delta, -1));
    s->g = repeating(s, g);
    s->p = probabilities(s);
    s->t = trama_sub_at(node->where, times(s, s->g, false, s->v, true), s->delta);
    return s->t != NULL;
}

trama_value *attention_mask_gradient(const trama_node *node, trama_value *delta, trama_value *g)
{
    scores s;
    return scores_of(&s, node, node->out[1], delta, g) ? of_operand(&s, each(&s, s.p, s.t), s.mask, 3) : NULL;
}

/* The negated sum over keys, for lse and delta. */
static trama_value *minus_rows(const scores *s, trama_value *x, trama_value *as, int i)
{
    return of_operand(s, x ? trama_neg_at(s->where, x) : NULL, as, i);
}

void attention_grad_gradient(const trama_node *node, trama_value *const *d_out, trama_value **d_in)
{
    const int n = node->op->n_in;
    scores all, *s = &all;
    if (!scores_of(s, node, node->in[n - 3], node->in[n - 2], node->in[n - 1]))
        return;
    trama_value *a = repeating(s, d_out[0]), *b = repeating(s, d_out[1]), *c = repeating(s, d_out[2]);
    trama_value *x = scaled(s, plus(s, times(s, a, false, s->k, true), times(s, s->q, false, b, true)));
    trama_value *y = plus(s, each(s, x, s->t), times(s, s->g, false, c, true));
    trama_value *slope = each(s, s->p, s->t), *xp = each(s, x, s->p), *yp = each(s, y, s->p);
    trama_value *const d[7] = {
        scaled(s, plus(s, times(s, yp, false, s->k, false), times(s, slope, false, b, false))),
        scaled(s, plus(s, times(s, yp, true, s->q, false), times(s, slope, true, a, false))),
        times(s, xp, true, s->g, false),
        yp,
        yp,
        xp,
        plus(s, times(s, xp, false, s->v, false), times(s, s->p, false, c, false)),
    };
    trama_value *const as[7] = {s->q, s->k, s->v, s->mask, s->lse, s->delta, s->g};
    for (int i = 0; i < n; i++) {
        const int k = i < 3 || n == 7 ? i : i + 1; /* without a mask */
        if (node_wants(node, i) && d[k] && trama_dtype_is_float(node->in[i]->dtype))
            d_in[i] = k == 4 || k == 5 ? minus_rows(s, d[k], as[k], i) : of_operand(s, d[k], as[k], i);
    }
}
