/* SPDX-License-Identifier: Apache-2.0 */
/* The least sum over variables and pairs, against all assignments of states. */
#include <check.h>
#include <float.h>
#include <math.h>
#include <string.h>

#include "dense.h"
#include "min_sum.h"
#include "suite.h"

enum { MOST_VARIABLES = 7, MOST_STATES = 4 };

static const int sizes[] = {20, 5000, 100000000}; /* of costs */

/* A random problem, kept beside the one that is solved. */
typedef struct problem {
    int n, n_pairs, states[MOST_VARIABLES];
    double cost[MOST_VARIABLES][MOST_STATES];
    struct {
        int first, second, rows, columns, row[MOST_STATES], column[MOST_STATES];
        double table[MOST_STATES * MOST_STATES], scale;
    } pair[2 * MOST_VARIABLES];
} problem;

static int below(uint64_t *seed, int n)
{
    return random_below(seed, n);
}

static void add_pair(problem *p, uint64_t *seed, int first, int second, int most)
{
    int k = p->n_pairs++;
    p->pair[k].first = first;
    p->pair[k].second = second;
    p->pair[k].rows = 1 + below(seed, p->states[first]);
    p->pair[k].columns = 1 + below(seed, p->states[second]);
    p->pair[k].scale = below(seed, 2) ? 1 : 0.5;
    for (int i = 0; i < p->states[first]; i++)
        p->pair[k].row[i] = i < p->pair[k].rows ? i : below(seed, p->pair[k].rows);
    for (int i = 0; i < p->states[second]; i++)
        p->pair[k].column[i] = i < p->pair[k].columns ? i : below(seed, p->pair[k].columns);
    for (int i = 0; i < p->pair[k].rows * p->pair[k].columns; i++)
        p->pair[k].table[i] = below(seed, most);
}

/* A tree, or with more pairs a graph with loops and with several pairs of two variables. */
static problem problem_of(uint64_t *seed, bool tree, int most)
{
    problem p = {.n = 1 + below(seed, MOST_VARIABLES)};
    for (int v = 0; v < p.n; v++) {
        p.states[v] = 1 + below(seed, MOST_STATES);
        for (int s = 0; s < p.states[v]; s++)
            p.cost[v][s] = below(seed, most / 2);
    }
    for (int v = 1; v < p.n; v++)
        add_pair(&p, seed, below(seed, v), v, most);
    for (int i = 0; i < p.n && !tree && p.n > 1; i++) {
        int second = 1 + below(seed, p.n - 1);
        add_pair(&p, seed, below(seed, second), second, most);
    }
    return p;
}

static double sum_of(const problem *p, const int *state)
{
    double sum = 0;
    for (int v = 0; v < p->n; v++)
        sum += p->cost[v][state[v]];
    for (int i = 0; i < p->n_pairs; i++)
        sum += p->pair[i].scale * p->pair[i].table[p->pair[i].row[state[p->pair[i].first]] * p->pair[i].columns +
                                                   p->pair[i].column[state[p->pair[i].second]]];
    return sum;
}

static double least_sum(const problem *p)
{
    int state[MOST_VARIABLES] = {0}, v;
    double least = DBL_MAX;
    do {
        least = fmin(least, sum_of(p, state));
        for (v = 0; v < p->n && ++state[v] == p->states[v]; v++)
            state[v] = 0;
    } while (v < p->n);
    return least;
}

typedef struct solution {
    double bound, sum, sum_of_states;
} solution;

static solution solve(const problem *p, int rounds, double effort)
{
    solution s;
    int state[MOST_VARIABLES] = {0};
    min_sum *m = min_sum_new(1e12);
    for (int v = 0; v < p->n; v++) {
        ck_assert_int_eq(min_sum_variable(m, p->states[v]), v);
        memcpy(min_sum_costs(m, v), p->cost[v], (size_t)p->states[v] * sizeof(double));
    }
    for (int i = 0; i < p->n_pairs; i++)
        min_sum_join(m, &(min_sum_pair){p->pair[i].first, p->pair[i].second, p->pair[i].rows, p->pair[i].columns,
                                        p->pair[i].table, p->pair[i].row, p->pair[i].column, p->pair[i].scale, NULL});
    s.bound = min_sum_solve(m, rounds, 0.25, effort, state, &s.sum);
    s.sum_of_states = sum_of(p, state);
    min_sum_free(m);
    return s;
}

START_TEST(a_tree_is_solved_by_messages_alone)
{
    uint64_t seed = 3;
    for (int i = 0; i < 2000; i++) {
        const problem p = problem_of(&seed, true, sizes[i % 3]);
        const solution s = solve(&p, 100, 0);
        const double least = least_sum(&p);
        ck_assert_double_eq_tol(s.sum, least, 1e-6);
        ck_assert_double_eq_tol(s.sum_of_states, least, 1e-6);
        ck_assert_double_le(s.bound, least + 1e-6);
        ck_assert_double_gt(s.bound, least - 0.25);
    }
}
END_TEST

START_TEST(branches_solve_graphs_with_loops)
{
    uint64_t seed = 4;
    int apart = 0;
    for (int i = 0; i < 2000; i++) {
        const problem p = problem_of(&seed, false, sizes[i % 3]);
        const solution without = solve(&p, 8, 0), s = solve(&p, 8, 1e9);
        const double least = least_sum(&p);
        ck_assert_double_eq_tol(without.sum, without.sum_of_states, 1e-6);
        ck_assert_double_le(without.bound, least + 1e-6);
        ck_assert_double_ge(without.sum, least - 1e-6);
        apart += without.bound < least - 0.25;
        ck_assert_double_le(s.bound, least + 1e-6);
        ck_assert_double_gt(s.bound, s.sum - 0.26);
        ck_assert_double_le(s.sum, least + 0.25 + 1e-6);
    }
    ck_assert_int_gt(apart, 20); /* so that branches had work */
}
END_TEST

START_TEST(little_effort_leaves_a_bound)
{
    uint64_t seed = 5;
    for (int i = 0; i < 2000; i++) {
        const problem p = problem_of(&seed, false, sizes[i % 3]);
        const solution s = solve(&p, 1, below(&seed, 2000));
        const double least = least_sum(&p);
        ck_assert_double_le(s.bound, least + 1e-6);
        ck_assert_double_ge(s.sum, least - 1e-6);
        ck_assert_double_eq_tol(s.sum, s.sum_of_states, 1e-6);
    }
}
END_TEST

int main(void)
{
    const TTest *tests[] = {
        a_tree_is_solved_by_messages_alone,
        branches_solve_graphs_with_loops,
        little_effort_leaves_a_bound,
    };
    return suite_run("min_sum", NULL, NULL, tests, sizeof tests / sizeof *tests);
}
