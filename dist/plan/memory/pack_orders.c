/* SPDX-License-Identifier: Apache-2.0 */
/* The steps that order the users of tenants with the same bytes. */
#include <stdlib.h>

#include "packing.h"

void pack_find_opening(arena_pass *a)
{
    const plan *p = a->q->p;
    bool *seen = trama_alloc((size_t)max_i64(1, p->shards.n) * sizeof *seen);
    for (int i = 0; i < p->steps.n; i++)
        for (int k = 0; k < p->steps.at[i].n_operands; k++) {
            const int shard = plan_step_operand(p, &p->steps.at[i], k)->region.shard;
            const int within = p->shards.at[shard].within;
            if (within >= 0 && p->shards.at[within].source == SHARD_WINDOW && !seen[shard] &&
                p->steps.at[i].kind != STEP_ORDER)
                *ARRAY_PUSH(&a->opening) = shard;
            seen[shard] = true;
        }
    free(seen);
}

/* The shards whose handles order the users of a tenant become operands. */
static void name_tenant(arena_pass *a, const tenant *t, step_access access)
{
    const plan *p = a->q->p;
    if (p->shards.at[t->shard].source != SHARD_WINDOW) {
        *ARRAY_PUSH(&a->operands) = (plan_operand){{t->shard, p->shards.at[t->shard].box}, access};
        return;
    }
    for (int i = 0; i < a->opening.n; i++)
        if (p->shards.at[a->opening.at[i]].within == t->shard)
            *ARRAY_PUSH(&a->operands) = (plan_operand){{a->opening.at[i], p->shards.at[a->opening.at[i]].box}, access};
}

/* Adds tenants to the last order: those before, each once, and behind them one with an access. */
static void extend_order(arena_pass *a, const tenant_list *before, int number, step_access access)
{
    order *o = &a->orders.at[a->orders.n - 1];
    for (int i = 0; i < before->n; i++) {
        bool is_named = false;
        for (int k = 0; k < a->named.n && !is_named; k++)
            is_named = a->named.at[k] == before->at[i];
        if (is_named)
            continue;
        *ARRAY_PUSH(&a->named) = before->at[i];
        name_tenant(a, &a->tenants.at[before->at[i]], ACCESS_UPDATE);
    }
    name_tenant(a, &a->tenants.at[number], access);
    o->n = a->operands.n - o->operand;
}

/* Adds the order of a tenant, with an access, behind others, if there are any. */
static void add_order(arena_pass *a, int step, const tenant_list *before, int number, step_access access)
{
    if (!before->n)
        return;
    *ARRAY_PUSH(&a->orders) = (order){step, a->operands.n, 0};
    a->named.n = 0;
    extend_order(a, before, number, access);
}

/* Whether the order before can also let a tenant begin, one step or more before its first: both are for messages of
 * one exchange, which may come in any order, and nothing waits for longer. */
static bool can_join(const arena_pass *a, const tenant *t, const tenant_list *before)
{
    const plan *p = a->q->p;
    if (!a->orders.n || !before->n)
        return false;
    const int step = a->orders.at[a->orders.n - 1].step;
    if (step >= p->steps.n)
        return false; /* the last one of another arena */
    const plan_step *one = &p->steps.at[step], *other = &p->steps.at[t->first];
    if (one->kind != STEP_RECEIVE || other->kind != STEP_RECEIVE || one->exchange != other->exchange ||
        one->place != other->place)
        return false;
    const tenant there = {.first = step, .before = exchanges_before(one)};
    for (int i = 0; i < before->n; i++)
        if (!pack_may_follow(a, &a->tenants.at[before->at[i]], &there))
            return false;
    return true;
}

/* Whether a tenant can have the buffer of the only one before it. */
static bool can_take_over(const arena_pass *a, const tenant *t, const tenant_list *before)
{
    const tenant *u = &a->tenants.at[before->n ? before->at[0] : 0];
    const plan_shard *s = &a->q->p->shards.at[t->shard], *of = &a->q->p->shards.at[u->shard];
    return before->n == 1 && u->at == t->at && u->bytes == t->bytes && s->source == SHARD_OWN &&
           of->source == SHARD_OWN && plan_has_form_of(s, of);
}

static void take_over(const arena_pass *a, const tenant *t, tenant *u)
{
    plan_shard *s = &a->q->p->shards.at[t->shard];
    s->within = -1;
    s->at = 0;
    s->reuses = u->shard;
    u->last = t->last;
    u->needs = (int)max_i64(u->needs, t->needs);
}

void pack_order_begin(arena_pass *a, int number)
{
    const tenant *t = &a->tenants.at[number];
    const extent its = {t->at, t->at + t->bytes, number};
    tenant_list before = {0};
    extents_find(&a->now, its, &before);
    if (can_take_over(a, t, &before)) {
        take_over(a, t, &a->tenants.at[before.at[0]]);
    } else {
        if (can_join(a, t, &before))
            extend_order(a, &before, number, ACCESS_WRITE);
        else
            add_order(a, t->first, &before, number, ACCESS_WRITE);
        extents_fill(&a->first, its);
        extents_give(&a->now, its);
    }
    ARRAY_FREE(&before);
}

static int by_tenant(const void *a, const void *b)
{
    const extent *one = a, *other = b;
    const int keys[][2] = {{one->tenant, other->tenant}, {one->from > other->from, one->from < other->from}};
    return COMPARE_KEYS(keys);
}

void pack_order_ends(arena_pass *a)
{
    if (a->first.n)
        qsort(a->first.at, (size_t)a->first.n, sizeof *a->first.at, by_tenant);
    tenant_list before = {0};
    for (int i = 0; i < a->first.n; i++) {
        const extent *e = &a->first.at[i];
        extents_find(&a->now, *e, &before);
        if (i + 1 == a->first.n || e[1].tenant != e->tenant) {
            add_order(a, a->q->p->steps.n, &before, e->tenant, ACCESS_UPDATE);
            before.n = 0;
        }
    }
    ARRAY_FREE(&before);
}

static int by_step(const void *a, const void *b)
{
    const order *one = a, *other = b;
    const int keys[][2] = {{one->step, other->step}, {one->operand, other->operand}};
    return COMPARE_KEYS(keys);
}

void pack_insert_orders(arena_pass *a)
{
    plan *p = a->q->p;
    const int operands = p->operands.n;
    if (!a->orders.n)
        return;
    qsort(a->orders.at, (size_t)a->orders.n, sizeof *a->orders.at, by_step);
    for (int i = 0; i < a->operands.n; i++)
        *ARRAY_PUSH(&p->operands) = a->operands.at[i];
    for (int i = 0; i < a->orders.n; i++)
        *ARRAY_PUSH(&p->steps) = (plan_step){0};
    for (int i = p->steps.n - a->orders.n - 1, k = a->orders.n - 1, to = p->steps.n - 1; k >= 0; to--)
        if (i >= a->orders.at[k].step) {
            p->steps.at[to] = p->steps.at[i--];
        } else {
            const order *o = &a->orders.at[k--];
            p->steps.at[to] = (plan_step){.kind = STEP_ORDER,
                                          .place = p->shards.at[a->operands.at[o->operand].region.shard].place,
                                          .lane = -1,
                                          .operand = operands + o->operand,
                                          .n_operands = o->n,
                                          .exchange = -1};
        }
    for (int i = 1; i < p->steps.n; i++)
        if (plan_orders_arena(&p->steps.at[i]))
            p->steps.at[i].exchanges_before = exchanges_before(&p->steps.at[i - 1]);
}
