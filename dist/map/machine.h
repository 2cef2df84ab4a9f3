/* SPDX-License-Identifier: Apache-2.0 */
/* The machine table: plain numbers about the places that all ranks agree on. It knows nothing of how they were found.
 */
#ifndef MACHINE_H
#define MACHINE_H

#include "base.h"

enum { MACHINE_DEPTH = 4 };

/* Where processes run: the CPU workers of a NUMA domain, or one GPU, of one rank. */
typedef struct machine_place {
    int rank;
    int kind;                /* places of equal kind compute equal bits (CPU or GPU, and which BLAS kernel) */
    bool gpu;                /* its memory is a GPU's: each of its shards is one tile, and messages lie in no shard */
    int workers;             /* tasks that it runs at a time, >= 1; of a GPU 1 */
    int path[MACHINE_DEPTH]; /* position in the tree of distances: node, package, domain, rank on it */
} machine_place;

/* Places sorted by rank; every rank has at least one, and its CPUs come before its GPUs. */
typedef struct machine {
    int n_ranks, n_places;
    machine_place *places; /* [n_places] */
} machine;

/* n_ranks ranks of one place with `workers` workers each, on one node: for tests and tools. */
machine *machine_uniform(int n_ranks, int workers);
void machine_destroy(machine **m);

/* 0 for a place and itself, 1 in one rank, then 2 + the levels of the tree between two places: a measure, not seconds.
 */
int machine_distance(const machine *m, int place, int other);

/* Whether any two places are equally far from each other. */
bool machine_is_flat(const machine *m);

/* The first place of a rank: what its host owns lies there. */
int machine_first_place(const machine *m, int rank);

/* Of all places of a rank. */
int machine_workers(const machine *m, int rank);

/* One line a place, for people. */
void machine_describe(const machine *m, text *out);

#endif
