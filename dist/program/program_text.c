/* SPDX-License-Identifier: Apache-2.0 */
/* Programs as text, for people. */
#include "program.h"

static void node_line(text *t, const trama_node *node)
{
    text_add(t, "%s(", node->op->name);
    for (int i = 0; i < node->op->n_in; i++)
        text_add(t, "%s%s", i ? ", " : "", node->in[i]->name);
    text_add(t, ")");
}

char *trama_program_text(const trama_program *program)
{
    static const char *const kinds[] = {"input", "state", "constant", "", "update"};
    text t = {0};
    for (int i = 0; i < program->values.n; i++) {
        const trama_value *v = program->values.at[i];
        if (!v)
            continue;
        value_text(&t, v);
        text_add(&t, " = ");
        if (v->kind == VALUE_RESULT)
            node_line(&t, v->node);
        else
            text_add(&t, "%s", kinds[v->kind]);
        for (int e = 0; e < v->effects.n; e++)
            text_add(&t, " %s", v->effects.at[e]->name);
        if (v->mesh) {
            text_add(&t, " on ");
            mesh_text(&t, v->mesh);
            text_add(&t, " as ");
            layout_text(&t, v->mesh, &v->layout);
        }
        text_add(&t, "  # %s:%d\n", v->where.file, v->where.line);
    }
    for (int i = 0; i < program->targets.n; i++) {
        text_add(&t, "target %s:", program->targets.at[i]->name);
        for (int v = 0; v < program->targets.at[i]->values.n; v++)
            text_add(&t, " %s", program->targets.at[i]->values.at[v]->name);
        text_add(&t, "\n");
    }
    return text_take(&t);
}
