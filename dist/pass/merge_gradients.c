/* SPDX-License-Identifier: Apache-2.0 */
/* Gradient merge as a change of the program. A micro-step adds gradients to buffers as they arise, and the ops that
 * apply them ask for the sum. Layouts, messages and sums follow from these ops alone. */
#include "merge_gradients.h"

#include <string.h>

#include "ops.h"
#include "trama_ops.h"

typedef struct merger {
    trama_program *program;
    ARRAY(bool) late;                   /* [node id] applies gradients, or reads a result of a late node */
    ARRAY(const trama_node *) applying; /* the nodes that apply gradients */
    /* the current target */
    trama_target *target;
    accumulation *made;
    trama_value *micro_step; /* an effect: the values that one computes */
    trama_value *effect;
    trama_value *scale[TRAMA_N_DTYPES]; /* by the type of a gradient; made when asked for */
} merger;

static void make_scalars(merger *m)
{
    static const char *const names[] = {"keep", "weight", "scale"};
    for (int i = 0; i < MERGE_SCALARS; i++) {
        text name = {0};
        text_add(&name, "%s.merge.%s", m->target->name, names[i]);
        m->made->scalar[i] =
            program_value(m->program, m->target->merge.where, VALUE_INPUT, TRAMA_F64, TRAMA_SCALAR, name.at);
        free(name.at);
    }
}

static trama_value *append(merger *m, const trama_op *op, int n, trama_value *const *in)
{
    return program_append(m->program, m->target->merge.where, op, n, in, NULL);
}

static trama_value *applies(merger *m, trama_value *v)
{
    if (v && v->node)
        *ARRAY_PUSH(&m->applying) = v->node;
    return v;
}

/* The scale in the gradient's type. */
static trama_value *scale_as(merger *m, trama_dtype dtype)
{
    trama_value **c = &m->scale[dtype];
    if (!*c)
        *c = applies(m, trama_cast_at(m->target->merge.where, m->made->scalar[MERGE_SCALE], dtype));
    return *c;
}

static trama_value *buffer_of(merger *m, const trama_value *parameter, const trama_value *gradient)
{
    text name = {0};
    text_add(&name, "%s.%s.merged", m->target->name, parameter->name);
    trama_value *v =
        trama_state_at(m->target->merge.where, m->program, name.at, gradient->dtype, gradient->shape, NULL);
    if (v) {
        v->state->terms = true;
        v->gradient.of = parameter;
    }
    free(name.at);
    return v;
}

/* The unreduced gradient, which is merged. A gradient that a target lists is summed for its readers, so it becomes an
 * alias of a new value, and that one takes its op. */
static trama_value *unfetched(merger *m, trama_value *raw)
{
    if (!raw->fetched || !raw->node)
        return raw;
    trama_value *own = append(m, &trama_op_stop_gradient, 1, &raw);
    if (!own)
        return NULL;
    trama_node *made = raw->node, *alias = own->node; /* own and raw change places */
    own->node = made;
    own->result = raw->result;
    made->out[own->result] = own;
    raw->node = alias;
    raw->result = 0;
    alias->in[0] = own;
    alias->out[0] = raw;
    own->gradient.of = raw->gradient.of;
    return own;
}

/* Adds gradient i to its buffer and returns the gradient to apply: the buffer, summed and laid out like the parameter,
 * then scaled. In this order messages are sent from the buffer, and the scaling is part of the update's task. */
static trama_value *merged(merger *m, int i)
{
    trama_value *raw = unfetched(m, m->effect->update->raw.at[i]), *parameter = m->effect->update->trained.at[i];
    trama_value *const *scalar = m->made->scalar;
    if (!raw)
        return NULL;
    trama_value *buffer = buffer_of(m, parameter, raw);
    trama_value *added =
        append(m, &trama_op_accumulate, 4, (trama_value *[]){buffer, raw, scalar[MERGE_KEEP], scalar[MERGE_WEIGHT]});
    trama_value *placed = applies(m, append(m, &trama_op_stop_gradient, 1, &buffer));
    trama_value *result = append(m, &trama_op_mul, 2, (trama_value *[]){placed, scale_as(m, raw->dtype)});
    if (result) {
        added->gradient.of = placed->gradient.of = result->gradient.of = parameter;
        placed->gradient.reduce_at_once = true;
        *ARRAY_PUSH(&m->micro_step->update->updated) = added;
    }
    raw->gradient.reduce_at_once = m->target->merge.how & TRAMA_MERGE_SYNC_EACH;
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
    int from = m->effect->update->first, to = m->effect->update->end;
    for (int i = from; i < to; i++)
        if (p->nodes.at[i]->role != NODE_FORWARD) /* the run counter counts every run */
            *ARRAY_PUSH(&m->applying) = p->nodes.at[i];
    for (int i = m->effect->update->raw.n - 1; i >= 0 && !p->status; i--) { /* the last gradients are made first */
        trama_value *g = merged(m, i);
        for (int k = from; k < to; k++)
            replace(p->nodes.at[k], m->effect->update->raw.at[i], g);
        for (int k = 0; k < p->merged.n; k++)
            if (p->merged.at[k].minimized == m->effect)
                replace(p->merged.at[k].value->node, m->effect->update->raw.at[i], g);
    }
}

static void merge_target(merger *m, trama_target *t, accumulation *made)
{
    trama_program *p = m->program;
    m->target = t;
    m->made = made;
    memset(m->scale, 0, sizeof m->scale);
    make_scalars(m);
    m->micro_step = program_value(p, t->merge.where, VALUE_EFFECT, TRAMA_F64, TRAMA_SCALAR, "accumulate");
    for (int i = 0; i < t->values.n && !p->status; i++) {
        m->effect = t->values.at[i];
        if (m->effect->update->raw.n)
            merge_effect(m);
    }
    *ARRAY_PUSH(&t->values) = m->micro_step;
}

/* ---- Two targets ---- */

static void spread_late(merger *m)
{
    const trama_program *p = m->program;
    for (int i = 0; i < p->nodes.n; i++)
        *ARRAY_PUSH(&m->late) = false;
    for (int i = 0; i < m->applying.n; i++)
        m->late.at[m->applying.at[i]->id] = true;
    for (bool changed = true; changed;) {
        changed = false;
        for (int i = 0; i < p->nodes.n; i++) {
            const trama_node *node = p->nodes.at[i];
            for (int t = 0; t < node->op->n_in && !m->late.at[i]; t++)
                if (node->in[t]->node && m->late.at[node->in[t]->node->id])
                    changed = m->late.at[i] = true;
        }
    }
}

static bool is_late(const merger *m, const trama_value *v)
{
    bool late = v->node && m->late.at[v->node->id];
    for (int i = 0; i < v->update->updated.n; i++)
        late |= is_late(m, v->update->updated.at[i]);
    return late;
}

/* Whether a micro-step changes a state. */
static bool is_moved(const merger *m, const bool *needed, int n_nodes, const trama_value *state)
{
    for (int i = 0; i < n_nodes; i++) {
        const trama_node *node = m->program->nodes.at[i];
        for (int o = 0; needed[i] && !m->late.at[i] && o < node->op->n_out; o++)
            if ((node->op->updates >> o & 1) && node->in[o] == state)
                return true;
    }
    return false;
}

/* Late nodes run after the micro-step, but an alias gives them each state as it was before. They read the buffers of
 * gradients as they are after it. */
static void keep_old_states(merger *m, const bool *needed, int n_nodes)
{
    for (int i = 0; i < n_nodes; i++) {
        trama_node *node = m->program->nodes.at[i];
        for (int t = 0; needed[i] && m->late.at[i] && t < node->op->n_in; t++)
            if (node->in[t]->kind == VALUE_STATE && !node->in[t]->state->terms &&
                is_moved(m, needed, n_nodes, node->in[t])) {
                node->in[t] = append(m, &trama_op_stop_gradient, 1, &node->in[t]);
                *ARRAY_PUSH(&m->late) = false;
            }
    }
}

/* Each micro-step runs all nodes that are not late, also those that only late nodes need. */
static void split_target(merger *m, trama_target *t, accumulation *made)
{
    trama_program *p = m->program;
    int n_nodes = p->nodes.n, n = 0;
    trama_value *micro_step = t->values.at[t->values.n - 1];
    bool *needed = trama_alloc((size_t)n_nodes);
    program_closure(p, t->values.n, t->values.at, needed);
    m->target = t;
    keep_old_states(m, needed, n_nodes);
    for (int i = 0; i < p->nodes.n; i++)
        if ((i >= n_nodes || needed[i]) && !m->late.at[i])
            *ARRAY_PUSH(&micro_step->update->updated) = p->nodes.at[i]->out[0];
    made->apply = trama_alloc(sizeof *made->apply);
    *made->apply =
        (trama_target){.program = p, .id = p->targets.n, .name = trama_text_copy(t->name), .where = t->where};
    *ARRAY_PUSH(&p->targets) = made->apply;
    for (int i = 0; i < t->values.n; i++)
        if (is_late(m, t->values.at[i]))
            *ARRAY_PUSH(&made->apply->values) = t->values.at[i];
        else
            t->values.at[n++] = t->values.at[i];
    t->values.n = n;
    free(needed);
}

/* ---- Late nodes come last ---- */

/* Places the makers of a node's operands, then the node: replaced operands come later in the order of recording. */
static void place(const merger *m, trama_node *node, bool late, bool *placed, trama_node **order, int *n)
{
    if (placed[node->id] || m->late.at[node->id] != late)
        return;
    placed[node->id] = true;
    for (int t = 0; t < node->op->n_in; t++)
        if (node->in[t]->node)
            place(m, node->in[t]->node, late, placed, order, n);
    order[(*n)++] = node;
}

static void renumber(const merger *m)
{
    trama_program *p = m->program;
    size_t n = (size_t)p->nodes.n;
    trama_node **order = trama_alloc(n * sizeof(trama_node *));
    bool *placed = trama_alloc(n);
    int at = 0;
    for (int late = 0; late < 2; late++)
        for (int i = 0; i < p->nodes.n; i++)
            place(m, p->nodes.at[i], late, placed, order, &at);
    for (int i = 0; i < p->nodes.n; i++) {
        p->nodes.at[i] = order[i];
        order[i]->id = i;
    }
    for (int i = 0; i < p->nodes.n; i++)
        for (int o = 0; o < order[i]->op->n_out; o++)
            if (order[i]->op->updates >> o & 1)
                value_storage(order[i]->in[o])->state->updated_by = i + 1;
    free(order);
    free(placed);
}

accumulation *merge_gradients(trama_program *program)
{
    int n = program->targets.n;
    accumulation *made = NULL;
    merger m = {.program = program};
    node_role outer = program->role;
    program->role = NODE_MERGE;
    for (int i = 0; i < n && !program->status; i++)
        if (program->targets.at[i]->merge.k) {
            made = made ? made : trama_alloc((size_t)n * sizeof *made);
            merge_target(&m, program->targets.at[i], &made[i]);
        }
    if (made && !program->status) {
        spread_late(&m);
        for (int i = 0; i < n; i++)
            if (program->targets.at[i]->merge.k)
                split_target(&m, program->targets.at[i], &made[i]);
        renumber(&m);
    }
    program->role = outer;
    ARRAY_FREE(&m.late);
    ARRAY_FREE(&m.applying);
    return made;
}
