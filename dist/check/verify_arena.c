/* SPDX-License-Identifier: Apache-2.0 */
/* Verifies that shards which lie in one arena are used in turn, run after run. The walk over the steps keeps the owner
 * of each byte. A shard becomes the owner at its first use. Where its bytes have owners, that use is a STEP_ORDER which
 * names all of them, and they are not used any more in this run. At the end, orders of this kind must lead from the
 * owners back to the first ones. */
#include <stdlib.h>
#include <string.h>

#include "thresholds.h"
#include "verify_plan.h"

/* Bytes with one owner, and the first one that they had. */
typedef struct bytes {
    int64_t from, to;
    int owner, first; /* shards; -1: none yet */
} bytes;

typedef ARRAY(bytes) byte_map; /* by address, without gaps */

typedef struct arena_walk {
    const plan *p;
    byte_map *of; /* [shards] of arenas */
    bool *used;   /* [shards] by a step before */
    bool *gone;   /* [shards] others have some of its bytes */
    bool *opens;  /* [shards] a message that is used first in its staging buffer; others are in order with it */
    int at;
} arena_walk;

/* The shard, or the one that it lies in or takes over, that lies in an arena itself; -1: none does. */
static int tenant_of(const plan *p, int shard)
{
    while (!plan_in_arena(p, &p->shards.at[shard])) {
        const plan_shard *s = &p->shards.at[shard];
        shard = s->reuses >= 0 ? s->reuses : s->within;
        if (shard < 0)
            return -1;
    }
    return shard;
}

/* Messages that a copy or a message uses first: no order of their exchange comes before. */
static void find_opening(arena_walk *w)
{
    const plan *p = w->p;
    bool *seen = trama_alloc((size_t)max_i64(1, p->shards.n) * sizeof *seen);
    for (int i = 0; i < p->steps.n; i++) {
        const plan_step *s = &p->steps.at[i];
        for (int k = 0; k < s->n_operands && !plan_orders_arena(s); k++) {
            const int shard = plan_step_operand(p, s, k)->region.shard;
            w->opens[shard] |= !seen[shard] && s->kind != STEP_ORDER && p->shards.at[shard].within >= 0;
            seen[shard] = true;
        }
    }
    free(seen);
}

/* Whether a step names the tenant with that access: all of it, or all messages that open a staging buffer. */
static bool is_named(const arena_walk *w, int step, int tenant, step_access access)
{
    const plan *p = w->p;
    const bool parts = p->shards.at[tenant].source == SHARD_WINDOW;
    int left = !parts;
    for (int i = 0; parts && i < p->shards.n; i++)
        left += w->opens[i] && p->shards.at[i].within == tenant;
    for (int k = 0; k < p->steps.at[step].n_operands; k++) {
        const plan_operand *o = plan_step_operand(p, &p->steps.at[step], k);
        const plan_shard *s = &p->shards.at[o->region.shard];
        const bool its = parts ? w->opens[o->region.shard] && s->within == tenant : o->region.shard == tenant;
        left -= its && o->access == access && box_equal(&o->region.box, &s->box);
    }
    return left == 0;
}

static void split(byte_map *m, int64_t at)
{
    for (int i = 0; i < m->n; i++)
        if (m->at[i].from < at && at < m->at[i].to) {
            const bytes behind = {at, m->at[i].to, m->at[i].owner, m->at[i].first};
            *ARRAY_PUSH(m) = behind;
            memmove(&m->at[i + 2], &m->at[i + 1], (size_t)(m->n - i - 2) * sizeof *m->at);
            m->at[i].to = at;
            m->at[i + 1] = behind;
            return;
        }
}

/* Gives a tenant its bytes. */
static bool begin(arena_walk *w, int tenant)
{
    const plan_shard *s = &w->p->shards.at[tenant];
    byte_map *m = &w->of[s->within];
    const int64_t from = s->at, to = from + buffer_padded(plan_shard_bytes(s)); /* the gap has no other use */
    const bool ordered = plan_orders_arena(&w->p->steps.at[w->at]) && is_named(w, w->at, tenant, ACCESS_WRITE);
    if (from < 0 || to > m->at[m->n - 1].to)
        return false;
    split(m, from);
    split(m, to);
    for (int i = 0; i < m->n; i++) {
        bytes *b = &m->at[i];
        if (b->from < from || b->to > to)
            continue;
        if (b->owner >= 0 && !(ordered && is_named(w, w->at, b->owner, ACCESS_UPDATE)))
            return false;
        if (b->owner >= 0)
            w->gone[b->owner] = true;
        b->first = b->first < 0 ? tenant : b->first;
        b->owner = tenant;
    }
    w->used[tenant] = true;
    return true;
}

/* Another use: the tenant has all of its bytes, but in an order behind its last use. */
static bool go_on(const arena_walk *w, int tenant)
{
    return plan_orders_arena(&w->p->steps.at[w->at]) || !w->gone[tenant];
}

/* Whether an order at the end of the plan leads from the owner to the first tenant. */
static bool comes_back(const arena_walk *w, const bytes *b)
{
    if (b->owner < 0 || b->owner == b->first)
        return true;
    for (int i = w->p->steps.n - 1; i >= 0 && plan_orders_arena(&w->p->steps.at[i]); i--)
        if (is_named(w, i, b->owner, ACCESS_UPDATE) && is_named(w, i, b->first, ACCESS_UPDATE))
            return true;
    return false;
}

int plan_unordered_in_arenas(const plan *p)
{
    const size_t n = (size_t)max_i64(1, p->shards.n);
    arena_walk w = {.p = p,
                    .of = trama_alloc(n * sizeof *w.of),
                    .used = trama_alloc(n * sizeof *w.used),
                    .gone = trama_alloc(n * sizeof *w.gone),
                    .opens = trama_alloc(n * sizeof *w.opens)};
    int found = -1;
    find_opening(&w);
    for (int i = 0; i < p->shards.n; i++)
        if (p->shards.at[i].source == SHARD_ARENA)
            *ARRAY_PUSH(&w.of[i]) = (bytes){0, plan_shard_bytes(&p->shards.at[i]), -1, -1};
    for (w.at = 0; w.at < p->steps.n && found < 0; w.at++)
        for (int k = 0; k < p->steps.at[w.at].n_operands && found < 0; k++) {
            const plan_operand *o = plan_step_operand(p, &p->steps.at[w.at], k);
            const int tenant = tenant_of(p, o->region.shard);
            if (tenant >= 0 && !(w.used[tenant] ? go_on(&w, tenant) : begin(&w, tenant)))
                found = tenant;
        }
    for (int i = 0; i < p->shards.n; i++) {
        for (int k = 0; k < w.of[i].n && found < 0; k++)
            if (!comes_back(&w, &w.of[i].at[k]))
                found = w.of[i].at[k].owner;
        ARRAY_FREE(&w.of[i]);
    }
    free(w.of);
    free(w.used);
    free(w.gone);
    free(w.opens);
    return found;
}
