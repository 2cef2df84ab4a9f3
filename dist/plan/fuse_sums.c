/* SPDX-License-Identifier: Apache-2.0 */
/* Sums that are read once are made by their reader: the terms of a gradient go right into the update, tile by tile,
 * instead of through memory once more. A peephole over finished steps; it changes no value and no message. */
#include <string.h>

#include "planner.h"

enum { MOST_TERMS = 8 };

/* A step that reads the sum, as its operand number `which`. */
typedef struct reader {
    int step, which;
} reader;

typedef ARRAY(reader) reader_list;

/* Whether a step can take over the part of the sum that it reads, as its operand number `which`. */
static bool can_sum(const plan *p, const plan_step *sum, const plan_step *s, int which)
{
    const plan_operand *to = plan_step_operand(p, sum, 0), *o = plan_step_operand(p, s, which);
    return s->kind == STEP_COMPUTE && s->place == sum->place && !s->n_terms && o->access == ACCESS_READ &&
           box_contains(&to->region.box, &o->region.box);
}

/* The steps behind the sum that read its result, if they read parts that have nothing in common, and write none of its
 * terms. */
static bool find_readers(const plan *p, int at, reader_list *readers)
{
    const plan_step *sum = &p->steps.at[at];
    int result = plan_step_operand(p, sum, 0)->region.shard;
    box common;
    for (int i = at + 1; i < p->steps.n; i++) {
        const plan_step *s = &p->steps.at[i];
        for (int k = 0; k < s->n_operands; k++) {
            const plan_operand *o = plan_step_operand(p, s, k);
            for (int t = 1; t < sum->n_operands; t++)
                if (o->access != ACCESS_READ && o->region.shard == plan_step_operand(p, sum, t)->region.shard)
                    return false;
            if (o->region.shard != result)
                continue;
            if (box_count(&o->region.box) == 0) /* a reader of an empty box still needs the shard */
                return false;
            if (!box_intersect(&plan_step_operand(p, sum, 0)->region.box, &o->region.box, &common))
                continue;
            if (!can_sum(p, sum, s, k) || (readers->n && readers->at[readers->n - 1].step == i))
                return false;
            *ARRAY_PUSH(readers) = (reader){i, k};
        }
    }
    return readers->n > 0;
}

static const box *box_read(const plan *p, const reader *r)
{
    return &plan_step_operand(p, &p->steps.at[r->step], r->which)->region.box;
}

/* Whether the readers read each element of the sum once: else the sum must move unread elements, or make some twice. */
static bool share_out(const plan *p, const plan_step *sum, const reader_list *readers)
{
    int64_t left = box_count(&plan_step_operand(p, sum, 0)->region.box);
    for (int i = 0; i < readers->n; i++) {
        box common;
        left -= box_count(box_read(p, &readers->at[i]));
        for (int j = 0; j < i; j++)
            if (box_intersect(box_read(p, &readers->at[i]), box_read(p, &readers->at[j]), &common))
                return false;
    }
    return left == 0;
}

typedef ARRAY(int) step_list;

/* The steps that write a shard, if they are sums of parts of it that have nothing in common, and nobody reads it before
 * the last. */
static bool find_sums(const plan *p, int shard, step_list *sums)
{
    box common;
    bool read = false;
    for (int i = 0; i < p->steps.n; i++) {
        const plan_step *s = &p->steps.at[i];
        for (int k = 0; k < s->n_operands; k++) {
            const plan_operand *o = plan_step_operand(p, s, k);
            if (o->region.shard != shard)
                continue;
            if (o->access == ACCESS_READ) {
                read = true;
                continue;
            }
            if (s->kind != STEP_REDUCE || k || read || s->n_operands - 1 > MOST_TERMS)
                return false;
            for (int j = 0; j < sums->n; j++)
                if (box_intersect(&plan_step_operand(p, &p->steps.at[sums->at[j]], 0)->region.box, &o->region.box,
                                  &common))
                    return false;
            *ARRAY_PUSH(sums) = i;
        }
    }
    return sums->n > 0;
}

/* Whether a value that is kept lies in the shard. */
static bool is_kept(const plan *p, int shard, const bool *kept)
{
    for (int i = 0; i < p->dist_values.n; i++)
        for (int k = 0; kept[p->dist_values.at[i].value] && k < p->dist_values.at[i].pieces.n; k++)
            if (p->dist_values.at[i].pieces.at[k].region.shard == shard)
                return true;
    return false;
}

/* The step's operands move to the end of the list, where there is room for the terms behind them. */
static void take_sum(plan *p, const plan_step *sum, const reader *r)
{
    plan_step *s = &p->steps.at[r->step];
    int from = s->operand;
    s->operand = p->operands.n;
    for (int k = 0; k < s->n_operands; k++) {
        plan_operand o = p->operands.at[from + k];
        *ARRAY_PUSH(&p->operands) = o;
    }
    plan_operand *result = &p->operands.at[s->operand + r->which];
    result->access = ACCESS_NONE;
    const box part = result->region.box;
    for (int t = 1; t < sum->n_operands; t++) {
        plan_operand term = *plan_step_operand(p, sum, t);
        term.region.box = part;
        *ARRAY_PUSH(&p->operands) = term;
    }
    s->sum = r->which;
    s->n_terms = sum->n_operands - 1;
    s->n_operands += s->n_terms;
    s->reduce = sum->reduce;
    s->scale = sum->scale;
    s->exchange = sum->exchange;
    s->flops += (double)box_count(&part) * s->n_terms;
}

/* Each sum of the shard is made by its readers, or none. */
static void merge_shard(plan *p, int shard)
{
    step_list sums = {0};
    bool all = find_sums(p, shard, &sums);
    reader_list *readers = trama_alloc((size_t)max_i64(1, sums.n) * sizeof *readers);
    for (int i = 0; i < sums.n && all; i++)
        all = find_readers(p, sums.at[i], &readers[i]) && share_out(p, &p->steps.at[sums.at[i]], &readers[i]);
    for (int i = 0; i < sums.n && all; i++) {
        plan_step *sum = &p->steps.at[sums.at[i]];
        for (int k = 0; k < readers[i].n; k++)
            take_sum(p, sum, &readers[i].at[k]);
        sum->n_operands = 0; /* to be dropped */
    }
    if (all)
        p->shards.at[shard].source = SHARD_INTERNAL;
    for (int i = 0; i < sums.n; i++)
        ARRAY_FREE(&readers[i]);
    free(readers);
    ARRAY_FREE(&sums);
}

void merge_sums(partition *q, const bool *kept)
{
    plan *p = q->p;
    int n = 0;
    bool *looked_at = trama_alloc((size_t)p->shards.n);
    for (int i = 0; i < p->steps.n; i++) {
        if (p->steps.at[i].kind != STEP_REDUCE || !p->steps.at[i].n_operands)
            continue;
        int shard = plan_step_operand(p, &p->steps.at[i], 0)->region.shard;
        if (!looked_at[shard] && p->shards.at[shard].source == SHARD_OWN && !is_kept(p, shard, kept))
            merge_shard(p, shard);
        looked_at[shard] = true;
    }
    for (int i = 0; i < p->steps.n; i++)
        if (p->steps.at[i].kind != STEP_REDUCE || p->steps.at[i].n_operands)
            p->steps.at[n++] = p->steps.at[i];
    p->steps.n = n;
    free(looked_at);
}
