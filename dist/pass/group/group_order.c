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
    int n, *at, *next; /* at: [groups] leaders; next: as in group_order */
    bool *moves;       /* [node id]; at a leader, of its group */
    int *behind; /* [leader] its key: it stands behind all groups that stay and are recorded up to this node; of one
                    that stays itself; -1: before all */
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
    bool *read = trama_alloc((size_t)max_i64(1, o->p->values.n)); /* by a node that stays */
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
    int *last = trama_alloc((size_t)max_i64(1, o->p->nodes.n) * sizeof *last);
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
    bool *wanted = trama_alloc((size_t)max_i64(1, o->p->values.n));
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

static void at_least(int *number, int to)
{
    *number = to > *number ? to : *number;
}

static void at_most(int *number, int to)
{
    *number = to < *number ? to : *number;
}

static int *keys_new(const ordering *o, int key)
{
    int *keys = trama_alloc((size_t)max_i64(1, o->p->values.n) * sizeof *keys);
    for (int i = 0; i < o->p->values.n; i++)
        keys[i] = key;
    return keys;
}

static void find_behind(ordering *o)
{
    int *read = keys_new(o, -1); /* [value id] of a buffer the largest key of a group so far that reads it */
    for (int k = 0; k < o->n; k++) {
        const int g = o->at[k];
        o->behind[g] = o->moves[g] ? -1 : g;
        for (int i = g; i >= 0 && o->moves[g]; i = o->next[i]) {
            const trama_node *node = o->p->nodes.at[i];
            for (int t = 0; t < node->op->n_in; t++) {
                const trama_node *maker = node->in[t]->node;
                if (maker && o->needed[maker->id])
                    at_least(&o->behind[g], o->behind[o->leader[maker->id]]);
                if (node->op->updates >> t & 1)
                    at_least(&o->behind[g], read[value_buffer(node->in[t])->id]);
            }
        }
        for (int i = g; i >= 0; i = o->next[i])
            for (int t = 0; t < o->p->nodes.at[i]->op->n_in; t++)
                at_least(&read[value_buffer(o->p->nodes.at[i]->in[t])->id], o->behind[g]);
    }
    free(read);
}

/* The largest keys with which another group stands before all groups so far that read a value, or that overwrite a
 * buffer. */
typedef struct key_limits {
    int *read, *overwritten; /* [value id] */
} key_limits;

static bool needs_nothing(const ordering *o, int g)
{
    bool updates = false;
    for (int i = g; i >= 0; i = o->next[i])
        updates |= o->p->nodes.at[i]->op->updates != 0;
    return o->moves[g] && o->behind[g] < 0 && !updates;
}

static int largest_key(const ordering *o, const key_limits *l, int g)
{
    int most = o->p->nodes.n;
    for (int i = g; i >= 0; i = o->next[i]) {
        const trama_node *node = o->p->nodes.at[i];
        for (int r = 0; r < node->op->n_out; r++)
            at_most(&most, l->read[node->out[r]->id]);
        for (int t = 0; t < node->op->n_in; t++)
            at_most(&most, l->overwritten[value_buffer(node->in[t])->id]);
    }
    return most;
}

static void limit_others(const ordering *o, const key_limits *l, int g)
{
    const int before = o->moves[g] ? o->behind[g] : g - 1;
    for (int i = g; i >= 0; i = o->next[i]) {
        const trama_node *node = o->p->nodes.at[i];
        for (int t = 0; t < node->op->n_in; t++) {
            at_most(&l->read[node->in[t]->id], before);
            if (node->op->updates >> t & 1)
                at_most(&l->overwritten[value_buffer(node->in[t])->id], before);
        }
    }
}

static void delay_free_ones(ordering *o)
{
    const key_limits limits = {keys_new(o, o->p->nodes.n), keys_new(o, o->p->nodes.n)};
    for (int k = o->n - 1; k >= 0; k--) {
        const int g = o->at[k], most = largest_key(o, &limits, g);
        if (needs_nothing(o, g) && most < o->p->nodes.n)
            o->behind[g] = most;
        limit_others(o, &limits, g);
    }
    free(limits.read);
    free(limits.overwritten);
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
    const size_t nodes = (size_t)max_i64(1, program->nodes.n);
    ordering o = {.p = program, .needed = needed, .kept = kept, .large = large, .leader = leader};
    o.at = trama_alloc(nodes * sizeof *o.at);
    o.next = trama_alloc(nodes * sizeof *o.next);
    o.moves = trama_alloc(nodes);
    o.behind = trama_alloc(nodes * sizeof *o.behind);
    list_groups(&o);
    find_moves(&o);
    leave_small_ones(&o);
    find_behind(&o);
    delay_free_ones(&o);
    group_order order = {.n = o.n, .next = o.next};
    order.leaders = trama_alloc(nodes * sizeof *order.leaders);
    order.turn = trama_alloc(nodes * sizeof *order.turn);
    sort_groups(&o, &order);
    memset(order.turn, -1, nodes * sizeof *order.turn);
    for (int k = 0; k < order.n; k++)
        for (int i = order.leaders[k]; i >= 0; i = o.next[i])
            order.turn[i] = k;
    free(o.at);
    free(o.moves);
    free(o.behind);
    return order;
}

void group_order_free(group_order *o)
{
    free(o->leaders);
    free(o->turn);
    free(o->next);
}
