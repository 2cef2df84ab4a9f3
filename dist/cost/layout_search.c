/* SPDX-License-Identifier: Apache-2.0 */
/* Solves the graph of a program's layouts. */
#include "layout_search.h"

#include <math.h>
#include <string.h>

#include "split_form.h"
#include "state_memory.h"

enum { ROUNDS = 32 };
static const double TOLERANCE = 0.5, EFFORT = 1e8; /* bytes; visits of elements of tables */

/* Prices of a byte of states, in received bytes: to split a state costs about as many as it has. The first price is
 * low, each further one RAISE times as high. Between the last one that is too low and the one that is not some more are
 * tried. */
enum { PRICES = 12, PRICES_BETWEEN = 6, RAISE = 4 };
static const double FIRST_PRICE = 1.0 / 64, LAST_PRICE = 65536, EFFORT_OF_A_PRICE = 2.5e6;

typedef struct searching {
    const trama_program *program;
    const layouts *start;
    int64_t nominal;
    layout_graph g;
    state_memory memory;
    int64_t limit; /* bytes of states; INT64_MAX: none */
    int *state;
    int64_t *used; /* [groups] in the layouts that were made last */
    double *price; /* [groups] */
    layout_search *result;
} searching;

static int64_t above(const searching *s, int64_t kept)
{
    return max_i64(0, kept - s->limit);
}

static int64_t bytes_of_best(const layout_search *r)
{
    return r->found ? r->better_bytes : r->bytes;
}

static int64_t kept_by_best(const layout_search *r)
{
    return r->found ? r->better_kept : r->kept;
}

/* Takes the layouts of a solution where they are nearer to the limit than the best ones so far, or as near and receive
 * fewer bytes. Returns whether they keep it. */
static bool offer(searching *s)
{
    layouts made;
    layout_search *r = s->result;
    layout_graph_take(&s->g, s->state, &made);
    const int64_t bytes = layouts_bytes(s->program, &made, s->g.tables.nominal),
                  kept = state_memory_use(&s->memory, &made, s->used), excess = above(s, kept),
                  least = above(s, kept_by_best(r));
    if (excess > least || (excess == least && bytes >= bytes_of_best(r))) {
        layouts_free(&made);
        return !excess;
    }
    if (r->found)
        layouts_free(&r->better);
    r->found = true;
    r->better = made;
    r->better_bytes = bytes;
    r->better_kept = kept;
    return !excess;
}

/* A whole number of bytes that is no more than the bound without the cost of the limit: the costs of other states, of
 * changes as such, and rounding are taken off. A variable of copies has three changes at most. */
static int64_t whole_bytes(const layout_graph *g, double bound, double of_limit)
{
    const int n = min_sum_variables(g->problem), changes = min_sum_pairs(g->problem) + 3 * n;
    const double rounding = 1e-9 * fabs(bound - of_limit) + 1e-12 * (fabs(bound) + of_limit),
                 of_choices = (n + 1) * 2 * COST_OF_OTHER + changes * g->tables.of_change,
                 exact = bound - of_limit - of_choices - rounding;
    return exact > 0 ? (int64_t)ceil(fmin(exact, 0x1p62)) : 0;
}

/* paid: the most that prices of states may add up to. */
static void build(searching *s, double paid)
{
    layout_graph_build(&s->g, s->program, s->start, s->nominal, (double)s->result->bytes, paid);
    s->result->pinned = s->g.n_pinned;
}

typedef enum { UNSOLVED, TOO_MUCH, FITS } solution;

static solution solve(searching *s, double effort, double *bound)
{
    double sum;
    *bound = min_sum_solve(s->g.problem, ROUNDS, TOLERANCE, effort, s->state, &sum);
    if (sum >= s->g.tables.forbidden || memory_is_short())
        return UNSOLVED;
    return offer(s) ? FITS : TOO_MUCH;
}

/* The same for the bound: what the limit would cost at the prices is taken from the least sum (Everett 1963). */
static solution solve_for_bound(searching *s, double effort)
{
    double bound, of_limit = 0;
    const solution found = solve(s, effort, &bound);
    for (int k = 0; k < s->memory.n_groups; k++)
        of_limit += s->price[k] > 0 ? s->price[k] * (double)s->limit : 0;
    s->result->bound = max_i64(s->result->bound, whole_bytes(&s->g, bound, of_limit));
    return found;
}

static solution solve_at_prices(searching *s)
{
    state_memory_price(&s->memory, &s->g, s->price);
    return solve_for_bound(s, EFFORT_OF_A_PRICE);
}

/* Raises the prices in groups that keep too much. too_low [groups]: the prices before the last ones. */
static bool raise_prices(searching *s, double *too_low)
{
    solution found = TOO_MUCH;
    for (int i = 0; i < PRICES && found == TOO_MUCH; i++) {
        memcpy(too_low, s->price, (size_t)s->memory.n_groups * sizeof *too_low);
        for (int k = 0; k < s->memory.n_groups; k++)
            if (s->used[k] > s->limit)
                s->price[k] = s->price[k] > 0 ? RAISE * s->price[k] : FIRST_PRICE;
        found = solve_at_prices(s);
    }
    return found == FITS;
}

/* Leaves the lowest prices by which the limit was kept. */
static void lower_prices(searching *s, double *too_low)
{
    const int n = s->memory.n_groups;
    double *enough = trama_alloc((size_t)n * sizeof *enough);
    memcpy(enough, s->price, (size_t)n * sizeof *enough);
    for (int i = 0; i < PRICES_BETWEEN && !memory_is_short(); i++) {
        for (int k = 0; k < n; k++)
            s->price[k] = (too_low[k] + enough[k]) / 2;
        memcpy(solve_at_prices(s) == FITS ? enough : too_low, s->price, (size_t)n * sizeof *enough);
    }
    memcpy(s->price, enough, (size_t)n * sizeof *enough);
    free(enough);
}

/* The first solution kept too much. With prices the costs that must not be paid are so large that bounds are worse. */
static void search_within(searching *s)
{
    double *too_low = trama_alloc((size_t)s->memory.n_groups * sizeof *too_low);
    layout_graph_free(&s->g);
    build(s, LAST_PRICE * s->memory.n_groups * state_memory_whole(&s->memory));
    if (raise_prices(s, too_low))
        lower_prices(s, too_low);
    state_memory_price(&s->memory, &s->g, s->price);
    free(too_low);
}

static bool keeps_limit(const searching *s)
{
    return !above(s, kept_by_best(s->result));
}

/* The first solutions give the bound. They may count readers of one layout as too few bytes; the last one counts each
 * reader in full. */
static void search(searching *s)
{
    double ignored;
    if (solve_for_bound(s, EFFORT) == TOO_MUCH) {
        const int64_t without_limit = s->result->bound;
        search_within(s);
        if (!keeps_limit(s))
            s->result->bound = without_limit; /* prices that are not enough raise the others without end */
    }
    if (bytes_of_best(s->result) > s->result->bound && !memory_is_short()) {
        min_sum_scale_fully(s->g.problem);
        solve(s, EFFORT, &ignored);
    }
}

void search_layouts(const trama_program *program, const layouts *start, int64_t nominal, layout_search *result)
{
    const int64_t any = complete_nominal(program, nominal), limit = program->search.state_bytes;
    searching s = {.program = program,
                   .start = start,
                   .nominal = nominal,
                   .memory = state_memory_of(program, start, any),
                   .limit = limit ? limit : INT64_MAX,
                   .result = result};
    s.used = trama_alloc((size_t)s.memory.n_groups * sizeof *s.used);
    s.price = trama_alloc((size_t)s.memory.n_groups * sizeof *s.price);
    *result = (layout_search){.bytes = layouts_bytes(program, start, any)};
    result->kept = state_memory_use(&s.memory, start, s.used);
    build(&s, 0);
    s.state = trama_alloc((size_t)(min_sum_variables(s.g.problem) + 1) * sizeof *s.state);
    if (!memory_is_short())
        search(&s);
    result->fits = keeps_limit(&s);
    result->bound = min_i64(result->bound, bytes_of_best(result));
    free(s.state);
    free(s.used);
    free(s.price);
    layout_graph_free(&s.g);
    state_memory_free(&s.memory);
}

static trama_status too_many_states(const search_request *asked, int64_t kept)
{
    return trama_fail(asked->where, TRAMA_E_MEMORY,
                      "search_layouts_within: a process may keep %lld bytes of states; no layouts were found by which "
                      "it keeps fewer than %lld. Use more processes, or annotate fewer states",
                      (long long)asked->state_bytes, (long long)kept);
}

trama_status search_if_asked(const trama_program *program, int64_t nominal, layouts *l)
{
    const search_request *asked = &program->search;
    layout_search found;
    if (!asked->asked)
        return TRAMA_OK;
    search_layouts(program, l, nominal, &found);
    if (!found.fits && !asked->nearest && !memory_is_short()) {
        if (found.found)
            layouts_free(&found.better);
        return too_many_states(asked, kept_by_best(&found));
    }
    if (found.found) {
        layouts_free(l);
        *l = found.better;
    }
    return TRAMA_OK;
}

trama_status search_complete(trama_program *program, int64_t nominal, const trama_mesh *single, layouts *result)
{
    trama_status status = split_forms_complete(program, nominal, single, result);
    return status ? status : search_if_asked(program, nominal, result);
}
