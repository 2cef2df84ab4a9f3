/* SPDX-License-Identifier: Apache-2.0 */
/* Verifying that shards which lie in the memory of others are used in turn, run after run. What runs is ordered by
 * shards, not by memory: so one step that names both must stand between the last use of the one and the first use of
 * the other. */
#include <string.h>

#include "verify.h"

typedef struct span {
    int first, last; /* steps that name the shard; -1 */
    int again;       /* the order that makes room for it in the next run; -1 */
} span;

static const plan_operand *operand(const plan *p, int step, int k)
{
    return plan_step_operand(p, &p->steps.at[step], k);
}

static span *find_spans(const plan *p)
{
    span *spans = trama_alloc((size_t)p->shards.n * sizeof *spans);
    memset(spans, -1, (size_t)p->shards.n * sizeof *spans);
    for (int i = 0; i < p->steps.n; i++)
        for (int k = 0; k < p->steps.at[i].n_operands; k++) {
            span *s = &spans[operand(p, i, k)->region.shard];
            if (s->first >= 0 && p->steps.at[i].kind == STEP_ORDER && operand(p, i, k)->access == ACCESS_WRITE) {
                s->again = i;
                continue;
            }
            s->first = s->first < 0 ? i : s->first;
            s->last = i;
        }
    return spans;
}

/* How a step uses a box of a shard. */
static step_access access_of(const plan *p, int step, int shard, const box *b)
{
    step_access found = ACCESS_NONE;
    box common;
    for (int k = 0; k < p->steps.at[step].n_operands; k++) {
        const plan_operand *o = operand(p, step, k);
        if (o->region.shard == shard && box_intersect(&o->region.box, b, &common))
            found = found == ACCESS_NONE || found == ACCESS_READ ? o->access : found;
    }
    return found;
}

/* While a message is sent from where it lies nobody writes there; while one is received nobody else comes near. */
static bool view_is_apart(const plan *p, int shard, span s)
{
    const plan_shard *view = &p->shards.at[shard];
    step_access first = access_of(p, s.first, view->within, &view->box);
    step_access last = access_of(p, s.last, view->within, &view->box);
    bool received = first != ACCESS_READ;
    if (s.first == s.last || first == ACCESS_NONE || last == ACCESS_NONE)
        return false;
    for (int i = s.first + 1; i < s.last; i++) {
        step_access a = access_of(p, i, view->within, &view->box);
        if (a != ACCESS_NONE && (received || a != ACCESS_READ))
            return false;
    }
    return true;
}

/* Orders that hand one memory on, one after the other. */
typedef struct chain {
    int head, number; /* the chain's first step; -1: no order. Place in it */
} chain;

/* The next step that orders something which `step` lets be written; -1. */
static int next_order(const plan *p, const span *spans, int step)
{
    for (int k = 0; k < p->steps.at[step].n_operands; k++) {
        const plan_operand *o = operand(p, step, k);
        int last = spans[o->region.shard].last;
        if (o->access == ACCESS_WRITE && last > step && p->steps.at[last].kind == STEP_ORDER)
            return last;
    }
    return -1;
}

static chain *find_chains(const plan *p, const span *spans)
{
    chain *chains = trama_alloc((size_t)p->steps.n * sizeof *chains);
    memset(chains, -1, (size_t)p->steps.n * sizeof *chains);
    for (int i = 0; i < p->steps.n; i++) {
        if (p->steps.at[i].kind != STEP_ORDER)
            continue;
        if (chains[i].head < 0)
            chains[i] = (chain){i, 0};
        int next = next_order(p, spans, i);
        if (next >= 0)
            chains[next] = (chain){chains[i].head, chains[i].number + 1};
    }
    return chains;
}

static bool leads_to(const chain *chains, int closed, int opened)
{
    return opened >= closed && chains[closed].head >= 0 && chains[closed].head == chains[opened].head &&
           chains[closed].number <= chains[opened].number;
}

/* Two messages in one window, a used before b; and in the next run a again after b. */
static bool in_turn(const plan *p, const chain *chains, const span *a, const span *b)
{
    bool opened = p->steps.at[a->first].kind == STEP_ORDER;
    return leads_to(chains, a->last, b->first) && (opened || (a->again >= 0 && leads_to(chains, b->last, a->again)));
}

static bool overlap(const plan_shard *a, const plan_shard *b)
{
    return a->source == SHARD_MESSAGE && b->source == SHARD_MESSAGE && a->within == b->within &&
           a->at < b->at + box_count(&b->box) && b->at < a->at + box_count(&a->box);
}

/* Parts of a bundle are used as it is, so they only must not overlap. */
static bool part_is_apart(const plan *p, int shard)
{
    for (int i = 0; i < p->shards.n; i++)
        if (i != shard && overlap(&p->shards.at[i], &p->shards.at[shard]))
            return false;
    return true;
}

static bool shard_is_apart(const plan *p, const span *spans, const chain *chains, int shard)
{
    const plan_shard *s = &p->shards.at[shard];
    if (s->within < 0 || spans[shard].first < 0)
        return true;
    if (p->shards.at[s->within].source == SHARD_BUNDLE)
        return part_is_apart(p, shard);
    if (s->source == SHARD_VIEW)
        return view_is_apart(p, shard, spans[shard]);
    for (int i = 0; i < p->shards.n; i++)
        if (i != shard && overlap(&p->shards.at[i], s) && spans[i].first >= 0 && spans[i].first <= spans[shard].first &&
            !in_turn(p, chains, &spans[i], &spans[shard]))
            return false;
    return true;
}

int plan_unordered(const plan *p)
{
    int found = -1;
    span *spans = find_spans(p);
    chain *chains = find_chains(p, spans);
    for (int i = 0; i < p->shards.n && found < 0; i++)
        if (!shard_is_apart(p, spans, chains, i))
            found = i;
    free(chains);
    free(spans);
    return found;
}

/* Of another memory of the rank a step reads tiles: whole ones, but for sums that are made in parts. Messages on a GPU
 * have buffers. */
static bool may_use(const plan *p, const plan_step *s, int k)
{
    const plan_operand *o = plan_step_operand(p, s, k);
    const plan_shard *shard = &p->shards.at[o->region.shard];
    bool sums = k >= s->n_operands - s->n_terms;
    int first, last;
    if (s->kind == STEP_SEND || s->kind == STEP_RECEIVE)
        return !plan_on_gpu(p, s->place) || shard->source == SHARD_MESSAGE || shard->source == SHARD_BUNDLE;
    if (s->kind == STEP_ORDER || o->access == ACCESS_NONE || !plan_is_far(p, s->place, shard))
        return true;
    plan_tiles(shard, &o->region.box, &first, &last);
    return o->access == ACCESS_READ && !shard->host && first == last &&
           (sums || plan_exact_tile(shard, &o->region.box) >= 0);
}

int plan_misplaced(const plan *p)
{
    for (int i = 0; i < p->shards.n; i++) {
        const plan_shard *s = &p->shards.at[i];
        if (plan_on_gpu(p, s->place) && (s->cut_parts != 1 || s->source == SHARD_VIEW))
            return i;
    }
    for (int i = 0; i < p->steps.n; i++)
        for (int k = 0; k < p->steps.at[i].n_operands; k++)
            if (!may_use(p, &p->steps.at[i], k))
                return operand(p, i, k)->region.shard;
    return -1;
}

static int64_t bytes_of(const plan_shard *s)
{
    return box_count(&s->box) * (int64_t)trama_dtype_size(s->dtype);
}

int64_t plan_message_buffers(const plan *p)
{
    int64_t bytes = 0;
    for (int i = 0; i < p->shards.n; i++) {
        const plan_shard *s = &p->shards.at[i];
        bytes += s->within < 0 && (s->source == SHARD_MESSAGE || s->source == SHARD_WINDOW || s->source == SHARD_BUNDLE)
                     ? bytes_of(s)
                     : 0;
    }
    return bytes;
}

int64_t plan_memory(const plan *p, int place)
{
    int64_t bytes = 0;
    for (int i = 0; i < p->shards.n; i++) {
        const plan_shard *s = &p->shards.at[i];
        if (s->place == place && s->source != SHARD_INPUT && s->source != SHARD_IMPORT && s->within < 0)
            bytes += bytes_of(s);
    }
    return bytes;
}
