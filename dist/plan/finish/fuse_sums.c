/* SPDX-License-Identifier: Apache-2.0 */
/* Sums that are read once are made by their reader: the terms of a gradient go right into the update, tile by tile,
 * instead of through memory once more. A peephole over finished steps; it changes no value and no message. */
#include <string.h>

#include "planner.h"
#include "uses.h"

enum { MOST_TERMS = 8 };

typedef ARRAY(plan_use) reader_list; /* of a sum */

/* Whether the step is still there: a sum that its readers make has no operands any more. */
static bool is_there(const plan *p, plan_use use)
{
    return use.which < p->steps.at[use.step].n_operands;
}

/* Whether a step can take over the part of the sum that it reads. */
static bool can_sum(const plan *p, const plan_step *sum, plan_use use)
{
    const plan_step *s = &p->steps.at[use.step];
    const plan_operand *to = plan_step_operand(p, sum, 0), *o = plan_use_operand(p, use);
    return s->kind == STEP_COMPUTE && s->place == sum->place && !s->n_terms && o->access == ACCESS_READ &&
           box_contains(&to->region.box, &o->region.box);
}

/* Whether a step behind the sum writes one of its terms. */
static bool is_term_written(const plan *p, const plan_uses *u, int at)
{
    const plan_step *sum = &p->steps.at[at];
    for (int t = 1; t < sum->n_operands; t++) {
        const int term = plan_step_operand(p, sum, t)->region.shard;
        for (int i = plan_uses_from(u, term, at + 1); i < u->of[term].n; i++)
            if (is_there(p, u->of[term].at[i]) && plan_use_operand(p, u->of[term].at[i])->access != ACCESS_READ)
                return true;
    }
    return false;
}

/* The steps behind the sum that read its result, if they read parts that have nothing in common, and no step writes its
 * terms. */
static bool find_readers(const plan *p, const plan_uses *u, int at, reader_list *readers)
{
    const plan_step *sum = &p->steps.at[at];
    const plan_region *result = &plan_step_operand(p, sum, 0)->region;
    box common;
    if (is_term_written(p, u, at))
        return false;
    for (int i = plan_uses_from(u, result->shard, at + 1); i < u->of[result->shard].n; i++) {
        const plan_use use = u->of[result->shard].at[i];
        const plan_operand *o = plan_use_operand(p, use);
        if (!is_there(p, use))
            continue;
        if (box_count(&o->region.box) == 0) /* a reader of an empty box still needs the shard */
            return false;
        if (!box_intersect(&result->box, &o->region.box, &common))
            continue;
        if (!can_sum(p, sum, use) || (readers->n && readers->at[readers->n - 1].step == use.step))
            return false;
        *ARRAY_PUSH(readers) = use;
    }
    return readers->n > 0;
}

/* Whether the readers read each element of the sum once: else the sum must move unread elements, or make some twice. */
static bool share_out(const plan *p, const plan_step *sum, const reader_list *readers)
{
    int64_t left = box_count(&plan_step_operand(p, sum, 0)->region.box);
    for (int i = 0; i < readers->n; i++) {
        box common;
        left -= box_count(&plan_use_operand(p, readers->at[i])->region.box);
        for (int j = 0; j < i; j++)
            if (box_intersect(&plan_use_operand(p, readers->at[i])->region.box,
                              &plan_use_operand(p, readers->at[j])->region.box, &common))
                return false;
    }
    return left == 0;
}

typedef ARRAY(int) step_list;

/* The steps that write a shard, if they are sums of parts of it that have nothing in common, and nobody reads it before
 * the last. */
static bool find_sums(const plan *p, const plan_uses *u, int shard, step_list *sums)
{
    box common;
    bool read = false;
    for (int i = 0; i < u->of[shard].n; i++) {
        const plan_use use = u->of[shard].at[i];
        const plan_step *s = &p->steps.at[use.step];
        const plan_operand *o = plan_use_operand(p, use);
        if (!is_there(p, use))
            continue;
        if (o->access == ACCESS_READ) {
            read = true;
            continue;
        }
        if (s->kind != STEP_REDUCE || use.which || read || s->n_operands - 1 > MOST_TERMS)
            return false;
        for (int j = 0; j < sums->n; j++)
            if (box_intersect(&plan_step_operand(p, &p->steps.at[sums->at[j]], 0)->region.box, &o->region.box, &common))
                return false;
        *ARRAY_PUSH(sums) = use.step;
    }
    return sums->n > 0;
}

/* The step's operands move to the end of the list, where there is room for the terms behind them. */
static void take_sum(plan *p, plan_uses *u, const plan_step *sum, plan_use reader)
{
    plan_step *s = &p->steps.at[reader.step];
    int from = s->operand;
    s->operand = p->operands.n;
    for (int k = 0; k < s->n_operands; k++) {
        plan_operand o = p->operands.at[from + k];
        *ARRAY_PUSH(&p->operands) = o;
    }
    plan_operand *result = &p->operands.at[s->operand + reader.which];
    result->access = ACCESS_NONE;
    const box part = result->region.box;
    for (int t = 1; t < sum->n_operands; t++) {
        plan_operand term = *plan_step_operand(p, sum, t);
        term.region.box = part;
        *ARRAY_PUSH(&p->operands) = term;
        plan_uses_add(u, term.region.shard, (plan_use){reader.step, s->n_operands + t - 1});
    }
    s->sum = reader.which;
    s->n_terms = sum->n_operands - 1;
    s->n_operands += s->n_terms;
    s->reduce = sum->reduce;
    s->scale = sum->scale;
    s->exchange = sum->exchange;
    s->flops += (double)box_count(&part) * s->n_terms;
}

/* Each sum of the shard is made by its readers, or none. */
static void merge_shard(plan *p, plan_uses *u, int shard)
{
    step_list sums = {0};
    bool all = find_sums(p, u, shard, &sums);
    reader_list *readers = trama_alloc((size_t)max_i64(1, sums.n) * sizeof *readers);
    for (int i = 0; i < sums.n && all; i++)
        all = find_readers(p, u, sums.at[i], &readers[i]) && share_out(p, &p->steps.at[sums.at[i]], &readers[i]);
    for (int i = 0; i < sums.n && all; i++) {
        plan_step *sum = &p->steps.at[sums.at[i]];
        for (int k = 0; k < readers[i].n; k++)
            take_sum(p, u, sum, readers[i].at[k]);
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
    plan_uses uses = plan_find_uses(p);
    bool *done = plan_kept_shards(p, kept);
    for (int i = 0; i < p->steps.n; i++) {
        if (p->steps.at[i].kind != STEP_REDUCE || !p->steps.at[i].n_operands)
            continue;
        int shard = plan_step_operand(p, &p->steps.at[i], 0)->region.shard;
        if (!done[shard] && p->shards.at[shard].source == SHARD_OWN)
            merge_shard(p, &uses, shard);
        done[shard] = true;
    }
    for (int i = 0; i < p->steps.n; i++)
        if (p->steps.at[i].kind != STEP_REDUCE || p->steps.at[i].n_operands)
            p->steps.at[n++] = p->steps.at[i];
    p->steps.n = n;
    free(done);
    plan_uses_free(&uses);
}
