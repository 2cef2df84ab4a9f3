/* SPDX-License-Identifier: Apache-2.0 */
/* The uses of shards. */
#include "uses.h"

#include <stdlib.h>

plan_uses plan_no_uses(const plan *p)
{
    plan_uses u = {p->shards.n, trama_alloc((size_t)max_i64(1, p->shards.n) * sizeof *u.of)};
    return u;
}

plan_uses plan_find_uses(const plan *p)
{
    plan_uses u = plan_no_uses(p);
    for (int i = 0; i < p->steps.n; i++)
        for (int k = 0; k < p->steps.at[i].n_operands; k++)
            *ARRAY_PUSH(&u.of[plan_step_operand(p, &p->steps.at[i], k)->region.shard]) = (plan_use){i, k};
    return u;
}

void plan_uses_free(plan_uses *u)
{
    for (int i = 0; i < u->n; i++)
        ARRAY_FREE(&u->of[i]);
    free(u->of);
    *u = (plan_uses){0};
}

int plan_uses_from(const plan_uses *u, int shard, int from)
{
    int lo = 0, hi = u->of[shard].n;
    while (lo < hi) {
        const int middle = (lo + hi) / 2;
        if (u->of[shard].at[middle].step < from)
            lo = middle + 1;
        else
            hi = middle;
    }
    return lo;
}

void plan_uses_add(plan_uses *u, int shard, plan_use use)
{
    const int at = plan_uses_from(u, shard, use.step + 1);
    plan_use last = use;
    ARRAY_PUSH(&u->of[shard]);
    for (int i = at; i < u->of[shard].n; i++) {
        const plan_use moved = u->of[shard].at[i];
        u->of[shard].at[i] = last;
        last = moved;
    }
}

bool *plan_kept_shards(const plan *p, const bool *kept)
{
    bool *found = trama_alloc((size_t)max_i64(1, p->shards.n));
    for (int i = 0; i < p->dist_values.n; i++)
        for (int k = 0; kept[p->dist_values.at[i].value] && k < p->dist_values.at[i].pieces.n; k++)
            found[p->dist_values.at[i].pieces.at[k].region.shard] = true;
    return found;
}
