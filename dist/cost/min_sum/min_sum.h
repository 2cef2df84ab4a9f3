/* SPDX-License-Identifier: Apache-2.0 */
/* Minimizes a sum of costs of variables and of pairs of them, where each variable has some states. It knows no layouts.
 *
 * Messages between variables give a lower bound of the sum, and states that come near it: sequential tree-reweighted
 * message passing (Kolmogorov, "Convergent tree-reweighted message passing for energy minimization", IEEE Transactions
 * on Pattern Analysis and Machine Intelligence 28, 2006). Where the pairs form a tree, the bound rises to the least sum
 * from round to round. */
#ifndef MIN_SUM_H
#define MIN_SUM_H

#include "base.h"

typedef struct min_sum min_sum;

/* The cost of a pair of variables first < second: scale times an element of a table. A class of a state is its row, or
 * column, of the table. Tables and classes must outlive the problem. */
typedef struct min_sum_pair {
    int first, second;
    int rows, columns;
    const double *table;     /* [rows, columns] row-major */
    const int *row, *column; /* [states of first], [states of second] */
    double scale;
    const double *full; /* of the table's shape, for min_sum_count_fully; NULL: the table */
} min_sum_pair;

/* forbidden: added to the cost of states that a branch excludes; more than the least sum. */
min_sum *min_sum_new(double forbidden);
void min_sum_free(min_sum *m);

/* A variable with n states, whose number is returned: 0, 1, ... */
int min_sum_variable(min_sum *m, int n);
int min_sum_variables(const min_sum *m); /* their number */
int min_sum_pairs(const min_sum *m);

/* The number of a variable's states, and their costs, 0 at first; the address is valid until the next variable. */
int min_sum_states(const min_sum *m, int variable);
double *min_sum_costs(min_sum *m, int variable);

/* A copy of all costs, which the caller frees, and back. */
double *min_sum_save_costs(const min_sum *m);
void min_sum_restore_costs(min_sum *m, const double *saved);

void min_sum_join(min_sum *m, const min_sum_pair *pair);

/* Takes the full table of each pair. */
void min_sum_count_fully(min_sum *m);

/* Improves the states [variables] that are given, and returns a lower bound of all sums. *sum is that of the states. It
 * passes messages to and fro `rounds` times, and more often as long as bound and sum come nearer to each other. Where
 * they still differ by `tolerance` or more, it branches: a variable takes a state, or one of the others (Land and Doig
 * 1960), until no branch is left. Where none is left, bound and sum differ by at most the tolerance. Where variables
 * look alike, a smaller problem is solved first (alike.h), and fewer rounds follow. `effort` bounds all but the rounds:
 * a round counts 1 for each element of a table that it visits and 256 for each pair, a sweep of moves as a round. */
double min_sum_solve(min_sum *m, int rounds, double tolerance, double effort, int *state, double *sum);

#endif
