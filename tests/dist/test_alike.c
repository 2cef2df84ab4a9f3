/* SPDX-License-Identifier: Apache-2.0 */
/* Repeated layers in sums: which variables look alike, and solutions against dynamic programming. */
#include <check.h>
#include <float.h>
#include <math.h>
#include <string.h>

#include "alike.h"
#include "dense.h"
#include "descend.h"
#include "suite.h"

enum { STATES = 3, CLASSES = 2, MOST_LAYERS = 120, MOST_VARIABLES = 3 * MOST_LAYERS, STEPS = 12 };

/* Variables f and g of each layer, then its backward variable b. The backward ones come in the reverse order, and read
 * the f of their layer, as a program with its gradients has them. The first and the last layer have other costs. */
typedef struct ladder {
    int layers;
    double f[3][STATES], b[3][STATES]; /* costs in the first, in inner ones, in the last layer */
    double fg[STATES][STATES], gf[STATES][STATES], bb[STATES][STATES], fb[STATES][CLASSES];
} ladder;

static const int self[STATES] = {0, 1, 2}, class_of_b[STATES] = {0, 1, 0};
static const double HALF = 0.5; /* the scale of fb */

static void draw(uint64_t *seed, double *at, int n)
{
    for (int i = 0; i < n; i++)
        at[i] = random_below(seed, 1000);
}

static ladder ladder_of(uint64_t *seed, int layers)
{
    ladder l = {.layers = layers};
    draw(seed, l.f[0], 3 * STATES);
    draw(seed, l.b[0], 3 * STATES);
    draw(seed, l.fg[0], STATES * STATES);
    draw(seed, l.gf[0], STATES * STATES);
    draw(seed, l.bb[0], STATES * STATES);
    draw(seed, l.fb[0], STATES * CLASSES);
    return l;
}

static int place_of(const ladder *l, int layer)
{
    return layer == 0 ? 0 : layer < l->layers - 1 ? 1 : 2;
}

static int add_variable(min_sum *m, const double *costs)
{
    const int v = min_sum_variable(m, STATES);
    if (costs)
        memcpy(min_sum_costs(m, v), costs, STATES * sizeof *costs);
    return v;
}

static void join(min_sum *m, int first, int second, const double *table)
{
    min_sum_join(m, &(min_sum_pair){first, second, STATES, STATES, table, self, self, 1, NULL});
}

static min_sum *problem_of(const ladder *l)
{
    min_sum *m = min_sum_new(1e12);
    for (int layer = 0; layer < l->layers; layer++) {
        const int f = add_variable(m, l->f[place_of(l, layer)]);
        if (layer)
            join(m, f - 1, f, l->gf[0]);
        join(m, f, add_variable(m, NULL), l->fg[0]);
    }
    for (int layer = l->layers - 1; layer >= 0; layer--) {
        const int b = add_variable(m, l->b[place_of(l, layer)]);
        if (layer < l->layers - 1)
            join(m, b - 1, b, l->bb[0]);
        min_sum_join(m, &(min_sum_pair){2 * layer, b, STATES, CLASSES, l->fb[0], self, class_of_b, HALF, NULL});
    }
    return m;
}

/* The layer of a variable, and its place in it: 0, 1, 2 for f, g, b. */
static int layer_of(const ladder *l, int v, int *place)
{
    *place = v < 2 * l->layers ? v % 2 : 2;
    return *place < 2 ? v / 2 : 3 * l->layers - 1 - v;
}

/* The least costs from f of a layer to f of the next one. */
static double least_between(const ladder *l, int from, int to)
{
    double least = DBL_MAX;
    for (int g = 0; g < STATES; g++)
        least = fmin(least, l->fg[from][g] + (to < 0 ? 0 : l->gf[g][to]));
    return least;
}

/* The least sum, layer by layer: for each state of f and b of the last one. */
static double least_of(const ladder *l)
{
    double least[STATES][STATES], next[STATES][STATES], found = DBL_MAX;
    for (int layer = 0; layer < l->layers; layer++) {
        for (int f = 0; f < STATES; f++)
            for (int b = 0; b < STATES; b++) {
                double before = layer ? DBL_MAX : 0;
                for (int i = 0; layer && i < STATES; i++)
                    for (int j = 0; j < STATES; j++)
                        before = fmin(before, least[i][j] + least_between(l, i, f) + l->bb[b][j]);
                next[f][b] =
                    before + l->f[place_of(l, layer)][f] + l->b[place_of(l, layer)][b] + HALF * l->fb[f][class_of_b[b]];
            }
        memcpy(least, next, sizeof least);
    }
    for (int f = 0; f < STATES; f++)
        for (int b = 0; b < STATES; b++)
            found = fmin(found, least[f][b] + least_between(l, f, -1));
    return found;
}

/* Whether the costs of the ends are beyond the steps: one a layer, from b to b. */
static bool is_inner(const ladder *l, int layer)
{
    return layer > STEPS && l->layers - 1 - layer > STEPS;
}

START_TEST(layers_far_from_the_ends_look_alike)
{
    uint64_t seed = 6;
    const ladder l = ladder_of(&seed, MOST_LAYERS);
    min_sum *m = problem_of(&l);
    const int state[MOST_VARIABLES] = {[2 * STEPS] = 1}; /* the first f that no end is near */
    int places[3] = {-1, -1, -1};
    alike a = alike_of(m, state);
    ck_assert(a.m != NULL);
    for (int v = 0; v < MOST_VARIABLES; v++) {
        int place, layer = layer_of(&l, v, &place);
        if (!is_inner(&l, layer))
            continue;
        places[place] = places[place] < 0 ? a.of[v] : places[place];
        ck_assert_int_eq(a.of[v], places[place]);
    }
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(a.state[places[i]], i == 0); /* the state of the first one */
    ck_assert(places[0] != places[1] && places[1] != places[2] && places[0] != places[2]);
    ck_assert_int_ne(a.of[0], places[0]);
    alike_free(&a);
    min_sum_free(m);
}
END_TEST

START_TEST(few_layers_have_no_smaller_problem)
{
    uint64_t seed = 7;
    const ladder l = ladder_of(&seed, 20);
    min_sum *m = problem_of(&l);
    const int state[60] = {0};
    alike a = alike_of(m, state);
    ck_assert_ptr_null(a.m);
    alike_free(&a);
    min_sum_free(m);
}
END_TEST

/* The messages to the variables of a kind, added up over pairs between two kinds. */
static void add_messages(const min_sum *m, const int *of, int to, int from, double *sum)
{
    for (int i = 0; i < m->pairs.n; i++) {
        const joined *j = &m->pairs.at[i];
        const int first = of ? of[j->p.first] : j->p.first, second = of ? of[j->p.second] : j->p.second;
        for (int r = 0; r < j->p.rows && first == to && second == from; r++)
            sum[r] += j->to_first[r];
        for (int c = 0; c < j->p.columns && second == to && first == from; c++)
            sum[c] += j->to_second[c];
    }
}

static void compare_messages(const alike *a, const min_sum *m)
{
    for (int to = 0; to < a->m->variables.n; to++)
        for (int from = 0; from < a->m->variables.n; from++) {
            double all[STATES] = {0}, few[STATES] = {0};
            add_messages(m, a->of, to, from, all);
            add_messages(a->m, NULL, to, from, few);
            for (int s = 0; s < STATES && to != from; s++)
                ck_assert_double_eq_tol(all[s], few[s], 1e-6 * (1 + few[s]));
        }
}

/* The two inner f in the middle get equal shares. */
static void compare_shares(const min_sum *m, int layers)
{
    const joined *a = NULL, *b = NULL;
    for (int i = 0; i < m->pairs.n; i++) {
        const joined *j = &m->pairs.at[i];
        a = j->p.first == layers && j->p.second == layers + 1 ? j : a;
        b = j->p.first == layers + 2 && j->p.second == layers + 3 ? j : b;
    }
    ck_assert(a && b);
    ck_assert_mem_eq(a->to_first, b->to_first, STATES * sizeof(double));
    ck_assert_mem_eq(a->to_second, b->to_second, STATES * sizeof(double));
}

START_TEST(the_small_problem_has_the_sums_and_gives_its_messages)
{
    uint64_t seed = 9;
    for (int i = 0; i < 5; i++) {
        const ladder l = ladder_of(&seed, MOST_LAYERS - random_below(&seed, 10));
        min_sum *m = problem_of(&l);
        int state[MOST_VARIABLES] = {0};
        double sum;
        alike a = alike_of(m, state);
        ck_assert(a.m != NULL);
        const double bound = min_sum_solve(a.m, 20, 0.25, 0, a.state, &sum);
        ck_assert_double_le(bound, sum + 1e-6);
        alike_give(&a, m, state);
        ck_assert_double_eq_tol(beliefs_sum(m, state), sum, 1e-6 * sum);
        compare_messages(&a, m);
        compare_shares(m, l.layers / 2 * 2);
        alike_free(&a);
        min_sum_free(m);
    }
}
END_TEST

START_TEST(repeated_layers_are_solved)
{
    uint64_t seed = 8;
    int best = 0, tried = 0;
    for (int i = 0; i < 100; i++, tried++) {
        const ladder l = ladder_of(&seed, 2 + random_below(&seed, MOST_LAYERS - 1));
        min_sum *m = problem_of(&l);
        int state[MOST_VARIABLES] = {0};
        double sum;
        const double bound = min_sum_solve(m, 8, 0.25, 1e7, state, &sum), least = least_of(&l);
        ck_assert_double_le(bound, least + 1e-6);
        ck_assert_double_ge(sum, least - 1e-6);
        ck_assert_double_le(sum, 1.1 * least);
        best += sum < least + 1e-6;
        min_sum_free(m);
    }
    ck_assert_int_gt(best, tried * 9 / 10);
}
END_TEST

/* ---- Moves ---- */

static bool is_least_alone(min_sum *m, int *state)
{
    const double sum = beliefs_sum(m, state);
    bool least = true;
    for (int v = 0; v < m->variables.n; v++)
        for (int s = 0; s < STATES; s++) {
            const int before = state[v];
            state[v] = s;
            least &= beliefs_sum(m, state) >= sum - 1e-9;
            state[v] = before;
        }
    return least;
}

/* Pairs of the same two variables are frequent among 6 variables. */
START_TEST(moves_never_raise_the_sum)
{
    uint64_t seed = 10;
    int stuck = 0;
    double at[STATES * STATES * 14];
    for (int i = 0; i < 2000; i++) {
        int state[6];
        min_sum *m = min_sum_new(1e12);
        for (int v = 0; v < 6; v++) {
            draw(&seed, at, STATES);
            add_variable(m, at);
            state[v] = (int)random_below(&seed, STATES);
        }
        draw(&seed, at, STATES * STATES * 14);
        for (int k = 0; k < 14; k++) {
            const int second = 1 + (int)random_below(&seed, 5);
            join(m, (int)random_below(&seed, second), second, at + k * STATES * STATES);
        }
        const double before = beliefs_sum(m, state);
        beliefs_start(m);
        const int sweeps = descend(m, state);
        beliefs_stop(m);
        ck_assert_double_le(beliefs_sum(m, state), before);
        stuck += sweeps < 8 && !is_least_alone(m, state);
        min_sum_free(m);
    }
    ck_assert_int_lt(stuck, 40); /* pairs of the same two variables are judged one by one */
}
END_TEST

/* Either variable alone would pay 1000: both change together. */
START_TEST(variables_that_are_tied_move_together)
{
    const double equal[] = {0, 1000, 1000, 0}, nothing[] = {0, 0, 0, 0}, costs[] = {5, 3};
    static const int both[] = {0, 1};
    int state[40] = {0};
    min_sum *m = min_sum_new(1e12);
    for (int v = 0; v < 2; v++)
        memcpy(min_sum_costs(m, min_sum_variable(m, 2)), costs, sizeof costs);
    min_sum_join(m, &(min_sum_pair){0, 1, 2, 2, equal, both, both, 1, NULL});
    for (int v = 2; v < 40; v++) { /* a crowded variable, beside which the rest is free */
        memcpy(min_sum_costs(m, min_sum_variable(m, 2)), v == 2 ? costs : nothing, sizeof costs);
        if (v > 2)
            min_sum_join(m, &(min_sum_pair){2, v, 2, 2, nothing, both, both, 1, NULL});
    }
    beliefs_start(m);
    descend(m, state);
    beliefs_stop(m);
    ck_assert(state[0] == 1 && state[1] == 1 && state[2] == 1);
    ck_assert_double_eq(beliefs_sum(m, state), 9);
    min_sum_free(m);
}
END_TEST

int main(void)
{
    const TTest *tests[] = {
        layers_far_from_the_ends_look_alike,
        few_layers_have_no_smaller_problem,
        the_small_problem_has_the_sums_and_gives_its_messages,
        repeated_layers_are_solved,
        moves_never_raise_the_sum,
        variables_that_are_tied_move_together,
    };
    return suite_run("alike", NULL, NULL, tests, sizeof tests / sizeof *tests);
}
