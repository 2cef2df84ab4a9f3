/* SPDX-License-Identifier: Apache-2.0 */
/* Updates overwrite state in place, but every reader of a state gets its content from before the run, wherever the op
 * stands in the program. So before an op overwrites a state, all distributed values that lie in its buffers and are
 * read later are copied. */
#include <stdlib.h>

#include "planner.h"

/* Whether an op that runs after the node reads the value, or the user does. */
static bool is_read_later(const partition_wish *wish, const trama_node *node, const trama_value *v)
{
    return (v->kind == VALUE_RESULT && wish->kept[v->id]) ||
           wish->last_read[v->id] > read_order(wish->turn, node->id);
}

/* ---- Values that lie in a buffer ---- */

static uint64_t hash_of_shard(int shard)
{
    return hash_word(HASH_START, (uint64_t)shard);
}

static void enter(partition *q, const plan_dist_value *h)
{
    for (int i = 0; i < h->pieces.n; i++)
        hash_table_add(&q->by_shard, hash_of_shard(h->pieces.at[i].region.shard), h->value);
}

static bool share_buffers(const plan_dist_value *a, const plan_dist_value *b)
{
    for (int i = 0; i < a->pieces.n; i++)
        for (int j = 0; j < b->pieces.n; j++)
            if (a->pieces.at[i].region.shard == b->pieces.at[j].region.shard)
                return true;
    return false;
}

static int compare_numbers(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

typedef ARRAY(int) numbers;

/* The distributed values that share a buffer with one, itself included, in the order of their numbers. The table by
 * shard may have values twice, and old ones. */
static numbers find_sharers(partition *q, int dist_value)
{
    numbers found = {0};
    for (; q->entered < q->p->dist_values.n; q->entered++)
        enter(q, &q->p->dist_values.at[q->entered]);
    const plan_dist_value *h = &q->p->dist_values.at[dist_value];
    for (int k = 0; k < h->pieces.n; k++) {
        const uint64_t hash = hash_of_shard(h->pieces.at[k].region.shard);
        for (int probe = 0, value; (value = hash_table_find(&q->by_shard, hash, &probe)) >= 0;)
            for (int from = 0, i; (i = plan_next_of(q->p, value, &from)) >= 0;)
                if (share_buffers(h, &q->p->dist_values.at[i]))
                    *ARRAY_PUSH(&found) = i;
    }
    if (found.n)
        qsort(found.at, (size_t)found.n, sizeof *found.at, compare_numbers);
    int n = 0;
    for (int i = 0; i < found.n; i++)
        if (!n || found.at[n - 1] != found.at[i])
            found.at[n++] = found.at[i];
    found.n = n;
    return found;
}

static void copy_old_value(partition *q, const partition_wish *wish, const trama_node *node, int result, old_copies *g)
{
    const int id = node->in[result]->id;
    /* As it rests: the parts of all processes come into it, and each rank that has some finds the same sharers. */
    const plan_dist_value *rests = find_dist_value(q->p, id, q->s.l->mesh[id], &q->s.l->value[id]);
    int state = (int)(rests - q->p->dist_values.at);
    numbers sharers = find_sharers(q, state);
    for (int i = 0; i < sharers.n; i++) {
        const plan_dist_value h = q->p->dist_values.at[sharers.at[i]];
        if (!is_read_later(wish, node, q->s.program->values.at[h.value]))
            continue;
        *ARRAY_PUSH(g) = (old_copy){sharers.at[i], q->p->dist_values.n};
        reshard_dist_value(q, sharers.at[i], h.mesh, &h.layout, node->id, true);
    }
    ARRAY_FREE(&sharers);
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
        enter(q, original);
        q->entered = (int)min_i64(q->entered, g->at[i].copy);
        plan_remove(q->p, g->at[i].copy);
    }
    ARRAY_FREE(g);
}
