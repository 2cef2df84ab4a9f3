/* SPDX-License-Identifier: Apache-2.0 */
/* Freezing: forward inference, op by op, on the splits that completion found; then the places where terms are
 * summed. */
#include <string.h>

#include "complete_internal.h"

/* ---- One op ---- */

void close_open_axes(trama_layout *layout)
{
    for (int a = 0; a < layout->naxes; a++)
        if (layout->axis[a].kind == TRAMA_OPEN)
            layout->axis[a] = (trama_placement){.kind = TRAMA_REPLICATE};
}

trama_layout layout_colocated(const trama_layout *other)
{
    trama_layout layout = *other;
    for (int a = 0; a < layout.naxes; a++)
        if (layout.axis[a].kind != TRAMA_SPLIT)
            layout.axis[a] = (trama_placement){.kind = TRAMA_REPLICATE};
    return layout;
}

/* The layout of a result: the axes that completion closed as they are; the open ones partial where the op makes terms,
 * else R. */
static trama_layout result_layout(const trama_layout *completed, const trama_layout *made)
{
    trama_layout layout = *completed;
    for (int a = 0; a < layout.naxes; a++)
        if (layout.axis[a].kind == TRAMA_OPEN)
            layout.axis[a] =
                made->axis[a].kind == TRAMA_SPLIT ? (trama_placement){.kind = TRAMA_REPLICATE} : made->axis[a];
    return layout;
}

/* A mask may remove the only holder of a piece: the axes that were open are not split then. */
static void fit_mask(const trama_mesh *mesh, int ndim, const trama_layout *completed, trama_layout *layout)
{
    layout->mask = completed->mask;
    if (!layout->mask || !layout_check(mesh, ndim, layout, false))
        return;
    for (int a = 0; a < layout->naxes; a++)
        if (completed->axis[a].kind == TRAMA_OPEN)
            layout->axis[a] = (trama_placement){.kind = TRAMA_REPLICATE};
}

/* The op must compute in the layouts in which its states are to be updated. */
static trama_status check_update(const trama_node *node, const layouts *l, const trama_layout *const *in,
                                 const op_layouts *op)
{
    for (int o = 0; o < node->op->n_out; o++) {
        const trama_value *v = node->in[o];
        if (!node_updates(node, o) || (in[o] && trama_layout_equal(in[o], &op->in[o])))
            continue;
        text lies = {0}, computes = {0};
        layout_text(&lies, l->mesh[v->id], in[o] ? in[o] : &l->value[v->id]);
        layout_text(&computes, op->mesh, &op->in[o]);
        trama_fail(node->where, TRAMA_E_LAYOUT, "%s updates %s, which lies as %s, in the layout %s: shard it like that",
                   node->op->name, v->name, lies.at, computes.at);
        free(lies.at);
        free(computes.at);
        return TRAMA_E_LAYOUT;
    }
    return TRAMA_OK;
}

/* The holders of a masked state compute its update alone, so the op's operands and results take the mask. The first
 * updated state that has a mask decides. */
static trama_status take_mask(const trama_node *node, const layouts *l, op_layouts *op)
{
    const unsigned char *mask = NULL;
    for (int o = 0; o < node->op->n_out && !mask; o++)
        if ((node->op->updates >> o & 1) && l->mesh[node->in[o]->id] == op->mesh)
            mask = l->value[node->in[o]->id].mask;
    for (int o = 0; o < node->op->n_out && mask; o++)
        op->out[o].mask = mask;
    for (int t = 0; t < node->op->n_in && mask; t++) {
        op->in[t].mask = mask;
        if (layout_check(op->mesh, node->in[t]->shape.ndim, &op->in[t], false)) {
            char *why = trama_text_copy(trama_error());
            trama_fail(node->where, TRAMA_E_LAYOUT, "%s computes under the mask of its state: operand %d (%s): %s",
                       node->op->name, t, node->in[t]->name, why);
            free(why);
            return TRAMA_E_LAYOUT;
        }
    }
    return TRAMA_OK;
}

static bool is_within(const unsigned char *inner, const unsigned char *outer, int n)
{
    for (int i = 0; outer && i < n; i++)
        if ((!inner || inner[i]) && !outer[i])
            return false;
    return true;
}

/* The op computes on the layouts that the user fixed for it, masks included, or completion fails. */
static trama_status keep_fixed(const trama_node *node, const layouts *l, op_layouts *op)
{
    const trama_layout *results = &l->value[node->out[0]->id];
    if (node->out[0]->mesh == op->mesh)
        op->out[0].mask = results->mask;
    for (int t = 0; t < node->op->n_in; t++) {
        const trama_layout *fixed = &node->fixed->in[t];
        bool kept = is_within(op->out[0].mask, fixed->mask, op->mesh->size);
        for (int a = 0; a < fixed->naxes; a++) {
            const trama_placement *f = &fixed->axis[a], *c = &op->in[t].axis[a];
            kept &= f->kind == TRAMA_OPEN ||
                    (f->kind == c->kind && (f->kind != TRAMA_SPLIT || (f->dim == c->dim && f->order == c->order)) &&
                     (f->kind != TRAMA_PARTIAL || f->reduce == c->reduce));
        }
        op->in[t].mask = fixed->mask;
        if (kept)
            continue;
        text wanted = {0}, computes = {0};
        layout_text(&wanted, op->mesh, fixed);
        layout_text(&computes, op->mesh, &op->in[t]);
        trama_fail(node->fixed->where, TRAMA_E_LAYOUT,
                   "%s of %s: with operand %d (%s) as %s it cannot compute its result; its rule wants %s",
                   node->fixed->by_scope ? "shard_begin" : "shard_op", node->op->name, t, node->in[t]->name, wanted.at,
                   computes.at);
        free(wanted.at);
        free(computes.at);
        return TRAMA_E_LAYOUT;
    }
    return TRAMA_OK;
}

/* The layout in which an op finds an operand. Gradients find the sum of a forward value where a forward op has read it,
 * not its terms. */
static const trama_layout *found_layout(const completion *c, const trama_node *node, int t, const trama_mesh *mesh)
{
    const trama_layout *have = operand_layout(c->l, node, t, mesh);
    const layout_list *held = c->held && have == &c->l->value[node->in[t]->id] ? &c->held[node->in[t]->id] : NULL;
    if (!held || node->role != NODE_GRADIENT || !layout_has(have, TRAMA_PARTIAL))
        return have;
    for (int i = 0; i < held->n; i++)
        if (!layout_has(&held->at[i], TRAMA_PARTIAL))
            return &held->at[i];
    return have;
}

/* The layout in which an op reads operand t. The gradient of a result lies, for the ops that derive from it, as the
 * result was made: a split along the same dim, and R for terms, since each term's gradient is that of the sum. Where
 * the result was made R, the gradient stays as it is. */
static const trama_layout *read_layout(const completion *c, const trama_node *node, int t, const trama_mesh *mesh,
                                       trama_layout *room)
{
    const trama_layout *have = found_layout(c, node, t, mesh);
    const trama_value *result = node->gradient_of[t];
    const op_layouts *op = result && have ? c->l->op[result->node->id] : NULL;
    if (!op || op->mesh != mesh || node->fixed || node->op->alias || have->mask)
        return have;
    const trama_layout *made = &op->out[result->result];
    *room = *have;
    for (int a = 0; a < mesh->ndim; a++)
        if (made->axis[a].kind == TRAMA_PARTIAL)
            room->axis[a] = (trama_placement){.kind = TRAMA_REPLICATE};
        else if (made->axis[a].kind == TRAMA_SPLIT && room->axis[a].kind != TRAMA_PARTIAL)
            room->axis[a] = made->axis[a];
    return layout_check(mesh, node->in[t]->shape.ndim, room, false) ? have : room;
}

static trama_status freeze_node(const completion *c, const trama_node *node, const trama_rule *rule, text *report)
{
    layouts *l = c->l;
    const trama_mesh *mesh;
    trama_status status = node_mesh(l, node, &mesh);
    if (status)
        return status;
    if (!mesh)
        mesh = c->single;
    const trama_layout *in[TRAMA_MAX_OPERANDS] = {0}, *out[TRAMA_MAX_OPERANDS] = {0};
    const layout_list *there[TRAMA_MAX_OPERANDS] = {0};
    trama_layout room[TRAMA_MAX_OPERANDS];
    for (int t = 0; t < node->op->n_in; t++) {
        in[t] = read_layout(c, node, t, mesh, &room[t]);
        there[t] = c->held && l->mesh[node->in[t]->id] == mesh ? &c->held[node->in[t]->id] : NULL;
    }
    for (int o = 0; o < node->op->n_out; o++) {
        int id = node->out[o]->id;
        if (!l->mesh[id])
            l->mesh[id] = mesh;
        if (!l->value[id].naxes)
            l->value[id] = layout_uniform(l->mesh[id], TRAMA_OPEN);
        out[o] = l->mesh[id] == mesh && !(node->op->updates >> o & 1) ? &l->value[id] : NULL;
    }
    op_layouts made, *op = &made;
    if (node->op->follows) {
        l->mesh[node->in[0]->id] = mesh;
        l->value[node->in[0]->id] = *in[1];
        in[0] = in[1];
    } else if (node->op->updates) /* updated states alone decide */
        for (int t = 0; t < node->op->n_in; t++)
            in[t] = node_updates(node, t) && l->mesh[node->in[t]->id] == mesh
                        ? updated_layout(c, node->in[t], value_storage(node->in[t]))
                        : NULL;
    infer_op(&(infer_question){.node = node,
                               .rule = rule,
                               .mesh = mesh,
                               .in = in,
                               .out = out,
                               .held = there,
                               .trains = trained_operands(c, node),
                               .moves = true},
             op, report);
    status = take_mask(node, l, op);
    if (!status)
        status = check_update(node, l, in, op);
    if (!status && node->fixed)
        status = keep_fixed(node, l, op);
    if (status)
        return status;
    for (int o = 0; o < node->op->n_out; o++) {
        trama_layout *value = &l->value[node->out[o]->id];
        if (node->op->updates >> o & 1) {
            *value = l->value[node->in[o]->id];
            op->out[o] = op->in[o];
        } else if (!layout_has(value, TRAMA_OPEN)) {
            continue;
        } else if (l->mesh[node->out[o]->id] != mesh && node->out[o]->gradient.colocated) {
            *value = layout_colocated(&l->value[node->out[o]->gradient.colocated->id]);
        } else if (l->mesh[node->out[o]->id] != mesh) {
            close_open_axes(value);
        } else {
            const trama_layout completed = *value;
            const bool open = layout_axes(value, TRAMA_OPEN) == (1u << mesh->ndim) - 1;
            *value = open ? op->out[o] : result_layout(&completed, &op->out[o]);
            fit_mask(mesh, node->out[o]->shape.ndim, &completed, value);
        }
    }
    layouts_set_op(l, node->id, op);
    return TRAMA_OK;
}

trama_status complete_node(const trama_node *node, const trama_rule *rule, const trama_mesh *single, layouts *result)
{
    return freeze_node(&(completion){.single = single, .l = result}, node, rule, NULL);
}

/* ---- Partial results that do not stay partial ---- */

/* Whether the part splits the dims that a layout splits, along the same axes. */
static bool is_within_splits(const trama_layout *layout, const trama_layout *part)
{
    for (int a = 0; a < layout->naxes; a++)
        if (layout->axis[a].kind == TRAMA_SPLIT &&
            (part->axis[a].kind != TRAMA_SPLIT || part->axis[a].dim != layout->axis[a].dim))
            return false;
    return true;
}

/* A gradient that a target names, or that other ops than an update read, is summed: its partial axes become those of
 * the value that it belongs to, or of the part that is updated. */
static void place_gradient(const completion *c, const trama_value *v)
{
    trama_layout *layout = &c->l->value[v->id];
    const trama_value *x = v->gradient.of;
    share_update(c, v);
    if (!(v->fetched || v->gradient.reduce_at_once) || !x || v->mesh || c->l->mesh[v->id] != c->l->mesh[x->id])
        return;
    if (!v->fetched && is_shared(c, x) && is_within_splits(layout, &c->updated[x->id])) {
        *layout = c->updated[x->id];
        return;
    }
    for (int a = 0; a < layout->naxes; a++) {
        const trama_placement *wanted = &c->l->value[x->id].axis[a];
        if (layout->axis[a].kind != TRAMA_PARTIAL)
            continue;
        layout->axis[a] = (trama_placement){.kind = TRAMA_REPLICATE};
        if (wanted->kind == TRAMA_SPLIT)
            layout_add_split(layout, wanted->dim, a);
    }
}

/* ---- All nodes ---- */

/* Notes the layouts in which the op reads its operands, where they are others than those of the values. */
static void hold_operands(completion *c, const trama_node *node)
{
    const op_layouts *op = c->l->op[node->id];
    for (int t = 0; t < node->op->n_in; t++) {
        const trama_value *v = node->in[t];
        layout_list *held = &c->held[v->id];
        bool there = c->l->mesh[v->id] != op->mesh || trama_layout_equal(&c->l->value[v->id], &op->in[t]);
        for (int i = 0; i < held->n && !there; i++)
            there = trama_layout_equal(&held->at[i], &op->in[t]);
        if (!there && !(node->op->shape_only >> t & 1))
            *ARRAY_PUSH(held) = op->in[t];
    }
}

static void forget_held(completion *c)
{
    for (int i = 0; i < c->program->values.n; i++)
        ARRAY_FREE(&c->held[i]);
}

static trama_status freeze_nodes(completion *c)
{
    const trama_program *p = c->program;
    trama_status status = TRAMA_OK;
    c->report.n = 0;
    begin_shared(c);
    forget_held(c);
    for (int i = 0; i < p->nodes.n && !status; i++) {
        const trama_node *node = p->nodes.at[i];
        status = freeze_node(c, node, c->rules.of[i], &c->report);
        if (!status)
            hold_operands(c, node);
        for (int o = 0; o < node->op->n_out; o++) {
            reduce_terms(&c->l->value[node->out[o]->id], &c->summed[node->out[o]->id]);
            place_gradient(c, node->out[o]);
        }
    }
    return status;
}

/* Each round sums some values where they are made (sums.c), so that values made of these are no longer partial. */
trama_status freeze_program(completion *c)
{
    size_t bytes = (size_t)c->l->n_values * sizeof *c->l->value;
    if (!bytes) /* a program without values */
        return TRAMA_OK;
    trama_layout *swept = trama_alloc(bytes);
    memcpy(swept, c->l->value, bytes);
    trama_status status = freeze_nodes(c);
    while (!status && find_sums(c)) {
        memcpy(c->l->value, swept, bytes);
        status = freeze_nodes(c);
    }
    free(swept);
    forget_held(c);
    return status;
}
