/* SPDX-License-Identifier: Apache-2.0 */
/* Leaves of a program: inputs, state, constants, and their names. */
#include <stdio.h>
#include <string.h>

#include "program.h"

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
