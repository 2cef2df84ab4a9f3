/* SPDX-License-Identifier: Apache-2.0 */
/* The single-device evaluator. */
#include "single.h"

#include "reference.h"

struct single {
    const trama_program *program;
    dense *values; /* [value id] of the last run; inputs as fed */
    dense *states; /* [value id] */
};

static void set(dense *to, dense from)
{
    dense_free(to);
    *to = from;
}

single *single_new(const trama_program *program)
{
    single *s = trama_alloc(sizeof *s);
    s->program = program;
    s->values = trama_alloc((size_t)program->values.n * sizeof *s->values);
    s->states = trama_alloc((size_t)program->values.n * sizeof *s->states);
    for (int i = 0; i < program->values.n; i++)
        if (value_is_state(program->values.at[i]))
            s->states[i] = dense_initial(program->values.at[i]);
    return s;
}

void single_destroy(single **s)
{
    for (int i = 0; i < (*s)->program->values.n; i++) {
        dense_free(&(*s)->values[i]);
        dense_free(&(*s)->states[i]);
    }
    free((*s)->values);
    free((*s)->states);
    free(*s);
    *s = NULL;
}

void single_feed(single *s, const trama_value *input, const dense *data)
{
    set(&s->values[input->id], dense_copy(data));
}

void single_write(single *s, const trama_value *state, const dense *data)
{
    set(&s->states[state->id], dense_copy(data));
}

const dense *single_value(const single *s, const trama_value *value)
{
    return value_is_state(value) ? &s->states[value->id] : &s->values[value->id];
}

static void run_node(single *s, const trama_node *node, const trama_shape *shapes)
{
    trama_view in[TRAMA_MAX_OPERANDS], out[TRAMA_MAX_OPERANDS];
    for (int t = 0; t < node->op->n_in; t++)
        in[t] = dense_view(&s->values[node->in[t]->id], node->in[t]->dtype);
    for (int o = 0; o < node->op->n_out; o++) {
        int id = node->out[o]->id;
        set(&s->values[id], dense_new(shapes[id]));
        out[o] = dense_view(&s->values[id], node->out[o]->dtype);
    }
    trama_call call = {node->op, node->attributes, node->op->n_in, node->op->n_out, in, out, false};
    reference_call(&call);
}

static void store_updates(single *s, const trama_node *node)
{
    for (int o = 0; o < node->op->n_out; o++)
        if (node->op->updates >> o & 1)
            set(&s->states[value_storage(node->out[o])->id], dense_copy(&s->values[node->out[o]->id]));
}

void single_run(single *s, const trama_target *target)
{
    const trama_program *p = s->program;
    bool *needed = trama_alloc((size_t)p->nodes.n);
    trama_shape *shapes = trama_alloc((size_t)p->values.n * sizeof *shapes);
    node_rules rules = node_rules_new(p->nodes.n);
    program_closure(p, target->values.n, target->values.at, needed);
    for (int i = 0; i < p->values.n; i++) {
        const trama_value *v = p->values.at[i];
        shapes[i] = s->values[i].shape;
        if (v->kind == VALUE_STATE)
            set(&s->values[i], dense_copy(&s->states[i]));
        if (v->kind == VALUE_CONSTANT)
            set(&s->values[i], dense_initial(v));
    }
    if (program_resolve(p, needed, shapes, &rules))
        abort();
    for (int i = 0; i < p->nodes.n; i++)
        if (needed[i])
            run_node(s, p->nodes.at[i], shapes);
    for (int i = 0; i < p->nodes.n; i++)
        if (needed[i])
            store_updates(s, p->nodes.at[i]);
    free(needed);
    free(shapes);
    node_rules_free(&rules);
}
