/* SPDX-License-Identifier: Apache-2.0 */
/* Layout inference for one op, for users. */
#include "infer.h"
#include "trama_rule.h"

static trama_status check(trama_where where, const trama_mesh *mesh, const trama_value *v, const trama_layout *layout)
{
    if (!layout_check(mesh, v->shape.ndim, layout, true))
        return TRAMA_OK;
    char *why = trama_text_copy(trama_error());
    trama_fail(where, TRAMA_E_LAYOUT, "rule: %s: %s", v->name, why);
    free(why);
    return TRAMA_E_LAYOUT;
}

trama_status trama_rule_infer_at(trama_where where, const trama_value *value, const trama_mesh *mesh,
                                 const trama_layout *in, const trama_layout *out, trama_layout *inferred_in,
                                 trama_layout *inferred_out)
{
    const trama_layout *operands[TRAMA_MAX_OPERANDS] = {0}, *results[TRAMA_MAX_OPERANDS] = {0};
    op_layouts inferred;
    trama_status status = TRAMA_OK;
    if (!value || !mesh || (!in && !out))
        return trama_fail(where, TRAMA_E_ARGUMENT, "rule: the %s NULL%s",
                          !value  ? "value is"
                          : !mesh ? "mesh is"
                                  : "layouts of operands and of results are",
                          value && !mesh ? mesh_reason() : "");
    if (!value->node)
        return trama_fail(where, TRAMA_E_ARGUMENT, "rule: %s is not the result of an op", value->name);
    const trama_node *node = value->node;
    for (int t = 0; t < node->op->n_in && in && !status; t++)
        status = check(where, mesh, node->in[t], operands[t] = &in[t]);
    for (int o = 0; o < node->op->n_out && out && !status; o++)
        status = check(where, mesh, node->out[o], results[o] = &out[o]);
    for (int f = 0; f < node->rule->n_factors && !status; f++)
        if (node->rule->factor[f].extent == TRAMA_ANY)
            status = trama_fail(where, TRAMA_E_SHAPE, "rule: %s has dims that are only known when fed", node->op->name);
    if (status)
        return status;
    const infer_question question = {
        .node = node, .rule = node->rule, .mesh = mesh, .in = operands, .out = out ? results : NULL};
    infer_op(&question, &inferred, NULL);
    for (int t = 0; t < node->op->n_in && inferred_in; t++)
        inferred_in[t] = inferred.in[t];
    for (int o = 0; o < node->op->n_out && inferred_out; o++)
        inferred_out[o] = inferred.out[o];
    return TRAMA_OK;
}

int trama_value_operands(const trama_value *value)
{
    return value && value->node ? value->node->op->n_in : 0;
}

int trama_value_results(const trama_value *value)
{
    return value && value->node ? value->node->op->n_out : 0;
}

const trama_value *trama_value_operand(const trama_value *value, int i)
{
    return i >= 0 && i < trama_value_operands(value) ? value->node->in[i] : NULL;
}
