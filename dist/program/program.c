/* SPDX-License-Identifier: Apache-2.0 */
/* Programs and their values: how they come and go, and errors. leaf.c, record.c and program_target.c fill programs. */
#include "program.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* ---- Life and errors ---- */

trama_program *trama_program_create(void)
{
    trama_program *p = program_new();
    if (memory_status(NOWHERE, "trama_program_create"))
        trama_program_destroy(&p);
    return p;
}

trama_program *program_new(void)
{
    return trama_alloc(sizeof(trama_program));
}

/* Few values are annotated, state, or effects. The others share these, which nobody writes. */
static trama_layout no_layout;
static state_value no_state;
static update_value no_update;

void program_value_parts(trama_value *v)
{
    v->layout = &no_layout;
    v->state = v->kind == VALUE_STATE ? trama_alloc(sizeof *v->state) : &no_state;
    v->update = v->kind == VALUE_EFFECT ? trama_alloc(sizeof *v->update) : &no_update;
}

void program_lay_out(trama_value *value, trama_layout layout)
{
    if (value->layout == &no_layout)
        value->layout = trama_alloc(sizeof *value->layout);
    *value->layout = layout;
}

void program_value_free(trama_value *v)
{
    if (!v)
        return;
    free(v->name);
    free(v->data);
    free(v->open);
    if (v->layout != &no_layout)
        free(v->layout);
    if (v->state != &no_state)
        free(v->state);
    if (v->update != &no_update) {
        ARRAY_FREE(&v->update->updated);
        ARRAY_FREE(&v->update->trained);
        ARRAY_FREE(&v->update->raw);
        ARRAY_FREE(&v->update->parts);
        free(v->update);
    }
    free(v);
}

static const trama_attributes no_attributes;

/* One piece of memory: programs have many nodes, and most of these few operands and no attributes. */
trama_node *program_node_new(const trama_op *op, const trama_attributes *attributes)
{
    const size_t n_in = (size_t)op->n_in, n_out = (size_t)op->n_out;
    const bool some = attributes && memcmp(attributes, &no_attributes, sizeof no_attributes) != 0;
    trama_node *node =
        trama_alloc(sizeof *node + (some ? sizeof *attributes : 0) + (2 * n_in + n_out) * sizeof(trama_value *));
    trama_attributes *own = (trama_attributes *)(node + 1);
    node->op = op;
    node->attributes = some ? own : &no_attributes;
    if (some)
        *own = *attributes;
    node->in = (trama_value **)(own + some);
    node->out = node->in + n_in;
    node->gradient_of = (const trama_value **)(node->out + n_out);
    return node;
}

void program_node_free(trama_node *node)
{
    if (!node)
        return;
    rule_pool_release(&node->program->rules, node->rule);
    free(node->fixed);
    free(node);
}

void trama_program_destroy(trama_program **program)
{
    if (!program || !*program)
        return;
    trama_program *p = *program;
    for (int i = 0; i < p->values.n; i++)
        program_value_free(p->values.at[i]);
    for (int i = 0; i < p->nodes.n; i++)
        program_node_free(p->nodes.at[i]);
    for (int i = 0; i < p->targets.n; i++) {
        free(p->targets.at[i]->name);
        ARRAY_FREE(&p->targets.at[i]->values);
        free(p->targets.at[i]);
    }
    for (int i = 0; i < p->meshes.n; i++)
        trama_mesh_destroy(&p->meshes.at[i]);
    for (int i = 0; i < p->given.n; i++)
        trama_mesh_destroy(&p->given.at[i]);
    for (int i = 0; i < p->gradients.n; i++)
        ARRAY_FREE(&p->gradients.at[i].of);
    scopes_free(p);
    ARRAY_FREE(&p->given);
    ARRAY_FREE(&p->values);
    hash_table_free(&p->names);
    ARRAY_FREE(&p->nodes);
    rule_pool_free(&p->rules);
    ARRAY_FREE(&p->targets);
    ARRAY_FREE(&p->meshes);
    ARRAY_FREE(&p->start.at);
    ARRAY_FREE(&p->gradients);
    ARRAY_FREE(&p->merged);
    free(p->order.place);
    free(p->error);
    free(p);
    *program = NULL;
}

trama_status trama_program_status(const trama_program *program)
{
    return program ? program->status : TRAMA_E_ARGUMENT;
}

const char *trama_program_error(const trama_program *program)
{
    return program && program->error ? program->error : "";
}

void trama_program_clear_error(trama_program *program)
{
    if (!program)
        return;
    free(program->error);
    program->error = NULL;
    program->status = TRAMA_OK;
}

void *program_keep_error(trama_program *program, trama_status status)
{
    if (program && !program->status) {
        program->status = status;
        program->error = trama_text_copy(trama_error());
    }
    return NULL;
}

void *program_fail(trama_program *program, trama_where where, trama_status status, const char *format, ...)
{
    char message[900];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    trama_fail(where, status, "%s", message);
    return program_keep_error(program, status);
}

bool program_is_short(trama_program *program, trama_where where, const char *call)
{
    trama_status status = memory_status(where, call);
    if (status)
        program_keep_error(program, status);
    return status;
}

/* ---- Values ---- */

trama_value *program_value(trama_program *program, trama_where where, value_kind kind, trama_dtype dtype,
                           trama_shape shape, const char *name)
{
    trama_value *v = trama_alloc(sizeof *v);
    v->program = program;
    v->id = program->values.n;
    v->kind = kind;
    v->dtype = dtype;
    v->shape = shape;
    v->name = trama_text_copy(name);
    v->where = where;
    program_value_parts(v);
    return *ARRAY_PUSH(&program->values) = v;
}

trama_shape trama_value_shape(const trama_value *value)
{
    return value ? value->shape : (trama_shape){.ndim = -1};
}

trama_dtype trama_value_dtype(const trama_value *value)
{
    return value ? value->dtype : TRAMA_F32;
}

const char *trama_value_name(const trama_value *value)
{
    return value ? value->name : "(null)";
}

void value_text(text *out, const trama_value *value)
{
    text_add(out, "%s %s", value->name, trama_dtype_name(value->dtype));
    shape_text(out, value->shape);
}

trama_value *value_storage(trama_value *value)
{
    while (value->kind == VALUE_RESULT && (value->node->op->updates >> value->result & 1))
        value = value->node->in[value->result];
    return value->kind == VALUE_STATE ? value : NULL;
}

const trama_value *value_buffer(const trama_value *value)
{
    while (value->node && (value->node->op->alias || value->node->op->view))
        value = value->node->in[0];
    return value;
}
