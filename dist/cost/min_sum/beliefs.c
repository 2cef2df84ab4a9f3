/* SPDX-License-Identifier: Apache-2.0 */
/* Tree-reweighted messages. Those of a pair lie by classes, not by states. */
#include "beliefs.h"

#include <math.h>
#include <string.h>

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

static void copy_messages(double **next, double *message, int n, bool back)
{
    const size_t bytes = (size_t)n * sizeof *message;
    if (back)
        memcpy(message, *next, bytes);
    else
        memcpy(*next, message, bytes);
    *next += n;
}

static void copy_all(const min_sum *m, double *saved, bool back)
{
    for (int i = 0; i < m->pairs.n; i++) {
        const joined *j = &m->pairs.at[i];
        copy_messages(&saved, j->to_first, j->p.rows, back);
        copy_messages(&saved, j->to_second, j->p.columns, back);
    }
}

double *beliefs_save(const min_sum *m)
{
    size_t n = 0;
    for (int i = 0; i < m->pairs.n; i++)
        n += (size_t)m->pairs.at[i].p.rows + (size_t)m->pairs.at[i].p.columns;
    double *saved = trama_alloc((n + 1) * sizeof *saved);
    copy_all(m, saved, false);
    return saved;
}

void beliefs_restore(min_sum *m, double *saved)
{
    copy_all(m, saved, true);
    free(saved);
}

void beliefs_add_pair(const min_sum *m, int v, const min_sum_pair *p, const int *state, double *costs)
{
    const bool first = p->first == v;
    const int other = state[other_of(p, v)];
    for (int s = 0; s < m->variables.at[v].n; s++)
        costs[s] += first ? pair_cost(p, p->row[s], p->column[other]) : pair_cost(p, p->row[other], p->column[s]);
}

/* Adds the costs beside the states of earlier variables. */
static void add_earlier(min_sum *m, int v, const int *state)
{
    for (int i = m->before[v]; i >= 0; i = m->pairs.at[i].next_of_second)
        beliefs_add_pair(m, v, &m->pairs.at[i].p, state, m->beliefs);
}

static void add_messages_of_later(min_sum *m, int v)
{
    for (int i = m->after[v]; i >= 0; i = m->pairs.at[i].next_of_first)
        for (int s = 0; s < m->variables.at[v].n; s++)
            m->beliefs[s] += m->pairs.at[i].to_first[m->pairs.at[i].p.row[s]];
}

void beliefs_costs(const min_sum *m, int v, double *costs)
{
    const variable *x = &m->variables.at[v];
    for (int s = 0; s < x->n; s++)
        costs[s] = m->cost.at[x->first + s] + (m->left[x->first + s] ? 0 : m->forbidden);
}

void beliefs_gather(min_sum *m, int v)
{
    beliefs_costs(m, v, m->beliefs);
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
        least = lesser(at[i], least);
    for (int i = 0; i < n; i++)
        at[i] -= least;
    return least;
}

/* to[j] = the least from[i] + scale table[i, j] of all i. */
static void least_of_columns(const double *from, const min_sum_pair *p, double *to)
{
    for (int j = 0; j < p->columns; j++)
        to[j] = INFINITY;
    for (int i = 0; i < p->rows; i++) {
        const double *row = p->table + (size_t)i * (size_t)p->columns;
        for (int j = 0; j < p->columns; j++)
            to[j] = lesser(from[i] + p->scale * row[j], to[j]);
    }
}

/* to[i] = the least from[j] + scale table[i, j] of all j. */
static void least_of_rows(const double *from, const min_sum_pair *p, double *to)
{
    enum { LANES = 4 }; /* minima side by side, as no compiler reorders them */
    for (int i = 0; i < p->rows; i++) {
        const double *row = p->table + (size_t)i * (size_t)p->columns;
        double least[LANES] = {INFINITY, INFINITY, INFINITY, INFINITY};
        int j = 0;
        for (; j + LANES <= p->columns; j += LANES)
            for (int k = 0; k < LANES; k++)
                least[k] = lesser(from[j + k] + p->scale * row[j + k], least[k]);
        for (; j < p->columns; j++)
            least[0] = lesser(from[j] + p->scale * row[j], least[0]);
        to[i] = lesser(lesser(least[0], least[1]), lesser(least[2], least[3]));
    }
}

void beliefs_least(const double *from, const min_sum_pair *p, bool of_second, double *to)
{
    if (of_second)
        least_of_columns(from, p, to);
    else
        least_of_rows(from, p, to);
}

void beliefs_of_classes(min_sum *m, int v, const min_sum_pair *p, double gamma)
{
    const bool first = p->first == v;
    const int *class_of = first ? p->row : p->column, n = first ? p->rows : p->columns;
    for (int c = 0; c < n; c++)
        m->least[c] = INFINITY;
    for (int s = 0; s < m->variables.at[v].n; s++)
        m->least[class_of[s]] = lesser(gamma * m->beliefs[s], m->least[class_of[s]]);
}

/* Sends the share `gamma` of a variable's beliefs over a pair, less the message that came from there. Returns the least
 * element, which is subtracted from the message. */
static double send(min_sum *m, int v, joined *j, double gamma)
{
    const bool forward = j->p.first == v;
    const int n_from = forward ? j->p.rows : j->p.columns, n_to = forward ? j->p.columns : j->p.rows;
    const double *came = forward ? j->to_first : j->to_second;
    double *to = forward ? j->to_second : j->to_first;
    beliefs_of_classes(m, v, &j->p, gamma);
    for (int c = 0; c < n_from; c++)
        m->least[c] -= came[c];
    beliefs_least(m->least, &j->p, forward, to);
    return normalize(to, n_to);
}

static double share(const variable *x)
{
    const int most = x->n_before > x->n_after ? x->n_before : x->n_after;
    return 1.0 / (most > 0 ? most : 1);
}

int beliefs_favour(const double *beliefs, int n, int best)
{
    for (int s = 0; s < n; s++)
        best = beliefs[s] < beliefs[best] ? s : best;
    return best;
}

/* The state of a variable that costs least beside the states of earlier ones, and the messages of later ones. */
static int decide(min_sum *m, int v, const int *state)
{
    beliefs_costs(m, v, m->beliefs);
    add_messages_of_later(m, v);
    add_earlier(m, v, state);
    return beliefs_favour(m->beliefs, m->variables.at[v].n, 0);
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
            send(m, v, &m->pairs.at[i], share(&m->variables.at[v]));
    }
}

double beliefs_backward(min_sum *m)
{
    double bound = 0;
    for (int v = m->variables.n - 1; v >= 0; v--) {
        beliefs_gather(m, v);
        bound += normalize(m->beliefs, m->variables.at[v].n);
        for (int i = m->before[v]; i >= 0; i = m->pairs.at[i].next_of_second)
            bound += send(m, v, &m->pairs.at[i], share(&m->variables.at[v]));
    }
    return bound;
}
