/* SPDX-License-Identifier: Apache-2.0 */
/* Changes of layout that GPUs make together, in place of messages: those along one axis of the mesh take part in one
 * collective. It knows no library that does them, and not where processes are. */
#ifndef COLLECTIVE_CHOICE_H
#define COLLECTIVE_CHOICE_H

#include "transfer.h"

/* n members; count elements. */
typedef enum {
    PLAN_ALL_GATHER,     /* count of each, in the order of members, become n * count on each */
    PLAN_ALL_TO_ALL,     /* of n * count on each, part i goes to member i, which has part j from member j */
    PLAN_BROADCAST,      /* count of the root become the same on each */
    PLAN_REDUCE_SCATTER, /* of n * count on each, member i gets the parts i reduced to one */
    PLAN_ALL_REDUCE      /* count on each become one, on each */
} collective_form;
/* Which collective, and of what. */
typedef struct collective_choice {
    collective_form form;
    int axis;      /* of the mesh: along it lies each group; -1: the whole mesh is one */
    int give, get; /* the dims that are cut for what goes, and in what comes; -1: none is */
    bool sums;     /* what an all-to-all has brought is summed */
    bool gathers;  /* and these sums are gathered */
    int root;      /* of a broadcast: position in the target mesh */
} collective_choice;

/* root: the position in the target mesh of the process that alone has all, or -1. nccl_sums: sums in whatever order. */
bool find_collective(const transfer *t, int root, bool nccl_sums, collective_choice *found);

/* One process of the mesh and its group. */
typedef struct collective_member {
    int index, n;
    box whole;    /* what the group has together, or each term of it */
    box from, to; /* what the process has, and gets */
} collective_member;
collective_member collective_member_at(const transfer *t, const collective_choice *w, int position);

/* Part i of n equal ones along a dim; and the outermost dim of which n members get equal parts, or -1. */
box collective_part(const box *whole, int dim, int n, int i);
int collective_even_dim(const box *b, int n);

#endif
