/* SPDX-License-Identifier: Apache-2.0 */
/* Reads back and removes annotations as the user wrote them. It does not know the results of completion. */
#include "program.h"

const trama_mesh *trama_annotation_mesh(const trama_value *value)
{
    return value ? value->annotated.given : NULL;
}

bool trama_annotation_layout(const trama_value *value, trama_layout *layout)
{
    bool annotated = layout && trama_annotation_mesh(value);
    if (annotated)
        *layout = *value->layout;
    return annotated;
}

const char *trama_annotation_device(const trama_value *value)
{
    return value && value->offload ? "cpu" : NULL;
}

int trama_annotation_stage(const trama_value *value)
{
    return value && value->node ? value->node->stage - 1 : TRAMA_NO_STAGE;
}

const trama_mesh *trama_annotation_op_mesh(const trama_value *value)
{
    return value && value->node && value->node->fixed ? value->node->fixed->given : NULL;
}

bool trama_annotation_operand(const trama_value *value, int i, trama_layout *layout)
{
    bool fixed = layout && trama_annotation_op_mesh(value) && i >= 0 && i < value->node->op->n_in;
    if (fixed)
        *layout = value->node->fixed->in[i];
    return fixed;
}

bool trama_annotation_result(const trama_value *value, int i, trama_layout *layout)
{
    bool there = value && value->node && i >= 0 && i < value->node->op->n_out;
    return there && trama_annotation_layout(value->node->out[i], layout);
}

static bool may_clear(trama_where where, const trama_value *value)
{
    trama_program *p = value->program;
    if (value->node && value->node->op == &trama_op_reshard)
        return program_fail(p, where, TRAMA_E_LAYOUT,
                            "annotation_clear of %s: trama_reshard (%s:%d) makes its layout; remove that call instead",
                            value->name, value->where.file, value->where.line),
               false;
    if (value->computed)
        return program_fail(p, where, TRAMA_E_ORDER,
                            "annotation_clear of %s: it is computed already; use trama_reshard", value->name),
               false;
    return true;
}

trama_value *trama_annotation_clear_at(trama_where where, trama_value *value)
{
    if (!value || !may_clear(where, value))
        return NULL;
    value->mesh = value->annotated.given = NULL;
    value->annotated.where = (trama_where){0};
    program_lay_out(value, (trama_layout){0});
    value->offload = false;
    if (value->node) {
        free(value->node->fixed);
        value->node->fixed = NULL;
        value->node->stage = 0;
    }
    return value;
}
