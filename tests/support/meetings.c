/* SPDX-License-Identifier: Apache-2.0 */
/* Arrivals at the collectives of a group, and each member's result. */
#include "meetings.h"

#include <math.h>
#include <string.h>

void meetings_free(meetings *all)
{
    for (int i = 0; i < all->arrivals.n; i++)
        free(all->arrivals.at[i].data);
    ARRAY_FREE(&all->arrivals);
}

static bool same_places(const plan_group *a, const plan_group *b)
{
    return a->n == b->n && !memcmp(a->places, b->places, (size_t)a->n * sizeof *a->places);
}

static const arrival *find(const meetings *all, const plan_group *g, int member, int number)
{
    for (int i = 0; i < all->arrivals.n; i++) {
        const arrival *a = &all->arrivals.at[i];
        if (a->member == member && a->number == number && same_places(a->group, g))
            return a;
    }
    return NULL;
}

static const arrival *find_own(const meetings *all, const plan_step *s)
{
    for (int i = 0; i < all->arrivals.n; i++)
        if (all->arrivals.at[i].step == s)
            return &all->arrivals.at[i];
    return NULL;
}

static int member_of(const plan_group *g, int place)
{
    for (int i = 0; i < g->n; i++)
        if (g->places[i] == place)
            return i;
    return -1;
}

static void come(meetings *all, const memory *m, const plan_step *s)
{
    const plan_group *g = &m->p->groups.at[s->collective.group];
    arrival mine = {.group = g, .step = s, .member = member_of(g, s->place)};
    while (find(all, g, mine.member, mine.number))
        mine.number++;
    for (int i = 0; i + 1 < s->n_operands; i++) {
        const plan_operand *o = plan_step_operand(m->p, s, i);
        if (o->access != ACCESS_READ)
            continue;
        double *x = mine.data = trama_alloc((size_t)box_count(&o->region.box) * sizeof *x);
        FOR_EACH_ELEMENT(m, o->region.shard, &o->region.box, at)
        *x++ = m->known[o->region.shard][at] ? m->data[o->region.shard][at] : NAN;
    }
    *ARRAY_PUSH(&all->arrivals) = mine;
}

bool meetings_arrive(meetings *all, const memory *m, const plan_step *s)
{
    if (!find_own(all, s))
        come(all, m, s);
    const arrival mine = *find_own(all, s);
    bool there = mine.member >= 0;
    for (int i = 0; i < mine.group->n; i++)
        there = there && find(all, mine.group, i, mine.number);
    return there;
}

static double reduced(trama_reduce how, double a, double b)
{
    return how == TRAMA_MAX ? fmax(a, b) : how == TRAMA_MIN ? fmin(a, b) : a + b;
}

/* Element `at` of what a member gets. */
static double element(const meetings *all, const arrival *mine, int64_t at)
{
    const plan_collective *c = &mine->step->collective;
    const plan_group *g = mine->group;
    int64_t own = mine->member * c->count, there = at;
    double x = 0;
    switch (c->form) {
    case PLAN_ALL_GATHER:
        return find(all, g, (int)(at / c->count), mine->number)->data[at % c->count];
    case PLAN_ALL_TO_ALL:
        return find(all, g, (int)(at / c->count), mine->number)->data[own + at % c->count];
    case PLAN_BROADCAST:
        return find(all, g, c->root, mine->number)->data[at];
    case PLAN_REDUCE_SCATTER:
        there = own + at;
        break;
    case PLAN_ALL_REDUCE:
        break;
    }
    for (int i = 0; i < g->n; i++) {
        double term = find(all, g, i, mine->number)->data[there];
        x = i ? reduced(mine->step->reduce, x, term) : term;
    }
    return x * mine->step->scale;
}

bool meetings_result(const meetings *all, const plan_step *s, int64_t n, double *result)
{
    const arrival mine = *find_own(all, s);
    const plan_collective *c = &s->collective;
    for (int i = 0; i < mine.group->n; i++) {
        const plan_collective *other = &find(all, mine.group, i, mine.number)->step->collective;
        if (c->form != other->form || c->count != other->count || c->root != other->root || c->dtype != other->dtype)
            return false;
    }
    for (int64_t i = 0; i < n; i++)
        result[i] = element(all, &mine, i);
    return true;
}

int64_t meetings_bytes(const plan *p, const plan_step *s, bool received)
{
    const plan_collective *c = &s->collective;
    const plan_group *g = &p->groups.at[c->group];
    int64_t n = g->n, size = (int64_t)trama_dtype_size(c->dtype);
    int64_t behind = (member_of(g, s->place) - c->root + n) % n; /* in the ring that begins at the root */
    if (c->form == PLAN_BROADCAST)
        return (received ? behind > 0 : behind < n - 1) ? c->count * size : 0;
    if (c->form == PLAN_ALL_REDUCE)
        return 2 * (((n - 1) * c->count + n - 1) / n) * size;
    return (n - 1) * c->count * size;
}
