/* SPDX-License-Identifier: Apache-2.0 */
/* Candidates of ops, each list made once. */
#include "op_candidates.h"

#include "hash.h"

enum { MOST_CANDIDATES = 1024 };

static bool is_read(const trama_node *node, int t)
{
    return t >= node->op->n_in || !(node->op->shape_only >> t & 1);
}

static const trama_layout *layout_of(const op_layouts *op, int n_in, int t)
{
    return t < n_in ? &op->in[t] : &op->out[t - n_in];
}

/* Points of the factor space on the process with the largest pieces. */
static double work_of(const trama_node *node, const trama_rule *rule, const op_layouts *op)
{
    double points = 1;
    for (int f = 0; f < rule->n_factors; f++) {
        int64_t parts = 1;
        for (int t = 0; t < rule->n_in + rule->n_out; t++) {
            int axes[TRAMA_MAX_AXES];
            const int dim = is_read(node, t) ? rule_dim_of(rule, t, f) : -1,
                      n = dim < 0 ? 0 : layout_dim_axes(layout_of(op, rule->n_in, t), dim, axes);
            int64_t cut = 1;
            for (int i = 0; i < n; i++)
                cut *= op->mesh->shape[axes[i]];
            parts = max_i64(parts, cut);
        }
        points *= (double)((max_i64(rule->factor[f].extent, 1) + parts - 1) / parts);
    }
    return points;
}

static bool must_keep(const trama_node *node, const trama_rule *rule, const op_layouts *before)
{
    bool keep = node->fixed || node->op->follows || node->role == NODE_MERGE;
    for (int t = 0; t < rule->n_in + rule->n_out; t++)
        keep |= (t < rule->n_in && rule_reaches(rule, t)) || layout_of(before, rule->n_in, t)->mask;
    return keep;
}

static bool same(const trama_node *node, const trama_rule *rule, const op_layouts *a, const op_layouts *b)
{
    bool equal = true;
    for (int t = 0; t < rule->n_in + rule->n_out && equal; t++)
        equal = !is_read(node, t) || trama_layout_equal(layout_of(a, rule->n_in, t), layout_of(b, rule->n_in, t));
    return equal;
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
    for (int t = 0; t < c->rule->n_in + c->rule->n_out; t++) {
        layout_classes *of = &c->tensor[t];
        *of = (layout_classes){.mesh = c->before->mesh, .n = c->list.n};
        of->of = trama_alloc((size_t)c->list.n * sizeof *of->of);
        for (int i = 0; i < c->list.n; i++)
            of->of[i] = class_of_layout(&of->layouts, layout_of(&c->list.at[i], c->rule->n_in, t));
    }
}

const op_candidates *candidates_of(candidates_pool *pool, const trama_node *node, const trama_rule *rule,
                                   const op_layouts *before)
{
    const bool keep = must_keep(node, rule, before);
    uint64_t hash = hash_word(hash_word(HASH_START, (uint64_t)(uintptr_t)rule), (uint64_t)(uintptr_t)before);
    hash = hash_word(hash_word(hash, (uint64_t)(uintptr_t)node->op), keep);
    for (int probe = 0, i; (i = hash_table_find(&pool->by_content, hash, &probe)) >= 0;) {
        const op_candidates *c = pool->list.at[i];
        if (c->op == node->op && c->rule == rule && c->before == before && c->asked == keep)
            return c;
    }
    op_candidates *c = trama_alloc(sizeof *c);
    *c = (op_candidates){.op = node->op, .rule = rule, .before = before, .asked = keep};
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
        free(c);
    }
    ARRAY_FREE(&pool->list);
    hash_table_free(&pool->by_content);
}
