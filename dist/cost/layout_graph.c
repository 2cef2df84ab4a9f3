/* SPDX-License-Identifier: Apache-2.0 */
/* Builds the variables and pairs in the order of the program, so that those that make a value come before its readers.
 */
#include "layout_graph.h"

#include <string.h>

enum {
    MOST_OF_A_VALUE = 1024, /* layouts of an input or a state; one with more lies as before */
    MOST_COPY_STATES = 512  /* a value with more has no variable for its copies */
};

/* ---- Values ---- */

/* Whether an input or a state may lie in any split. */
static bool is_free(const layout_graph *g, const trama_value *v)
{
    int64_t n = 1;
    bool few = true;
    for (int a = 0; a < g->start->mesh[v->id]->ndim; a++)
        few &= count_times(&n, 1 + v->shape.ndim, MOST_OF_A_VALUE);
    return few && v->kind != VALUE_RESULT && !v->mesh && !v->state.terms && !g->start->value[v->id].mask;
}

/* Appends the layouts without terms in which axes split dims in the mesh's order. */
static void add_splits(const trama_mesh *mesh, int ndim, int axis, trama_layout *layout, layout_list *list)
{
    if (axis >= mesh->ndim || axis >= TRAMA_MAX_AXES) {
        class_of_layout(list, layout);
        return;
    }
    layout->axis[axis] = (trama_placement){.kind = TRAMA_REPLICATE};
    add_splits(mesh, ndim, axis + 1, layout, list);
    for (int d = 0; d < ndim; d++) {
        int order = 0;
        for (int a = 0; a < axis; a++)
            order += layout->axis[a].kind == TRAMA_SPLIT && layout->axis[a].dim == d;
        layout->axis[axis] = (trama_placement){.kind = TRAMA_SPLIT, .dim = d, .order = order};
        add_splits(mesh, ndim, axis + 1, layout, list);
    }
    layout->axis[axis] = (trama_placement){.kind = TRAMA_REPLICATE};
}

/* Makes a variable of a value that does not lie as an op makes it. */
static void place_value(layout_graph *g, const trama_value *v)
{
    const trama_mesh *mesh = g->start->mesh[v->id];
    value_place *at = &g->value[v->id];
    if (at->variable >= 0)
        return;
    layout_list list = {0};
    class_of_layout(&list, &g->start->value[v->id]);
    if (is_free(g, v)) {
        trama_layout layout = layout_uniform(mesh, TRAMA_REPLICATE);
        add_splits(mesh, v->shape.ndim, 0, &layout, &list);
    }
    at->classes = classes_of_list(&g->tables, mesh, &list);
    at->variable = min_sum_variable(g->problem, at->classes->n);
    for (int i = 1; i < at->classes->n; i++)
        min_sum_costs(g->problem, at->variable)[i] = COST_OF_OTHER;
}

static bool is_read(const trama_node *node, int t)
{
    return !((node->op->shape_only | node->op->updates) >> t & 1);
}

/* ---- Pairs ---- */

static void join(layout_graph *g, int first, int second, table_kind kind, const layout_classes *from,
                 const layout_classes *to, const trama_value *v, double scale)
{
    min_sum_join(g->problem, &(min_sum_pair){.first = first,
                                             .second = second,
                                             .rows = from->layouts.n,
                                             .columns = to->layouts.n,
                                             .table = class_table(&g->tables, kind, from, to, v),
                                             .row = from->of,
                                             .column = to->of,
                                             .scale = scale});
}

/* A variable reads a value in one of the classes. */
static void join_reader(layout_graph *g, const trama_value *v, int variable, const layout_classes *read)
{
    const value_place *at = &g->value[v->id];
    const int alike = g->readers[v->id] / (at->holds < 0 ? 1 : 2); /* the most that share a layout beside the copy */
    const double scale = 1.0 / (alike > 1 ? alike : 1);
    if (at->holds < 0)
        join(g, at->variable, variable, TABLE_BYTES, at->classes, read, v, scale);
    else
        min_sum_join(g->problem, &(min_sum_pair){.first = at->holds,
                                                 .second = variable,
                                                 .rows = at->copies->n,
                                                 .columns = read->layouts.n,
                                                 .table = class_table(&g->tables, TABLE_READS, at->copies, read, v),
                                                 .row = at->copies->self,
                                                 .column = read->of,
                                                 .scale = scale});
}

/* Makes the variable of a value's copies, where several ops on one mesh read it. needed: the layouts in which they may.
 */
static void hold_copies(layout_graph *g, const trama_value *v, layout_list *needed, const trama_mesh *on)
{
    value_place *at = &g->value[v->id];
    if (g->readers[v->id] < 2 || !on || at->classes->layouts.n * (needed->n + 1) > MOST_COPY_STATES) {
        ARRAY_FREE(needed);
        return;
    }
    at->copies = copies_between(&g->tables, at->classes, classes_of_list(&g->tables, on, needed));
    at->holds = min_sum_variable(g->problem, at->copies->n);
    for (int i = 0; i < at->copies->n; i++)
        min_sum_costs(g->problem, at->holds)[i] = (double)bytes_of_copy(&g->tables, v, at->copies, i);
    min_sum_join(g->problem,
                 &(min_sum_pair){.first = at->variable,
                                 .second = at->holds,
                                 .rows = at->classes->layouts.n,
                                 .columns = at->copies->n,
                                 .table = class_table(&g->tables, TABLE_ORIGINS, at->classes, at->copies, v),
                                 .row = at->classes->of,
                                 .column = at->copies->self,
                                 .scale = 1});
}

/* ---- Nodes ---- */

/* By value id. */
typedef struct demands {
    layout_list *needed;
    const trama_mesh **on; /* the mesh of the readers; NULL: several */
} demands;

/* Places a value that a node reads first. */
static void place_operand(layout_graph *g, const trama_value *v, demands *d)
{
    if (g->value[v->id].variable >= 0)
        return;
    place_value(g, v);
    hold_copies(g, v, &d->needed[v->id], d->on[v->id]);
}

/* Whether a result lies as the op makes it. */
static bool lies_as_made(const layout_graph *g, const trama_value *v)
{
    return !v->mesh && g->start->mesh[v->id] == g->start->op[v->node->id]->mesh && !g->start->value[v->id].mask &&
           !g->accumulates[v->id] && !(v->gradient.of && (v->fetched || v->gradient.reduce_at_once));
}

static void place_op(layout_graph *g, const trama_node *node, demands *d)
{
    const op_candidates *c = g->op[node->id];
    for (int t = 0; t < node->op->n_in; t++)
        place_operand(g, node->in[t], d);
    const int variable = g->variable_of_op[node->id] = min_sum_variable(g->problem, c->list.n);
    for (int i = 1; i < c->list.n; i++)
        min_sum_costs(g->problem, variable)[i] = COST_OF_OTHER;
    for (int t = 0; t < node->op->n_in; t++) {
        const value_place *at = &g->value[node->in[t]->id];
        if (node->op->updates >> t & 1)
            join(g, at->variable, variable, TABLE_EQUALS, at->classes, &c->tensor[t], node->in[t], 1);
        else if (is_read(node, t))
            join_reader(g, node->in[t], variable, &c->tensor[t]);
    }
    for (int o = 0; o < node->op->n_out; o++) {
        const trama_value *v = node->out[o];
        const layout_classes *made = &c->tensor[node->op->n_in + o];
        value_place *at = &g->value[v->id];
        if (node->op->updates >> o & 1) {
            at->variable = g->value[node->in[o]->id].variable;
            at->classes = g->value[node->in[o]->id].classes;
        } else if (lies_as_made(g, v)) {
            at->variable = variable;
            at->classes = made;
        } else {
            place_value(g, v);
            join(g, variable, at->variable, TABLE_BYTES, made, at->classes, v, 1);
        }
        hold_copies(g, v, &d->needed[v->id], d->on[v->id]);
    }
}

static void place_alias(layout_graph *g, const trama_node *node, demands *d)
{
    const trama_value *to = node->out[0];
    place_operand(g, node->in[0], d);
    place_value(g, to);
    join_reader(g, node->in[0], g->value[to->id].variable, g->value[to->id].classes);
    hold_copies(g, to, &d->needed[to->id], d->on[to->id]);
}

/* ---- The program ---- */

static void demand(layout_graph *g, demands *d, const trama_value *v, const trama_mesh *on, const layout_list *list)
{
    for (int i = 0; i < list->n; i++)
        class_of_layout(&d->needed[v->id], &list->at[i]);
    d->on[v->id] = g->readers[v->id]++ == 0 || d->on[v->id] == on ? on : NULL;
}

static void find_demands(layout_graph *g, demands *d)
{
    const trama_program *p = g->program;
    for (int i = 0; i < p->nodes.n; i++) {
        const trama_node *node = p->nodes.at[i];
        if (node->op->alias) {
            const int to = node->out[0]->id;
            demand(g, d, node->in[0], g->start->mesh[to], &(layout_list){.at = &g->start->value[to], .n = 1});
            continue;
        }
        g->op[i] = candidates_of(&g->candidates, node, g->rules.of[i], g->start->op[i]);
        for (int t = 0; t < node->op->n_in; t++) {
            g->accumulates[node->in[t]->id] |= node->role == NODE_MERGE;
            if (is_read(node, t))
                demand(g, d, node->in[t], g->start->op[i]->mesh, &g->op[i]->tensor[t].layouts);
        }
    }
}

void layout_graph_build(layout_graph *g, const trama_program *program, const layouts *start, int64_t nominal)
{
    const size_t n_values = (size_t)program->values.n, n_nodes = (size_t)program->nodes.n;
    *g = (layout_graph){.program = program,
                        .start = start,
                        .problem = min_sum_new(),
                        .value = trama_alloc(n_values * sizeof *g->value),
                        .op = trama_alloc(n_nodes * sizeof *g->op),
                        .variable_of_op = trama_alloc(n_nodes * sizeof *g->variable_of_op),
                        .readers = trama_alloc(n_values * sizeof *g->readers),
                        .accumulates = trama_alloc(n_values),
                        .rules = complete_rules(program, nominal),
                        .tables = {.nominal = complete_nominal(program, nominal)}};
    demands d = {.needed = trama_alloc(n_values * sizeof *d.needed), .on = trama_alloc(n_values * sizeof *d.on)};
    for (size_t i = 0; i < n_values; i++)
        g->value[i].variable = g->value[i].holds = -1;
    find_demands(g, &d);
    for (int i = 0; i < program->nodes.n; i++)
        if (program->nodes.at[i]->op->alias)
            place_alias(g, program->nodes.at[i], &d);
        else
            place_op(g, program->nodes.at[i], &d);
    for (size_t i = 0; i < n_values; i++)
        ARRAY_FREE(&d.needed[i]);
    free(d.needed);
    free(d.on);
}

void layout_graph_take(const layout_graph *g, const int *state, layouts *made)
{
    const trama_program *p = g->program;
    *made = (layouts){0};
    layouts_room(made, p->values.n, p->nodes.n);
    for (int i = 0; i < p->values.n; i++) {
        const value_place *at = &g->value[i];
        made->mesh[i] = g->start->mesh[i];
        made->value[i] =
            at->variable < 0 ? g->start->value[i] : at->classes->layouts.at[at->classes->of[state[at->variable]]];
    }
    for (int i = 0; i < p->nodes.n; i++)
        layouts_set_op(made, i, g->op[i] ? &g->op[i]->list.at[state[g->variable_of_op[i]]] : g->start->op[i]);
    made->report = trama_text_copy(g->start->report);
}

void layout_graph_free(layout_graph *g)
{
    min_sum_free(g->problem);
    candidates_pool_free(&g->candidates);
    class_tables_free(&g->tables);
    node_rules_free(&g->rules);
    free(g->value);
    free(g->op);
    free(g->variable_of_op);
    free(g->readers);
    free(g->accumulates);
}
