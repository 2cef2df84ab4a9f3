/* SPDX-License-Identifier: Apache-2.0 */
/* The variables of a min_sum problem, and messages between them that say which states cost little. Knows no branch. */
#ifndef BELIEFS_H
#define BELIEFS_H

#include "min_sum.h"

typedef struct variable {
    int n, first;          /* states; the first one's place in `cost` */
    int n_before, n_after; /* pairs with earlier and with later variables */
} variable;

typedef struct joined {
    min_sum_pair p;
    int next_of_first, next_of_second; /* the next pair of the same variable; -1 */
    double *to_first, *to_second;      /* messages [rows], [columns] */
} joined;

struct min_sum {
    double forbidden;
    ARRAY(variable) variables;
    ARRAY(double) cost;
    bool *left; /* beside the costs: no branch excludes the state */
    ARRAY(joined) pairs;
    int *after, *before; /* [variables] the first pair with a later, and with an earlier variable; -1 */
    int most_states, most_classes;
    double *beliefs, *least; /* scratch [most_states], [most_classes] */
};

/* Room for a solution, and its end. Messages stay from one solution to the next. */
void beliefs_start(min_sum *m);
void beliefs_stop(min_sum *m);

/* The beliefs of a variable: the costs of its states and the messages to them. */
void beliefs_gather(min_sum *m, int v);

/* The sum of the costs of states [variables]. */
double beliefs_sum(const min_sum *m, const int *state);

/* Sends messages from each variable to later ones, and gives it the state that costs least beside those of earlier
 * ones; or sends them from each variable to earlier ones, and returns a lower bound of all sums. */
void beliefs_forward(min_sum *m, int *state);
double beliefs_backward(min_sum *m);

/* Changes one variable at a time while that lessens the sum. */
void beliefs_descend(min_sum *m, int *state);

#endif
