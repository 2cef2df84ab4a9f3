/* SPDX-License-Identifier: Apache-2.0 */
/* Builds the variables and pairs in the order of the program, so that an op comes before the readers of its results. */
#include "layout_graph.h"

#include <string.h>

enum {
    MOST_OF_A_VALUE = 256,  /* layouts of an input or a state; one with more lies as before */
    MOST_COPY_STATES = 1024 /* a value has fewer copies where it would have more */
};

/* ---- Which values are free ---- */

/* Whether the user said nothing of a value's layout, or "?" along each axis. */
static bool is_open(const trama_value *v)
{
    return !v->mesh || layout_axes(v->layout, TRAMA_OPEN) == (1u << v->mesh->ndim) - 1;
}

static bool has_many_layouts(const layout_graph *g, const trama_value *v)
{
    int64_t n = 1;
    bool few = true;
    for (int a = 0; a < g->start->mesh[v->id]->ndim; a++)
        few &= count_times(&n, 1 + v->shape.ndim, MOST_OF_A_VALUE);
    return !few;
}

/* Whether an input or a state may lie in any split. */
static bool is_free(const layout_graph *g, const trama_value *v)
{
    return v->kind != VALUE_RESULT && is_open(v) && !g->pinned[v->id] && !v->state->terms &&
           !g->start->value[v->id].mask && !has_many_layouts(g, v);
}

/* Whether a result lies as the op makes it. A value that a target names has its terms summed, as it had before. */
static bool lies_as_made(const layout_graph *g, const trama_value *v)
{
    const trama_layout *before = &g->start->value[v->id];
    return is_open(v) && !g->pinned[v->id] && g->start->mesh[v->id] == g->start->op[v->node->id]->mesh &&
           !before->mask && (!v->fetched || layout_has(before, TRAMA_PARTIAL));
}

/* A value lies as before where a target names its gradient, which lies like it, and where its terms are added up over
 * micro-steps. In a program that merges gradients those that are summed at once lie as before, too: they are summed for
 * each micro-step, or once behind all. */
static void pin_values(layout_graph *g)
{
    const trama_program *p = g->program;
    bool merges = false;
    for (int i = 0; i < p->nodes.n; i++)
        for (int t = 0; t < p->nodes.at[i]->op->n_in && p->nodes.at[i]->role == NODE_MERGE; t++)
            merges = g->pinned[p->nodes.at[i]->in[t]->id] = true;
    for (int i = 0; i < p->values.n; i++) {
        const trama_value *v = p->values.at[i];
        if (v->gradient.of && (v->fetched || (v->gradient.reduce_at_once && merges)))
            g->pinned[i] = g->pinned[v->gradient.of->id] = true;
    }
}

/* ---- Values ---- */

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

/* The cost of a state beside its bytes. */
static double tie(const layout_classes *classes, int state)
{
    if (!state)
        return 0;
    return layout_has(&classes->layouts.at[state], TRAMA_SPLIT) ? COST_OF_OTHER : 2 * COST_OF_OTHER;
}

/* Makes a variable of a value that does not lie as an op makes it. */
static void place_value(layout_graph *g, const trama_value *v)
{
    const trama_mesh *mesh = g->start->mesh[v->id];
    value_place *at = &g->value[v->id];
    layout_list list = {0};
    class_of_layout(&list, &g->start->value[v->id]);
    if (is_free(g, v)) {
        trama_layout layout = layout_uniform(mesh, TRAMA_REPLICATE);
        add_splits(mesh, v->shape.ndim, 0, &layout, &list);
    }
    g->n_pinned += list.n == 1 && is_open(v) && mesh->size > 1 && v->shape.ndim;
    at->classes = classes_of_list(&g->tables, mesh, &list);
    at->variable = min_sum_variable(g->problem, at->classes->n);
    for (int i = 0; i < at->classes->n; i++)
        min_sum_costs(g->problem, at->variable)[i] = tie(at->classes, i);
}

/* ---- Pairs ---- */

static void join(layout_graph *g, int first, const layout_classes *from, int second, const layout_classes *to,
                 const table_key *key)
{
    min_sum_join(g->problem, &(min_sum_pair){.first = first,
                                             .second = second,
                                             .rows = from->layouts.n,
                                             .columns = to->layouts.n,
                                             .table = class_table(&g->tables, key),
                                             .row = from->of,
                                             .column = to->of,
                                             .scale = 1});
}

/* Beside all k copies each of n readers pays 1/(n-k) of its bytes, since n-k may share them: each copy has a reader. Of
 * 5 readers beside 2 copies each pays a third. With fewer copies it pays in full: where readers need fewer layouts, the
 * state with these as copies has their bytes. */
static int sharing(int readers, int copies)
{
    return readers - copies > 1 ? readers - copies : 0;
}

/* A variable reads a value in one of the classes. old_terms: it takes terms only where the value has them. */
static void join_reader(layout_graph *g, const trama_value *v, int variable, const layout_classes *read, bool old_terms)
{
    const value_place *at = &g->value[v->id];
    if (at->holds < 0) {
        join(g, at->variable, at->classes, variable, read,
             &(table_key){.kind = TABLE_BYTES, .from = at->classes, .to = read, .of = v, .old_terms = old_terms});
        return;
    }
    table_key key = {.kind = TABLE_READS, .from = at->copies, .to = read, .of = v, .old_terms = old_terms};
    const double *full = class_table(&g->tables, &key);
    key.sharing = sharing(g->readers[v->id], at->copies->most_copies);
    min_sum_join(g->problem, &(min_sum_pair){.first = at->holds,
                                             .second = variable,
                                             .rows = at->copies->n,
                                             .columns = read->layouts.n,
                                             .table = class_table(&g->tables, &key),
                                             .full = full,
                                             .row = at->copies->self,
                                             .column = read->of,
                                             .scale = 1});
}

/* By value id. */
typedef struct demands {
    layout_list *needed;      /* the layouts in which ops may read a value */
    const layout_list **last; /* the list that was added last; NULL */
    const trama_mesh **on;    /* the mesh of the readers; NULL: several */
} demands;

/* A copy serves no fewer readers than one. */
static int most_copies(int readers, int made, int needed)
{
    int copies = readers - 1 < MOST_COPIES ? readers - 1 : MOST_COPIES;
    while (copies > 0 && (int64_t)made * count_copy_states(copies, needed) > MOST_COPY_STATES)
        copies--;
    return needed > 0 ? copies : 0;
}

/* Makes the variable of a value's copies. It is made by variable `maker` in one of the classes; rest: where it rests
 * besides, or NULL. */
static void hold_copies(layout_graph *g, const trama_value *v, int maker, const layout_classes *made,
                        const layout_classes *rest, demands *d)
{
    value_place *at = &g->value[v->id];
    layout_list needed = d->needed[v->id];
    const trama_mesh *on = d->on[v->id];
    d->needed[v->id] = (layout_list){0};
    const int copies = on ? most_copies(g->readers[v->id], made->layouts.n, needed.n) : 0;
    if (!copies) {
        on = made->mesh;
        ARRAY_FREE(&needed);
    }
    at->copies = copies_between(&g->tables, copies, made, rest, classes_of_list(&g->tables, on, &needed));
    at->holds = min_sum_variable(g->problem, at->copies->n);
    for (int i = 0; i < at->copies->n; i++)
        min_sum_costs(g->problem, at->holds)[i] = cost_of_state(&g->tables, v, at->copies, i);
    const table_key key = {.kind = TABLE_ORIGINS, .from = made, .to = at->copies, .of = v};
    min_sum_join(g->problem, &(min_sum_pair){.first = maker,
                                             .second = at->holds,
                                             .rows = made->layouts.n,
                                             .columns = at->copies->n,
                                             .table = class_table(&g->tables, &key),
                                             .row = made->of,
                                             .column = at->copies->self,
                                             .scale = 1});
}

/* ---- Nodes ---- */

static void place_operand(layout_graph *g, const trama_value *v, demands *d)
{
    if (g->value[v->id].variable >= 0)
        return;
    place_value(g, v);
    if (g->readers[v->id] > 1)
        hold_copies(g, v, g->value[v->id].variable, g->value[v->id].classes, NULL, d);
}

static void place_result(layout_graph *g, const trama_node *node, int o, demands *d)
{
    const trama_value *v = node->out[o];
    const layout_classes *made = &g->op[node->id]->tensor[node->op->n_in + o];
    const int maker = g->variable_of_op[node->id], n = g->readers[v->id];
    value_place *at = &g->value[v->id];
    if (node_updates(node, o)) {
        at->variable = g->value[node->in[o]->id].variable;
        at->classes = g->value[node->in[o]->id].classes;
        if (n > 1)
            hold_copies(g, v, at->variable, at->classes, NULL, d);
    } else if (lies_as_made(g, v)) {
        at->variable = maker;
        at->classes = made;
        if (n > 1)
            hold_copies(g, v, maker, made, NULL, d);
    } else {
        place_value(g, v);
        if (n)
            hold_copies(g, v, maker, made, at->classes, d);
        else
            join(g, maker, made, at->variable, at->classes,
                 &(table_key){.kind = TABLE_BYTES, .from = made, .to = at->classes, .of = v});
    }
}

/* Whether the op multiplies operand t by another one: then terms must be old ones, since a zero in place of a part
 * would make NaN of an infinity in the other operand. */
static bool is_factor(const trama_node *node, const trama_rule *rule, int t)
{
    bool others = false;
    for (int u = 0; u < node->op->n_in; u++)
        others |= u != t && node_reads(node, u);
    return others && !(rule->tensor[t].pass & PASS_JOINT);
}

static void place_op(layout_graph *g, const trama_node *node, demands *d)
{
    const op_candidates *c = g->op[node->id];
    for (int t = 0; t < node->op->n_in; t++)
        place_operand(g, node->in[t], d);
    const int variable = g->variable_of_op[node->id] = min_sum_variable(g->problem, c->list.n);
    g->n_pinned += c->kept && !node->fixed && c->before->mesh->size > 1;
    for (int i = 0; i < c->list.n; i++)
        min_sum_costs(g->problem, variable)[i] = (double)c->reach[i] + (i ? COST_OF_OTHER : 0);
    for (int t = 0; t < node->op->n_in; t++) {
        const trama_value *v = node->in[t];
        const value_place *at = &g->value[v->id];
        if (node_updates(node, t))
            join(g, at->variable, at->classes, variable, &c->tensor[t],
                 &(table_key){.kind = TABLE_UPDATES, .from = at->classes, .to = &c->tensor[t], .of = v});
        else if (node_reads(node, t))
            join_reader(g, v, variable, &c->tensor[t], is_factor(node, c->rule, t) && !c->kept);
    }
    for (int o = 0; o < node->op->n_out; o++)
        place_result(g, node, o, d);
}

static void place_alias(layout_graph *g, const trama_node *node, demands *d)
{
    const trama_value *to = node->out[0];
    value_place *at = &g->value[to->id];
    place_operand(g, node->in[0], d);
    place_value(g, to);
    join_reader(g, node->in[0], at->variable, at->classes, false);
    if (g->readers[to->id] > 1)
        hold_copies(g, to, at->variable, at->classes, NULL, d);
}

/* ---- The program ---- */

static void demand(layout_graph *g, demands *d, const trama_value *v, const trama_mesh *on, const layout_list *list)
{
    for (int i = 0; i < list->n && d->last[v->id] != list; i++)
        class_of_layout(&d->needed[v->id], &list->at[i]);
    d->last[v->id] = list;
    d->on[v->id] = g->readers[v->id]++ == 0 || d->on[v->id] == on ? on : NULL;
}

static void find_demands(layout_graph *g, demands *d)
{
    const trama_program *p = g->program;
    for (int i = 0; i < p->nodes.n && !memory_is_short(); i++) {
        const trama_node *node = p->nodes.at[i];
        if (node->op->alias) {
            const int to = node->out[0]->id;
            const layout_list list = {.at = &g->start->value[to], .n = 1};
            demand(g, d, node->in[0], g->start->mesh[to], &list);
            d->last[node->in[0]->id] = NULL;
            continue;
        }
        g->op[i] = candidates_of(&g->candidates, node, g->rules.of[i], g->start->op[i]);
        for (int t = 0; t < node->op->n_in; t++)
            if (node_reads(node, t) && !node_updates(node, t))
                demand(g, d, node->in[t], g->start->op[i]->mesh, &g->op[i]->tensor[t].layouts);
    }
}

void layout_graph_build(layout_graph *g, const trama_program *program, const layouts *start, int64_t nominal,
                        double bytes, double paid)
{
    const size_t n_values = (size_t)program->values.n, n_nodes = (size_t)program->nodes.n;
    const double forbidden = 2 * (bytes + paid + 1);
    *g = (layout_graph){.program = program,
                        .start = start,
                        .problem = min_sum_new(forbidden),
                        .value = trama_alloc(n_values * sizeof *g->value),
                        .op = trama_alloc(n_nodes * sizeof *g->op),
                        .variable_of_op = trama_alloc(n_nodes * sizeof *g->variable_of_op),
                        .readers = trama_alloc(n_values * sizeof *g->readers),
                        .pinned = trama_alloc(n_values),
                        .rules = complete_rules(program, nominal),
                        .tables = {.nominal = complete_nominal(program, nominal),
                                   .of_change = COST_OF_OTHER + 1e-12 * bytes, /* above rounding of such sums */
                                   .forbidden = forbidden}};
    demands d = {.needed = trama_alloc(n_values * sizeof *d.needed),
                 .last = trama_alloc(n_values * sizeof *d.last),
                 .on = trama_alloc(n_values * sizeof *d.on)};
    for (size_t i = 0; i < n_values; i++)
        g->value[i].variable = g->value[i].holds = -1;
    pin_values(g);
    find_demands(g, &d);
    for (int i = 0; i < program->nodes.n && !memory_is_short(); i++)
        if (program->nodes.at[i]->op->alias)
            place_alias(g, program->nodes.at[i], &d);
        else
            place_op(g, program->nodes.at[i], &d);
    for (size_t i = 0; i < n_values; i++)
        ARRAY_FREE(&d.needed[i]);
    free(d.needed);
    free(d.last);
    free(d.on);
}

/* ---- A solution ---- */

/* An alias reads its operand as that lies. */
static void take_alias(const layout_graph *g, const trama_node *node, layouts *made)
{
    op_layouts op = *g->start->op[node->id];
    if (made->mesh[node->in[0]->id] == op.mesh)
        op.in[0] = made->value[node->in[0]->id];
    layouts_set_op(made, node->id, &op);
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
        if (g->op[i])
            layouts_set_op(made, i, &g->op[i]->list.at[state[g->variable_of_op[i]]]);
        else
            take_alias(g, p->nodes.at[i], made);
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
    free(g->pinned);
}
