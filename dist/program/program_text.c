/* SPDX-License-Identifier: Apache-2.0 */
/* Programs as text, for people. */
#include <string.h>

#include "program.h"

/* What is not 0, by name: the integers, then the reals behind the bar. */
static void attributes_text(text *t, const trama_node *node)
{
    const char *at = node->op->attributes ? node->op->attributes : "";
    bool real = false;
    int slot = 0;
    while (*(at += strspn(at, " "))) {
        size_t n = strcspn(at, " ");
        if (*at == '|') {
            real = true;
            slot = 0;
        } else if (real && node->attributes.real[slot++] != 0) {
            text_add(t, ", %.*s=%.17g", (int)n, at, node->attributes.real[slot - 1]);
        } else if (!real && node->attributes.integer[slot++] != 0) {
            text_add(t, ", %.*s=%lld", (int)n, at, (long long)node->attributes.integer[slot - 1]);
        }
        at += n;
    }
}

static void fixed_text(text *t, const trama_node *node)
{
    text_add(t, " fixed on ");
    mesh_text(t, node->fixed->mesh);
    for (int i = 0; i < node->op->n_in; i++) {
        text_add(t, i ? "; " : " as ");
        layout_text(t, node->fixed->mesh, &node->fixed->in[i]);
    }
}

static void node_line(text *t, const trama_node *node)
{
    text_add(t, "%s(", node->op->name);
    for (int i = 0; i < node->op->n_in; i++)
        text_add(t, "%s%s", i ? ", " : "", node->in[i]->name);
    attributes_text(t, node);
    text_add(t, ")");
    if (node->stage)
        text_add(t, " stage %d", node->stage - 1);
    if (node->fixed)
        fixed_text(t, node);
}

void order_text(text *out, const process_order *order)
{
    for (int i = 0; i < order->n; i++)
        text_add(out, "%s%d", i ? "," : "order ", order->place[i]);
    if (order->n)
        text_add(out, "  # %s:%d\n", order->where.file, order->where.line);
}

char *trama_program_text(const trama_program *program)
{
    static const char *const kinds[] = {"input", "state", "constant", "", "update"};
    text t = {0};
    if (!program)
        return trama_fail(NOWHERE, TRAMA_E_ARGUMENT, "trama_program_text: the program is NULL"), NULL;
    order_text(&t, &program->order);
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
        if (v->offload)
            text_add(&t, " offloaded");
        text_add(&t, "  # %s:%d\n", v->where.file, v->where.line);
    }
    for (int i = 0; i < program->targets.n; i++) {
        text_add(&t, "target %s:", program->targets.at[i]->name);
        for (int v = 0; v < program->targets.at[i]->values.n; v++)
            text_add(&t, " %s", program->targets.at[i]->values.at[v]->name);
        const target_merge *merge = &program->targets.at[i]->merge;
        if (merge->k)
            text_add(&t, ", gradients merged over %lld micro-steps%s", (long long)merge->k,
                     merge->how == TRAMA_MEAN ? "" : ", their total");
        text_add(&t, "\n");
    }
    return text_take(&t);
}
