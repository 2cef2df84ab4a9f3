/* SPDX-License-Identifier: Apache-2.0 */
/* Updates overwrite state in place, but every reader of a state gets its content from before the run, wherever the op
 * stands in the program. So before an op overwrites a state, all distributed values that lie in its buffers and are
 * read later are copied. */
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

static bool share_buffers(const plan_dist_value *a, const plan_dist_value *b)
{
    for (int i = 0; i < a->pieces.n; i++)
        for (int j = 0; j < b->pieces.n; j++)
            if (a->pieces.at[i].region.shard == b->pieces.at[j].region.shard)
                return true;
    return false;
}

static void copy_old_value(partition *q, const partition_wish *wish, const trama_node *node, int result, old_copies *g)
{
    const op_layouts *op = layouts_of(q, node->id);
    int state = (int)(find_dist_value(q->p, node->in[result]->id, op->mesh, &op->in[result]) - q->p->dist_values.at);
    for (int i = 0, n = q->p->dist_values.n; i < n; i++) {
        const plan_dist_value h = q->p->dist_values.at[i];
        if (!share_buffers(&h, &q->p->dist_values.at[state]) ||
            !is_read_later(q, wish, node, q->s.program->values.at[h.value]))
            continue;
        *ARRAY_PUSH(g) = (old_copy){i, q->p->dist_values.n};
        reshard_dist_value(q, i, h.mesh, &h.layout, node->id, true);
    }
}

void copy_old_values(partition *q, const partition_wish *wish, const trama_node *node, old_copies *g)
{
    for (int o = 0; o < node->op->n_out; o++)
        if (node->op->updates >> o & 1)
            copy_old_value(q, wish, node, o, g);
}

/* The copies replace the originals, so that no lookup finds these any more. */
void install_old_copies(partition *q, old_copies *g)
{
    for (int i = g->n - 1; i >= 0; i--) {
        plan_dist_value *original = &q->p->dist_values.at[g->at[i].original],
                        *copy = &q->p->dist_values.at[g->at[i].copy];
        plan_dist_value overwritten = *original;
        *original = *copy;
        ARRAY_FREE(&overwritten.pieces);
        size_t behind = (size_t)(q->p->dist_values.n - g->at[i].copy - 1);
        memmove(copy, copy + 1, behind * sizeof *copy);
        q->p->dist_values.n--;
    }
    ARRAY_FREE(g);
}
