/* SPDX-License-Identifier: Apache-2.0 */
/* The part of the factor space that one step computes, from boxes of its tensors and back. */
#include "planner.h"

static void ranges_from(const trama_rule *rule, int t, const box *b, factor_ranges *r)
{
    for (int f = 0; f < rule->n_factors; f++) {
        int d = rule_dim_of(rule, t, f);
        if (d < 0 || !reach_is_none(&rule->tensor[t].reach[d]))
            continue; /* the result gives the range of a dim that is read beyond it */
        int64_t minor = cut_minor_extent(rule, &rule->tensor[t].dim[d], f);
        r->lo[f] = minor ? b->lo[d] / minor : 0;
        r->n[f] = minor ? b->n[d] / minor : 0;
    }
}

box factor_box(const trama_rule *rule, int t, const factor_ranges *r, const box *whole)
{
    const rule_tensor *tensor = &rule->tensor[t];
    box b = {.ndim = tensor->ndim};
    for (int d = 0; d < tensor->ndim; d++) {
        b.n[d] = 1;
        int leading = -1;
        for (int f = 0; f < rule->n_factors && leading < 0; f++)
            if (rule_dim_of(rule, t, f) == d)
                leading = f;
        if (leading < 0)
            continue;
        int64_t minor = cut_minor_extent(rule, &tensor->dim[d], leading);
        b.lo[d] = r->lo[leading] * minor;
        b.n[d] = r->n[leading] * minor;
    }
    return rule_reached(rule, t, &b, whole);
}

double factor_points(const trama_rule *rule, const factor_ranges *r)
{
    double extent[RULE_MAX_FACTORS];
    for (int f = 0; f < rule->n_factors; f++)
        extent[f] = (double)r->n[f];
    return rule_points(rule, extent);
}

factor_ranges factor_ranges_of(const compute_group *g, const trama_node *node, int position, int t, const box *result)
{
    const partition *q = g->q;
    const trama_rule *rule = q->s.rules[node->id];
    factor_ranges r;
    for (int f = 0; f < rule->n_factors; f++) {
        r.lo[f] = 0;
        r.n[f] = rule->factor[f].extent;
    }
    for (int i = 0; i < rule->n_in; i++) {
        box b, whole = partition_whole(q, node->in[i]->id);
        if (node->op->shape_only >> i & 1)
            continue; /* the result has all its factors */
        layout_box(g->mesh, &layouts_of(q, node->id)->in[i], &whole, position, &b);
        ranges_from(rule, i, &b, &r);
    }
    ranges_from(rule, t, result, &r);
    return r;
}

factor_ranges factor_ranges_of_result(const compute_group *g, const trama_node *node, int position, const box *result)
{
    return factor_ranges_of(g, node, position, g->q->s.rules[node->id]->n_in, result);
}
