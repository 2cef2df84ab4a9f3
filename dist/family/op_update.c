/* SPDX-License-Identifier: Apache-2.0 */
/* Updates of state: element types, and the builders for users. optimizer.c has the updates of optimizers. */
#include <string.h>

#include "families.h"

/* Operands with dims in the rule must be of one type; the scalar operands after them may be of any type. */
trama_status tensors_dtype(const trama_node *node, trama_dtype *dtype)
{
    const char *part = node->op->rule;
    *dtype = node->in[0]->dtype;
    for (int t = 0; t < node->op->n_in; t++, part += strcspn(part, ",-") + 1)
        if (*part == '.' && node->in[t]->dtype != *dtype)
            return trama_fail(node->where, TRAMA_E_DTYPE, "%s of %s (%s) and %s (%s): cast one of them", node->op->name,
                              node->in[0]->name, trama_dtype_name(*dtype), node->in[t]->name,
                              trama_dtype_name(node->in[t]->dtype));
    return TRAMA_OK;
}

trama_status update_dtype(const trama_node *node, trama_dtype *dtype)
{
    if (!trama_dtype_is_float(dtype_part(node->in[0]->dtype)))
        return trama_fail(node->where, TRAMA_E_DTYPE, "%s takes floats and complex numbers; %s is %s", node->op->name,
                          node->in[0]->name, trama_dtype_name(node->in[0]->dtype));
    return tensors_dtype(node, dtype);
}

trama_status schedule_dtype(const trama_node *node, trama_dtype *dtype)
{
    (void)node;
    *dtype = TRAMA_F64;
    return TRAMA_OK;
}

/* The value that stands for an update in a target. */
static trama_value *effect_of(trama_where where, trama_value *updated)
{
    if (!updated)
        return NULL;
    trama_value *effect = program_value(updated->program, where, VALUE_EFFECT, updated->dtype, TRAMA_SCALAR, "assign");
    *ARRAY_PUSH(&effect->update->updated) = updated;
    return effect;
}

trama_value *trama_assign_at(trama_where where, trama_value *state, trama_value *value)
{
    return effect_of(where, apply2(where, &trama_op_assign, state, value));
}

trama_value *trama_assign_if_at(trama_where where, trama_value *state, trama_value *value, trama_value *condition)
{
    trama_value *in[] = {state, value, condition};
    return effect_of(where, program_append(NULL, where, &trama_op_assign_if, 3, in, NULL));
}
