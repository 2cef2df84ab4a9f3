/* SPDX-License-Identifier: Apache-2.0 */
/* A queue of numbered items by key: the smallest key first, and of equal keys the smallest number. An item stands in it
 * at most once, and its key may change. */
#ifndef EVENT_QUEUE_H
#define EVENT_QUEUE_H

#include "base.h"

typedef struct event_queue {
    struct event_queue_entry {
        double key;
        int64_t item;
    } * at;
    int n, room;
    int *where;    /* [items] 1 + the place in `at`; 0: not there; NULL: keys never change, and items may stand twice */
    int64_t items; /* room of where */
} event_queue;

/* indexed: keys of items may change, which then are small numbers. A zeroed queue is empty, and not indexed. */
void event_queue_index(event_queue *q);
void event_queue_put(event_queue *q, double key, int64_t item); /* adds, or changes the key */
void event_queue_drop(event_queue *q, int64_t item);            /* of an indexed queue, where it is there */
int64_t event_queue_take(event_queue *q);                       /* the first, of a queue that is not empty */
void event_queue_free(event_queue *q);

#endif
