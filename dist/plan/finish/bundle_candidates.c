/* SPDX-License-Identifier: Apache-2.0 */
/* Which messages may be bundled, in an order that sender and receiver know alike. */
#include "bundle_candidates.h"

#include <stdlib.h>

#include "messages.h"
#include "thresholds.h"

int candidates_compare_ways(const candidate *c, const candidate *d)
{
    plan_path of_c = plan_path_of(c->step), of_d = plan_path_of(d->step);
    const int keys[][2] = {{(int)c->step->kind, (int)d->step->kind},
                           {of_c.from, of_d.from},
                           {of_c.to, of_d.to},
                           {c->bucket, d->bucket},
                           {c->dtype, d->dtype},
                           {c->step->key.level, d->step->key.level}};
    return COMPARE_KEYS(keys);
}

static int compare_candidates(const void *a, const void *b)
{
    const candidate *c = a, *d = b;
    int order = candidates_compare_ways(c, d);
    return order ? order : messages_compare(&c->step, &d->step);
}

candidates candidates_find(const plan *p)
{
    candidates found = {0};
    for (int i = 0; i < p->steps.n; i++) {
        const plan_step *s = &p->steps.at[i];
        if (s->kind < STEP_SEND || p->exchanges.at[s->exchange].bucket < 0)
            continue;
        const plan_region *r = &plan_step_operand(p, s, 0)->region;
        trama_dtype dtype = p->shards.at[r->shard].dtype;
        int64_t elements = box_count(&r->box), bytes = elements * (int64_t)trama_dtype_size(dtype);
        if (bytes <= BUNDLE_MESSAGE)
            *ARRAY_PUSH(&found) =
                (candidate){s, i, p->exchanges.at[s->exchange].bucket, (int)dtype, elements, bytes, *r, false};
    }
    if (found.n)
        qsort(found.at, (size_t)found.n, sizeof *found.at, compare_candidates);
    return found;
}
