/* SPDX-License-Identifier: Apache-2.0 */
/* One change of layout, planned for every rank and interpreted, with what it must cost by the table of dist/README.md.
 */
#ifndef CHANGE_H
#define CHANGE_H

#include "simulation.h"

typedef struct change change;
struct change {
    const trama_mesh *from_mesh, *to_mesh;
    trama_layout from, to;
    trama_shape shape;
    const machine *machine;
    const process_map *map;
    bool fresh;            /* in buffers of its own */
    int max_tiles;         /* tiles; with a grain of one byte */
    int64_t staging_bytes; /* bytes; 0: the default */
    uint64_t seed;         /* of the terms */
    bool two_levels;       /* a process may receive up to twice what any one lacks, or with partials what any one may */
    bool exact;            /* values must be equal to the bit, not to 1e-12 */
    bool collectives, nccl_sums;                       /* options of the plan */
    void (*look)(const change *c, plan *const *plans); /* at the plans [machine->n_ranks]; NULL */
    dense *result;                                     /* gets the value, which the caller frees; NULL */
};

/* Message windows to try, in bytes: the default; one by which all messages are sent from where they lie; few and many
 * rounds. */
int64_t change_window(trama_shape shape, int which);

/* Elements that a rank sent and received between places. */
typedef struct change_traffic {
    int64_t sent, received;
} change_traffic;

/* Plans, runs and compares: values equal, replicas equal, no more in motion than accounted for. Where every process has
 * a place of its own: each receives exactly the bytes it lacks, or with partials no more than the table. Ends the test
 * on any mistake. moved NULL or [machine->n_ranks]. */
void change_try(const change *c, change_traffic *moved);

/* 1 more than the largest id of the meshes. */
int change_ids(const trama_mesh *a, const trama_mesh *b);

/* Elements of its target box that a process does not hold in the source; by counting them. */
int64_t change_lacking(const change *c, int position);

/* A program of one f64 input, whose layout changes, and the plans of all ranks [machine->n_ranks] for that.
 * dist_values: NULL, or [machine->n_ranks]: the input in its target layout. The caller destroys all of them. */
trama_program *change_program(const change *c);
plan **change_plans(const change *c, const trama_program *program, const plan_dist_value **dist_values);

char *change_text(const change *c); /* the caller frees */

#endif
