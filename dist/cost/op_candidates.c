/* SPDX-License-Identifier: Apache-2.0 */
/* Candidates of ops, each list made once. */
#include "op_candidates.h"

#include <math.h>

#include "hash.h"

enum { MOST_CANDIDATES = 256 };

/* The extent of an axis in largest pieces: weights 2 and 1 give 1.5. */
static double parts_of(const trama_mesh *mesh, int axis)
{
    int most = 1;
    for (int i = 0; mesh->weights[axis] && i < mesh->shape[axis]; i++)
        most = mesh->weights[axis][i] > most ? mesh->weights[axis][i] : most;
    return (double)mesh->weight_sum[axis] / most;
}

/* Points of the factor space on the process with the largest pieces. */
static double work_of(const trama_node *node, const trama_rule *rule, const op_layouts *op)
{
    double extent[RULE_MAX_FACTORS];
    for (int f = 0; f < rule->n_factors; f++) {
        double parts = 1;
        for (int t = 0; t < rule->n_in + rule->n_out; t++) {
            int axes[TRAMA_MAX_AXES];
            const int dim = node_reads(node, t) ? rule_dim_of(rule, t, f) : -1,
                      n = dim < 0 ? 0 : layout_dim_axes(op_layout_of(op, rule->n_in, t), dim, axes);
            double cut = 1;
            for (int i = 0; i < n; i++)
                cut *= parts_of(op->mesh, axes[i]);
            parts = fmax(parts, cut);
        }
        extent[f] = ceil((double)max_i64(rule->factor[f].extent, 1) / parts - 1e-9);
    }
    return rule_points(rule, extent);
}

static bool is_pinned(const trama_node *node, const trama_rule *rule, const op_layouts *before)
{
    bool pinned = node->fixed || node->op->follows || node->role == NODE_MERGE;
    for (int t = 0; t < rule->n_in + rule->n_out; t++)
        pinned |= op_layout_of(before, rule->n_in, t)->mask != NULL;
    return pinned;
}

static bool same(const trama_node *node, const trama_rule *rule, const op_layouts *a, const op_layouts *b)
{
    bool equal = true;
    for (int t = 0; t < rule->n_in + rule->n_out && equal; t++)
        equal =
            !node_reads(node, t) || trama_layout_equal(op_layout_of(a, rule->n_in, t), op_layout_of(b, rule->n_in, t));
    return equal;
}

/* Whether two nodes with one rule receive as many bytes of neighbours in each layout. */
static bool reach_alike(const trama_rule *rule, const trama_node *a, const trama_node *b)
{
    bool alike = true;
    for (int t = 0; t < rule->n_in && alike; t++) {
        const trama_value *v = a->in[t], *w = b->in[t];
        if (rule_reaches(rule, t))
            alike = trama_shape_equal(v->shape, w->shape) && trama_dtype_size(v->dtype) == trama_dtype_size(w->dtype);
    }
    return alike;
}

static void fill(op_candidates *c, const trama_node *node)
{
    op_layouts_list all = {0};
    *ARRAY_PUSH(&c->list) = *c->before;
    c->kept = c->asked || !infer_every(node, c->rule, c->before->mesh, MOST_CANDIDATES, &all);
    const double most = work_of(node, c->rule, c->before);
    for (int i = 0; i < all.n; i++)
        if (!same(node, c->rule, &all.at[i], c->before) && work_of(node, c->rule, &all.at[i]) <= most)
            *ARRAY_PUSH(&c->list) = all.at[i];
    ARRAY_FREE(&all);
    c->reach = trama_alloc((size_t)c->list.n * sizeof *c->reach);
    for (int i = 0; i < c->list.n; i++)
        c->reach[i] = infer_reach_bytes(node, c->rule, &c->list.at[i]);
    for (int t = 0; t < c->rule->n_in + c->rule->n_out; t++) {
        layout_classes *of = &c->tensor[t];
        *of = (layout_classes){.mesh = c->before->mesh, .n = c->list.n};
        of->of = trama_alloc((size_t)c->list.n * sizeof *of->of);
        for (int i = 0; i < c->list.n; i++)
            of->of[i] = class_of_layout(&of->layouts, op_layout_of(&c->list.at[i], c->rule->n_in, t));
    }
}

const op_candidates *candidates_of(candidates_pool *pool, const trama_node *node, const trama_rule *rule,
                                   const op_layouts *before)
{
    const bool pinned = is_pinned(node, rule, before);
    uint64_t hash = hash_address(hash_address(HASH_START, rule), before);
    hash = hash_word(hash_address(hash, node->op), pinned);
    for (int probe = 0, i; (i = hash_table_find(&pool->by_content, hash, &probe)) >= 0;) {
        const op_candidates *c = pool->list.at[i];
        if (c->op == node->op && c->rule == rule && c->before == before && c->asked == pinned &&
            reach_alike(rule, c->first, node))
            return c;
    }
    op_candidates *c = trama_alloc(sizeof *c);
    *c = (op_candidates){.op = node->op, .rule = rule, .first = node, .before = before, .asked = pinned};
    fill(c, node);
    hash_table_add(&pool->by_content, hash, pool->list.n);
    *ARRAY_PUSH(&pool->list) = c;
    return c;
}

void candidates_pool_free(candidates_pool *pool)
{
    for (int i = 0; i < pool->list.n; i++) {
        op_candidates *c = pool->list.at[i];
        for (int t = 0; t < c->rule->n_in + c->rule->n_out; t++) {
            ARRAY_FREE(&c->tensor[t].layouts);
            free(c->tensor[t].of);
        }
        ARRAY_FREE(&c->list);
        free(c->reach);
        free(c);
    }
    ARRAY_FREE(&pool->list);
    hash_table_free(&pool->by_content);
}
