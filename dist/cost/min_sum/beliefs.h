/* SPDX-License-Identifier: Apache-2.0 */
/* The variables of a min_sum problem, and messages between them that say which states cost little. */
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

/* fmin, which keeps NaN in mind, takes 4 times as long. */
static inline double lesser(double a, double b)
{
    return a < b ? a : b;
}

static inline int other_of(const min_sum_pair *p, int v)
{
    return p->first == v ? p->second : p->first;
}

static inline double pair_cost(const min_sum_pair *p, int row, int column)
{
    return p->scale * p->table[(size_t)row * (size_t)p->columns + (size_t)column];
}

/* Room for a solution, and its end. Messages stay from one solution to the next. */
void beliefs_start(min_sum *m);
void beliefs_stop(min_sum *m);

/* A copy of all messages, and back; the copy is freed. */
double *beliefs_save(const min_sum *m);
void beliefs_restore(min_sum *m, double *saved);

/* The costs of a variable's states, with `forbidden` added for those that a branch excludes. */
void beliefs_costs(const min_sum *m, int v, double *costs);

/* Adds the costs of a pair to those of a variable's states, beside the state of the other variable. state [variables]
 */
void beliefs_add_pair(const min_sum *m, int v, const min_sum_pair *p, const int *state, double *costs);

/* The beliefs of a variable: the costs of its states and the messages to them. */
void beliefs_gather(min_sum *m, int v);

/* The first of n states with the least belief, or `best` where none is less. */
int beliefs_favour(const double *beliefs, int n, int best);

/* least[class] = gamma times the least belief of a variable's states of each class in a pair; INFINITY: there is none.
 */
void beliefs_of_classes(min_sum *m, int v, const min_sum_pair *p, double gamma);

/* to[c] = the least from[o] + the pair's cost of c and o, over the classes o of one variable of a pair: of the first
 * one for the classes c of the second one, or the other way round. */
void beliefs_least(const double *from, const min_sum_pair *p, bool of_second, double *to);

/* The sum of the costs of states [variables]. */
double beliefs_sum(const min_sum *m, const int *state);

/* Sends messages from each variable to later ones, and gives it the state that costs least beside those of earlier
 * ones; or sends them from each variable to earlier ones, and returns a lower bound of all sums. */
void beliefs_forward(min_sum *m, int *state);
double beliefs_backward(min_sum *m);

#endif
