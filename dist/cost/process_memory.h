/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes that processes need at a time, and their prices in a search.
 *
 * States and constants stay, and values that a target names. Another value is there from the op that makes it, an
 * input from the start, to the last op that reads it or a copy of it, in the order of the program. A copy in another
 * layout is there from its first reader to its last. A view shares the memory of the value or copy that it shows. */
#ifndef PROCESS_MEMORY_H
#define PROCESS_MEMORY_H

#include "layout_graph.h"

/* The most bytes that a process needs, and the node at which it does. */
typedef struct memory_peak {
    int node;
    int64_t bytes;
} memory_peak;

/* Processes that are on the same meshes are one group. */
typedef struct process_memory {
    const trama_program *program;
    int64_t nominal;
    bool states_alone; /* other values count nothing */
    int n_groups;
    ARRAY(const trama_mesh *) meshes; /* of values that count, and of ops */
    bool *has;                        /* [meshes, groups] */
    int n_moments;                    /* the program's nodes; 1 where it has none */
    int *from, *until;                /* [value id] the first and the last node at which a value is there in any layout,
                                       * not counting readers of its views; until -1: at none */
    memory_peak *peak;                /* [groups] by the layouts that were counted last */
} process_memory;

process_memory process_memory_of(const trama_program *program, const layouts *l, int64_t nominal, bool states_alone);
void process_memory_free(process_memory *m);

/* The most bytes that a process needs in the layouts. Each value counts with its largest piece. */
int64_t process_memory_count(process_memory *m, const layouts *l);

/* Counts once. */
int64_t layouts_memory(const trama_program *program, const layouts *l, int64_t nominal, bool states_alone);

/* The bytes of all values that may have a price, each of them whole. */
double process_memory_whole(const process_memory *m);

/* A byte that a process of the group needs at a node costs `price`. too_low and enough are the search's: prices by
 * which layouts needed more than the limit, and did not. */
typedef struct memory_price {
    int group, node;
    double price, too_low, enough;
} memory_price;

/* Adds prices to the costs of the layouts of values. Copies and views have none, since no variable says when they are
 * there: so prices count no more than is needed. */
void process_memory_price(const process_memory *m, const layout_graph *g, int n, const memory_price *prices);

#endif
