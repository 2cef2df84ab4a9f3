/* SPDX-License-Identifier: Apache-2.0 */
/* The forms of a target: the nodes that each runs, and the values that these read. */
#include <string.h>

#include "executable.h"

static void add_once(value_ids *ids, int value)
{
    for (int i = 0; i < ids->n; i++)
        if (ids->at[i] == value)
            return;
    *ARRAY_PUSH(ids) = value;
}

/* Adds the values that the form's nodes read: those that the form before it computes, or, without one, leaves. */
static void add_read(target_form *t, const trama_program *p, const target_form *before)
{
    for (int i = 0; i < p->nodes.n; i++)
        for (int k = 0; t->needed[i] && k < p->nodes.at[i]->op->n_in; k++) {
            const trama_value *v = p->nodes.at[i]->in[k];
            if (before ? !value_is_leaf(v) && before->needed[v->node->id] : value_is_leaf(v))
                add_once(&t->leaves, v->id);
        }
}

static void carry_on(target_form *t, const trama_program *p, target_form *before)
{
    for (int i = 0; i < p->nodes.n; i++)
        t->needed[i] &= !before->needed[i];
    add_read(t, p, before);
    t->carried = t->leaves.n;
    for (int i = 0; i < t->carried; i++)
        before->kept[t->leaves.at[i]] = true;
}

/* before: the form whose values this form reads, or NULL. */
static void prepare(target_form *t, const trama_target *target, const layouts *l, target_form *before)
{
    const trama_program *p = target->program;
    t->target = target;
    t->l = l;
    t->needed = trama_alloc((size_t)max_i64(1, p->nodes.n));
    t->kept = trama_alloc((size_t)p->values.n);
    t->leader = trama_alloc((size_t)max_i64(1, p->nodes.n) * sizeof *t->leader);
    program_closure(p, target->values.n, target->values.at, t->needed);
    if (before)
        carry_on(t, p, before);
    for (int i = 0; i < target->values.n; i++) {
        trama_value *v = target->values.at[i];
        t->kept[v->id] = v->kind != VALUE_EFFECT;
        if (value_is_leaf(v))
            add_once(&t->leaves, v->id);
        else if (t->kept[v->id] && !value_storage(v))
            add_once(&t->results, v->id);
    }
    add_read(t, p, NULL);
    for (int i = 0; i < p->nodes.n; i++)
        if (p->nodes.at[i]->op->n_in == 0)
            t->needed[i] = false; /* done once, by trama_compile */
}

trama_status targets_prepare(trama_executable *e, const accumulation *made)
{
    /* without the apply targets that merge_gradients adds */
    int n = e->plain.program ? e->plain.program->targets.n : e->program->targets.n;
    trama_status status = TRAMA_OK;
    for (int i = 0; i < n; i++) {
        target_state *t = ARRAY_PUSH(&e->targets);
        prepare(&t->form[TARGET_RUN], e->program->targets.at[i], &e->l, NULL);
        if (!made || !made[i].apply)
            continue;
        prepare(&t->form[TARGET_APPLY], made[i].apply, &e->l, &t->form[TARGET_RUN]);
        prepare(&t->form[TARGET_PLAIN], e->plain.program->targets.at[i], &e->plain.l, NULL);
        memcpy(t->cycle.scalar, made[i].scalar, sizeof t->cycle.scalar);
    }
    for (int i = 0; i < e->targets.n && !status; i++)
        status = cycle_begin(e, &e->targets.at[i]);
    return status;
}
