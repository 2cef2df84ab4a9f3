/* SPDX-License-Identifier: Apache-2.0 */
/* A smaller problem for one in which variables look alike, as those of repeated layers do.
 *
 * Variables look alike if their costs do, and the pairs that lead from them for a number of steps (colours that are
 * refined, as in Mladenov, Ahmadi, Kersting: "Lifted linear programming", AISTATS 2012). In the small problem each kind
 * of variables is one variable with their costs together, and each kind of pairs is one pair. Its solution gives all
 * variables of a kind one state, and its messages begin those of the large one. */
#ifndef ALIKE_H
#define ALIKE_H

#include "beliefs.h"

typedef struct alike {
    min_sum *m;             /* NULL: too few variables look alike */
    int *state;             /* [variables of m] at first that of the first variable of each kind */
    int *of;                /* [variables] the variable of m */
    int *pair;              /* [pairs] the pair of m; -1: the two variables look alike */
    bool *turned;           /* [pairs] whether m has its variables the other way round */
    int *stands_for;        /* [pairs of m] how many pairs */
    ARRAY(double *) tables; /* those that are turned */
} alike;

/* The problem with its messages; m must outlive it. */
alike alike_of(const min_sum *m, const int *state);

/* Gives the large problem the states and messages of the small one. */
void alike_give(const alike *a, min_sum *m, int *state);

void alike_free(alike *a);

#endif
