/* SPDX-License-Identifier: Apache-2.0 */
/* Marks, and rewinding an eager program to a mark. */
#include <string.h>

#include "eager.h"
#include "trama_eager.h"

int trama_program_mark(trama_program *program)
{
    return program ? program->values.n : 0;
}

trama_value *trama_keep(trama_value *value)
{
    eager_session *s = value ? session_of(value->program) : NULL;
    if (s) {
        for (int i = 0; i < s->kept.n; i++)
            if (s->kept.at[i] == value)
                return value;
        *ARRAY_PUSH(&s->kept) = value;
    }
    return value;
}

static bool is_kept(const eager_session *s, const trama_value *v)
{
    for (int i = 0; i < s->kept.n; i++)
        if (s->kept.at[i] == v || value_storage(s->kept.at[i]) == v)
            return true;
    return v->kind == VALUE_STATE;
}

/* A kept value moves to a lower number and forgets how it was made. */
static void move_value(trama_executable *e, trama_value *v, int id)
{
    int from = v->id;
    value_ref at = from < e->n_value_refs ? e->at[from] : (value_ref){0};
    const trama_mesh *mesh = from < e->l.n_values ? e->l.mesh[from] : NULL;
    trama_layout layout = from < e->l.n_values ? e->l.value[from] : (trama_layout){0};
    e->program->values.at[id] = v;
    executable_put(e, id, at);
    if (id != from && from < e->n_value_refs)
        executable_put(e, from, (value_ref){0});
    v->computed = at.in != NULL;
    layouts_room(&e->l, id + 1, 1);
    e->l.mesh[id] = mesh;
    e->l.value[id] = layout;
    v->id = id;
    if (v->kind == VALUE_EFFECT) {
        ARRAY_FREE(&v->update->updated);
        ARRAY_FREE(&v->update->parts);
    }
    v->gradient.of = NULL;
    if (v->kind == VALUE_RESULT) {
        v->kind = VALUE_CONSTANT;
        v->node = NULL;
    }
}

/* Called before the op of a kept value is forgotten. A declared value gets its content; an updated value is where its
 * state is. */
static trama_status settle(trama_executable *e, trama_value *v)
{
    trama_value *state = value_storage(v);
    if (v->kind != VALUE_RESULT)
        return TRAMA_OK;
    if (!state)
        return session_place(e, v, e->single);
    executable_put(e, v->id, e->at[state->id]);
    return TRAMA_OK;
}

static void forget_gradients(trama_program *p, int mark)
{
    int n = 0;
    for (int i = 0; i < p->gradients.n; i++) {
        gradient_table *t = &p->gradients.at[i];
        if (t->loss->id >= mark) {
            ARRAY_FREE(&t->of);
            continue;
        }
        for (int k = 0; k < t->of.n; k++)
            if (k >= mark || (t->of.at[k] && t->of.at[k]->id >= mark))
                t->of.at[k] = NULL;
        p->gradients.at[n++] = *t;
    }
    p->gradients.n = n;
}

static void forget_nodes(trama_program *p, int mark)
{
    int n = p->nodes.n;
    while (n > 0 && p->nodes.at[n - 1]->out[0]->id >= mark)
        n--;
    for (int i = n; i < p->nodes.n; i++)
        program_node_free(p->nodes.at[i]);
    p->nodes.n = n;
    for (int i = 0; i < p->values.n; i++)
        if (p->values.at[i]->state->updated_by > n)
            p->values.at[i]->state->updated_by = 0;
}

trama_status trama_program_rewind(trama_program *p, int mark)
{
    if (!p || !p->session)
        return trama_fail(NOWHERE, TRAMA_E_ARGUMENT, "trama_program_rewind: the program is %s",
                          p ? "not in eager mode (trama_eager)" : "NULL");
    if (mark < 0 || mark > p->values.n)
        return trama_fail(NOWHERE, TRAMA_E_ARGUMENT,
                          "trama_program_rewind: %d is no mark: trama_program_mark gave 0 to %d so far", mark,
                          p->values.n);
    trama_executable *e = session_of(p)->e;
    ARRAY(trama_value *) survivors = {0};
    trama_status status = TRAMA_OK;
    for (int i = mark; i < p->values.n; i++)
        if (is_kept(e->session, p->values.at[i]))
            *ARRAY_PUSH(&survivors) = p->values.at[i];
    for (int i = 0; i < survivors.n && !status; i++)
        status = settle(e, survivors.at[i]);
    if (status) {
        ARRAY_FREE(&survivors);
        return status;
    }
    forget_gradients(p, mark);
    forget_nodes(p, mark);
    int end = p->values.n, next = mark;
    trama_value **all = trama_alloc((size_t)(end - mark + 1) * sizeof *all);
    memcpy(all, p->values.at + mark, (size_t)(end - mark) * sizeof *all);
    for (int i = 0; i < end - mark; i++) {
        if (next - mark < survivors.n && survivors.at[next - mark] == all[i]) {
            move_value(e, all[i], next++);
            continue;
        }
        if (all[i]->id < e->n_value_refs)
            executable_put(e, all[i]->id, (value_ref){0});
        program_value_free(all[i]);
    }
    for (int i = next; i < e->l.n_values && i < end; i++)
        e->l.mesh[i] = NULL, e->l.value[i] = (trama_layout){0};
    p->values.n = next;
    p->named = (int)min_i64(p->named, mark);
    free(all);
    ARRAY_FREE(&survivors);
    return TRAMA_OK;
}
