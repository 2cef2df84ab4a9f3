/* SPDX-License-Identifier: Apache-2.0 */
/* A target as a graph for Graphviz: ops, layouts on the edges, changes of layout with their bytes. */
#include "executable.h"

typedef struct graph {
    const target_form *t;
    const plan *p;
    char exchange; /* first letter of the names of exchanges */
    text out;
} graph;

/* ---- Words ---- */

static void quoted(text *out, const char *words)
{
    for (; *words; words++)
        text_add(out, *words == '"' || *words == '\\' ? "\\%c" : "%c", *words);
}

static void value_words(graph *g, const trama_value *v)
{
    text shape = {0};
    shape_text(&shape, v->shape);
    quoted(&g->out, v->name);
    text_add(&g->out, "\\n%s%s", trama_dtype_name(v->dtype), shape.at);
    free(shape.at);
}

static void layout_words(graph *g, const trama_mesh *mesh, const trama_layout *layout)
{
    text t = {0};
    layout_text(&t, mesh, layout);
    quoted(&g->out, t.at);
    free(t.at);
}

/* ---- The maker of a value in a layout ---- */

/* The last exchange that gives the value this layout; -1 where its op or leaf does. */
static int exchange_of(const graph *g, int value, const trama_mesh *mesh, const trama_layout *layout)
{
    for (int i = g->p->exchanges.n - 1; i >= 0; i--) {
        const plan_exchange *x = &g->p->exchanges.at[i];
        if (x->value == value && x->to_mesh == mesh && trama_layout_equal(&x->to, layout))
            return i;
    }
    return -1;
}

static void maker(graph *g, const trama_value *v, const trama_mesh *mesh, const trama_layout *layout)
{
    int x = mesh ? exchange_of(g, v->id, mesh, layout) : -1;
    if (x >= 0)
        text_add(&g->out, "%c%d", g->exchange, x);
    else if (v->node && v->node->op->n_in)
        text_add(&g->out, "n%d", v->node->id);
    else
        text_add(&g->out, "v%d", v->id);
}

/* ---- Nodes and edges ---- */

static void draw_leaf(graph *g, int value)
{
    const trama_value *v = g->t->target->program->values.at[value];
    text_add(&g->out, "  v%d [shape=ellipse, style=filled, fillcolor=%s, label=\"", value,
             v->kind == VALUE_STATE ? "lightyellow" : "lightgrey");
    value_words(g, v);
    text_add(&g->out, "\\n");
    layout_words(g, g->t->l->mesh[value], &g->t->l->value[value]);
    text_add(&g->out, "\"];\n");
}

static void draw_exchange(graph *g, int number)
{
    const plan_exchange *x = &g->p->exchanges.at[number];
    const trama_value *v = g->t->target->program->values.at[x->value];
    text_add(&g->out, "  %c%d [shape=hexagon, style=filled, fillcolor=lightblue, label=\"", g->exchange, number);
    layout_words(g, x->from_mesh, &x->from);
    text_add(&g->out, " -> ");
    layout_words(g, x->to_mesh, &x->to);
    text_add(&g->out, "\\n%lld B in, %lld B out, %d messages", (long long)x->received, (long long)x->sent, x->messages);
    if (x->collectives)
        text_add(&g->out, ", %d collectives", x->collectives);
    text_add(&g->out, "\"];\n  ");
    int before = exchange_of(g, x->value, x->from_mesh, &x->from);
    if (before >= 0 && before < number)
        text_add(&g->out, "%c%d", g->exchange, before);
    else
        maker(g, v, NULL, NULL);
    text_add(&g->out, " -> %c%d [label=\"", g->exchange, number);
    quoted(&g->out, v->name);
    text_add(&g->out, "\"];\n");
}

static void draw_op(graph *g, const trama_node *node)
{
    const op_layouts *op = g->t->l->op[node->id];
    text_add(&g->out, "  n%d [shape=box, label=\"%s\"%s];\n", node->id, node->op->name,
             node->role != NODE_FORWARD ? ", color=brown" : "");
    for (int t = 0; t < node->op->n_in; t++) {
        const trama_value *v = node->in[t];
        if (node->op->shape_only >> t & 1)
            continue;
        text_add(&g->out, "  ");
        maker(g, v, op->mesh, &op->in[t]);
        text_add(&g->out, " -> n%d [label=\"", node->id);
        value_words(g, v);
        text_add(&g->out, "\\n");
        layout_words(g, op->mesh, &op->in[t]);
        text_add(&g->out, "\"];\n");
    }
}

static void draw_result(graph *g, int value)
{
    const trama_value *v = g->t->target->program->values.at[value];
    text_add(&g->out, "  r%d [shape=doubleoctagon, label=\"", value);
    value_words(g, v);
    text_add(&g->out, "\\n");
    layout_words(g, g->t->l->mesh[value], &g->t->l->value[value]);
    text_add(&g->out, "\"];\n  ");
    maker(g, v, g->t->l->mesh[value], &g->t->l->value[value]);
    text_add(&g->out, " -> r%d;\n", value);
}

static void draw_head(graph *g, const trama_target *target)
{
    text_add(&g->out, "digraph \"");
    quoted(&g->out, target->name);
    text_add(&g->out,
             "\" {\n  node [fontname=\"sans-serif\", fontsize=10];\n  edge [fontname=\"sans-serif\", fontsize=9];\n");
}

static void draw(const target_form *t, target_kind kind, const plan *p, void *arg)
{
    graph *g = arg;
    g->t = t;
    g->p = p;
    g->exchange = kind == TARGET_APPLY ? 'a' : 'x';
    if (kind != TARGET_APPLY)
        draw_head(g, t->target);
    for (int i = t->carried; i < t->leaves.n; i++)
        draw_leaf(g, t->leaves.at[i]);
    for (int i = 0; i < t->target->program->nodes.n; i++)
        if (t->needed[i])
            draw_op(g, t->target->program->nodes.at[i]);
    for (int i = 0; i < p->exchanges.n; i++)
        draw_exchange(g, i);
    for (int i = 0; i < t->results.n; i++)
        draw_result(g, t->results.at[i]);
}

trama_status trama_plan_graph(trama_executable *e, const trama_target *target, char **dot)
{
    graph g = {.t = NULL};
    if (!dot)
        return trama_fail(NOWHERE, TRAMA_E_ARGUMENT, "trama_plan_graph: the graph's address is NULL");
    trama_status status = target_look_at(e, target, "trama_plan_graph", draw, &g);
    text_add(&g.out, "}\n");
    if (!status)
        return text_give(&g.out, "trama_plan_graph", dot);
    free(g.out.at);
    return status;
}
