/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of an exchange that become one step.
 *
 *   orders: those of the same tiles of a shard, which are used as a whole; before messages are sent, those of one last
 *           tile, since tiles are ready at about the same time; of many tiles those of some neighbours. Orders before
 *           all messages, or behind them, are merged for the whole shard: other steps use it some time before or after.
 *   copies: those of small messages into the same tiles, which go one after the other anyway. */
#include <stdlib.h>

#include "exchange.h"
#include "thresholds.h"

enum { MOST_LOANS = 16 }; /* of a shard at a time; it may have several times as many tiles */

/* A step that may be merged with others. */
typedef struct candidate {
    int phase, place, shard, first, last; /* tiles of the shard */
    int step;                             /* in exchange.steps */
    int64_t bytes;                        /* of a copy */
} candidate;

typedef ARRAY(candidate) candidates;

static int compare_tiles(const candidate *a, const candidate *b)
{
    const int keys[][2] = {
        {a->phase, b->phase}, {a->place, b->place}, {a->shard, b->shard}, {a->first, b->first}, {a->last, b->last}};
    return COMPARE_KEYS(keys);
}

static int compare_candidates(const void *a, const void *b)
{
    const candidate *one = a, *other = b;
    int order = compare_tiles(one, other);
    return order ? order : (one->step > other->step) - (one->step < other->step);
}

/* One step in place of n: the first, with the operands of all. */
static void merge(exchange *x, const candidate *of, int n)
{
    exchange_step *all = &x->steps.at[of->step];
    const int first = x->sources.n;
    for (int i = 0; i < n; i++) {
        exchange_step *s = &x->steps.at[of[i].step];
        *ARRAY_PUSH(&x->sources) = s->operands[0];
        *ARRAY_PUSH(&x->sources) = s->operands[1];
        s->n = 0;
    }
    all->many = first;
    all->n = x->sources.n - first;
}

/* Merges the candidates of the same tiles, as far as the bytes of their copies go into a bundle. */
static void merge_candidates(exchange *x, candidates *of)
{
    if (of->n)
        qsort(of->at, (size_t)of->n, sizeof *of->at, compare_candidates);
    for (int i = 0, n; i < of->n; i += n) {
        int64_t bytes = of->at[i].bytes;
        for (n = 1; i + n < of->n && compare_tiles(&of->at[i], &of->at[i + n]) == 0; n++)
            if ((bytes += of->at[i + n].bytes) > BUNDLE_BYTES)
                break;
        if (n > 1)
            merge(x, &of->at[i], n);
    }
    ARRAY_FREE(of);
}

/* Of the tiles that the first operand of a step lies in. */
static candidate *add_candidate(exchange *x, candidates *list, int step)
{
    const exchange_step *s = &x->steps.at[step];
    const plan_region *of = &s->operands[0].region;
    candidate *c = ARRAY_PUSH(list);
    *c = (candidate){.phase = s->phase, .place = s->step.place, .shard = of->shard, .step = step};
    plan_tiles(&x->q->p->shards.at[of->shard], &of->box, &c->first, &c->last);
    return c;
}

void merge_loans(exchange *x)
{
    candidates loans = {0};
    for (int i = 0; i < x->steps.n; i++) {
        if (x->steps.at[i].step.kind != STEP_ORDER)
            continue;
        candidate *c = add_candidate(x, &loans, i);
        if (c->phase == LEND || c->phase == RETURN)
            c->first = c->last = 0;
        else if (c->phase == PACK || c->phase == PACK_AGAIN)
            c->first = c->last;
        const int together = (int)max_i64(1, x->q->p->shards.at[c->shard].cut_parts / MOST_LOANS);
        c->first /= together;
        c->last /= together;
    }
    merge_candidates(x, &loans);
}

void merge_copies(exchange *x)
{
    candidates copies = {0};
    for (int i = 0; i < x->steps.n && !x->rounds; i++) { /* a round frees the buffers of one before it */
        const exchange_step *s = &x->steps.at[i];
        const int64_t bytes = s->step.kind == STEP_COPY ? region_bytes(x, &s->operands[0].region.box) : 0;
        if ((s->phase == UNPACK || s->phase == UNPACK_AGAIN) && !s->crosses && bytes > 0 && bytes <= BUNDLE_MESSAGE)
            add_candidate(x, &copies, i)->bytes = bytes;
    }
    merge_candidates(x, &copies);
}
