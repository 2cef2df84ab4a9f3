/* SPDX-License-Identifier: Apache-2.0 */
/* Reasons are read from the op's rule: an op computes on one assignment of mesh axes to factors, so an operand changes
 * its layout because another tensor of the op, or an annotation, claims the axis. */
#include "explain.h"

#include "layout_search.h"
#include "op_candidates.h"

typedef struct explaining {
    text *out;
    const layouts *l;
    int64_t nominal;
    node_rules rules;
    candidates_pool candidates;
    transfer_bytes bytes;
    layout_changes changes;
} explaining;

/* ---- Names ---- */

static void name_value(text *out, const trama_value *v)
{
    text_add(out, "%s", v->name);
    if (v->gradient.of)
        text_add(out, " (the gradient of %s)", v->gradient.of->name);
}

static void said_at(text *out, trama_where where)
{
    text_add(out, " (%s:%d)", where.file ? where.file : "?", where.line);
}

/* ---- Reasons ---- */

/* An axis along which two layouts of one mesh differ; -1: none. */
static int differing_axis(const layout_change *c)
{
    for (int a = 0; a < c->to->naxes && c->from_mesh == c->to_mesh; a++) {
        const trama_placement *f = &c->from->axis[a], *t = &c->to->axis[a];
        if (f->kind != t->kind || (f->kind == TRAMA_SPLIT && (f->dim != t->dim || f->order != t->order)))
            return a;
    }
    return -1;
}

/* A tensor of the op, other than t, whose value is split along the axis as the op computes it; -1: there is none. */
static int claimant(const explaining *e, const trama_node *node, int t, int axis)
{
    const op_layouts *op = e->l->op[node->id];
    for (int u = 0; u < node->op->n_in + node->op->n_out; u++) {
        const trama_value *v = node_tensor(node, u);
        const trama_placement *p = &op_layout_of(op, node->op->n_in, u)->axis[axis];
        if (u != t && node_reads(node, u) && e->l->mesh[v->id] == op->mesh && p->kind == TRAMA_SPLIT &&
            e->l->value[v->id].axis[axis].kind == TRAMA_SPLIT && e->l->value[v->id].axis[axis].dim == p->dim)
            return u;
    }
    return -1;
}

static void lies_so(const explaining *e, const trama_value *v)
{
    text_add(e->out, "%s lies as ", v->name);
    layout_text(e->out, e->l->mesh[v->id], &e->l->value[v->id]);
    if (v->mesh)
        said_at(e->out, v->annotated.where);
}

/* The state that the op updates in parts of how it lies; -1: none. */
static int updated_in_parts(const explaining *e, const trama_node *node)
{
    for (int t = 0; t < node->op->n_out; t++)
        if (node_updates(node, t) && !trama_layout_equal(&e->l->op[node->id]->in[t], &e->l->value[node->in[t]->id]))
            return t;
    return -1;
}

static void reason(const explaining *e, const layout_change *c)
{
    const trama_node *node = c->node;
    const int axis = differing_axis(c);
    if (c->operand == SETTLES && c->value->mesh) {
        text_add(e->out, "it is annotated so");
        said_at(e->out, c->value->annotated.where);
    } else if (c->operand == SETTLES && node_updates(node, c->value->result)) {
        text_add(e->out, "each process updates a part, and the updated ");
        lies_so(e, node->in[c->value->result]);
    } else if (c->operand == SETTLES && c->value->gradient.of) {
        const trama_value *of = c->value->gradient.of;
        text_add(
            e->out,
            layout_lies(c->to_mesh, c->to, e->l->mesh[of->id], &e->l->value[of->id])
                ? "a gradient lies like its value where others than its update read it: "
                : "each process updates a part, and sums that of the gradient, where others than the update read it: ");
        lies_so(e, of);
    } else if (c->operand == SETTLES) {
        text_add(e->out, layout_has(c->from, TRAMA_PARTIAL) ? "the terms are summed where they are made"
                                                            : "completion gave it that split");
    } else if (node->op->alias) {
        text_add(e->out, "trama_reshard asks for it");
    } else if (node->fixed) {
        text_add(e->out, "the op's layouts are fixed");
        said_at(e->out, node->fixed->where);
    } else if (node->op->updates && !node_updates(node, c->operand)) {
        const int t = updated_in_parts(e, node);
        text_add(e->out, t < 0 ? "the updated " : "each process updates a part, and the updated ");
        lies_so(e, node->in[t < 0 ? 0 : t]);
    } else if (axis < 0) {
        text_add(e->out, "the op computes on another mesh");
    } else {
        const int u = claimant(e, node, c->operand, axis);
        const trama_placement *from = &c->from->axis[axis];
        if (u >= 0)
            lies_so(e, node_tensor(node, u));
        else if (from->kind == TRAMA_PARTIAL)
            text_add(e->out, "the op needs the sum of the terms");
        else if (from->kind == TRAMA_SPLIT && rule_dim_is_whole(e->rules.of[node->id], c->operand, from->dim))
            text_add(e->out, "the op needs dim %d whole", from->dim);
        else
            text_add(e->out, "the op does not split it");
    }
}

/* ---- Other ways ---- */

/* The bytes on the op's edges if it computes so, and nothing else changes. */
static int64_t edges(explaining *e, const trama_node *node, const op_layouts *op)
{
    int64_t bytes = infer_reach_bytes(node, e->rules.of[node->id], op);
    for (int t = 0; t < node->op->n_in; t++) {
        const trama_value *v = node->in[t];
        if (node_reads(node, t))
            bytes +=
                bytes_between(&e->bytes, v, e->nominal, e->l->mesh[v->id], &e->l->value[v->id], op->mesh, &op->in[t]);
    }
    for (int o = 0; o < node->op->n_out; o++) {
        const trama_value *v = node->out[o];
        bytes += bytes_between(&e->bytes, v, e->nominal, op->mesh, &op->out[o], e->l->mesh[v->id], &e->l->value[v->id]);
    }
    return bytes;
}

/* The other layouts that take the fewest bytes on the op's edges, where there are any. */
static void other_way(explaining *e, const trama_node *node)
{
    const op_layouts *best = NULL;
    int64_t least = INT64_MAX;
    if (node->op->alias || node->op->updates)
        return;
    const op_candidates *c = candidates_of(&e->candidates, node, e->rules.of[node->id], e->l->op[node->id]);
    for (int i = 1; i < c->list.n; i++) {
        const int64_t bytes = edges(e, node, &c->list.at[i]);
        if (bytes < least) {
            least = bytes;
            best = &c->list.at[i];
        }
    }
    if (!best)
        return;
    text_add(e->out, "; with");
    for (int t = 0; t < node->op->n_in; t++)
        if (node_reads(node, t)) {
            text_add(e->out, "%s %s as ", t ? "," : "", node->in[t]->name);
            layout_text(e->out, best->mesh, &best->in[t]);
        }
    text_add(e->out, " it would exchange %lld B, not %lld", (long long)least,
             (long long)edges(e, node, e->l->op[node->id]));
}

/* ---- All changes ---- */

static void begin_line(const explaining *e, const trama_node *node)
{
    text_add(e->out, "%s:%d: %s: ", node->where.file ? node->where.file : "?", node->where.line, node->op->name);
}

/* The op reads beyond the parts of its operands. */
static void explain_reach(explaining *e, const trama_node *node, int64_t bytes)
{
    int n = 0;
    begin_line(e, node);
    for (int t = 0; t < node->op->n_in; t++) {
        if (!rule_reaches(node->rule, t))
            continue;
        text_add(e->out, n++ ? " and " : "neighbours of ");
        name_value(e->out, node->in[t]);
        text_add(e->out, ", as ");
        layout_text(e->out, e->l->op[node->id]->mesh, &e->l->op[node->id]->in[t]);
    }
    text_add(e->out, ": %lld B, since the op reads them", (long long)bytes);
    other_way(e, node);
    text_add(e->out, "\n");
}

static void explain(explaining *e, const layout_change *c, int64_t bytes)
{
    begin_line(e, c->node);
    name_value(e->out, c->value);
    text_add(e->out, ", from ");
    layout_text(e->out, c->from_mesh, c->from);
    text_add(e->out, " to ");
    layout_text(e->out, c->to_mesh, c->to);
    text_add(e->out, ": %lld B, since ", (long long)bytes);
    reason(e, c);
    if (c->operand != SETTLES)
        other_way(e, c->node);
    text_add(e->out, "\n");
}

static void compare(text *out, const layout_search *s, const search_request *asked)
{
    const char *within = !asked->limit      ? ""
                         : asked->of_states ? "_within"
                                            : "_in_memory",
               *little = !asked->limit || !s->fits ? ""
                         : asked->of_states        ? " and as few states"
                                                   : " and as little memory";
    text_add(out, "a process receives %lld B", (long long)s->bytes);
    if (s->bound >= s->bytes)
        text_add(out, ", the fewest that layouts with as little work%s can take", little);
    else if (s->found)
        text_add(
            out,
            "; trama_search_layouts%s finds layouts with %lld B, and none with as little work%s take fewer than %lld",
            within, (long long)s->better_bytes, little, (long long)s->bound);
    else
        text_add(out, "; no layouts with as little work%s take fewer than %lld B", little, (long long)s->bound);
    if (s->pinned)
        text_add(out, ", where %d ops and values stay as they are", s->pinned);
    text_add(out, "\n");
    if (asked->limit)
        text_add(out,
                 asked->of_states ? "a process keeps %lld B of states, and may keep %lld\n"
                                  : "a process needs %lld B at a time, and may need %lld\n",
                 (long long)s->memory, (long long)asked->limit);
}

void explain_changes(text *out, const trama_program *program, const layouts *l, int64_t nominal)
{
    explaining e = {
        .out = out, .l = l, .nominal = complete_nominal(program, nominal), .rules = complete_rules(program, nominal)};
    layout_search found;
    find_changes(program, l, NULL, &e.changes);
    for (int i = 0; i < e.changes.n; i++) {
        const int64_t bytes = change_bytes(&e.bytes, &e.changes, i, e.nominal);
        if (bytes)
            explain(&e, &e.changes.at[i], bytes);
    }
    for (int i = 0; i < program->nodes.n; i++) {
        const int64_t bytes = reach_bytes(program->nodes.at[i], l, e.nominal);
        if (bytes)
            explain_reach(&e, program->nodes.at[i], bytes);
    }
    search_layouts(program, l, nominal, &found);
    if (found.bytes || program->search.limit)
        compare(out, &found, &program->search);
    if (found.found)
        layouts_free(&found.better);
    ARRAY_FREE(&e.changes);
    transfer_bytes_free(&e.bytes);
    candidates_pool_free(&e.candidates);
    node_rules_free(&e.rules);
}
