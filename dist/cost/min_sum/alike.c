/* SPDX-License-Identifier: Apache-2.0 */
/* Which variables look alike, and the problem that has one of each kind. */
#include "alike.h"

#include <string.h>

#include "hash_table.h"

enum { STEPS = 12, LEAST_REDUCTION = 2 }; /* a small problem has at most 1/LEAST_REDUCTION of the variables */

/* ---- Kinds ---- */

static bool same_costs(const min_sum_pair *a, const min_sum_pair *b)
{
    return a->table == b->table && a->row == b->row && a->column == b->column && a->scale == b->scale &&
           a->rows == b->rows && a->columns == b->columns;
}

static uint64_t hash_costs(const min_sum_pair *p)
{
    return hash_address(hash_address(hash_address(HASH_START, p->table), p->row), p->column);
}

/* The first pair with the costs of each one [pairs]. Addresses serve to find equal ones alone, so that all ranks get
 * the same numbers. */
static int *first_pairs(const min_sum *m)
{
    int *first = trama_alloc((size_t)(m->pairs.n + 1) * sizeof *first);
    hash_table seen = {0};
    for (int i = 0; i < m->pairs.n; i++) {
        const min_sum_pair *p = &m->pairs.at[i].p;
        const uint64_t hash = hash_costs(p);
        int probe = 0, found;
        while ((found = hash_table_find(&seen, hash, &probe)) >= 0 && !same_costs(&m->pairs.at[found].p, p))
            continue;
        if (found < 0)
            hash_table_add(&seen, hash, i);
        first[i] = found < 0 ? i : found;
    }
    hash_table_free(&seen);
    return first;
}

/* A colour for each variable: that of its costs, and of the pairs and neighbours within so many steps. */
static uint64_t *colours(const min_sum *m, const int *first)
{
    const size_t n = (size_t)m->variables.n;
    uint64_t *colour = trama_alloc((n + 1) * sizeof *colour), *beside = trama_alloc((n + 1) * sizeof *beside);
    for (size_t v = 0; v < n; v++) {
        const variable *x = &m->variables.at[v];
        colour[v] = hash_bytes(HASH_START, m->cost.at + x->first, (size_t)x->n * sizeof *m->cost.at);
    }
    for (int step = 0; step < STEPS; step++) {
        memset(beside, 0, n * sizeof *beside);
        for (int i = 0; i < m->pairs.n; i++) {
            const min_sum_pair *p = &m->pairs.at[i].p;
            const uint64_t costs = hash_word(HASH_START, (uint64_t)first[i]);
            beside[p->first] += hash_word(hash_word(costs, 1), colour[p->second]);
            beside[p->second] += hash_word(hash_word(costs, 2), colour[p->first]);
        }
        for (size_t v = 0; v < n; v++)
            colour[v] = hash_word(hash_word(HASH_START, colour[v]), beside[v]);
    }
    free(beside);
    return colour;
}

/* Sets the kind of each variable, 0, 1, ... in their order, and returns how many there are. */
static int number_kinds(const min_sum *m, const uint64_t *colour, int *of)
{
    hash_table seen = {0};
    int *first = trama_alloc((size_t)(m->variables.n + 1) * sizeof *first), n = 0; /* a variable of each kind */
    for (int v = 0; v < m->variables.n; v++) {
        int probe = 0, kind;
        while ((kind = hash_table_find(&seen, colour[v], &probe)) >= 0 &&
               m->variables.at[first[kind]].n != m->variables.at[v].n)
            continue;
        if (kind < 0) {
            first[n] = v;
            hash_table_add(&seen, colour[v], kind = n++);
        }
        of[v] = kind;
    }
    hash_table_free(&seen);
    free(first);
    return n;
}

/* ---- The small problem ---- */

static void add_variables(alike *a, const min_sum *m, const int *state)
{
    for (int v = 0; v < m->variables.n && !memory_is_short(); v++) {
        const variable *x = &m->variables.at[v];
        if (a->of[v] == a->m->variables.n) {
            min_sum_variable(a->m, x->n);
            a->state[a->of[v]] = state[v];
        }
        if (memory_is_short())
            return;
        double *costs = min_sum_costs(a->m, a->of[v]);
        for (int s = 0; s < x->n; s++)
            costs[s] += m->cost.at[x->first + s];
    }
}

static const double *turn_table(alike *a, const min_sum_pair *p)
{
    double *turned = trama_alloc((size_t)p->rows * (size_t)p->columns * sizeof *turned);
    for (int r = 0; r < p->rows; r++)
        for (int c = 0; c < p->columns; c++)
            turned[(size_t)c * (size_t)p->rows + (size_t)r] = p->table[(size_t)r * (size_t)p->columns + (size_t)c];
    *ARRAY_PUSH(&a->tables) = turned;
    return turned;
}

static void add_costs_within(alike *a, const min_sum_pair *p)
{
    const int v = a->of[p->first];
    double *costs = min_sum_costs(a->m, v);
    for (int s = 0; s < min_sum_states(a->m, v); s++)
        costs[s] += pair_cost(p, p->row[s], p->column[s]);
}

/* Makes the pair of a kind, without messages. */
static void add_kind(alike *a, const min_sum_pair *p, bool turned)
{
    const int first = a->of[p->first], second = a->of[p->second];
    const min_sum_pair straight = {first, second, p->rows, p->columns, p->table, p->row, p->column, p->scale, NULL};
    if (turned)
        min_sum_join(a->m, &(min_sum_pair){second, first, p->columns, p->rows, turn_table(a, p), p->column, p->row,
                                           p->scale, NULL});
    else
        min_sum_join(a->m, &straight);
}

/* A pair has the costs and the messages of all that it stands for together. */
static void add_messages(alike *a, const min_sum *m, int i)
{
    const joined *from = &m->pairs.at[i];
    joined *to = &a->m->pairs.at[a->pair[i]];
    const double *to_first = a->turned[i] ? from->to_second : from->to_first,
                 *to_second = a->turned[i] ? from->to_first : from->to_second;
    for (int r = 0; r < to->p.rows; r++)
        to->to_first[r] += to_first[r];
    for (int c = 0; c < to->p.columns; c++)
        to->to_second[c] += to_second[c];
    if (a->stands_for[a->pair[i]]++)
        to->p.scale += from->p.scale;
}

static void add_pairs(alike *a, const min_sum *m, const int *first)
{
    hash_table seen = {0};
    ARRAY(int) kinds = {0}; /* a pair of each */
    for (int i = 0; i < m->pairs.n && !memory_is_short(); i++) {
        const min_sum_pair *p = &m->pairs.at[i].p;
        const int from = a->of[p->first], to = a->of[p->second];
        a->pair[i] = -1;
        if (from == to) {
            add_costs_within(a, p);
            continue;
        }
        a->turned[i] = from > to;
        const uint64_t hash =
            hash_word(hash_word(hash_word(HASH_START, (uint64_t)first[i]), (uint64_t)from), (uint64_t)to);
        for (int probe = 0, k; a->pair[i] < 0 && (k = hash_table_find(&seen, hash, &probe)) >= 0;) {
            const min_sum_pair *q = &m->pairs.at[kinds.at[k]].p;
            if (first[kinds.at[k]] == first[i] && a->of[q->first] == from && a->of[q->second] == to)
                a->pair[i] = k;
        }
        if (a->pair[i] < 0) {
            a->pair[i] = kinds.n;
            hash_table_add(&seen, hash, kinds.n);
            *ARRAY_PUSH(&kinds) = i;
            add_kind(a, p, a->turned[i]);
        }
        if (!memory_is_short())
            add_messages(a, m, i);
    }
    hash_table_free(&seen);
    ARRAY_FREE(&kinds);
}

alike alike_of(const min_sum *m, const int *state)
{
    const size_t n_pairs = (size_t)m->pairs.n + 1;
    alike a = {.of = trama_alloc((size_t)(m->variables.n + 1) * sizeof *a.of)};
    int *first = first_pairs(m);
    uint64_t *colour = colours(m, first);
    const int n = number_kinds(m, colour, a.of);
    if (n * LEAST_REDUCTION <= m->variables.n && !memory_is_short()) {
        a.m = min_sum_new(m->forbidden);
        a.state = trama_alloc((size_t)(n + 1) * sizeof *a.state);
        a.pair = trama_alloc(n_pairs * sizeof *a.pair);
        a.turned = trama_alloc(n_pairs);
        a.stands_for = trama_alloc(n_pairs * sizeof *a.stands_for);
        add_variables(&a, m, state);
        add_pairs(&a, m, first);
    }
    if (a.m && memory_is_short()) { /* a part of it is missing */
        min_sum_free(a.m);
        a.m = NULL;
    }
    free(colour);
    free(first);
    return a;
}

/* ---- Its solution ---- */

static void share_message(double *to, const double *all, int n, int among)
{
    for (int i = 0; i < n; i++)
        to[i] = all[i] / among;
}

void alike_give(const alike *a, min_sum *m, int *state)
{
    for (int v = 0; v < m->variables.n; v++)
        state[v] = a->state[a->of[v]];
    for (int i = 0; i < m->pairs.n; i++) {
        if (a->pair[i] < 0)
            continue;
        const joined *from = &a->m->pairs.at[a->pair[i]];
        joined *to = &m->pairs.at[i];
        const int among = a->stands_for[a->pair[i]];
        share_message(to->to_first, a->turned[i] ? from->to_second : from->to_first, to->p.rows, among);
        share_message(to->to_second, a->turned[i] ? from->to_first : from->to_second, to->p.columns, among);
    }
}

void alike_free(alike *a)
{
    if (a->m)
        min_sum_free(a->m);
    for (int i = 0; i < a->tables.n; i++)
        free(a->tables.at[i]);
    ARRAY_FREE(&a->tables);
    free(a->state);
    free(a->of);
    free(a->pair);
    free(a->turned);
    free(a->stands_for);
}
