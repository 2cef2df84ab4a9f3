/* SPDX-License-Identifier: Apache-2.0 */
/* Verifies shards whose elements lie in another one: each tile within that one's tile of its number, which orders their
 * users, and nothing written from their first use to the last one. */
#include <string.h>

#include "verify_plan.h"

enum { MOST_LOOKED_AT = 1 << 16 /* of the elements of a tile; of larger ones the corners */ };

/* Whether an element, by the indices from the first of the alias, lies in a box of the shard around it. */
static bool lies_in(const plan *p, const plan_shard *s, const int64_t *index, const box *tile)
{
    const plan_shard *of = &p->shards.at[s->within];
    const plan_alias *a = plan_alias_of(p, s);
    int64_t at = a->at;
    for (int d = 0; d < s->box.ndim; d++)
        at += index[d] * a->stride[d];
    if (at < 0 || at >= box_count(&of->box))
        return false;
    box element = {.ndim = of->box.ndim};
    for (int d = of->box.ndim - 1; d >= 0; at /= of->box.n[d--]) {
        element.lo[d] = of->box.lo[d] + at % of->box.n[d];
        element.n[d] = 1;
    }
    return box_contains(tile, &element);
}

/* The indices of element number `number` of a tile, or where it is large of its corner of that number. */
static void index_of(const plan_shard *s, const box *tile, bool corners, int64_t number, int64_t *index)
{
    for (int d = tile->ndim - 1; d >= 0; d--) {
        const int64_t n = corners ? 2 : tile->n[d], i = number % n;
        index[d] = tile->lo[d] - s->box.lo[d] + (corners ? i * (tile->n[d] - 1) : i);
        number /= n;
    }
}

static bool tile_is_there(const plan *p, const plan_shard *s, int number)
{
    const box tile = plan_tile(s, number), around = plan_tile(&p->shards.at[s->within], number);
    const bool corners = box_count(&tile) > MOST_LOOKED_AT;
    const int64_t n = corners ? INT64_C(1) << tile.ndim : box_count(&tile);
    int64_t index[TRAMA_MAX_NDIM];
    for (int64_t i = 0; i < n; i++) {
        index_of(s, &tile, corners, i, index);
        if (!lies_in(p, s, index, &around))
            return false;
    }
    return true;
}

static bool lies_well(const plan *p, const plan_shard *s)
{
    const plan_shard *of = &p->shards.at[s->within];
    bool well = (of->source == SHARD_OWN || (of->source == SHARD_IMPORT && !of->host)) && of->place == s->place &&
                of->dtype == s->dtype && of->cut_parts == s->cut_parts && !plan_on_gpu(p, s->place);
    for (int t = 0; well && t < s->cut_parts; t++)
        well = tile_is_there(p, s, t);
    return well;
}

/* [shards] the last step that uses each; the caller frees them. */
static int *find_last_uses(const plan *p)
{
    int *last = trama_alloc((size_t)max_i64(1, p->shards.n) * sizeof *last);
    for (int i = 0; i < p->steps.n; i++)
        for (int k = 0; k < p->steps.at[i].n_operands && p->steps.at[i].kind != STEP_ORDER; k++)
            last[plan_step_operand(p, &p->steps.at[i], k)->region.shard] = i;
    return last;
}

/* A shard that the step writes though it is an alias, or though an alias in its buffer is still read; -1. until
 * [shards]: the last reader of the aliases in a buffer. The step adds those that it reads. */
static int wrong_write(const plan *p, int step, const int *last, int *until)
{
    const plan_step *s = &p->steps.at[step];
    const int n = s->kind == STEP_ORDER ? 0 : s->n_operands;
    for (int k = 0; k < n; k++) {
        const int shard = plan_step_operand(p, s, k)->region.shard, within = p->shards.at[shard].within;
        if (p->shards.at[shard].source == SHARD_ALIAS)
            until[within] = (int)max_i64(until[within], last[shard]);
    }
    for (int k = 0; k < n; k++) {
        const plan_operand *o = plan_step_operand(p, s, k);
        if (o->access != ACCESS_READ &&
            (p->shards.at[o->region.shard].source == SHARD_ALIAS || until[plan_buffer_of(p, o->region.shard)] >= step))
            return o->region.shard;
    }
    return -1;
}

int plan_wrong_alias(const plan *p)
{
    int found = -1, *last = find_last_uses(p), *until = trama_alloc((size_t)max_i64(1, p->shards.n) * sizeof *until);
    for (int i = 0; i < p->shards.n; i++)
        until[i] = -1;
    for (int i = 0; i < p->shards.n && found < 0; i++)
        if (p->shards.at[i].source == SHARD_ALIAS && !lies_well(p, &p->shards.at[i]))
            found = i;
    for (int i = 0; i < p->steps.n && found < 0; i++)
        found = wrong_write(p, i, last, until);
    free(until);
    free(last);
    return found;
}
