/* SPDX-License-Identifier: Apache-2.0 */
/* Solves the graph of a program's layouts. */
#include "layout_search.h"

#include <math.h>
#include <string.h>

#include "process_memory.h"
#include "split_form.h"

enum { ROUNDS = 32 };
static const double TOLERANCE = 0.5, EFFORT = 1e8; /* bytes; as min_sum_solve counts */

/* Prices of a byte of memory, in received bytes: to split a value costs about as many as it has. The first price is
 * low, each further one RAISE times as high. Between the last one that is too low and the one that is not some more are
 * tried. */
enum { PRICES = 12, PRICES_BETWEEN = 6, RAISE = 4, MOST_MOMENTS = 4 /* of a group of processes */ };
static const double FIRST_PRICE = 1.0 / 64, LAST_PRICE = 65536 /* after PRICES */, EFFORT_OF_A_PRICE = 2.5e6;

typedef struct searching {
    const trama_program *program;
    const layouts *start;
    int64_t nominal;
    layout_graph g;
    process_memory memory;      /* with a limit */
    int64_t limit;              /* bytes that a process may need; INT64_MAX: any */
    double *costs;              /* of all states, without prices */
    ARRAY(memory_price) prices; /* at the moments that needed the most */
    int *state;
    layout_search *result;
} searching;

static bool has_limit(const searching *s)
{
    return s->program->search.limit > 0;
}

static int64_t above(const searching *s, int64_t needed)
{
    return max_i64(0, needed - s->limit);
}

static int64_t memory_of(searching *s, const layouts *l)
{
    return has_limit(s) ? process_memory_count(&s->memory, l) : 0;
}

static int64_t bytes_of_best(const layout_search *r)
{
    return r->found ? r->better_bytes : r->bytes;
}

static int64_t needed_by_best(const layout_search *r)
{
    return r->found ? r->better_memory : r->memory;
}

/* Takes the layouts of a solution where they are nearer to the limit than the best ones so far, or as near and receive
 * fewer bytes. Returns whether they keep it. */
static bool offer(searching *s)
{
    layouts made;
    layout_search *r = s->result;
    layout_graph_take(&s->g, s->state, &made);
    const int64_t bytes = layouts_bytes(s->program, &made, s->g.tables.nominal), needed = memory_of(s, &made),
                  excess = above(s, needed), least = above(s, needed_by_best(r));
    if (excess > least || (excess == least && bytes >= bytes_of_best(r))) {
        layouts_free(&made);
        return !excess;
    }
    if (r->found)
        layouts_free(&r->better);
    r->found = true;
    r->better = made;
    r->better_bytes = bytes;
    r->better_memory = needed;
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

/* paid: the most that prices may add up to. */
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

/* The same for the bound: the cost of the limit at the prices is taken from the least sum (Everett 1963). */
static solution solve_for_bound(searching *s, double effort)
{
    double bound, of_limit = 0;
    const solution found = solve(s, effort, &bound);
    for (int i = 0; i < s->prices.n; i++)
        of_limit += s->prices.at[i].price * (double)s->limit;
    s->result->bound = max_i64(s->result->bound, whole_bytes(&s->g, bound, of_limit));
    return found;
}

/* Sets the costs without prices, then adds the prices. */
static void set_prices(searching *s)
{
    min_sum_restore_costs(s->g.problem, s->costs);
    process_memory_price(&s->memory, &s->g, s->prices.n, s->prices.at);
}

static solution solve_at_prices(searching *s)
{
    set_prices(s);
    return solve_for_bound(s, EFFORT_OF_A_PRICE);
}

/* Raises the price of a group at the moment that needs the most. A new moment begins with the group's highest price;
 * where the group has enough of them, the last one serves. */
static void raise_price(searching *s, int group)
{
    memory_price *last = NULL;
    double highest = 0;
    int n = 0;
    for (int i = 0; i < s->prices.n && (!last || last->node != s->memory.peak[group].node); i++)
        if (s->prices.at[i].group == group) {
            last = &s->prices.at[i];
            highest = fmax(highest, last->price);
            n++;
        }
    if ((!last || last->node != s->memory.peak[group].node) && n < MOST_MOMENTS) {
        last = ARRAY_PUSH(&s->prices);
        *last = (memory_price){.group = group, .node = s->memory.peak[group].node};
        last->price = n ? highest : FIRST_PRICE;
    } else {
        last->price *= RAISE;
    }
}

/* Raises the prices in groups that need too much. */
static bool raise_prices(searching *s)
{
    solution found = TOO_MUCH;
    for (int i = 0; i < PRICES && found == TOO_MUCH; i++) {
        for (int k = 0; k < s->prices.n; k++)
            s->prices.at[k].too_low = s->prices.at[k].price;
        for (int k = 0; k < s->memory.n_groups; k++)
            if (s->memory.peak[k].bytes > s->limit)
                raise_price(s, k);
        found = solve_at_prices(s);
    }
    return found == FITS;
}

/* Lowers the prices that were raised last, halfway to those before the raise, as long as the limit is kept. */
static void lower_prices(searching *s)
{
    memory_price *at = s->prices.at;
    for (int k = 0; k < s->prices.n; k++)
        at[k].enough = at[k].price;
    for (int i = 0; i < PRICES_BETWEEN && !memory_is_short(); i++) {
        for (int k = 0; k < s->prices.n; k++)
            at[k].price = (at[k].too_low + at[k].enough) / 2;
        const bool fits = solve_at_prices(s) == FITS;
        for (int k = 0; k < s->prices.n; k++)
            *(fits ? &at[k].enough : &at[k].too_low) = at[k].price;
    }
    for (int k = 0; k < s->prices.n; k++)
        at[k].price = at[k].enough;
}

/* The first solution needed too much. With prices the costs that must not be paid are so large that bounds are worse.
 */
static void search_within(searching *s)
{
    layout_graph_free(&s->g);
    build(s, LAST_PRICE * MOST_MOMENTS * s->memory.n_groups * process_memory_whole(&s->memory));
    s->costs = min_sum_save_costs(s->g.problem);
    if (raise_prices(s))
        lower_prices(s);
    set_prices(s);
}

static bool keeps_limit(const searching *s)
{
    return !above(s, needed_by_best(s->result));
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
        min_sum_count_fully(s->g.problem);
        solve(s, EFFORT, &ignored);
    }
}

void search_layouts(const trama_program *program, const layouts *start, int64_t nominal, layout_search *result)
{
    const int64_t any = complete_nominal(program, nominal), limit = program->search.limit;
    searching s = {
        .program = program, .start = start, .nominal = nominal, .limit = limit ? limit : INT64_MAX, .result = result};
    if (limit)
        s.memory = process_memory_of(program, start, any, program->search.of_states);
    *result = (layout_search){.bytes = layouts_bytes(program, start, any), .memory = memory_of(&s, start)};
    build(&s, 0);
    s.state = trama_alloc((size_t)(min_sum_variables(s.g.problem) + 1) * sizeof *s.state);
    if (!memory_is_short())
        search(&s);
    result->fits = keeps_limit(&s);
    result->bound = min_i64(result->bound, bytes_of_best(result));
    free(s.state);
    free(s.costs);
    ARRAY_FREE(&s.prices);
    layout_graph_free(&s.g);
    process_memory_free(&s.memory);
}

static trama_status too_much(const search_request *asked, int64_t needed)
{
    if (asked->of_states)
        return trama_fail(asked->where, TRAMA_E_MEMORY,
                          "search_layouts_within: a process may keep %lld bytes of states; no layouts were found by "
                          "which it keeps fewer than %lld. Use more processes, or annotate fewer states",
                          (long long)asked->limit, (long long)needed);
    return trama_fail(asked->where, TRAMA_E_MEMORY,
                      "search_layouts_in_memory: a process may need %lld bytes at a time; no layouts were found by "
                      "which it needs fewer than %lld. Use more processes, a smaller batch, or fewer annotations",
                      (long long)asked->limit, (long long)needed);
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
        return too_much(asked, needed_by_best(&found));
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
