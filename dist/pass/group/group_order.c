/* SPDX-License-Identifier: Apache-2.0 */
/* A group moves if all its nodes are of an optimizer, or update a state or are read by such nodes alone behind a
 * gradient, and if it overwrites a large state or makes what such a group needs. Others stay. Each that moves stands
 * behind one that stays: the last that it needs, by way of others that move, or that reads a state before it overwrites
 * it. A moved group that needs none that stays, as the decay of a state, would lengthen the life of its results: it
 * stands just before its first reader. */
#include "group_order.h"

#include <stdlib.h>
#include <string.h>

typedef struct ordering {
    const trama_program *p;
    const bool *needed, *kept, *large;
    const int *leader;
    int n, *at, *next; /* at: [groups] leaders; next: [node id] the next node of the group; -1 */
    bool *moves;       /* [node id]; at a leader, of its group */
    int *behind;    /* [leader] its key: it stands behind all groups that stay and are recorded up to this node; of one
                       that stays itself; -1: before all */
    int *by_buffer; /* [value id] a key, by the value in whose buffer others may lie */
} ordering;

static bool is_asked_for(const ordering *o, const trama_node *node, const bool *read)
{
    for (int i = 0; i < node->op->n_out; i++)
        if (o->kept[node->out[i]->id] || node->out[i]->gradient.of || read[node->out[i]->id])
            return true;
    return node->op->n_out == 0;
}

/* Moves nodes of the optimizer, other updates behind gradients, and what is computed for these alone. */
static void find_moves(ordering *o)
{
    bool *read = trama_alloc((size_t)o->p->values.n + 1); /* by a node that stays */
    for (int i = o->p->nodes.n - 1; i >= 0; i--) {
        const trama_node *node = o->p->nodes.at[i];
        if (!o->needed[i])
            continue;
        o->moves[i] = node->role == NODE_UPDATE || (node->role != NODE_FORWARD && node->op->updates) ||
                      (node->role == NODE_GRADIENT && !is_asked_for(o, node, read));
        for (int t = 0; t < node->op->n_in && !o->moves[i]; t++)
            read[node->in[t]->id] = true;
    }
    free(read);
    for (int i = 0; i < o->p->nodes.n; i++)
        if (o->needed[i])
            o->moves[o->leader[i]] &= o->moves[i];
}

static void list_groups(ordering *o)
{
    int *last = trama_alloc((size_t)o->p->nodes.n * sizeof *last + 1);
    for (int i = 0; i < o->p->nodes.n; i++) {
        const int g = o->leader[i];
        o->next[i] = -1;
        if (!o->needed[i])
            continue;
        if (g == i)
            o->at[o->n++] = g;
        else
            o->next[last[g]] = i;
        last[g] = i;
    }
    free(last);
}

static bool is_large(const ordering *o, trama_value *v)
{
    const trama_value *state = value_storage(v);
    return state && o->large[state->id];
}

/* A group stays unless it overwrites a large state, or makes an operand of a group that moves. */
static void leave_small_ones(const ordering *o)
{
    bool *wanted = trama_alloc((size_t)o->p->values.n + 1);
    for (int k = o->n - 1; k >= 0; k--) {
        bool any = false;
        for (int i = o->at[k]; i >= 0; i = o->next[i]) {
            const trama_node *node = o->p->nodes.at[i];
            for (int t = 0; t < node->op->n_in; t++)
                any |= (node->op->updates >> t & 1) && is_large(o, node->in[t]);
            for (int r = 0; r < node->op->n_out; r++)
                any |= wanted[node->out[r]->id];
        }
        o->moves[o->at[k]] &= any;
        for (int i = o->at[k]; i >= 0 && o->moves[o->at[k]]; i = o->next[i])
            for (int t = 0; t < o->p->nodes.at[i]->op->n_in; t++)
                wanted[o->p->nodes.at[i]->in[t]->id] = true;
    }
    free(wanted);
}

static int later(int a, int b)
{
    return a > b ? a : b;
}

/* by_buffer: the largest key of a group so far that reads it. */
static void find_behind(ordering *o)
{
    for (int i = 0; i < o->p->values.n; i++)
        o->by_buffer[i] = -1;
    for (int k = 0; k < o->n; k++) {
        const int g = o->at[k];
        int behind = o->moves[g] ? -1 : g;
        for (int i = g; i >= 0 && o->moves[g]; i = o->next[i]) {
            const trama_node *node = o->p->nodes.at[i];
            for (int t = 0; t < node->op->n_in; t++) {
                const trama_node *maker = node->in[t]->node;
                const int from = maker && o->needed[maker->id] ? o->leader[maker->id] : g;
                behind = later(behind, from == g ? -1 : o->behind[from]);
                if (node->op->updates >> t & 1)
                    behind = later(behind, o->by_buffer[value_buffer(node->in[t])->id]);
            }
        }
        o->behind[g] = behind;
        for (int i = g; i >= 0; i = o->next[i])
            for (int t = 0; t < o->p->nodes.at[i]->op->n_in; t++) {
                int *read = &o->by_buffer[value_buffer(o->p->nodes.at[i]->in[t])->id];
                *read = later(*read, behind);
            }
    }
}

/* first: [value id] the largest key with which another group stands before all that read it; by_buffer: before all that
 * overwrite it. */
static void delay_free_ones(ordering *o)
{
    int *first = trama_alloc((size_t)o->p->values.n * sizeof *first + 1);
    for (int i = 0; i < o->p->values.n; i++)
        first[i] = o->by_buffer[i] = o->p->nodes.n;
    for (int k = o->n - 1; k >= 0; k--) {
        const int g = o->at[k];
        bool updates = false;
        int most = o->p->nodes.n;
        for (int i = g; i >= 0; i = o->next[i]) {
            const trama_node *node = o->p->nodes.at[i];
            updates |= node->op->updates != 0;
            for (int r = 0; r < node->op->n_out; r++)
                most = most < first[node->out[r]->id] ? most : first[node->out[r]->id];
            for (int t = 0; t < node->op->n_in; t++) {
                const int over = o->by_buffer[value_buffer(node->in[t])->id];
                most = most < over ? most : over;
            }
        }
        if (o->moves[g] && o->behind[g] < 0 && !updates && most < o->p->nodes.n)
            o->behind[g] = most;
        const int before = o->moves[g] ? o->behind[g] : g - 1;
        for (int i = g; i >= 0; i = o->next[i]) {
            const trama_node *node = o->p->nodes.at[i];
            for (int t = 0; t < node->op->n_in; t++) {
                int *at = &first[node->in[t]->id];
                *at = *at < before ? *at : before;
                at = &o->by_buffer[value_buffer(node->in[t])->id];
                if (node->op->updates >> t & 1)
                    *at = *at < before ? *at : before;
            }
        }
    }
    free(first);
}

/* Sorted by the group behind which each stands, which comes first, and then as recorded. */
static void sort_groups(const ordering *o, group_order *order)
{
    int *start = trama_alloc((size_t)(o->p->nodes.n + 2) * sizeof *start);
    for (int k = 0; k < o->n; k++)
        start[o->behind[o->at[k]] + 2]++;
    for (int i = 1; i < o->p->nodes.n + 2; i++)
        start[i] += start[i - 1];
    for (int stays = 1; stays >= 0; stays--)
        for (int k = 0; k < o->n; k++)
            if (o->moves[o->at[k]] != stays)
                order->leaders[start[o->behind[o->at[k]] + 1]++] = o->at[k];
    free(start);
}

group_order group_order_find(const trama_program *program, const bool *needed, const int *leader, const bool *kept,
                             const bool *large)
{
    const size_t nodes = (size_t)program->nodes.n + 1;
    ordering o = {.p = program, .needed = needed, .kept = kept, .large = large, .leader = leader};
    o.at = trama_alloc(nodes * sizeof *o.at);
    o.next = trama_alloc(nodes * sizeof *o.next);
    o.moves = trama_alloc(nodes);
    o.behind = trama_alloc(nodes * sizeof *o.behind);
    o.by_buffer = trama_alloc(((size_t)program->values.n + 1) * sizeof *o.by_buffer);
    list_groups(&o);
    find_moves(&o);
    leave_small_ones(&o);
    find_behind(&o);
    delay_free_ones(&o);
    group_order order = {.n = o.n};
    order.leaders = trama_alloc(nodes * sizeof *order.leaders);
    order.turn = trama_alloc(nodes * sizeof *order.turn);
    sort_groups(&o, &order);
    memset(order.turn, -1, nodes * sizeof *order.turn);
    for (int k = 0; k < order.n; k++)
        for (int i = order.leaders[k]; i >= 0; i = o.next[i])
            order.turn[i] = k;
    free(o.at);
    free(o.next);
    free(o.moves);
    free(o.behind);
    free(o.by_buffer);
    return order;
}

void group_order_free(group_order *o)
{
    free(o->leaders);
    free(o->turn);
}
