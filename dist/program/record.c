/* SPDX-License-Identifier: Apache-2.0 */
/* Ops that builders record, with the shapes and element types of their results. */
#include <stdio.h>
#include <string.h>

#include "program.h"

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
        return program_keep_error(program, status);
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
