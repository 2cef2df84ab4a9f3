/* SPDX-License-Identifier: Apache-2.0 */
/* Tree-reweighted messages. Those of a pair lie by classes, not by states. */
#include "beliefs.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { MOST_SWEEPS = 8 };

void beliefs_start(min_sum *m)
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

void beliefs_stop(min_sum *m)
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

void beliefs_gather(min_sum *m, int v)
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

double beliefs_sum(const min_sum *m, const int *state)
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

void beliefs_forward(min_sum *m, int *state)
{
    for (int v = 0; v < m->variables.n; v++) {
        state[v] = decide(m, v, state);
        beliefs_gather(m, v);
        for (int i = m->after[v]; i >= 0; i = m->pairs.at[i].next_of_first)
            send(m, v, &m->pairs.at[i], true, share(&m->variables.at[v]));
    }
}

double beliefs_backward(min_sum *m)
{
    double bound = 0;
    for (int v = m->variables.n - 1; v >= 0; v--) {
        beliefs_gather(m, v);
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

void beliefs_descend(min_sum *m, int *state)
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
