/* SPDX-License-Identifier: Apache-2.0 */
/* Ops that read beyond the box that they compute: neighbours of a stencil, or another part of a tensor. A process
 * computes the inner part from its own boxes, without a copy. It computes the strips at its borders from buffers, which
 * messages fill in the meantime. Layouts alone give the boxes that a process needs. */
#include <assert.h>

#include "planner.h"

bool halo_reaches(const compute_group *g)
{
    return rule_reaches_any(g->q->s.rules[g->nodes.at[0]->id]);
}

/* The box of operand t that a process holds in the layout in which the op reads it. */
static box held(const compute_group *g, int t, int position, box *whole)
{
    const trama_node *node = g->nodes.at[0];
    box b;
    *whole = partition_whole(g->q, node->in[t]->id);
    layout_box(g->mesh, &layouts_of(g->q, node->id)->in[t], whole, position, &b);
    return b;
}

/* The dim of the result that has the factor of an operand's dim. */
static int result_dim(const trama_rule *rule, int t, int d)
{
    return rule_dim_of(rule, rule->n_in, rule->tensor[t].dim[d].factor[0]);
}

/* Cuts a box of the result to the part that needs no more of operand t than the process holds. Dims that are summed cut
 * nothing: the whole part needs them. */
static void keep_inside(const compute_group *g, int t, int position, box *inside)
{
    const trama_rule *rule = g->q->s.rules[g->nodes.at[0]->id];
    box whole, own = held(g, t, position, &whole);
    for (int d = 0; d < own.ndim; d++) {
        const rule_reach *r = &rule->tensor[t].reach[d];
        int e = reach_is_none(r) ? -1 : result_dim(rule, t, d);
        if (e < 0)
            continue;
        int64_t lo = inside->lo[e], hi = lo + inside->n[e], end = own.lo[d] + own.n[d];
        const int64_t stride = reach_stride(r), per = reach_per(r);
        if (own.lo[d] > 0 || r->wraps)
            lo = max_i64(lo, divide_up(per * (own.lo[d] - 1) + 1 + r->before, stride));
        if (end < whole.n[d] || r->wraps)
            hi = min_i64(hi, divide_up(per * end - r->after, stride));
        inside->lo[e] = lo;
        inside->n[e] = max_i64(hi - lo, 0);
    }
}

int halo_parts(const compute_group *g, int position, const box *result, box *parts)
{
    const trama_rule *rule = g->q->s.rules[g->nodes.at[0]->id];
    box inside = *result, rest = *result;
    int n = 1;
    parts[0] = *result;
    if (!halo_reaches(g))
        return 1;
    for (int t = 0; t < rule->n_in; t++)
        if (rule_reaches(rule, t))
            keep_inside(g, t, position, &inside);
    for (int d = 0; d < result->ndim; d++) {
        int64_t lo = rest.lo[d], hi = lo + rest.n[d];
        int64_t from = inside.n[d] ? inside.lo[d] : hi, to = inside.n[d] ? inside.lo[d] + inside.n[d] : hi;
        for (int side = 0; side < 2; side++) {
            box strip = rest;
            strip.lo[d] = side ? to : lo;
            strip.n[d] = side ? hi - to : from - lo;
            if (box_count(&strip))
                parts[n++] = strip;
        }
        rest.lo[d] = from;
        rest.n[d] = to - from;
    }
    parts[0] = rest;
    return n;
}

/* Adds the boxes of operand t that the parts of one process need and its own box does not contain. */
static void want(const compute_group *g, int t, int position, box_index *wanted)
{
    const partition *q = g->q;
    const trama_node *node = g->nodes.at[0];
    const trama_layout *out = &layouts_of(q, node->id)->out[0];
    box whole, result, parts[MOST_PARTS], own = held(g, t, position, &whole),
                                          all = partition_whole(q, node->out[0]->id);
    if (!layout_present(out, position))
        return;
    layout_box(g->mesh, out, &all, position, &result);
    int n = box_count(&result) ? halo_parts(g, position, &result, parts) : 0;
    for (int i = 0; i < n; i++) {
        int place = place_of(q, g->mesh, position);
        indexed_box s = {.place = place, .rank = q->s.machine->places[place].rank};
        s.term = term_of(g->mesh, &layouts_of(q, node->id)->in[t], position);
        s.b = compute_operand_box(g, t, position, &parts[i]);
        if (box_count(&parts[i]) && box_count(&s.b) && !box_contains(&own, &s.b))
            *ARRAY_PUSH(&wanted->at) = s;
    }
}

void halo_fetch(compute_group *g)
{
    partition *q = g->q;
    const trama_node *node = g->nodes.at[0];
    const trama_rule *rule = q->s.rules[node->id];
    for (int t = 0; t < rule->n_in; t++) {
        box_index wanted = {0};
        if (!rule_reaches(rule, t))
            continue;
        for (int i = 0; i < g->mesh->size; i++)
            want(g, t, i, &wanted);
        const plan_dist_value *h = find_dist_value(q->p, node->in[t]->id, g->mesh, &layouts_of(q, node->id)->in[t]);
        if (wanted.at.n)
            partition_fetch(q, (int)(h - q->p->dist_values.at), &wanted, node->id, &g->halos[t]);
        box_index_free(&wanted);
    }
}

const plan_local_box *halo_find(const compute_group *g, int t, int place, int term, const box *b)
{
    const plan_dist_value *h = &g->halos[t];
    for (int i = 0; i < h->pieces.n; i++)
        if (h->pieces.at[i].place == place && h->pieces.at[i].term == term &&
            box_contains(&h->pieces.at[i].region.box, b))
            return &h->pieces.at[i];
    assert(!"a border's buffer has the box");
    return NULL;
}

void halo_free(compute_group *g)
{
    for (int t = 0; t < TRAMA_MAX_OPERANDS; t++)
        ARRAY_FREE(&g->halos[t].pieces);
}
