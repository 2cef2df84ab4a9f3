/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives of plans: all members take part in them alike. */
#include <stdlib.h>

#include "verification.h"

static const plan_step *step_of(const part *t)
{
    return &t->p->steps.at[t->step];
}

static const plan_group *group_of(const part *t)
{
    return &t->p->groups.at[step_of(t)->collective.group];
}

static int compare_groups(const part *a, const part *b)
{
    const plan_group *g = group_of(a), *h = group_of(b);
    for (int i = 0; i < g->n && i < h->n; i++)
        if (g->places[i] != h->places[i])
            return g->places[i] < h->places[i] ? -1 : 1;
    return g->n - h->n;
}

static int compare_parts(const void *a, const void *b)
{
    const part *t = a, *u = b;
    int order = compare_groups(t, u);
    order = order ? order : t->number - u->number;
    return order ? order : plan_member(t->p, step_of(t)) - plan_member(u->p, step_of(u));
}

/* The number of collectives before a step that have the same place and the same group. */
static int number_of(const plan *p, int step)
{
    const plan_step *s = &p->steps.at[step];
    int n = 0;
    for (int i = 0; i < step; i++)
        n += p->steps.at[i].kind == STEP_COLLECTIVE && p->steps.at[i].place == s->place &&
             p->steps.at[i].collective.group == s->collective.group;
    return n;
}

void verify_collect_parts(verification *v)
{
    for (int r = 0; r < v->n; r++)
        for (int i = 0; i < v->plans[r]->steps.n; i++)
            if (v->plans[r]->steps.at[i].kind == STEP_COLLECTIVE)
                *ARRAY_PUSH(&v->parts) = (part){v->plans[r], r, i, number_of(v->plans[r], i), false};
    if (v->parts.n)
        qsort(v->parts.at, (size_t)v->parts.n, sizeof *v->parts.at, compare_parts);
}

trama_status verify_fails_at(const verification *v, const part *t, const char *problem)
{
    const plan_step *s = step_of(t);
    text places = {0};
    for (int i = 0; i < group_of(t)->n; i++)
        text_add(&places, " %d", group_of(t)->places[i]);
    trama_fail(NOWHERE, TRAMA_E_SYSTEM,
               "verify: %s of %lld elements of %s among places%s, number %d of place %d of rank %d: %s",
               collective_name(s->collective.form), (long long)s->collective.count,
               trama_value_name(v->program->values.at[t->p->exchanges.at[s->exchange].value]), places.at, t->number,
               s->place, t->rank, problem);
    free(places.at);
    return TRAMA_E_SYSTEM;
}

static bool same_collective(const part *a, const part *b)
{
    const plan_collective *c = &step_of(a)->collective, *d = &step_of(b)->collective;
    return c->form == d->form && c->root == d->root && c->count == d->count && c->dtype == d->dtype &&
           step_of(a)->exchange == step_of(b)->exchange &&
           (c->form < PLAN_REDUCE_SCATTER || step_of(a)->reduce == step_of(b)->reduce);
}

/* A buffer is contiguous and has as many elements as the collective says. */
static bool buffer_fits(const part *t, int operand)
{
    const plan_step *s = step_of(t);
    const plan_operand *o = plan_step_operand(t->p, s, operand);
    const plan_shard *shard = &t->p->shards.at[o->region.shard];
    const plan_collective *c = &s->collective;
    bool reads = o->access == ACCESS_READ;
    bool many = reads ? c->form == PLAN_ALL_TO_ALL || c->form == PLAN_REDUCE_SCATTER : c->form <= PLAN_ALL_TO_ALL;
    return box_is_run(&shard->box, &o->region.box) && shard->dtype == c->dtype && !shard->host &&
           box_count(&o->region.box) == c->count * (many ? group_of(t)->n : 1);
}

static bool buffers_fit(const part *t)
{
    bool fit = true;
    for (int k = 0; k + 1 < step_of(t)->n_operands; k++)
        fit = fit && buffer_fits(t, k);
    return fit;
}

/* Entries i .. i + n - 1 must be the n members of one collective. */
trama_status verify_match_parts(const verification *v)
{
    for (int i = 0, n; i < v->parts.n; i += n) {
        const part *first = &v->parts.at[i];
        n = group_of(first)->n;
        for (int k = 0; k < n; k++) {
            const part *t = first + k;
            if (i + k >= v->parts.n || compare_groups(first, t) || t->number != first->number ||
                plan_member(t->p, step_of(t)) != k)
                return verify_fails_at(v, first, "a member takes no part in it");
            if (!same_collective(first, t))
                return verify_fails_at(v, t, "another member takes part in another collective there");
            if (!buffers_fit(t))
                return verify_fails_at(v, t, "its buffers do not fit the elements that it moves");
        }
    }
    return TRAMA_OK;
}

/* The entries of the collective that a step takes part in. */
static part *find_parts(const verification *v, int rank, int step)
{
    part key = {v->plans[rank], rank, step, number_of(v->plans[rank], step), false};
    part *mine = bsearch(&key, v->parts.at, (size_t)v->parts.n, sizeof *v->parts.at, compare_parts);
    return mine - plan_member(mine->p, step_of(mine));
}

bool verify_meet(verification *v, int rank, int step)
{
    part *parts = find_parts(v, rank, step);
    bool all = true;
    for (int k = 0; k < group_of(parts)->n; k++) {
        parts[k].there |= parts[k].rank == rank && parts[k].step == step;
        all &= parts[k].there;
    }
    return all;
}
