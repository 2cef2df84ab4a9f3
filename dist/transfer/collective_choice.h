/* SPDX-License-Identifier: Apache-2.0 */
/* Changes of layout that GPUs make by collectives in place of messages: the processes along one mesh axis are the
 * members of one group. It knows neither a library of collectives nor the places of processes. */
#ifndef COLLECTIVE_CHOICE_H
#define COLLECTIVE_CHOICE_H

#include "transfer.h"

/* Collectives of n members; extents in elements. */
typedef enum {
    PLAN_ALL_GATHER,     /* [count] of each member become [n * count] on each, in the order of members */
    PLAN_ALL_TO_ALL,     /* [n * count] on each: part i goes to member i, which gets part j from member j */
    PLAN_BROADCAST,      /* [count] of the root become the same on each */
    PLAN_REDUCE_SCATTER, /* [n * count] on each: member i gets all parts i, reduced to [count] */
    PLAN_ALL_REDUCE      /* [count] on each become their reduction [count] on each */
} collective_form;
/* The collective of one change of layout. */
typedef struct collective_choice {
    collective_form form;
    int axis;      /* the mesh axis along which each group lies; -1: the whole mesh is one group */
    int give, get; /* the dims that cut the elements sent and those received into parts; -1: not cut */
    bool sums;     /* each member sums the terms that an all-to-all has brought */
    bool gathers;  /* and an all-gather brings these sums to all */
    int root;      /* of a broadcast: position in the target mesh */
} collective_choice;

/* root: the position in the target mesh of the only process that has elements, all of them; or -1. nccl_sums: the
 * collective sums, in any order. */
bool find_collective(const transfer *t, int root, bool nccl_sums, collective_choice *found);

/* One process of the mesh and its group. */
typedef struct collective_member {
    int index, n;
    box whole;    /* the box that the group's pieces make up, or that of each term */
    box from, to; /* the process's box in the source and in the target */
} collective_member;
collective_member collective_member_at(const transfer *t, const collective_choice *w, int position);

/* Part i of n equal parts along a dim; the outermost dim whose extent n divides, or -1. */
box collective_part(const box *whole, int dim, int n, int i);
int collective_even_dim(const box *b, int n);

#endif
