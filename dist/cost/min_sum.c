/* SPDX-License-Identifier: Apache-2.0 */
/* Tree-reweighted messages. Those of a pair lie by classes, not by states. */
#include "min_sum.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { MOST_SWEEPS = 8, ROUNDS_OF_A_BRANCH = 6 };

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

int min_sum_states(const min_sum *m, int v)
{
    return m->variables.at[v].n;
}

double *min_sum_costs(min_sum *m, int v)
{
    return m->cost.at + m->variables.at[v].first;
}

void min_sum_join(min_sum *m, const min_sum_pair *pair)
{
    *ARRAY_PUSH(&m->pairs) = (joined){.p = *pair,
                                      .to_first = trama_alloc((size_t)pair->rows * sizeof(double)),
                                      .to_second = trama_alloc((size_t)pair->columns * sizeof(double))};
    m->variables.at[pair->first].n_after++;
    m->variables.at[pair->second].n_before++;
}

void min_sum_scale_fully(min_sum *m)
{
    for (int i = 0; i < m->pairs.n; i++)
        m->pairs.at[i].p.scale = 1;
}

/* ---- Messages ---- */

static void start(min_sum *m)
{
    const size_t lists = (size_t)m->variables.n * sizeof *m->after;
    m->left = trama_alloc((size_t)m->cost.n + 1);
    memset(m->left, 1, (size_t)m->cost.n);
    m->after = trama_alloc(lists);
    m->before = trama_alloc(lists);
    memset(m->after, -1, lists);
    memset(m->before, -1, lists);
    for (int i = 0; i < m->variables.n; i++)
        m->most_states = m->variables.at[i].n > m->most_states ? m->variables.at[i].n : m->most_states;
    for (int i = m->pairs.n - 1; i >= 0; i--) {
        joined *j = &m->pairs.at[i];
        j->next_of_first = m->after[j->p.first];
        j->next_of_second = m->before[j->p.second];
        m->after[j->p.first] = m->before[j->p.second] = i;
        m->most_classes = j->p.rows > m->most_classes ? j->p.rows : m->most_classes;
        m->most_classes = j->p.columns > m->most_classes ? j->p.columns : m->most_classes;
    }
    m->beliefs = trama_alloc((size_t)m->most_states * sizeof(double));
    m->least = trama_alloc((size_t)(m->most_classes + 1) * sizeof(double));
}

static void stop(min_sum *m)
{
    free(m->left);
    free(m->after);
    free(m->before);
    free(m->beliefs);
    free(m->least);
}

static double pair_cost(const min_sum_pair *p, int row, int column)
{
    return p->scale * p->table[(size_t)row * (size_t)p->columns + (size_t)column];
}

/* Adds the costs beside the states of earlier variables. */
static void add_earlier(min_sum *m, int v, const int *state)
{
    for (int i = m->before[v]; i >= 0; i = m->pairs.at[i].next_of_second) {
        const min_sum_pair *p = &m->pairs.at[i].p;
        for (int s = 0; s < m->variables.at[v].n; s++)
            m->beliefs[s] += pair_cost(p, p->row[state[p->first]], p->column[s]);
    }
}

static void add_messages_of_later(min_sum *m, int v)
{
    for (int i = m->after[v]; i >= 0; i = m->pairs.at[i].next_of_first)
        for (int s = 0; s < m->variables.at[v].n; s++)
            m->beliefs[s] += m->pairs.at[i].to_first[m->pairs.at[i].p.row[s]];
}

/* Begins with the costs of a variable's states. */
static void add_costs(min_sum *m, int v)
{
    const variable *x = &m->variables.at[v];
    for (int s = 0; s < x->n; s++)
        m->beliefs[s] = m->cost.at[x->first + s] + (m->left[x->first + s] ? 0 : m->forbidden);
}

/* The beliefs of a variable: the costs of its states and the messages to them. */
static void gather(min_sum *m, int v)
{
    add_costs(m, v);
    add_messages_of_later(m, v);
    for (int i = m->before[v]; i >= 0; i = m->pairs.at[i].next_of_second)
        for (int s = 0; s < m->variables.at[v].n; s++)
            m->beliefs[s] += m->pairs.at[i].to_second[m->pairs.at[i].p.column[s]];
}

/* Subtracts the least of n numbers from all, and returns it. */
static double normalize(double *at, int n)
{
    double least = at[0];
    for (int i = 1; i < n; i++)
        least = fmin(least, at[i]);
    for (int i = 0; i < n; i++)
        at[i] -= least;
    return least;
}

/* Sends the share `gamma` of a variable's beliefs over a pair, less the message that came from there. Returns the least
 * element, which is subtracted from the message. */
static double send(min_sum *m, int v, joined *j, bool forward, double gamma)
{
    const min_sum_pair *p = &j->p;
    const int *class_of = forward ? p->row : p->column, n_from = forward ? p->rows : p->columns,
              n_to = forward ? p->columns : p->rows;
    const double *came = forward ? j->to_first : j->to_second;
    double *to = forward ? j->to_second : j->to_first;
    for (int c = 0; c < n_from; c++)
        m->least[c] = DBL_MAX;
    for (int s = 0; s < m->variables.at[v].n; s++)
        m->least[class_of[s]] = fmin(m->least[class_of[s]], gamma * m->beliefs[s]);
    for (int b = 0; b < n_to; b++) {
        to[b] = DBL_MAX;
        for (int a = 0; a < n_from; a++)
            if (m->least[a] < DBL_MAX)
                to[b] = fmin(to[b], m->least[a] - came[a] + (forward ? pair_cost(p, a, b) : pair_cost(p, b, a)));
    }
    return normalize(to, n_to);
}

static double share(const variable *x)
{
    const int most = x->n_before > x->n_after ? x->n_before : x->n_after;
    return 1.0 / (most > 0 ? most : 1);
}

static int least_belief(const min_sum *m, int n, int best)
{
    for (int s = 0; s < n; s++)
        best = m->beliefs[s] < m->beliefs[best] ? s : best;
    return best;
}

/* The state of a variable that costs least beside the states of earlier ones, and the messages of later ones. */
static int decide(min_sum *m, int v, const int *state)
{
    add_costs(m, v);
    add_messages_of_later(m, v);
    add_earlier(m, v, state);
    return least_belief(m, m->variables.at[v].n, 0);
}

static double sum_of(const min_sum *m, const int *state)
{
    double sum = 0;
    for (int v = 0; v < m->variables.n; v++)
        sum += m->cost.at[m->variables.at[v].first + state[v]];
    for (int i = 0; i < m->pairs.n; i++) {
        const min_sum_pair *p = &m->pairs.at[i].p;
        sum += pair_cost(p, p->row[state[p->first]], p->column[state[p->second]]);
    }
    return sum;
}

static void pass_forward(min_sum *m, int *state)
{
    for (int v = 0; v < m->variables.n; v++) {
        state[v] = decide(m, v, state);
        gather(m, v);
        for (int i = m->after[v]; i >= 0; i = m->pairs.at[i].next_of_first)
            send(m, v, &m->pairs.at[i], true, share(&m->variables.at[v]));
    }
}

static double pass_backward(min_sum *m)
{
    double bound = 0;
    for (int v = m->variables.n - 1; v >= 0; v--) {
        gather(m, v);
        bound += normalize(m->beliefs, m->variables.at[v].n);
        for (int i = m->before[v]; i >= 0; i = m->pairs.at[i].next_of_second)
            bound += send(m, v, &m->pairs.at[i], false, share(&m->variables.at[v]));
    }
    return bound;
}

/* ---- States ---- */

/* The state of a variable that costs least beside those of its neighbours. */
static int least_beside(min_sum *m, int v, const int *state)
{
    const variable *x = &m->variables.at[v];
    add_costs(m, v);
    for (int i = m->after[v]; i >= 0; i = m->pairs.at[i].next_of_first) {
        const min_sum_pair *p = &m->pairs.at[i].p;
        for (int s = 0; s < x->n; s++)
            m->beliefs[s] += pair_cost(p, p->row[s], p->column[state[p->second]]);
    }
    add_earlier(m, v, state);
    return least_belief(m, x->n, state[v]);
}

/* Changes one variable at a time while that lessens the sum. */
static void descend(min_sum *m, int *state)
{
    bool changed = true;
    for (int sweep = 0; changed && sweep < MOST_SWEEPS; sweep++) {
        changed = false;
        for (int v = 0; v < m->variables.n; v++) {
            const int best = least_beside(m, v, state);
            changed |= best != state[v];
            state[v] = best;
        }
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
    double n = m->cost.n;
    for (int i = 0; i < m->pairs.n; i++)
        n += 2.0 * m->pairs.at[i].p.rows * m->pairs.at[i].p.columns;
    return n;
}

static void offer(search *s)
{
    const size_t bytes = (size_t)s->m->variables.n * sizeof *s->met;
    memcpy(s->tried, s->met, bytes);
    descend(s->m, s->tried);
    const double sum = sum_of(s->m, s->tried);
    if (sum < s->sum) {
        s->sum = sum;
        memcpy(s->best, s->tried, bytes);
    }
}

static bool is_decided(const search *s, double bound)
{
    return bound > s->sum - s->tolerance;
}

static double pass_messages(search *s, int rounds)
{
    double bound = -DBL_MAX;
    for (int i = 0; i < rounds && !is_decided(s, bound); i++) {
        pass_forward(s->m, s->met);
        offer(s);
        bound = fmax(bound, pass_backward(s->m));
        s->effort -= visits_of_a_round(s->m);
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
        gather(s->m, v);
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

double min_sum_solve(min_sum *m, int rounds, double tolerance, double effort, int *state, double *sum)
{
    const size_t bytes = (size_t)(m->variables.n + 1) * sizeof(int);
    search s = {.m = m,
                .tolerance = tolerance,
                .effort = effort,
                .met = trama_alloc(bytes),
                .tried = trama_alloc(bytes),
                .best = state,
                .sum = DBL_MAX};
    start(m);
    memcpy(s.met, state, (size_t)m->variables.n * sizeof *state);
    offer(&s);
    const double root = pass_messages(&s, rounds);
    double bound = root;
    bool left = true;
    while (left && s.effort > 0) {
        const bool decided = is_decided(&s, bound);
        int favoured = 0, v = decided ? -1 : unclear_variable(&s, &favoured);
        if (v < 0 && !decided)
            offer_left(&s);
        if (v >= 0)
            split(&s, bound, v, favoured);
        else
            left = go_on(&s);
        if (left)
            bound = pass_messages(&s, ROUNDS_OF_A_BRANCH);
    }
    bound = fmax(root, left ? bound_of_rest(&s, bound) : s.sum - tolerance);
    *sum = s.sum;
    stop(m);
    ARRAY_FREE(&s.path);
    free(s.met);
    free(s.tried);
    return bound;
}
