/* SPDX-License-Identifier: Apache-2.0 */
/* The buffers that lie in an arena, and where. */
#include <stdlib.h>

#include "packing.h"
#include "thresholds.h"

enum {
    MOST_BY_SIZE = 4096, /* tenants: more of them are placed in the order of time, which is fast */
    TENANT_SHARE = 1024  /* of the least bytes of an arena: smaller buffers have memory of their own */
};

/* ---- Tenants ---- */

int *pack_least_exchanges(const plan *p)
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

int64_t pack_tenant_bytes(const arena_pass *a, const shard_spans *s, int place)
{
    const plan *p = a->q->p;
    int64_t bytes = 0;
    for (int i = 0; i < p->shards.n; i++)
        if (can_move(a, s, i, place))
            bytes += plan_shard_bytes(&p->shards.at[i]);
    return bytes;
}

void pack_find_tenants(arena_pass *a, const shard_spans *s, int place, bool shared)
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

bool pack_may_follow(const arena_pass *a, const tenant *t, const tenant *next)
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
        if (pack_may_follow(a, other, t) || pack_may_follow(a, t, other))
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

int64_t pack_place_tenants(arena_pass *a)
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
