/* SPDX-License-Identifier: Apache-2.0 */
/* Arenas: buffers of any form lie in one memory of their place, where they are not used at the same time. A tenant of
 * an arena is a buffer with all shards that use it.
 *
 * Tenants in the same bytes have different handles, so a STEP_ORDER that names both stands before the first use of the
 * later one; at the end of the plan others order the first tenants behind the last ones, for the next run. Such an
 * order waits for all users of the tenants before it, so these stand some time before it in the plan, and ordinary
 * steps hardly wait. Small plans have no arena: each buffer has memory of its own there. */
#include <stdlib.h>

#include "packing.h"
#include "thresholds.h"

enum {
    SLACK = 8,            /* times the workers of the rank: steps from the last use of a tenant to the next tenant */
    LEAST_SAVED_SHARE = 8 /* an arena saves at least this share of its tenants' bytes */
};

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
        pack_order_begin(a, i);
    for (int i = 0; i < p->shards.n; i++) /* of a buffer that was taken over itself */
        if (p->shards.at[i].reuses >= 0 && p->shards.at[p->shards.at[i].reuses].reuses >= 0)
            p->shards.at[i].reuses = p->shards.at[p->shards.at[i].reuses].reuses;
    pack_order_ends(a);
}

/* Buffers of a place share an arena where that saves memory that counts; those that other ranks read another one. */
static void pack_place(arena_pass *a, const shard_spans *s, int place, bool shared)
{
    plan *p = a->q->p;
    int64_t bytes = 0;
    a->tenants.n = a->now.n = a->first.n = 0;
    pack_find_tenants(a, s, place, shared);
    if (!a->tenants.n)
        return;
    for (int i = 0; i < a->tenants.n; i++)
        bytes += plan_shard_bytes(&p->shards.at[a->tenants.at[i].shard]);
    const int64_t needed = pack_place_tenants(a);
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
                    .least_exchanges = pack_least_exchanges(q->p)};
    pack_find_opening(&a);
    for (int i = 0; i < q->p->footprint.n; i++)
        if (q->p->footprint.at[i].bytes >= least && !plan_on_gpu(q->p, i) && pack_tenant_bytes(&a, s, i) >= least)
            for (int shared = 0; shared < 2; shared++)
                pack_place(&a, s, i, shared);
    pack_insert_orders(&a);
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
