/* SPDX-License-Identifier: Apache-2.0 */
/* Moves of a variable and its neighbours. */
#include "descend.h"

enum {
    MOST_SWEEPS = 8,
    MOST_NEIGHBOURS = 32 /* a variable with more moves alone, and stays where a neighbour moves */
};

typedef struct descent {
    min_sum *m;
    int *state;
    double *sums, *answers; /* scratch [most_states], [most_classes] */
} descent;

static bool is_crowded(const min_sum *m, int v)
{
    return m->variables.at[v].n_before + m->variables.at[v].n_after > MOST_NEIGHBOURS;
}

/* The next pair of a variable, those with later ones first; NULL: there is none. *place is -1 before the first call. */
static const min_sum_pair *next_pair(const min_sum *m, int v, int *place)
{
    const joined *pairs = m->pairs.at;
    if (*place < 0)
        *place = m->after[v] >= 0 ? m->after[v] : m->before[v];
    else if (pairs[*place].p.first == v)
        *place = pairs[*place].next_of_first >= 0 ? pairs[*place].next_of_first : m->before[v];
    else
        *place = pairs[*place].next_of_second;
    return *place >= 0 ? &pairs[*place].p : NULL;
}

/* The beliefs are the costs of a variable's states beside those of its neighbours, without the pair, or NULL. */
static void gather_beside(const descent *d, int v, const min_sum_pair *without)
{
    const min_sum_pair *p;
    beliefs_costs(d->m, v, d->m->beliefs);
    for (int place = -1; (p = next_pair(d->m, v, &place));)
        if (p != without)
            beliefs_add_pair(d->m, v, p, d->state, d->m->beliefs);
}

/* Adds the least costs of a neighbour and of its pairs, in whatever state, to the sums. */
static void add_answers(const descent *d, int v, const min_sum_pair *p)
{
    const bool first = p->first == v;
    const int *class_of = first ? p->row : p->column, other = other_of(p, v);
    gather_beside(d, other, p);
    beliefs_of_classes(d->m, other, p, 1);
    beliefs_least(d->m->least, p, !first, d->answers);
    for (int s = 0; s < d->m->variables.at[v].n; s++)
        d->sums[s] += d->answers[class_of[s]];
}

/* The state of a variable that costs least if its neighbours suit theirs. */
static int best_with_neighbours(const descent *d, int v)
{
    const min_sum_pair *p;
    beliefs_costs(d->m, v, d->sums);
    for (int place = -1; (p = next_pair(d->m, v, &place));)
        if (is_crowded(d->m, other_of(p, v)))
            beliefs_add_pair(d->m, v, p, d->state, d->sums);
        else
            add_answers(d, v, p);
    return beliefs_favour(d->sums, d->m->variables.at[v].n, d->state[v]);
}

/* Gives a variable the state, or where that is -1 the one that costs least. Returns the new cost less the old one. */
static double change(const descent *d, int v, int state)
{
    const double *beliefs = d->m->beliefs;
    const int before = d->state[v];
    gather_beside(d, v, NULL);
    d->state[v] = state < 0 ? beliefs_favour(beliefs, d->m->variables.at[v].n, before) : state;
    return beliefs[d->state[v]] - beliefs[before];
}

/* Neighbours may be neighbours of each other, so the sum of a move is known when it is made. */
static bool move(const descent *d, int v)
{
    int moved[MOST_NEIGHBOURS], before[MOST_NEIGHBOURS], n = 0; /* in turn; one with two pairs twice */
    const min_sum_pair *p;
    const int was = d->state[v], best = is_crowded(d->m, v) ? -1 : best_with_neighbours(d, v);
    if (best == was)
        return false;
    double more = change(d, v, best);
    for (int place = -1; best >= 0 && (p = next_pair(d->m, v, &place)); n++) {
        const int other = other_of(p, v);
        moved[n] = other;
        before[n] = d->state[other];
        more += is_crowded(d->m, other) ? 0 : change(d, other, -1);
    }
    if (more < 0)
        return true;
    while (n--)
        d->state[moved[n]] = before[n];
    d->state[v] = was;
    return false;
}

int descend(min_sum *m, int *state)
{
    const descent d = {.m = m,
                       .state = state,
                       .sums = trama_alloc((size_t)(m->most_states + 1) * sizeof(double)),
                       .answers = trama_alloc((size_t)(m->most_classes + 1) * sizeof(double))};
    bool changed = true;
    int sweeps = 0;
    for (; changed && sweeps < MOST_SWEEPS; sweeps++) {
        changed = false;
        for (int v = 0; v < m->variables.n; v++)
            changed |= move(&d, v);
    }
    free(d.sums);
    free(d.answers);
    return sweeps;
}
