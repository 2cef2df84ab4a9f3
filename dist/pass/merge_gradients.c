/* SPDX-License-Identifier: Apache-2.0 */
/* Gradient merge as a change of the program. What runs when is one bit a node; layouts, messages and sums follow from
 * the ops alone: a gradient is added up as it arises, and behind the gate its reader asks for the sum. */
#include "merge_gradients.h"
#include "trama_ops.h"

#include "ops.h"

/* One target at work. */
typedef struct merger {
    trama_program *program;
    trama_target *target;
    trama_value *effect;
    trama_value *scale[TRAMA_N_DTYPES]; /* in the types of gradients; made when asked for */
} merger;

static void make_scalars(merger *m)
{
    static const char *const names[] = {"keep", "weight", "scale"};
    target_merge *merge = &m->target->merge;
    for (int i = 0; i < MERGE_SCALARS; i++) {
        text name = {0};
        text_add(&name, "%s.merge.%s", m->target->name, names[i]);
        merge->scalar[i] = program_value(m->program, merge->where, VALUE_INPUT, TRAMA_F64, TRAMA_SCALAR, name.at);
        free(name.at);
    }
}

static trama_value *append(merger *m, const trama_op *op, int n, trama_value *const *in, bool gated)
{
    trama_value *result = program_append(m->program, m->target->merge.where, op, n, in, NULL);
    if (result)
        result->node->gated = gated;
    return result;
}

/* The scale in the gradient's type. */
static trama_value *scale_as(merger *m, trama_dtype dtype)
{
    trama_value **c = &m->scale[dtype];
    if (!*c && (*c = trama_cast_at(m->target->merge.where, m->target->merge.scalar[MERGE_SCALE], dtype)) && (*c)->node)
        (*c)->node->gated = true;
    return *c;
}

static trama_value *buffer_of(merger *m, const trama_value *parameter, const trama_value *gradient)
{
    text name = {0};
    text_add(&name, "%s.%s.merged", m->target->name, parameter->name);
    trama_value *v =
        trama_state_at(m->target->merge.where, m->program, name.at, gradient->dtype, gradient->shape, NULL);
    if (v)
        v->terms = true;
    free(name.at);
    return v;
}

/* A gradient that some target lists is summed for whoever reads it. What is merged is what that is made of. */
static trama_value *unlisted(merger *m, trama_value *raw)
{
    if (!raw->listed || !raw->node)
        return raw;
    trama_value *own = append(m, &trama_op_stop_gradient, 1, &raw, false);
    if (!own)
        return NULL;
    trama_node *made = raw->node, *alias = own->node; /* the two change places */
    own->node = made;
    own->result = raw->result;
    made->out[own->result] = own;
    raw->node = alias;
    raw->result = 0;
    alias->in[0] = own;
    alias->out[0] = raw;
    own->gradient_of = raw->gradient_of;
    return own;
}

/* Gradient i added to its buffer; and behind the gate what lies there goes to where the parameter is, terms summed, and
 * is scaled: in this order, so that what is sent is the buffer itself, and the rest is part of the update's task. */
static trama_value *merged(merger *m, int i)
{
    trama_value *raw = unlisted(m, m->effect->raw.at[i]), *parameter = m->effect->trained.at[i];
    const target_merge *s = &m->target->merge;
    if (!raw)
        return NULL;
    trama_value *added = append(
        m, &trama_op_accumulate, 4,
        (trama_value *[]){buffer_of(m, parameter, raw), raw, s->scalar[MERGE_KEEP], s->scalar[MERGE_WEIGHT]}, false);
    trama_value *placed = append(m, &trama_op_stop_gradient, 1, &added, true);
    trama_value *result = append(m, &trama_op_mul, 2, (trama_value *[]){placed, scale_as(m, raw->dtype)}, true);
    if (result) {
        added->gradient_of = placed->gradient_of = result->gradient_of = parameter;
        placed->settled = true;
    }
    raw->settled = s->how & TRAMA_SYNC_EACH;
    return result;
}

static void replace(trama_node *node, const trama_value *old, trama_value *new)
{
    for (int t = 0; t < node->op->n_in; t++)
        node->in[t] = node->in[t] == old ? new : node->in[t];
}

static void merge_effect(merger *m)
{
    trama_program *p = m->program;
    int from = m->effect->updates_from, to = m->effect->updates_to, n = p->nodes.n;
    for (int i = from; i < to; i++)
        p->nodes.at[i]->gated = p->nodes.at[i]->role != NODE_FORWARD; /* the run counter counts every run */
    for (int i = m->effect->raw.n - 1; i >= 0 && !p->status; i--) { /* the last ones are there first */
        trama_value *g = merged(m, i);
        for (int k = from; k < n; k++)
            if (k < to || p->nodes.at[k]->reads_merged == m->effect)
                replace(p->nodes.at[k], m->effect->raw.at[i], g);
    }
}

static void merge_target(trama_program *p, trama_target *t)
{
    merger m = {.program = p, .target = t};
    node_role outer = p->role;
    p->role = NODE_MERGE;
    make_scalars(&m);
    for (int i = 0; i < t->values.n && !p->status; i++) {
        m.effect = t->values.at[i];
        if (m.effect->raw.n)
            merge_effect(&m);
    }
    p->role = outer;
}

/* ---- Gated nodes come last ---- */

/* What the updates were made of comes before what is made of it, which the order of recording no longer says. */
static void place(const trama_program *p, trama_node *node, bool gated, bool *placed, trama_node **order, int *n)
{
    if (placed[node->id] || node->gated != gated)
        return;
    placed[node->id] = true;
    for (int t = 0; t < node->op->n_in; t++)
        if (node->in[t]->node)
            place(p, node->in[t]->node, gated, placed, order, n);
    order[(*n)++] = node;
}

static void spread_gate(const trama_program *p)
{
    for (bool changed = true; changed;) {
        changed = false;
        for (int i = 0; i < p->nodes.n; i++) {
            trama_node *node = p->nodes.at[i];
            for (int t = 0; t < node->op->n_in && !node->gated; t++)
                if (node->in[t]->node && node->in[t]->node->gated)
                    changed = node->gated = true;
        }
    }
}

static void renumber(trama_program *p)
{
    size_t n = (size_t)p->nodes.n;
    trama_node **order = trama_alloc(n * sizeof(trama_node *));
    bool *placed = trama_alloc(n);
    int at = 0;
    for (int gated = 0; gated < 2; gated++)
        for (int i = 0; i < p->nodes.n; i++)
            place(p, p->nodes.at[i], gated, placed, order, &at);
    for (int i = 0; i < p->nodes.n; i++) {
        p->nodes.at[i] = order[i];
        order[i]->id = i;
    }
    for (int i = 0; i < p->nodes.n; i++)
        for (int o = 0; o < order[i]->op->n_out; o++)
            if (order[i]->op->updates >> o & 1)
                value_storage(order[i]->in[o])->updated_by = i + 1;
    free(order);
    free(placed);
}

bool merge_gradients(trama_program *program)
{
    bool any = false;
    for (int i = 0; i < program->targets.n && !program->status; i++)
        if (program->targets.at[i]->merge.k) {
            merge_target(program, program->targets.at[i]);
            any = true;
        }
    if (any && !program->status) {
        spread_gate(program);
        renumber(program);
    }
    return any;
}
