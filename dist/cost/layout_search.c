/* SPDX-License-Identifier: Apache-2.0 */
/* Solves the graph of a program's layouts. */
#include "layout_search.h"

#include <math.h>

#include "layout_graph.h"
#include "split_form.h"

enum { ROUNDS = 32 };
static const double TOLERANCE = 0.5, EFFORT = 5e7; /* bytes; visits of elements of tables */

/* Takes the layouts of a solution where they receive fewer bytes than the best ones so far. */
static void offer(const layout_graph *g, const int *state, layout_search *r)
{
    layouts made;
    layout_graph_take(g, state, &made);
    const int64_t bytes = layouts_bytes(g->program, &made, g->tables.nominal);
    if (bytes >= (r->found ? r->better_bytes : r->bytes)) {
        layouts_free(&made);
        return;
    }
    if (r->found)
        layouts_free(&r->better);
    r->found = true;
    r->better = made;
    r->better_bytes = bytes;
}

/* A whole number of bytes that is no more than the bound: the costs of other states and rounding are taken off. */
static int64_t whole_bytes(double bound, int n)
{
    const double exact = bound - (n + 1) * 2 * COST_OF_OTHER - 1e-9 * bound;
    return exact > 0 ? (int64_t)ceil(exact) : 0;
}

/* The first solution gives the bound. It may count readers of one layout as too few bytes; the second one counts each
 * reader in full. */
void search_layouts(const trama_program *program, const layouts *start, int64_t nominal, layout_search *result)
{
    layout_graph g;
    *result = (layout_search){.bytes = layouts_bytes(program, start, complete_nominal(program, nominal))};
    layout_graph_build(&g, program, start, nominal, result->bytes);
    const int n = min_sum_variables(g.problem);
    int *state = trama_alloc((size_t)(n + 1) * sizeof *state);
    double sum = g.tables.forbidden;
    result->pinned = g.n_pinned;
    if (!memory_is_short()) {
        const double bound = min_sum_solve(g.problem, ROUNDS, TOLERANCE, EFFORT, state, &sum);
        result->bound = min_i64(whole_bytes(bound, n), result->bytes);
        if (sum < g.tables.forbidden)
            offer(&g, state, result);
        if ((result->found ? result->better_bytes : result->bytes) > result->bound) {
            min_sum_scale_fully(g.problem);
            min_sum_solve(g.problem, ROUNDS, TOLERANCE, EFFORT, state, &sum);
            if (sum < g.tables.forbidden)
                offer(&g, state, result);
        }
    }
    free(state);
    layout_graph_free(&g);
}

void search_if_asked(const trama_program *program, int64_t nominal, layouts *l)
{
    layout_search found;
    if (!program->searched)
        return;
    search_layouts(program, l, nominal, &found);
    if (!found.found)
        return;
    layouts_free(l);
    *l = found.better;
}

trama_status search_complete(trama_program *program, int64_t nominal, const trama_mesh *single, layouts *result)
{
    trama_status status = split_forms_complete(program, nominal, single, result);
    if (!status)
        search_if_asked(program, nominal, result);
    return status;
}
