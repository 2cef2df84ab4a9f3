/* SPDX-License-Identifier: Apache-2.0 */
/* Solves the graph of a program's layouts. */
#include "layout_search.h"

#include <math.h>

#include "layout_graph.h"
#include "split_form.h"

enum { ROUNDS = 32 };
static const double TOLERANCE = 0.5, EFFORT = 5e7; /* bytes; visits of elements of tables */

static int kept_ops(const layout_graph *g)
{
    int n = 0;
    for (int i = 0; i < g->program->nodes.n; i++)
        n += g->op[i] && g->op[i]->kept && g->op[i]->before->mesh->size > 1;
    return n;
}

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

/* The first solution gives the bound. Where it counts less than it receives, since more ops share a layout in the sum
 * than in truth, a second one counts each in full. */
void search_layouts(const trama_program *program, const layouts *start, int64_t nominal, layout_search *result)
{
    layout_graph g;
    layout_graph_build(&g, program, start, nominal);
    const int n = min_sum_variables(g.problem);
    int *state = trama_alloc((size_t)(n + 1) * sizeof *state);
    double sum;
    *result = (layout_search){.bytes = layouts_bytes(program, start, g.tables.nominal), .kept = kept_ops(&g)};
    const double bound = min_sum_solve(g.problem, ROUNDS, TOLERANCE, EFFORT, state, &sum);
    result->bound = max_i64(0, (int64_t)ceil(bound - (n + 1) * COST_OF_OTHER));
    if (sum < COST_FORBIDDEN)
        offer(&g, state, result);
    if ((result->found ? result->better_bytes : result->bytes) > result->bound) {
        min_sum_scale_fully(g.problem);
        min_sum_solve(g.problem, ROUNDS, TOLERANCE, EFFORT, state, &sum);
        if (sum < COST_FORBIDDEN)
            offer(&g, state, result);
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
