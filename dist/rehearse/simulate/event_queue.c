/* SPDX-License-Identifier: Apache-2.0 */
/* A binary heap, in which an index finds items whose key changes. */
#include "event_queue.h"

#include <string.h>

void event_queue_index(event_queue *q)
{
    q->items = 64;
    q->where = trama_alloc((size_t)q->items * sizeof *q->where);
}

void event_queue_free(event_queue *q)
{
    free(q->at);
    free(q->where);
    *q = (event_queue){0};
}

static bool is_before(const struct event_queue_entry *a, const struct event_queue_entry *b)
{
    return a->key != b->key ? a->key < b->key : a->item < b->item;
}

static void set(event_queue *q, int i, struct event_queue_entry e)
{
    q->at[i] = e;
    if (q->where)
        q->where[e.item] = i + 1;
}

/* Moves the entry at i up or down to its place. */
static void settle(event_queue *q, int i)
{
    const struct event_queue_entry e = q->at[i];
    for (; i > 0 && is_before(&e, &q->at[(i - 1) / 2]); i = (i - 1) / 2)
        set(q, i, q->at[(i - 1) / 2]);
    for (int child; (child = 2 * i + 1) < q->n; i = child) {
        child += child + 1 < q->n && is_before(&q->at[child + 1], &q->at[child]);
        if (!is_before(&q->at[child], &e))
            break;
        set(q, i, q->at[child]);
    }
    set(q, i, e);
}

void event_queue_put(event_queue *q, double key, int64_t item)
{
    while (q->where && item >= q->items) {
        q->where = trama_resize(q->where, 2 * (size_t)q->items * sizeof *q->where);
        memset(q->where + q->items, 0, (size_t)q->items * sizeof *q->where);
        q->items *= 2;
    }
    int i = q->where ? q->where[item] - 1 : -1;
    if (i < 0) {
        q->at = trama_array_room(q->at, &q->n, &q->room, sizeof *q->at);
        i = q->n++;
    }
    q->at[i] = (struct event_queue_entry){key, item};
    settle(q, i);
}

static void remove_at(event_queue *q, int i)
{
    if (q->where)
        q->where[q->at[i].item] = 0;
    const struct event_queue_entry last = q->at[--q->n];
    if (i == q->n)
        return;
    q->at[i] = last;
    settle(q, i);
}

void event_queue_drop(event_queue *q, int64_t item)
{
    if (item < q->items && q->where[item])
        remove_at(q, q->where[item] - 1);
}

int64_t event_queue_take(event_queue *q)
{
    const int64_t item = q->at[0].item;
    remove_at(q, 0);
    return item;
}
