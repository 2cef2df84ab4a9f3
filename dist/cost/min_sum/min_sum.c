/* SPDX-License-Identifier: Apache-2.0 */
/* The problem, and the branches of its solution. */
#include "min_sum.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "alike.h"
#include "descend.h"

enum {
    ROUNDS_OF_A_BRANCH = 6,
    ROUNDS_AFTER_ALIKE = 4, /* at least */
    OF_A_PAIR = 256,        /* a pair takes time as so many visits, beside those of its elements */
    KEPT = 4                /* the part of the effort that is kept for branches: 1/KEPT */
};
static const double LEAST_GAIN = 1.0 / 256; /* of the gap, in a round beyond the first ones */

min_sum *min_sum_new(double forbidden)
{
    min_sum *m = trama_alloc(sizeof *m);
    m->forbidden = forbidden;
    return m;
}

void min_sum_free(min_sum *m)
{
    for (int i = 0; i < m->pairs.n; i++) {
        free(m->pairs.at[i].to_first);
        free(m->pairs.at[i].to_second);
    }
    ARRAY_FREE(&m->variables);
    ARRAY_FREE(&m->cost);
    ARRAY_FREE(&m->pairs);
    free(m);
}

int min_sum_variable(min_sum *m, int n)
{
    *ARRAY_PUSH(&m->variables) = (variable){.n = n, .first = m->cost.n};
    for (int i = 0; i < n; i++)
        *ARRAY_PUSH(&m->cost) = 0;
    return m->variables.n - 1;
}

int min_sum_variables(const min_sum *m)
{
    return m->variables.n;
}

int min_sum_pairs(const min_sum *m)
{
    return m->pairs.n;
}

int min_sum_states(const min_sum *m, int v)
{
    return m->variables.at[v].n;
}

double *min_sum_costs(min_sum *m, int v)
{
    return m->cost.at + m->variables.at[v].first;
}

double *min_sum_save_costs(const min_sum *m)
{
    const size_t bytes = (size_t)m->cost.n * sizeof *m->cost.at;
    double *saved = trama_alloc(bytes + 1);
    return bytes ? memcpy(saved, m->cost.at, bytes) : saved;
}

void min_sum_restore_costs(min_sum *m, const double *saved)
{
    if (m->cost.n)
        memcpy(m->cost.at, saved, (size_t)m->cost.n * sizeof *saved);
}

void min_sum_join(min_sum *m, const min_sum_pair *pair)
{
    *ARRAY_PUSH(&m->pairs) = (joined){.p = *pair,
                                      .to_first = trama_alloc((size_t)pair->rows * sizeof(double)),
                                      .to_second = trama_alloc((size_t)pair->columns * sizeof(double))};
    m->variables.at[pair->first].n_after++;
    m->variables.at[pair->second].n_before++;
}

void min_sum_count_fully(min_sum *m)
{
    for (int i = 0; i < m->pairs.n; i++) {
        min_sum_pair *p = &m->pairs.at[i].p;
        p->table = p->full ? p->full : p->table;
    }
}

/* ---- Branches ---- */

/* A variable has a state, or is without it. */
typedef struct branch {
    int variable, state;
    bool without;
    double bound; /* of the problem before */
    bool *left;   /* the variable's states that were left before */
} branch;

typedef struct search {
    min_sum *m;
    double tolerance, effort;
    int *met, *tried, *best;
    double sum; /* of best */
    ARRAY(branch) path;
} search;

static double visits_of_a_round(const min_sum *m)
{
    double n = m->cost.n + OF_A_PAIR * (double)m->pairs.n;
    for (int i = 0; i < m->pairs.n; i++)
        n += 2.0 * m->pairs.at[i].p.rows * m->pairs.at[i].p.columns;
    return n;
}

/* Takes the states that were met where they are better than the best. Without effort only the first ones are improved.
 */
static void offer(search *s)
{
    const size_t bytes = (size_t)s->m->variables.n * sizeof *s->met;
    memcpy(s->tried, s->met, bytes);
    if (s->effort > 0 || s->sum == DBL_MAX)
        s->effort -= descend(s->m, s->tried) * visits_of_a_round(s->m);
    const double sum = beliefs_sum(s->m, s->tried);
    if (sum < s->sum) {
        s->sum = sum;
        memcpy(s->best, s->tried, bytes);
    }
}

static bool is_decided(const search *s, double bound)
{
    return bound > s->sum - s->tolerance;
}

/* So many rounds, and more as long as they bring bound and sum together and leave `kept` of the effort. */
static double pass_messages(search *s, int rounds, double kept)
{
    double bound = -DBL_MAX, gap = DBL_MAX;
    bool gains = true;
    for (int i = 0; (i < rounds || (gains && s->effort > kept)) && !is_decided(s, bound); i++) {
        beliefs_forward(s->m, s->met);
        offer(s);
        bound = fmax(bound, beliefs_backward(s->m));
        s->effort -= visits_of_a_round(s->m);
        gains = s->sum - bound < (1 - LEAST_GAIN) * gap;
        gap = s->sum - bound;
    }
    return bound;
}

/* The variable with the largest gap, and the state that its beliefs favour. The gap is the distance from that state to
 * the one which the variable took beside earlier ones; where both are the same, it is minus the distance to the second
 * best. -1: each variable has one state left. */
static int unclear_variable(search *s, int *favoured)
{
    int found = -1;
    double most = -DBL_MAX;
    for (int v = 0; v < s->m->variables.n; v++) {
        const int n = s->m->variables.at[v].n;
        const double *beliefs = s->m->beliefs;
        int best = -1, second = -1;
        beliefs_gather(s->m, v);
        for (int k = 0; k < n; k++)
            if (s->m->left[s->m->variables.at[v].first + k]) {
                if (best < 0 || beliefs[k] < beliefs[best]) {
                    second = best;
                    best = k;
                } else if (second < 0 || beliefs[k] < beliefs[second]) {
                    second = k;
                }
            }
        if (second < 0)
            continue;
        const double differs = s->met[v] != best ? beliefs[s->met[v]] - beliefs[best] : beliefs[best] - beliefs[second];
        if (differs > most) {
            most = differs;
            found = v;
            *favoured = best;
        }
    }
    return found;
}

static bool *states_left(const search *s, int v)
{
    return s->m->left + s->m->variables.at[v].first;
}

static void apply(search *s, const branch *b)
{
    for (int k = 0; k < s->m->variables.at[b->variable].n; k++)
        states_left(s, b->variable)[k] = b->left[k] && (k == b->state) != b->without;
}

static void split(search *s, double bound, int v, int state)
{
    const size_t n = (size_t)s->m->variables.at[v].n;
    branch b = {v, state, false, bound, trama_alloc(n)};
    memcpy(b.left, states_left(s, v), n);
    *ARRAY_PUSH(&s->path) = b;
    apply(s, &b);
}

/* Undoes the last branch. */
static void join_again(search *s)
{
    branch *b = &s->path.at[--s->path.n];
    memcpy(states_left(s, b->variable), b->left, (size_t)s->m->variables.at[b->variable].n);
    free(b->left);
}

/* Tries the states that are left, one of each variable. */
static void offer_left(search *s)
{
    for (int v = 0; v < s->m->variables.n; v++)
        for (int k = 0; k < s->m->variables.at[v].n; k++)
            if (states_left(s, v)[k])
                s->met[v] = k;
    offer(s);
}

/* Goes on to the next branch that is left; false where there is none. */
static bool go_on(search *s)
{
    while (s->path.n) {
        branch *b = &s->path.at[s->path.n - 1];
        if (!b->without && !is_decided(s, b->bound)) {
            b->without = true;
            apply(s, b);
            return true;
        }
        join_again(s);
    }
    return false;
}

/* The least bound of the branches that are left, the present one among them. */
static double bound_of_rest(search *s, double present)
{
    double bound = fmin(present, s->sum - s->tolerance);
    while (s->path.n) {
        const branch *b = &s->path.at[s->path.n - 1];
        if (!b->without)
            bound = fmin(bound, b->bound);
        join_again(s);
    }
    return bound;
}

/* Branches until none is left, or no effort; returns the bound. root: the bound before. */
static double try_branches(search *s, double root)
{
    double bound = root, *messages = beliefs_save(s->m);
    bool left = true;
    while (left && s->effort > 0) {
        const bool decided = is_decided(s, bound);
        int favoured = 0, v = decided ? -1 : unclear_variable(s, &favoured);
        if (v < 0 && !decided)
            offer_left(s);
        if (v >= 0)
            split(s, bound, v, favoured);
        else
            left = go_on(s);
        if (left)
            bound = pass_messages(s, ROUNDS_OF_A_BRANCH, DBL_MAX);
    }
    bound = fmax(root, left ? bound_of_rest(s, bound) : s->sum - s->tolerance);
    beliefs_restore(s->m, messages);
    return bound;
}

/* Solves a problem from the states of `best`. */
static double solve(search *s, int rounds)
{
    const size_t n = (size_t)s->m->variables.n;
    s->sum = DBL_MAX;
    s->met = trama_alloc((n + 1) * sizeof *s->met);
    s->tried = trama_alloc((n + 1) * sizeof *s->tried);
    beliefs_start(s->m);
    memcpy(s->met, s->best, n * sizeof *s->met);
    offer(s);
    const double bound = try_branches(s, pass_messages(s, rounds, s->effort / KEPT));
    beliefs_stop(s->m);
    ARRAY_FREE(&s->path);
    free(s->met);
    free(s->tried);
    return bound;
}

/* Solves the smaller problem with half of the effort. The states become its solution if that is better. */
static void solve_alike(search *s, const alike *a, int rounds)
{
    const size_t bytes = (size_t)s->m->variables.n * sizeof *s->best;
    const double given = beliefs_sum(s->m, s->best), rest = s->effort / 2;
    int *before = memcpy(trama_alloc(bytes + 1), s->best, bytes);
    search few = {.m = a->m, .tolerance = s->tolerance, .effort = s->effort - rest, .best = a->state};
    solve(&few, rounds);
    alike_give(a, s->m, s->best);
    if (given < beliefs_sum(s->m, s->best))
        memcpy(s->best, before, bytes);
    free(before);
    s->effort = rest + few.effort;
}

double min_sum_solve(min_sum *m, int rounds, double tolerance, double effort, int *state, double *sum)
{
    search s = {.m = m, .tolerance = tolerance, .effort = effort, .best = state};
    alike a = alike_of(m, state);
    if (a.m) {
        solve_alike(&s, &a, rounds);
        rounds = (int)fmax(ROUNDS_AFTER_ALIKE, fmin(rounds, s.effort / visits_of_a_round(m)));
    }
    const double bound = solve(&s, rounds);
    *sum = s.sum;
    alike_free(&a);
    return bound;
}
