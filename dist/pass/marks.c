/* SPDX-License-Identifier: Apache-2.0 */
/* Completion of marks: sweeps that only add missing ones. */
#include "marks.h"

static int later(int a, int b)
{
    return a > b ? a : b;
}

/* ---- Stages ---- */

static void start_stages(const trama_program *p, marks *m)
{
    for (int i = 0; i < p->nodes.n; i++)
        for (int o = 0; o < p->nodes.at[i]->op->n_out; o++)
            m->stage[p->nodes.at[i]->out[o]->id] = p->nodes.at[i]->stage;
}

static void forward(const trama_program *p, marks *m)
{
    for (int i = 0; i < p->nodes.n; i++) {
        const trama_node *node = p->nodes.at[i];
        int stage = 0;
        for (int t = 0; t < node->op->n_in; t++)
            stage = later(stage, m->stage[node->in[t]->id]);
        for (int o = 0; o < node->op->n_out; o++)
            if (!m->stage[node->out[o]->id])
                m->stage[node->out[o]->id] = stage;
    }
}

/* Goes in reverse order, so that the first reader decides. */
static void backward(const trama_program *p, marks *m, bool *filled)
{
    for (int i = p->nodes.n - 1; i >= 0; i--) {
        const trama_node *node = p->nodes.at[i];
        int stage = node->op->n_out ? m->stage[node->out[0]->id] : 0;
        for (int t = 0; t < node->op->n_in && stage; t++) {
            int id = node->in[t]->id;
            if (m->stage[id] && !filled[id])
                continue;
            m->stage[id] = stage;
            filled[id] = true;
        }
    }
}

static trama_status check_stages(const trama_program *p, const marks *m)
{
    for (int i = 0; i < p->nodes.n; i++) {
        const trama_node *node = p->nodes.at[i];
        for (int t = 0; t < node->op->n_in && node->stage && node->role == NODE_FORWARD; t++) {
            const trama_value *v = node->in[t];
            if (v->node && m->stage[v->id] > node->stage)
                return trama_fail(
                    node->where, TRAMA_E_ARGUMENT,
                    "%s of stage %d reads %s, which stage %d makes (%s:%d): values go from stage to later stage",
                    node->op->name, node->stage - 1, v->name, m->stage[v->id] - 1, v->where.file, v->where.line);
        }
    }
    return TRAMA_OK;
}

/* ---- Offload ---- */

static bool set(bool *at, bool value)
{
    bool changed = value && !*at;
    *at |= value;
    return changed;
}

static bool spread_offload(const trama_node *node, bool *offload)
{
    bool changed = false, state = false;
    for (int t = 0; t < node->op->n_in; t++)
        if (node->op->updates >> t & 1)
            state |= offload[node->in[t]->id];
    for (int o = 0; o < node->op->n_out; o++) {
        if (node->op->updates >> o & 1) {
            changed |= set(&offload[node->in[o]->id], state);
            changed |= set(&offload[node->out[o]->id], state);
        } else if (node->op->alias) {
            changed |= set(&offload[node->out[o]->id], offload[node->in[0]->id]);
        }
    }
    return changed;
}

/* ---- Both ---- */

trama_status marks_complete(const trama_program *program, marks *m)
{
    size_t n = (size_t)program->values.n;
    bool *filled = trama_alloc(n);
    m->stage = trama_alloc(n * sizeof *m->stage);
    m->offload = trama_alloc(n);
    start_stages(program, m);
    forward(program, m);
    backward(program, m, filled);
    forward(program, m);
    for (int i = 0; i < program->values.n; i++)
        m->offload[i] = program->values.at[i]->offload;
    for (bool changed = true; changed;) {
        changed = false;
        for (int i = 0; i < program->nodes.n; i++)
            changed |= spread_offload(program->nodes.at[i], m->offload);
    }
    free(filled);
    trama_status status = check_stages(program, m);
    if (status)
        marks_free(m);
    return status;
}

void marks_free(marks *m)
{
    free(m->stage);
    free(m->offload);
    *m = (marks){0};
}
