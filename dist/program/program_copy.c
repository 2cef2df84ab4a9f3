/* SPDX-License-Identifier: Apache-2.0 */
/* The deep copy of a program for a compiled program, which later calls of the user cannot change. */
#include <string.h>

#include "program.h"

/* The copy of a value of the original program; NULL for NULL. */
static trama_value *twin(const trama_program *p, const trama_value *v)
{
    return v ? p->values.at[v->id] : NULL;
}

/* The copy of a mesh. The mask of `layout` is replaced by that of the copied mesh. */
static const trama_mesh *twin_mesh(const trama_program *p, const trama_program *from, const trama_mesh *mesh,
                                   trama_layout *layout)
{
    int m = 0;
    while (from->meshes.at[m] != mesh)
        m++;
    layout->mask = mesh_mask(p->meshes.at[m], layout->mask);
    return p->meshes.at[m];
}

static trama_value *copy_value(const trama_value *v, trama_program *p, const trama_program *from)
{
    trama_value *c = trama_alloc(sizeof *c);
    *c = *v;
    c->program = p;
    c->name = trama_text_copy(v->name);
    c->annotated.given = NULL; /* for the user only */
    if (v->data) {
        size_t bytes = (size_t)trama_shape_count(v->shape) * trama_dtype_size(v->dtype);
        c->data = trama_try_alloc(bytes);
        if (c->data)
            memcpy(c->data, v->data, bytes);
        else
            program_fail(p, v->where, TRAMA_E_MEMORY, "%s: no memory for a copy of its %zu bytes", v->name, bytes);
    }
    value_copy_open(c, v);
    program_value_parts(c);
    if (v->kind == VALUE_STATE)
        *c->state = *v->state;
    if (v->mesh) {
        trama_layout layout = *v->layout;
        c->mesh = twin_mesh(p, from, v->mesh, &layout);
        program_lay_out(c, layout);
    }
    if (v->kind == VALUE_EFFECT) /* parts are for builders only */
        *c->update = (update_value){.first = v->update->first, .end = v->update->end};
    return c;
}

static void link_value(trama_value *c, const trama_value *v)
{
    for (int e = 0; e < v->update->updated.n; e++)
        *ARRAY_PUSH(&c->update->updated) = twin(c->program, v->update->updated.at[e]);
    for (int i = 0; i < v->update->raw.n; i++) {
        *ARRAY_PUSH(&c->update->trained) = twin(c->program, v->update->trained.at[i]);
        *ARRAY_PUSH(&c->update->raw) = twin(c->program, v->update->raw.at[i]);
    }
    if (v->kind == VALUE_STATE)
        c->state->slot_of = twin(c->program, v->state->slot_of);
    c->gradient.of = twin(c->program, v->gradient.of);
    c->gradient.colocated = twin(c->program, v->gradient.colocated);
}

static op_fixed *copy_fixed(const op_fixed *fixed, int n_in, trama_program *p, const trama_program *from)
{
    op_fixed *c = trama_alloc(sizeof *c);
    *c = *fixed;
    c->given = NULL;
    for (int t = 0; t < n_in; t++)
        c->mesh = twin_mesh(p, from, fixed->mesh, &c->in[t]);
    return c;
}

static trama_node *copy_node(const trama_node *node, trama_program *p, const trama_program *from)
{
    trama_node *c = program_node_new(node->op, node->attributes);
    c->program = p;
    c->id = node->id;
    c->where = node->where;
    c->stage = node->stage;
    c->role = node->role;
    c->wants = node->wants;
    c->rule = rule_pool_take(&p->rules, node->rule);
    if (node->fixed)
        c->fixed = copy_fixed(node->fixed, node->op->n_in, p, from);
    for (int i = 0; i < c->op->n_in; i++) {
        c->in[i] = twin(p, node->in[i]);
        c->gradient_of[i] = twin(p, node->gradient_of[i]);
    }
    for (int i = 0; i < c->op->n_out; i++) {
        c->out[i] = twin(p, node->out[i]);
        c->out[i]->node = c;
    }
    return c;
}

static process_order copy_order(const process_order *order)
{
    process_order c = *order;
    if (c.n) {
        c.place = trama_alloc((size_t)c.n * sizeof *c.place);
        memcpy(c.place, order->place, (size_t)c.n * sizeof *c.place);
    }
    return c;
}

trama_program *program_copy(const trama_program *program)
{
    trama_program *p = program_new();
    for (int i = 0; i < program->meshes.n; i++)
        *ARRAY_PUSH(&p->meshes) = mesh_copy(program->meshes.at[i]);
    for (int i = 0; i < program->values.n; i++)
        *ARRAY_PUSH(&p->values) = copy_value(program->values.at[i], p, program);
    for (int i = 0; i < program->values.n; i++)
        link_value(p->values.at[i], program->values.at[i]);
    for (int i = 0; i < program->nodes.n; i++)
        *ARRAY_PUSH(&p->nodes) = copy_node(program->nodes.at[i], p, program);
    for (int i = 0; i < program->targets.n; i++) {
        const trama_target *t = program->targets.at[i];
        trama_target *c = trama_alloc(sizeof *c);
        *c = (trama_target){
            .program = p, .id = t->id, .name = trama_text_copy(t->name), .where = t->where, .merge = t->merge};
        for (int v = 0; v < t->values.n; v++)
            *ARRAY_PUSH(&c->values) = twin(p, t->values.at[v]);
        *ARRAY_PUSH(&p->targets) = c;
    }
    for (int i = 0; i < program->merged.n; i++) {
        const merged_gradient *g = &program->merged.at[i];
        *ARRAY_PUSH(&p->merged) = (merged_gradient){twin(p, g->value), twin(p, g->minimized)};
    }
    p->order = copy_order(&program->order);
    if (program->start.mesh) {
        trama_layout none = {0};
        p->start.mesh = twin_mesh(p, program, program->start.mesh, &none);
    }
    p->start.nominal = program->start.nominal;
    for (int i = 0; i < program->start.at.n; i++)
        *ARRAY_PUSH(&p->start.at) = program->start.at.at[i];
    p->search = program->search;
    return p;
}
