/* SPDX-License-Identifier: Apache-2.0 */
/* State is updated where it lies, but values are values: what reads a state reads what it was before the run, wherever
 * its op stands in the program. So before an op overwrites a state, all holdings that lie in its buffers and are still
 * read move into copies. */
#include <string.h>

#include "planner.h"

/* Whether an op that runs after the node reads the value, or the user does. */
static bool is_read_later(const partition *q, const partition_wish *wish, const trama_node *node, const trama_value *v)
{
    const trama_program *p = q->s.program;
    if (v->kind == VALUE_RESULT && wish->kept[v->id])
        return true;
    for (int i = 0; i < p->nodes.n; i++) {
        const trama_node *other = p->nodes.at[i];
        int mine = wish->leader[node->id], theirs = wish->leader[i];
        if (!wish->needed[i] || theirs < mine || (theirs == mine && i <= node->id))
            continue;
        for (int t = 0; t < other->op->n_in; t++)
            if (other->in[t] == v && !(other->op->shape_only >> t & 1))
                return true;
    }
    return false;
}

static bool share_buffers(const plan_holding *a, const plan_holding *b)
{
    for (int i = 0; i < a->pieces.n; i++)
        for (int j = 0; j < b->pieces.n; j++)
            if (a->pieces.at[i].region.shard == b->pieces.at[j].region.shard)
                return true;
    return false;
}

static void guard_value(partition *q, const partition_wish *wish, const trama_node *node, int result, guards *g)
{
    const op_layouts *op = layouts_of(q, node->id);
    int state = (int)(find_holding(q->p, node->in[result]->id, op->mesh, &op->in[result]) - q->p->holdings.at);
    for (int i = 0, n = q->p->holdings.n; i < n; i++) {
        const plan_holding h = q->p->holdings.at[i];
        if (!share_buffers(&h, &q->p->holdings.at[state]) ||
            !is_read_later(q, wish, node, q->s.program->values.at[h.value]))
            continue;
        *ARRAY_PUSH(g) = (guard){i, q->p->holdings.n};
        reshard_holding(q, i, h.mesh, &h.layout, node->id, true);
    }
}

void guard_old_values(partition *q, const partition_wish *wish, const trama_node *node, guards *g)
{
    for (int o = 0; o < node->op->n_out; o++)
        if (node->op->updates >> o & 1)
            guard_value(q, wish, node, o, g);
}

/* The copies take the places of the originals, which nobody may find any more. */
void guard_install(partition *q, guards *g)
{
    for (int i = g->n - 1; i >= 0; i--) {
        plan_holding *original = &q->p->holdings.at[g->at[i].original], *copy = &q->p->holdings.at[g->at[i].copy];
        plan_holding overwritten = *original;
        *original = *copy;
        ARRAY_FREE(&overwritten.pieces);
        size_t behind = (size_t)(q->p->holdings.n - g->at[i].copy - 1);
        memmove(copy, copy + 1, behind * sizeof *copy);
        q->p->holdings.n--;
    }
    ARRAY_FREE(g);
}
