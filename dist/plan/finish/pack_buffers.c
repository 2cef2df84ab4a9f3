/* SPDX-License-Identifier: Apache-2.0 */
/* Arenas: buffers of any form lie in one memory of their place, where they are not used at the same time. A tenant of
 * an arena is a buffer with all shards that use it.
 *
 * Tenants in the same bytes have different handles, so a STEP_ORDER that names both stands before the first use of the
 * later one; at the end of the plan others order the first tenants behind the last ones, for the next run. Such an
 * order waits for all users of the tenants before it, so these stand some time before it in the plan, and ordinary
 * steps hardly wait. Small plans have no arena: each buffer has memory of its own there. */
#include <stdlib.h>

#include "extents.h"
#include "spans.h"
#include "thresholds.h"

enum {
    SLACK = 8,            /* times the workers of the rank: steps from the last use of a tenant to the next tenant */
    MOST_BY_SIZE = 4096,  /* tenants: more of them are placed in the order of time, which is fast */
    TENANT_SHARE = 1024,  /* of the least bytes of an arena: smaller buffers have memory of their own */
    LEAST_SAVED_SHARE = 8 /* an arena saves at least this share of its tenants' bytes */
};

typedef struct tenant {
    int shard;       /* the one whose buffer it is */
    int first, last; /* steps that use it */
    int before;      /* exchanges that there are when it is used first */
    int needs;       /* exchanges that its users need */
    int64_t bytes, at;
} tenant;

/* An order to be inserted before a step. */
typedef struct order {
    int step;
    int operand, n; /* in operands */
} order;

typedef struct arena_pass {
    partition *q;
    ARRAY(tenant) tenants; /* of one arena; by first use, once they are placed */
    extents now, first;    /* the tenants so far that had each byte last, and first */
    ARRAY(order) orders;   /* of all places */
    ARRAY(plan_operand) operands;
    tenant_list named;    /* in the last order */
    ARRAY(int) opening;   /* messages that are used first in the staging buffer that they lie in */
    int slack;            /* steps */
    int64_t least;        /* bytes of an arena */
    int *least_exchanges; /* [steps] exchanges that there are at all steps from this one on */
} arena_pass;

/* ---- Tenants ---- */

/* [steps] The exchanges that there are at a step and at all behind it; one at least. */
static int *find_least_exchanges(const plan *p)
{
    int *least = new_numbers(p->steps.n), so_far = INT32_MAX;
    for (int i = p->steps.n - 1; i >= 0; i--)
        least[i] = so_far = (int)min_i64(so_far, exchanges_before(&p->steps.at[i]));
    return least;
}

/* An arena has no span. */
static bool can_move(const arena_pass *a, const shard_spans *s, int shard, int place)
{
    const plan *p = a->q->p;
    const plan_shard *at = &p->shards.at[shard];
    return at->reuses < 0 && at->source != SHARD_ARENA && at->place == place && has_buffer(p, at) && !s->fixed[shard] &&
           plan_shard_bytes(at) >= a->least / TENANT_SHARE;
}

/* Of all buffers of a place that may lie in arenas. */
static int64_t tenant_bytes(const arena_pass *a, const shard_spans *s, int place)
{
    const plan *p = a->q->p;
    int64_t bytes = 0;
    for (int i = 0; i < p->shards.n; i++)
        if (can_move(a, s, i, place))
            bytes += plan_shard_bytes(&p->shards.at[i]);
    return bytes;
}

/* Adds a buffer for each shard that has one, and extends it for those that take it over. */
static void find_tenants(arena_pass *a, const shard_spans *s, int place, bool shared)
{
    const plan *p = a->q->p;
    int *number = new_numbers(p->shards.n);
    for (int i = 0; i < p->shards.n; i++)
        if (p->shards.at[i].shared == shared && can_move(a, s, i, place)) {
            number[i] = a->tenants.n;
            *ARRAY_PUSH(&a->tenants) = (tenant){.shard = i,
                                                .first = s->first[i],
                                                .last = s->last[i],
                                                .needs = s->needs[i],
                                                .bytes = buffer_padded(plan_shard_bytes(&p->shards.at[i]))};
        }
    for (int i = 0; i < p->shards.n; i++) {
        const int of = p->shards.at[i].reuses < 0 ? -1 : number[p->shards.at[i].reuses];
        if (of < 0)
            continue;
        tenant *t = &a->tenants.at[of];
        t->first = (int)min_i64(t->first, s->first[i]);
        t->last = (int)max_i64(t->last, s->last[i]);
        t->needs = (int)max_i64(t->needs, s->needs[i]);
    }
    for (int i = 0; i < a->tenants.n; i++)
        a->tenants.at[i].before = exchanges_before(&p->steps.at[a->tenants.at[i].first]);
    free(number);
}

/* ---- Places in the arena ---- */

static int by_first(const void *a, const void *b)
{
    const tenant *t = a, *u = b;
    const int keys[][2] = {{t->first, u->first}, {u->bytes > t->bytes, t->bytes > u->bytes}, {t->shard, u->shard}};
    return COMPARE_KEYS(keys);
}

static int by_size(const void *a, const void *b)
{
    const tenant *t = a, *u = b;
    return t->bytes == u->bytes ? by_first(a, b) : t->bytes < u->bytes ? 1 : -1;
}

/* Whether `next` can have memory of the tenant: an order of both makes it wait for nothing near it, nor for exchanges
 * that come later. */
static bool may_follow(const arena_pass *a, const tenant *t, const tenant *next)
{
    return t->last + a->slack < next->first && t->needs <= next->before;
}

/* The smallest gap that has room among the tenants that are placed, by address, and that cannot share memory with it;
 * else the end. */
static int64_t find_gap(const arena_pass *a, const int *placed, int n, const tenant *t)
{
    int64_t end = 0, best = -1, least = INT64_MAX;
    for (int i = 0; i < n; i++) {
        const tenant *other = &a->tenants.at[placed[i]];
        if (may_follow(a, other, t) || may_follow(a, t, other))
            continue;
        const int64_t gap = other->at - end;
        if (gap >= t->bytes && gap < least) {
            best = end;
            least = gap;
        }
        end = max_i64(end, other->at + other->bytes);
    }
    return best >= 0 ? best : end;
}

/* Forgets those whose memory all tenants that begin at the step, or behind it, may have. */
static int forget_ended(const arena_pass *a, int *placed, int n, int step)
{
    int left = 0;
    for (int i = 0; i < n; i++) {
        const tenant *t = &a->tenants.at[placed[i]];
        if (t->last + a->slack >= step || t->needs > a->least_exchanges[step])
            placed[left++] = placed[i];
    }
    return left;
}

/* The bytes that the arena needs: the tenants are placed largest first, or in the order of time if they are many. */
static int64_t place_tenants(arena_pass *a)
{
    const int n = a->tenants.n;
    const bool in_time = n > MOST_BY_SIZE;
    int *placed = new_numbers(n), n_placed = 0;
    int64_t bytes = 0;
    qsort(a->tenants.at, (size_t)n, sizeof *a->tenants.at, in_time ? by_first : by_size);
    for (int i = 0; i < n; i++) {
        tenant *t = &a->tenants.at[i];
        if (in_time)
            n_placed = forget_ended(a, placed, n_placed, t->first);
        t->at = find_gap(a, placed, n_placed, t);
        bytes = max_i64(bytes, t->at + t->bytes);
        int k = n_placed++;
        for (; k > 0 && a->tenants.at[placed[k - 1]].at > t->at; k--)
            placed[k] = placed[k - 1];
        placed[k] = i;
    }
    free(placed);
    qsort(a->tenants.at, (size_t)n, sizeof *a->tenants.at, by_first);
    return bytes;
}

/* ---- Orders ---- */

/* The messages of a staging buffer that no order of its exchange lets be written: those of its first rounds. The
 * others are behind these, and before them in the next run. */
static void find_opening(arena_pass *a)
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
        if (!may_follow(a, &a->tenants.at[before->at[i]], &there))
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

/* Behind the tenants that have its bytes when it begins. */
static void order_begin(arena_pass *a, int number)
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

/* For the next run, each first tenant of bytes behind the last ones. Others may still use the rest of its bytes: they
 * have an order of their own. */
static void order_ends(arena_pass *a)
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

/* Inserts the orders into the list of steps. */
static void insert_orders(arena_pass *a)
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

/* ---- The pass ---- */

static void make_arena(arena_pass *a, int place, bool shared, int64_t bytes)
{
    plan *p = a->q->p;
    const int64_t most = UINT32_MAX / 2; /* of a tile, since StarPU counts in 32 bits */
    const box memory = {.ndim = 1, .n = {bytes}};
    const int arena = partition_shard(a->q, SHARD_ARENA, p->shards.at[a->tenants.at[0].shard].value, place, &memory, 0,
                                      (int)((bytes + most - 1) / most));
    p->shards.at[arena].dtype = TRAMA_U8;
    p->shards.at[arena].shared = shared;
    for (int i = 0; i < a->tenants.n; i++) {
        plan_shard *s = &p->shards.at[a->tenants.at[i].shard];
        s->within = arena;
        s->at = a->tenants.at[i].at;
    }
    for (int i = 0; i < a->tenants.n; i++)
        order_begin(a, i);
    for (int i = 0; i < p->shards.n; i++) /* of a buffer that was taken over itself */
        if (p->shards.at[i].reuses >= 0 && p->shards.at[p->shards.at[i].reuses].reuses >= 0)
            p->shards.at[i].reuses = p->shards.at[p->shards.at[i].reuses].reuses;
    order_ends(a);
}

/* Buffers of a place share an arena where that saves memory that counts; those that other ranks read another one. */
static void pack_place(arena_pass *a, const shard_spans *s, int place, bool shared)
{
    plan *p = a->q->p;
    int64_t bytes = 0;
    a->tenants.n = a->now.n = a->first.n = 0;
    find_tenants(a, s, place, shared);
    if (!a->tenants.n)
        return;
    for (int i = 0; i < a->tenants.n; i++)
        bytes += plan_shard_bytes(&p->shards.at[a->tenants.at[i].shard]);
    const int64_t needed = place_tenants(a);
    if (needed > bytes - bytes / LEAST_SAVED_SHARE)
        return;
    make_arena(a, place, shared, needed);
    p->footprint.at[place].bytes += needed - bytes;
}

static void pack_places(partition *q, const shard_spans *s, int64_t least)
{
    arena_pass a = {.q = q,
                    .least = least,
                    .slack = SLACK * machine_workers(q->s.machine, q->s.rank),
                    .least_exchanges = find_least_exchanges(q->p)};
    find_opening(&a);
    for (int i = 0; i < q->p->footprint.n; i++)
        if (q->p->footprint.at[i].bytes >= least && !plan_on_gpu(q->p, i) && tenant_bytes(&a, s, i) >= least)
            for (int shared = 0; shared < 2; shared++)
                pack_place(&a, s, i, shared);
    insert_orders(&a);
    ARRAY_FREE(&a.tenants);
    ARRAY_FREE(&a.now);
    ARRAY_FREE(&a.first);
    ARRAY_FREE(&a.orders);
    ARRAY_FREE(&a.operands);
    ARRAY_FREE(&a.named);
    ARRAY_FREE(&a.opening);
    free(a.least_exchanges);
}

void pack_buffers(partition *q, const shard_spans *s)
{
    const int64_t least = q->s.options.arena_bytes ? q->s.options.arena_bytes : ARENA_BYTES;
    bool any = false;
    for (int i = 0; i < q->p->footprint.n; i++)
        any |= q->p->footprint.at[i].bytes >= least && !plan_on_gpu(q->p, i);
    if (any)
        pack_places(q, s, least);
}
