/* SPDX-License-Identifier: Apache-2.0 */
/* Programs: values, the ops that builders append, targets, errors. dist/pass completes layouts. */
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

/* Records the thread's last message as the program's first error. */
static void *keep_error(trama_program *program, trama_status status)
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
    return keep_error(program, status);
}

bool program_is_short(trama_program *program, trama_where where, const char *call)
{
    trama_status status = memory_status(where, call);
    if (status)
        keep_error(program, status);
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

/* The result of a builder of a leaf: NULL where memory was short. */
static trama_value *leaf(trama_value *v)
{
    return program_is_short(v->program, v->where, v->name) ? NULL : v;
}

static void add_name(trama_program *p, const trama_value *v)
{
    if (v && v->kind <= VALUE_STATE)
        hash_table_add(&p->names, hash_text(HASH_START, v->name), v->id);
}

trama_value *program_leaf_named(trama_program *p, const char *name, const trama_value *except)
{
    if (p->names.n > 2 * p->values.n + 64) { /* most entries are those of values that are gone */
        hash_table_clear(&p->names);
        p->named = 0;
    }
    for (; p->named < p->values.n; p->named++)
        add_name(p, p->values.at[p->named]);
    const uint64_t hash = hash_text(HASH_START, name);
    for (int probe = 0, i; (i = hash_table_find(&p->names, hash, &probe)) >= 0;) {
        trama_value *v = i < p->values.n ? p->values.at[i] : NULL;
        if (v && v != except && v->kind <= VALUE_STATE && !strcmp(v->name, name))
            return v;
    }
    return NULL;
}

/* The checks that inputs, state and constants share. any_allowed: dims may be TRAMA_ANY. */
static bool check_leaf(trama_program *p, trama_where where, const char *what, const char *name, trama_dtype dtype,
                       const trama_shape *shape, bool any_allowed)
{
    if (!p)
        return trama_fail(where, TRAMA_E_ARGUMENT, "%s: the program is NULL", what), false;
    if (!name || !*name)
        return program_fail(p, where, TRAMA_E_ARGUMENT, "%s: it needs a name", what), false;
    if ((unsigned)dtype >= TRAMA_N_DTYPES)
        return program_fail(p, where, TRAMA_E_DTYPE, "%s '%s': %d is no element type", what, name, (int)dtype), false;
    text why = {0};
    if (!shape_check(*shape, dtype, any_allowed, &why))
        program_fail(p, where, TRAMA_E_SHAPE, "%s '%s': %s", what, name, why.at);
    free(why.at);
    if (why.n)
        return false;
    const trama_value *other = program_leaf_named(p, name, NULL);
    if (other)
        program_fail(p, where, TRAMA_E_ARGUMENT, "%s: the name '%s' is taken (%s:%d)", what, name, other->where.file,
                     other->where.line);
    return !other;
}

trama_value *trama_input_at(trama_where where, trama_program *program, const char *name, trama_dtype dtype,
                            trama_shape shape)
{
    if (!check_leaf(program, where, "input", name, dtype, &shape, true))
        return NULL;
    return leaf(program_value(program, where, VALUE_INPUT, dtype, shape, name));
}

trama_value *trama_state_at(trama_where where, trama_program *program, const char *name, trama_dtype dtype,
                            trama_shape shape, const trama_init *init)
{
    if (!check_leaf(program, where, "parameter", name, dtype, &shape, false))
        return NULL;
    if (init && init->stream > UINT32_MAX)
        return program_fail(program, where, TRAMA_E_ARGUMENT, "parameter '%s': stream %llu is above 2^32-1", name,
                            (unsigned long long)init->stream);
    if (init && init->low != init->high && !trama_dtype_is_float(dtype))
        return program_fail(program, where, TRAMA_E_DTYPE,
                            "parameter '%s': random numbers from %g to %g are those of floats, and it is %s; give it "
                            "numbers by trama_initial",
                            name, init->low, init->high, trama_dtype_name(dtype));
    trama_value *v = program_value(program, where, VALUE_STATE, dtype, shape, name);
    if (init)
        v->state->init = *init;
    return leaf(v);
}

trama_value *trama_parameter_at(trama_where where, trama_program *program, const char *name, trama_dtype dtype,
                                trama_shape shape, const trama_init *init)
{
    trama_value *v = trama_state_at(where, program, name, dtype, shape, init);
    if (v)
        v->state->trainable = true;
    return v;
}

static void *copy_of(const void *data, size_t bytes)
{
    void *copy = trama_try_alloc(bytes);
    return copy && bytes ? memcpy(copy, data, bytes) : copy;
}

trama_value *trama_initial_at(trama_where where, trama_value *state, const void *data)
{
    if (!state)
        return NULL;
    size_t bytes = (size_t)trama_shape_count(state->shape) * trama_dtype_size(state->dtype);
    if (!value_is_state(state))
        return program_fail(state->program, where, TRAMA_E_ARGUMENT,
                            "initial content of %s: it is no parameter and no state", state->name);
    if (!data && bytes)
        return program_fail(state->program, where, TRAMA_E_ARGUMENT, "initial content of %s: the data is NULL",
                            state->name);
    if (state->computed)
        return program_fail(state->program, where, TRAMA_E_ORDER,
                            "initial content of %s: it is placed already; use trama_write", state->name);
    void *copy = copy_of(data, bytes);
    if (!copy)
        return program_fail(state->program, where, TRAMA_E_MEMORY,
                            "initial content of %s: no memory for a copy of its %zu bytes", state->name, bytes);
    free(state->data);
    state->data = copy;
    return state;
}

trama_value *trama_constant_at(trama_where where, trama_program *program, trama_dtype dtype, trama_shape shape,
                               const void *data)
{
    char name[32];
    snprintf(name, sizeof name, "constant%d", program ? program->values.n : 0);
    if (!check_leaf(program, where, "constant", name, dtype, &shape, false))
        return NULL;
    size_t bytes = (size_t)trama_shape_count(shape) * trama_dtype_size(dtype);
    if (!data && bytes)
        return program_fail(program, where, TRAMA_E_ARGUMENT, "constant: the data is NULL");
    void *copy = copy_of(data, bytes);
    if (!copy)
        return program_fail(program, where, TRAMA_E_MEMORY, "constant: no memory for a copy of its %zu bytes", bytes);
    trama_value *v = program_value(program, where, VALUE_CONSTANT, dtype, shape, name);
    v->data = copy;
    return leaf(v);
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

trama_value *trama_value_rename_at(trama_where where, trama_value *value, const char *name)
{
    if (!value)
        return NULL;
    if (!name || !*name)
        return program_fail(value->program, where, TRAMA_E_ARGUMENT, "rename of %s: the new name is %s", value->name,
                            name ? "empty" : "NULL");
    const trama_value *other = value->kind <= VALUE_STATE ? program_leaf_named(value->program, name, value) : NULL;
    if (other)
        return program_fail(value->program, where, TRAMA_E_ARGUMENT, "rename of %s: the name '%s' is taken (%s:%d)",
                            value->name, name, other->where.file, other->where.line);
    free(value->name);
    value->name = trama_text_copy(name);
    add_name(value->program, value);
    return scope_name(where, value) ? value : NULL;
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

/* ---- Ops ---- */

static bool check_operands(trama_program *p, trama_where where, const trama_op *op, int n_in, trama_value *const *in)
{
    for (int i = 0; i < n_in; i++) {
        if (!in[i])
            return false;
        if (in[i]->program != p)
            return program_fail(p, where, TRAMA_E_ARGUMENT, "%s: operand %d (%s) belongs to another program", op->name,
                                i, in[i]->name),
                   false;
        if (in[i]->kind == VALUE_EFFECT)
            return program_fail(p, where, TRAMA_E_ARGUMENT, "%s: an update only stands in a target", op->name), false;
    }
    if (n_in != op->n_in)
        return program_fail(p, where, TRAMA_E_ARGUMENT, "%s takes %d operands, not %d", op->name, op->n_in, n_in),
               false;
    for (int i = 0; i < op->n_out; i++)
        if ((op->updates >> i & 1) && !value_storage(in[i]))
            return program_fail(p, where, TRAMA_E_ARGUMENT, "%s: %s is no state, it cannot be updated", op->name,
                                in[i]->name),
                   false;
    return true;
}

trama_status node_same_dtype(const trama_node *node, trama_dtype *dtype)
{
    for (int i = 1; i < node->op->n_in; i++)
        if (node->in[i]->dtype != node->in[0]->dtype)
            return trama_fail(node->where, TRAMA_E_DTYPE, "%s of %s (%s) and %s (%s): cast one of them", node->op->name,
                              node->in[0]->name, trama_dtype_name(node->in[0]->dtype), node->in[i]->name,
                              trama_dtype_name(node->in[i]->dtype));
    *dtype = node->op->n_in ? node->in[0]->dtype : TRAMA_F32;
    return TRAMA_OK;
}

/* E_DTYPE for an operand whose element type the op does not take. */
static trama_status check_kinds(const trama_node *node)
{
    static const char *const kinds[] = {"bool", "signed integers", "unsigned integers", "floats", "complex numbers"};
    const unsigned takes = node->op->kinds ? node->op->kinds : node->op->own ? ANY_KIND : REALS;
    text taken = {0};
    const trama_value *x = NULL;
    for (int i = 0; i < node->op->n_in && !x; i++)
        if (!(trama_dtype_kind_of(node->in[i]->dtype) & takes))
            x = node->in[i];
    if (!x)
        return TRAMA_OK;
    for (int k = 0; k < 5; k++)
        if (takes >> k & 1)
            text_add(&taken, "%s%s", taken.n ? ", " : "", kinds[k]);
    trama_fail(node->where, TRAMA_E_DTYPE, "%s takes %s; %s is %s: %s", node->op->name, taken.at, x->name,
               trama_dtype_name(x->dtype),
               dtype_parts(x->dtype) > 1 ? "take trama_real, trama_imag or trama_abs of it" : "cast it");
    free(taken.at);
    return TRAMA_E_DTYPE;
}

static trama_status op_dtypes(const trama_node *node, trama_dtype *dtype)
{
    trama_status status = check_kinds(node);
    return status ? status : node->op->dtype ? node->op->dtype(node, dtype) : node_same_dtype(node, dtype);
}

/* The element types [n_out] of the results: the op's, or result 0's if the op does not set one; an updated state keeps
 * its type. */
static trama_status result_dtypes(const trama_node *node, trama_dtype *dtype)
{
    for (int i = 0; i < node->op->n_out; i++)
        dtype[i] = i ? DTYPE_UNSAID : TRAMA_F32;
    trama_status status = op_dtypes(node, dtype);
    for (int i = 0; i < node->op->n_out; i++)
        if (node->op->updates >> i & 1)
            dtype[i] = node->in[i]->dtype;
        else if (dtype[i] == DTYPE_UNSAID)
            dtype[i] = dtype[0];
    return status;
}

/* E_SHAPE if no tensor can have the shape of a result; the message names the operands. */
static trama_status check_result(const trama_node *node, trama_shape shape, trama_dtype dtype)
{
    text why = {0}, operands = {0};
    if (shape_check(shape, dtype, true, &why))
        return TRAMA_OK;
    for (int i = 0; i < node->op->n_in; i++) {
        text_add(&operands, i ? ", " : " of ");
        value_text(&operands, node->in[i]);
    }
    trama_fail(node->where, TRAMA_E_SHAPE, "%s%s: the result: %s", node->op->name, operands.at ? operands.at : "",
               why.at);
    free(operands.at);
    free(why.at);
    return TRAMA_E_SHAPE;
}

trama_value *program_record(trama_program *program, trama_where where, const trama_op *op, int n_in,
                            trama_value *const *in, const trama_attributes *attributes)
{
    for (int i = 0; !program && i < n_in; i++)
        program = in[i] ? in[i]->program : NULL;
    if (!program || program->status || !check_operands(program, where, op, n_in, in))
        return NULL;
    trama_node *node = program_node_new(op, attributes);
    node->program = program;
    node->where = where;
    node->stage = program->stage;
    node->role = program->role;
    for (int i = 0; i < n_in; i++) {
        node->in[i] = in[i];
        if (node->role == NODE_FORWARD && in[i]->node && in[i]->node->role != NODE_FORWARD)
            node->role = NODE_GRADIENT;
    }
    trama_rule rule;
    trama_dtype dtype[TRAMA_MAX_OPERANDS];
    memset(&rule, 0, sizeof rule);
    trama_status status = result_dtypes(node, dtype);
    if (!status)
        status = rule_build(&rule, node, dtype);
    for (int i = 0; i < op->n_out && !status; i++)
        status = check_result(node, rule_shape(&rule, i), dtype[i]);
    if (status) {
        free(node);
        return keep_error(program, status);
    }
    node->rule = rule_pool_take(&program->rules, &rule);
    node->id = program->nodes.n;
    *ARRAY_PUSH(&program->nodes) = node;
    for (int i = 0; i < op->n_out; i++) {
        char name[64];
        if (op->updates >> i & 1)
            value_storage(in[i])->state->updated_by = node->id + 1;
        snprintf(name, sizeof name, "%s%d", op->name, program->values.n);
        node->out[i] = program_value(program, where, VALUE_RESULT, dtype[i], rule_shape(&rule, i), name);
        node->out[i]->node = node;
        node->out[i]->result = i;
        value_open_extents(node->out[i]);
    }
    scope_lay_out(node);
    program_is_short(program, where, op->name);
    return program->status ? NULL : node->out[0];
}

trama_value *program_run(trama_value *result)
{
    trama_program *p = result ? result->program : NULL;
    if (p && p->session && !p->status)
        p->session->run(p->session, result->node);
    return p && !p->status ? result : NULL;
}

trama_value *program_append(trama_program *program, trama_where where, const trama_op *op, int n_in,
                            trama_value *const *in, const trama_attributes *attributes)
{
    return program_run(program_record(program, where, op, n_in, in, attributes));
}

/* ---- Targets ---- */

/* At most one op may overwrite a value: of two updates of one state, one would be lost. */
static bool check_updates(const trama_target *t)
{
    trama_program *p = t->program;
    bool *needed = trama_alloc((size_t)p->nodes.n);
    const trama_node **by = trama_alloc((size_t)p->values.n * sizeof(trama_node *)), *first = NULL, *second = NULL;
    program_closure(p, t->values.n, t->values.at, needed);
    for (int i = 0; i < p->nodes.n && !second; i++) {
        const trama_node *node = p->nodes.at[i];
        for (int o = 0; needed[i] && o < node->op->n_out && !second; o++) {
            if (!(node->op->updates >> o & 1))
                continue;
            first = by[node->in[o]->id];
            by[node->in[o]->id] = node;
            if (first)
                second = node;
        }
    }
    if (second)
        program_fail(p, t->where, TRAMA_E_ARGUMENT, "target '%s': %s (%s:%d) and %s (%s:%d) update the same state",
                     t->name, first->op->name, first->where.file, first->where.line, second->op->name,
                     second->where.file, second->where.line);
    free(needed);
    free(by);
    return !second;
}

trama_target *trama_target_at(trama_where where, trama_program *program, const char *name, int n,
                              trama_value *const *values)
{
    if (!program || !name || !*name)
        return program_fail(program, where, TRAMA_E_ARGUMENT,
                            program ? "target: it needs a name" : "target: the program is NULL");
    if (n < 0 || (n && !values))
        return program_fail(program, where, TRAMA_E_ARGUMENT, "target '%s': %s", name,
                            n < 0 ? "the number of values is negative" : "the list of values is NULL");
    for (int i = 0; i < program->targets.n; i++)
        if (!strcmp(program->targets.at[i]->name, name))
            return program_fail(program, where, TRAMA_E_ARGUMENT, "target: the name '%s' is taken (%s:%d)", name,
                                program->targets.at[i]->where.file, program->targets.at[i]->where.line);
    for (int i = 0; i < n; i++) {
        if (!values[i])
            return program->status
                       ? NULL
                       : program_fail(program, where, TRAMA_E_ARGUMENT, "target '%s': value %d is NULL", name, i);
        if (values[i]->program != program)
            return program_fail(program, where, TRAMA_E_ARGUMENT, "target '%s': value %s belongs to another program",
                                name, values[i]->name);
    }
    trama_target *t = trama_alloc(sizeof *t);
    *t = (trama_target){.program = program, .id = program->targets.n, .name = trama_text_copy(name), .where = where};
    for (int i = 0; i < n; i++) {
        *ARRAY_PUSH(&t->values) = values[i];
        values[i]->fetched = true;
    }
    *ARRAY_PUSH(&program->targets) = t;
    return check_updates(t) && !program_is_short(program, where, "target") ? t : NULL;
}

/* ---- Whole programs ---- */

void program_closure(const trama_program *program, int n, trama_value *const *values, bool *needed)
{
    (void)program;
    ARRAY(const trama_value *) left = {0}; /* a list, since a chain of ops may be longer than the stack is deep */
    for (int i = 0; i < n; i++)
        *ARRAY_PUSH(&left) = values[i];
    while (left.n) {
        const trama_value *v = left.at[--left.n];
        for (int i = 0; i < v->update->updated.n; i++)
            *ARRAY_PUSH(&left) = v->update->updated.at[i];
        if (!v->node || needed[v->node->id])
            continue;
        needed[v->node->id] = true;
        for (int i = 0; i < v->node->op->n_in; i++)
            *ARRAY_PUSH(&left) = v->node->in[i];
    }
    ARRAY_FREE(&left);
}

trama_status program_resolve(const trama_program *program, const bool *needed, trama_shape *shapes, node_rules *rules)
{
    for (int i = 0; i < program->values.n; i++) {
        const trama_value *v = program->values.at[i];
        bool given = v && (v->kind == VALUE_INPUT || (v->node && needed && !needed[v->node->id]));
        if (v && !given)
            shapes[i] = v->shape;
    }
    for (int i = 0; i < program->nodes.n; i++) {
        const trama_node *node = program->nodes.at[i];
        if (!node || (needed && !needed[i]))
            continue;
        trama_shape known[TRAMA_MAX_OPERANDS];
        for (int t = 0; t < node->op->n_in; t++)
            known[t] = shapes[node->in[t]->id];
        trama_rule rule;
        memcpy(&rule, node->rule, sizeof rule);
        trama_status status = rule_resolve(&rule, node, known);
        if (status)
            return status;
        node_rules_set(rules, i, node->rule, &rule);
        for (int o = 0; o < node->op->n_out; o++) {
            shapes[node->out[o]->id] = rule_shape(&rule, o);
            status = check_result(node, shapes[node->out[o]->id], node->out[o]->dtype);
            if (status)
                return status;
        }
    }
    return TRAMA_OK;
}
