/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of states that processes keep, and their prices in a search. */
#ifndef STATE_MEMORY_H
#define STATE_MEMORY_H

#include "layout_graph.h"

/* Processes that keep states of the same meshes are one group. */
typedef struct state_memory {
    const trama_program *program;
    int64_t nominal;
    int n_groups;
    ARRAY(const trama_mesh *) meshes; /* of states */
    bool *keeps;                      /* [meshes, groups] */
} state_memory;

state_memory state_memory_of(const trama_program *program, const layouts *l, int64_t nominal);
void state_memory_free(state_memory *m);

/* The most bytes of states that a process keeps, each state counted with its largest piece; used [groups]: that of a
 * process of each group. */
int64_t state_memory_use(const state_memory *m, const layouts *l, int64_t *used);

/* The same bytes without groups. */
int64_t layouts_state_bytes(const trama_program *program, const layouts *l, int64_t nominal);

/* Bytes of all states, each of them whole. */
double state_memory_whole(const state_memory *m);

/* Adds prices to the costs of the states' layouts, in place of earlier ones. price [groups]: of a byte that each
 * process of the group keeps. */
void state_memory_price(const state_memory *m, const layout_graph *g, const double *price);

#endif
