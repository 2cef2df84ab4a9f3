/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the values of a program whose splits begin a choice of layouts. */
#include "auto_start.h"

/* Marks the states that one op updates together with a trained one: an optimizer's. */
static void mark_of_optimizers(const trama_program *p, bool *of_optimizer)
{
    for (int i = 0; i < p->nodes.n; i++) {
        const trama_node *node = p->nodes.at[i];
        bool trains = false;
        for (int t = 0; t < node->op->n_in; t++)
            trains |= node_updates(node, t) && value_storage(node->in[t])->state->trainable;
        for (int t = 0; t < node->op->n_in && trains; t++)
            if (node_updates(node, t))
                of_optimizer[value_storage(node->in[t])->id] = true;
    }
}

/* Inputs with dims; in a program without these, states that are not trained. */
static void find_inputs(auto_starts *s, const trama_program *p)
{
    bool *of_optimizer = trama_alloc((size_t)p->values.n + 1);
    mark_of_optimizers(p, of_optimizer);
    for (int kind = VALUE_INPUT; kind <= VALUE_STATE && !s->inputs.n; kind++)
        for (int i = 0; i < p->values.n; i++) {
            const trama_value *v = p->values.at[i];
            if ((int)v->kind == kind && v->shape.ndim && !v->state->trainable && !v->state->terms && !of_optimizer[i])
                *ARRAY_PUSH(&s->inputs) = i;
        }
    free(of_optimizer);
}

/* Trained states of two dims and more: parts of offsets and the like are not worth a message. */
static void find_states(auto_starts *s, const trama_program *p)
{
    for (int i = 0; i < p->values.n; i++) {
        const trama_value *v = p->values.at[i];
        if (v->kind == VALUE_STATE && v->state->trainable && v->shape.ndim > 1)
            *ARRAY_PUSH(&s->states) = i;
    }
}

/* A factor of operand t that operand u has and no result has. With u -1: one that a result has and no other operand
 * has. -1: there is none. */
static int factor_between(const trama_rule *rule, int t, int u)
{
    unsigned results = 0, others = 0;
    for (int o = 0; o < rule->n_out; o++)
        results |= rule_factors(rule, rule->n_in + o);
    for (int k = 0; k < rule->n_in; k++)
        others |= k == t ? 0 : rule_factors(rule, k);
    const unsigned mine = rule_factors(rule, t),
                   fits = u >= 0 ? mine & rule_factors(rule, u) & ~results : mine & results & ~others;
    return fits ? __builtin_ctz(fits) : -1;
}

/* The dim of result 0 that is split where dim d of operand t is; -1: it is none, or must be whole. */
static int dim_behind(const trama_rule *rule, int t, int d)
{
    const rule_dim *dim = &rule->tensor[t].dim[d];
    bool equal_only;
    if (!dim->n || !rule_splittable(rule, dim->factor[0], &equal_only))
        return -1;
    return rule_dim_of(rule, rule->n_in, dim->factor[0]);
}

/* Whether the op contracts operand t, a trained one, with the other operand, so that a split of a dim of it splits a
 * dim of the result. */
static bool is_weight(const trama_node *node, int t)
{
    const trama_rule *rule = node->rule;
    bool equal_only;
    if (node->in[t]->kind != VALUE_STATE || !node->in[t]->state->trainable || factor_between(rule, t, 1 - t) < 0)
        return false;
    const int factor = factor_between(rule, t, -1);
    return factor >= 0 && rule_dim_of(rule, t, factor) >= 0 && rule_dim_of(rule, rule->n_in, factor) >= 0 &&
           rule_splittable(rule, factor, &equal_only);
}

/* The weight that a forward op multiplies by its other operand; -1: it does not. */
static int weight_of(const trama_node *node)
{
    int found = -1;
    for (int t = 0; t < node->op->n_in && node->op->n_in == 2 && node->role == NODE_FORWARD; t++)
        found = is_weight(node, t) ? t : found;
    return found;
}

/* Weights that were joined have one number: that of the first of them. */
static int first_of(const auto_starts *s, int weight)
{
    while (s->weights.at[weight].with != weight)
        weight = s->weights.at[weight].with;
    return weight;
}

/* Notes that two weights split operands of one op, as those of queries, keys and values do. */
static void join(auto_starts *s, int a, int b)
{
    const int x = first_of(s, a), y = first_of(s, b), first = x < y ? x : y, other = x < y ? y : x;
    s->weights.at[other].with = first;
    s->weights.at[first].paired |= s->weights.at[other].paired;
}

/* Follows forward values from op to op, and notes the weights by whose columns the products of whole values are split.
 * Where such a product's columns meet the rows of the next weight, the result is a sum, and whole again. So weights are
 * split by columns and by rows in turn, as those of Megatron's blocks (Shoeybi and others 2019). */
static void find_columns(auto_starts *s, const trama_program *p)
{
    typedef struct columns {
        int dim, weight; /* of the split, 1 + it, 0: whole; of s->weights */
    } columns;
    columns *split = trama_alloc((size_t)(p->values.n + 1) * sizeof *split);
    for (int i = 0; i < p->nodes.n; i++) {
        const trama_node *node = p->nodes.at[i];
        const int weight = weight_of(node);
        columns to = {0, -1};
        for (int t = 0; t < node->op->n_in && node->role == NODE_FORWARD; t++) {
            const columns of = split[node->in[t]->id];
            if (!node_reads(node, t) || !of.dim)
                continue;
            if (to.weight >= 0)
                join(s, to.weight, of.weight);
            to = (columns){1 + dim_behind(node->rule, t, of.dim - 1), of.weight};
        }
        if (weight >= 0 && split[node->in[1 - weight]->id].dim) {
            s->weights.at[first_of(s, to.weight)].paired |= !to.dim;
        } else if (weight >= 0) {
            const int factor = factor_between(node->rule, weight, -1);
            to = (columns){1 + rule_dim_of(node->rule, node->rule->n_in, factor), s->weights.n};
            *ARRAY_PUSH(&s->weights) = (start_weight){
                {.value = node->in[weight]->id, .dim = rule_dim_of(node->rule, weight, factor)}, to.weight, false};
        }
        if (node->role == NODE_FORWARD && node->op->n_out)
            split[node->out[0]->id] = to;
    }
    for (int i = 0; i < s->weights.n; i++)
        s->weights.at[i].paired = s->weights.at[first_of(s, i)].paired;
    free(split);
}

auto_starts auto_starts_of(const trama_program *p)
{
    auto_starts s = {0};
    find_inputs(&s, p);
    find_states(&s, p);
    find_columns(&s, p);
    return s;
}

void auto_starts_free(auto_starts *s)
{
    ARRAY_FREE(&s->inputs);
    ARRAY_FREE(&s->states);
    ARRAY_FREE(&s->weights);
}
