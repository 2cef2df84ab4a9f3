/* SPDX-License-Identifier: Apache-2.0 */
/* Scaled dot-product attention: its builder, its rule and its gradient. The kernels know how scores are computed. */
#include "trama_attention.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "attention_scores.h"

trama_value *trama_attention_at(trama_where where, trama_value *q, trama_value *k, trama_value *v, trama_value *mask,
                                bool causal, double scale)
{
    trama_attributes a = {.integer = {[ATTENTION_CAUSAL] = causal}, .real = {[ATTENTION_SCALE] = scale}};
    if (q && !isfinite(scale))
        return program_fail(q->program, where, TRAMA_E_ARGUMENT,
                            "attention of %s: the scale is %g; it must be finite, and 0 stands for 1 / sqrt(d)",
                            q->name, scale);
    return program_append(NULL, where, mask ? &trama_op_attention_masked : &trama_op_attention, mask ? 4 : 3,
                          (trama_value *[]){q, k, v, mask}, &a);
}

/* ---- Operands: q, k, v, the mask of a masked op, and of gradients lse, delta and g ---- */

static bool is_gradient(const trama_node *node)
{
    return node->op->n_out == 3;
}

trama_value *attention_mask(const trama_node *node)
{
    return node->op->n_in == 4 || node->op->n_in == 7 ? node->in[3] : NULL;
}

/* ---- Element types ---- */

static trama_status dtype_error(const trama_node *node, const trama_value *v, const char *wanted)
{
    return trama_fail(node->where, TRAMA_E_DTYPE, "%s of %s: %s is %s; %s: cast it", node->op->name, node->in[0]->name,
                      v->name, trama_dtype_name(v->dtype), wanted);
}

trama_status attention_dtype(const trama_node *node, trama_dtype *dtype)
{
    const trama_value *q = node->in[0], *mask = attention_mask(node);
    const trama_dtype sums = q->dtype == TRAMA_F64 ? TRAMA_F64 : TRAMA_F32;
    const int n = node->op->n_in;
    if (!trama_dtype_is_float(q->dtype))
        return dtype_error(node, q, "attention takes floats");
    for (int i = 1; i < n; i++)
        if (node->in[i] == mask                               ? mask->dtype != TRAMA_BOOL && mask->dtype != q->dtype
            : is_gradient(node) && (i == n - 3 || i == n - 2) ? node->in[i]->dtype != sums
                                                              : node->in[i]->dtype != q->dtype)
            return dtype_error(node, node->in[i],
                               node->in[i] == mask ? "a mask is bool, or of the type of the queries"
                                                   : "queries, keys and values have one type");
    dtype[0] = q->dtype;
    if (!is_gradient(node))
        dtype[1] = sums;
    return TRAMA_OK;
}

/* ---- The rule ---- */

/* The dims of heads of keys and values: as those of the queries, one that is never split, or groups of heads. */
static const char *groups_letter(const trama_node *node)
{
    const trama_shape *q = &node->in[0]->shape, *k = &node->in[1]->shape;
    const int64_t groups = k->dim[k->ndim - 3];
    return q->dim[q->ndim - 3] == groups ? "h" : groups == 1 ? "[g]" : "g";
}

/* A dim of the mask that has extent 1 where the scores have more is repeated: it has a letter of its own. */
static void mask_letters(const trama_node *node, const char *m, char *string, size_t room)
{
    const trama_shape *mask = &attention_mask(node)->shape, *q = &node->in[0]->shape, *k = &node->in[1]->shape;
    const int64_t full[3] = {q->dim[q->ndim - 3], q->dim[q->ndim - 2], k->dim[k->ndim - 2]};
    const char *own[3] = {"[x]", "[y]", "[z]"}, *letters[3] = {"h", "n", m};
    size_t n = 0;
    string[0] = 0;
    for (int i = 3 - (mask->ndim < 3 ? mask->ndim : 3); i < 3; i++) {
        const bool repeats = mask->dim[mask->ndim - 3 + i] == 1 && full[i] != 1;
        n += (size_t)snprintf(string + n, room - n, "%s%s", !i ? "..." : "", repeats ? own[i] : letters[i]);
    }
}

static trama_status check_heads(const trama_node *node)
{
    const trama_value *q = node->in[0], *k = node->in[1], *v = node->in[2];
    for (int i = 0; i < 3; i++)
        if (node->in[i]->shape.ndim < 3)
            return trama_fail(node->where, TRAMA_E_SHAPE,
                              "%s: %s has %d dims, and needs heads, %s and features: trama_unsqueeze adds a dim",
                              node->op->name, node->in[i]->name, node->in[i]->shape.ndim, i ? "keys" : "queries");
    const int64_t heads = q->shape.dim[q->shape.ndim - 3], groups = k->shape.dim[k->shape.ndim - 3];
    if (v->shape.dim[v->shape.ndim - 3] != groups)
        return trama_fail(node->where, TRAMA_E_SHAPE, "%s: %s and %s have different numbers of heads", node->op->name,
                          k->name, v->name);
    if (heads != groups && (heads == TRAMA_ANY || groups == TRAMA_ANY || !groups || heads % groups))
        return trama_fail(node->where, TRAMA_E_SHAPE,
                          "%s: the heads of %s, dim %d, are no multiple of those of %s, dim %d, that is known",
                          node->op->name, q->name, q->shape.ndim - 3, k->name, k->shape.ndim - 3);
    return TRAMA_OK;
}

/* Heads in several groups are the groups, and the heads of each. */
static void divide_heads(trama_rule *rule, int64_t heads, int64_t groups, int q_dim, int k_dim)
{
    const signed char h = rule->tensor[0].dim[q_dim].factor[0], g = rule->tensor[1].dim[k_dim].factor[0];
    if (groups == 1 || groups == heads)
        return;
    rule->factor[(int)h].extent = heads / groups;
    for (int t = 0; t < rule->n_in + rule->n_out; t++)
        for (int d = 0; d < rule->tensor[t].ndim; d++)
            if (rule->tensor[t].dim[d].n && rule->tensor[t].dim[d].factor[0] == h)
                rule->tensor[t].dim[d] = (rule_dim){2, {g, h}};
}

/* The softmax needs all keys; its gradient adds what each key gives to q, and what each query gives to k and v. Work
 * counts queries times keys times the features of both products. */
trama_status attention_infer(trama_rule *rule, const trama_node *node)
{
    char string[160], mask[24] = "";
    trama_status status = check_heads(node);
    if (status)
        return status;
    const bool gradient = is_gradient(node);
    const char *g = groups_letter(node), *m = gradient ? "m" : "[m]", *comma = attention_mask(node) ? "," : "";
    if (attention_mask(node))
        mask_letters(node, m, mask, sizeof mask);
    int n = snprintf(string, sizeof string, "...hn[d],...%s%s[d],...%s%s[e]%s%s", g, m, g, m, comma, mask);
    if (gradient)
        snprintf(string + n, sizeof string - (size_t)n, ",...hn,...hn,...hn[e]->...hn[d],...%sm[d],...%sm[e]", g, g);
    else
        snprintf(string + n, sizeof string - (size_t)n, "->...hn[e],...hn");
    status = rule_parse(rule, string, node);
    if (!status) {
        const trama_shape *q = &node->in[0]->shape, *k = &node->in[1]->shape, *v = &node->in[2]->shape;
        divide_heads(rule, q->dim[q->ndim - 3], k->dim[k->ndim - 3], q->ndim - 3, k->ndim - 3);
        rule->factor[(int)rule->tensor[0].dim[q->ndim - 2].factor[0]].cut_last = true;
        rule->factor[(int)rule->tensor[0].dim[q->ndim - 1].factor[0]].addend = 1;
        rule->factor[(int)rule->tensor[2].dim[v->ndim - 1].factor[0]].addend = 2;
        /* Halves would be rounded at each turn. */
        rule->factor[(int)rule->tensor[1].dim[k->ndim - 2].factor[0]].in_turn =
            node->in[0]->dtype == TRAMA_F32 || node->in[0]->dtype == TRAMA_F64;
    }
    return status;
}

/* ---- Gradients ---- */

/* The sum over the last dim, in f32 at least. */
static trama_value *sum_of_products(trama_where where, trama_value *x, trama_value *y, trama_dtype dtype)
{
    const int last = x->shape.ndim - 1;
    if (x->dtype != dtype) {
        x = trama_cast_at(where, x, dtype);
        y = trama_cast_at(where, y, dtype);
    }
    return reduce_dims(where, &trama_op_sum, trama_mul_at(where, x, y), 1, &last, false);
}

/* A node that computes the gradients for the gradient g of the result; NULL: none yet. */
static trama_value *derived_before(const trama_node *node, const trama_value *g)
{
    const trama_program *p = node->program;
    for (int i = node->id + 1; i < p->nodes.n; i++) {
        const trama_node *other = p->nodes.at[i];
        if (other && is_gradient(other) && other->op->infer == attention_infer &&
            other->in[other->op->n_in - 3] == node->out[1] && other->in[other->op->n_in - 1] == g)
            return other->out[0];
    }
    return NULL;
}

/* The gradients of q, k and v, by one op. */
static trama_value *derive(const trama_node *node, trama_value *delta, trama_value *g)
{
    trama_value *in[7], *mask = attention_mask(node);
    int n = 0;
    for (; n < node->op->n_in; n++)
        in[n] = node->in[n];
    in[n++] = node->out[1];
    in[n++] = delta;
    in[n++] = g;
    return program_append(NULL, node->where, mask ? &trama_op_attention_masked_grad : &trama_op_attention_grad, n, in,
                          node->attributes);
}

/* delta is the sum of g times the result, less the gradient of lse. */
void attention_gradient(const trama_node *node, trama_value *const *d_out, trama_value **d_in)
{
    trama_where where = node->where;
    trama_value *out = node->out[0], *lse = node->out[1], *mask = attention_mask(node);
    trama_value *g = d_out[0] ? d_out[0] : trama_scale_at(where, out, 0), *delta = NULL;
    trama_value *d = d_out[1] ? NULL : derived_before(node, g);
    const bool wants_mask = mask && node_wants(node, 3) && trama_dtype_is_float(mask->dtype);
    if (!d || wants_mask)
        delta = sum_of_products(where, g, out, lse->dtype);
    if (d_out[1])
        delta = trama_sub_at(where, delta, d_out[1]);
    if (wants_mask)
        d_in[3] = attention_mask_gradient(node, delta, g);
    if (!d && node->wants & 7)
        d = derive(node, delta, g);
    for (int i = 0; d && i < 3; i++)
        if (node_wants(node, i))
            d_in[i] = gradient_unbroadcast(trama_result(d, i), node->in[i]);
}
