/* SPDX-License-Identifier: Apache-2.0 */
/* Replicas on places of different kinds: their libraries round differently, so replicas that each place computes would
 * come to differ. Only the places of one kind compute, in layouts whose masks leave out the others; these receive the
 * values that they need by ordinary changes of layout. Layouts and the machine decide, so all ranks find the same. */
#include <assert.h>
#include <string.h>

#include "planner.h"

/* ---- Ops with equal bits on all places ---- */

static bool is_exact(const trama_node *node)
{
    const unsigned rounded = TRAMA_KIND_FLOAT | TRAMA_KIND_COMPLEX;
    bool integers = true;
    for (int t = 0; t < node->op->n_in; t++)
        integers &= !(trama_dtype_kind_of(node->in[t]->dtype) & rounded);
    for (int o = 0; o < node->op->n_out; o++)
        integers &= !(trama_dtype_kind_of(node->out[o]->dtype) & rounded);
    return node->op->exact || integers;
}

/* ---- The computing replicas ---- */

/* The kind of the place at a position; -1: the process does not hold the result. */
static int kind_at(const partition *q, const chosen *c, int position)
{
    bool held = !c->among || c->among[position];
    return held ? q->s.machine->places[place_of(q, c->mesh, position)].kind : -1;
}

/* Masks the replicas of one box: 1 on the places of the most frequent kind, the first of several such kinds. */
static void choose_among(const partition *q, const chosen *c, int *at, int *holders, unsigned char *mask)
{
    int n = axes_size(c->mesh, c->axes), most = -1;
    memset(holders, 0, (size_t)q->kinds * sizeof *holders);
    for (int pass = 0; pass < 3; pass++)
        for (int i = 0; i < n; i++) {
            axes_coordinate(c->mesh, c->axes, i, at);
            int position = mesh_position(c->mesh, at), kind = kind_at(q, c, position);
            if (pass == 0 && kind >= 0)
                holders[kind]++;
            if (pass == 1 && kind >= 0 && (most < 0 || holders[kind] > holders[most]))
                most = kind;
            if (pass == 2)
                mask[position] = kind >= 0 && kind == most;
        }
}

/* Whether the mask leaves out a holder. */
static bool leaves_some(const partition *q, const chosen *c, const unsigned char *mask)
{
    for (int i = 0; i < c->mesh->size; i++)
        if (!mask[i] && kind_at(q, c, i) >= 0)
            return true;
    return false;
}

static const unsigned char *mask_of(partition *q, const chosen *wanted)
{
    for (int i = 0; i < q->choices.n; i++) {
        const chosen *c = &q->choices.at[i];
        if (c->mesh == wanted->mesh && c->axes == wanted->axes && c->among == wanted->among)
            return c->mask;
    }
    const trama_mesh *mesh = wanted->mesh;
    unsigned others = ((1u << mesh->ndim) - 1) & ~wanted->axes;
    int at[TRAMA_MAX_AXES] = {0}, *holders = trama_alloc((size_t)q->kinds * sizeof *holders);
    unsigned char *mask = trama_alloc((size_t)mesh->size);
    for (int i = 0; i < axes_size(mesh, others); i++) {
        axes_coordinate(mesh, others, i, at);
        choose_among(q, wanted, at, holders, mask);
    }
    chosen *made = ARRAY_PUSH(&q->choices);
    *made = *wanted;
    if (leaves_some(q, wanted, mask))
        made->mask = *ARRAY_PUSH(&q->p->masks) = mask;
    else
        free(mask);
    free(holders);
    return made->mask;
}

trama_layout heterogeneous_unmasked(const partition *q, const trama_layout *layout)
{
    trama_layout all = *layout;
    for (int i = 0; i < q->choices.n && layout->mask; i++)
        if (q->choices.at[i].mask == layout->mask)
            all.mask = q->choices.at[i].among;
    return all;
}

/* ---- Groups ---- */

static bool is_inside(const compute_group *g, const trama_value *v)
{
    for (int i = 0; i < g->nodes.n; i++)
        if (v->node == g->nodes.at[i])
            return true;
    return false;
}

/* The axes along which all results are replicas. */
static unsigned replica_axes(const compute_group *g)
{
    unsigned axes = (1u << g->mesh->ndim) - 1;
    for (int i = 0; i < g->nodes.n; i++)
        for (int o = 0; o < g->nodes.at[i]->op->n_out; o++)
            axes &= layout_axes(&g->q->s.l->op[g->nodes.at[i]->id]->out[o], TRAMA_REPLICATE);
    return axes;
}

/* Whether operand t exists in the layout on which the op would compute without a mask. */
static bool is_complete(const compute_group *g, const trama_node *node, int t)
{
    return find_dist_value(g->q->p, node->in[t]->id, g->mesh, &g->q->s.l->op[node->id]->in[t]) != NULL;
}

/* Whether all places may compute the group: its ops have equal bits everywhere, and no operand exists in the masked
 * layout only, so that it had to be sent first. */
static bool may_be_anywhere(const compute_group *g, const unsigned char *mask)
{
    for (int i = 0; i < g->nodes.n; i++) {
        const trama_node *node = g->nodes.at[i];
        if (!is_exact(node))
            return false;
        for (int t = 0; t < node->op->n_in; t++) {
            trama_layout masked = g->q->s.l->op[node->id]->in[t];
            masked.mask = mask;
            if (!is_inside(g, node->in[t]) && !is_complete(g, node, t) &&
                find_dist_value(g->q->p, node->in[t]->id, g->mesh, &masked))
                return false;
        }
    }
    return true;
}

void heterogeneous_choose(compute_group *g)
{
    partition *q = g->q;
    const plan_source *s = &q->s;
    if (q->kinds < 2)
        return;
    const unsigned char *mask =
        mask_of(q, &(chosen){.mesh = g->mesh, .axes = replica_axes(g), .among = s->l->op[g->leader]->out[0].mask});
    if (!mask || may_be_anywhere(g, mask))
        return;
    if (!q->op)
        q->op = trama_alloc((size_t)s->program->nodes.n * sizeof *q->op);
    for (int i = 0; i < g->nodes.n; i++) {
        const trama_node *node = g->nodes.at[i];
        op_layouts *op = q->op[node->id] = trama_alloc(sizeof *op);
        *op = *s->l->op[node->id];
        for (int o = 0; o < node->op->n_out; o++)
            op->out[o].mask = mask;
        for (int t = 0; t < node->op->n_in; t++)
            if (is_inside(g, node->in[t]))
                op->in[t].mask = mask;
    }
}

void heterogeneous_operand(compute_group *g, const trama_node *node, int t)
{
    const op_layouts *op = layouts_of(g->q, node->id), *completed = g->q->s.l->op[node->id];
    if (op == completed || completed->in[t].mask || is_complete(g, node, t))
        return;
    assert(!(replica_axes(g) & ~layout_axes(&completed->in[t], TRAMA_REPLICATE)) && "else results were no replicas");
    g->q->op[node->id]->in[t].mask = op->out[0].mask;
}
