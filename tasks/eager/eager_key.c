/* SPDX-License-Identifier: Apache-2.0 */
/* The key of a plan in eager mode: the op and the forms of its operands, which are numbered. */
#include "eager.h"

#include <string.h>

/* Shards are named by the first piece that lies in them. */
static void piece_text(text *t, const plan *p, const plan_dist_value *h, const plan_local_box *piece)
{
    const plan_shard *s = &p->shards.at[piece->region.shard];
    const plan_local_box *first = h->pieces.at;
    while (first->region.shard != piece->region.shard)
        first++;
    text_add(t, ";%d %d %d ", piece->place, piece->term, piece->position);
    box_text(t, &piece->region.box);
    text_add(t, " in %d ", (int)(first - h->pieces.at));
    box_text(t, &s->box);
    text_add(t, " %d/%d", s->cut_dim, s->cut_parts);
}

static char *form_text(const compiled_program *s, int value, const plan_dist_value *h)
{
    text t = {0};
    text_add(&t, "%d ", s->program->values.at[value]->dtype);
    shape_text(&t, s->of.shapes[value]);
    text_add(&t, " %p %d ", (const void *)h->mesh, h->inside);
    layout_text(&t, h->mesh, &h->layout);
    for (int i = 0; i < h->pieces.n; i++)
        piece_text(&t, s->of.plan, h, &h->pieces.at[i]);
    return text_take(&t);
}

int eager_number(eager_session *s, char *words)
{
    for (int i = 0; i < s->forms.n; i++)
        if (!strcmp(s->forms.at[i], words)) {
            free(words);
            return i;
        }
    *ARRAY_PUSH(&s->forms) = words;
    return s->forms.n - 1;
}

static void number_forms(eager_session *s, compiled_program *made)
{
    int n = made->program->values.n;
    made->of.forms = trama_alloc((size_t)n * sizeof *made->of.forms);
    for (int i = 0; i < n; i++) {
        const plan_dist_value *h = plan_find(made->of.plan, i);
        made->of.forms[i] = h ? eager_number(s, form_text(made, i, h)) : -1;
    }
}

static plan_key whole_key(const eager_key *key)
{
    return (plan_key){PLAN_OP, NULL, key, sizeof *key};
}

kept_plan *eager_find(trama_executable *e, const eager_key *key)
{
    const plan_key whole = whole_key(key);
    return plan_cache_find(&e->plans, &whole, NULL);
}

kept_plan *eager_keep(trama_executable *e, const eager_key *key, compiled_program *made)
{
    const plan_key whole = whole_key(key);
    executable_shrink(e, &whole);
    number_forms(e->session, made);
    for (int i = 0; i < made->program->values.n; i++) /* it serves other lines, too */
        made->program->values.at[i]->where = NOWHERE;
    return plan_cache_keep(&e->plans, &whole, made, NULL, 0, NULL);
}

void eager_forms_free(eager_session *s)
{
    for (int i = 0; i < s->forms.n; i++)
        free(s->forms.at[i]);
    ARRAY_FREE(&s->forms);
}
