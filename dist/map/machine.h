/* SPDX-License-Identifier: Apache-2.0 */
/* The machine table: numbers about the places, equal on all ranks. It does not depend on their discovery. */
#ifndef MACHINE_H
#define MACHINE_H

#include "base.h"

enum { MACHINE_DEPTH = 4, LOAN_BYTES = 64 << 10 /* machine.loan_bytes, unless a user says otherwise */ };

/* A place, on which processes run: the CPU workers of a NUMA domain, or one GPU, of one rank. */
typedef struct machine_place {
    int rank;
    int kind;                /* places of equal kind compute equal bits (CPU or GPU, and the BLAS kernel) */
    bool gpu;                /* a GPU with its memory: each shard there is one tile, and messages use no shard there */
    int workers;             /* tasks that it runs at a time, >= 1; 1 for a GPU */
    int path[MACHINE_DEPTH]; /* position in the tree of distances: node, package, domain, rank on it */
} machine_place;

/* Places sorted by rank; every rank has at least one, and its CPUs come before its GPUs. */
typedef struct machine {
    int n_ranks, n_places;
    machine_place *places; /* [n_places] */
    int64_t loan_bytes; /* ranks can read memory of the other ranks of their node, which may take the place of messages
                           of at least this many bytes; 0: they cannot */
} machine;

/* n_ranks ranks of one place with `workers` workers each, on one node: for tests and tools. */
machine *machine_uniform(int n_ranks, int workers);
void machine_destroy(machine **m);

/* 0 from a place to the same place, 1 within a rank, else 2 + the levels of the tree between the places. A measure, not
 * a time. */
int machine_distance(const machine *m, int place, int other);

/* Whether each rank has one place and all places have one parent in the tree, so that all distances are equal. */
bool machine_is_flat(const machine *m);

/* Whether two places are on one node. */
bool machine_same_node(const machine *m, int place, int other);

/* The first place of a rank, where data of the host are. */
int machine_first_place(const machine *m, int rank);

/* The sum of workers over all places of a rank. */
int machine_workers(const machine *m, int rank);

/* Adds one line for each place, for people. */
void machine_describe(const machine *m, text *out);

#endif
