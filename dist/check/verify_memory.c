/* SPDX-License-Identifier: Apache-2.0 */
/* Verifies that shards which lie in the memory of others are used in turn, run after run. Steps are ordered by shards,
 * not by memory, so a step that names both shards must stand between the last use of the one and the first use of the
 * other. */
#include <string.h>

#include "intervals.h"
#include "verify_plan.h"

typedef struct span {
    int first, last; /* steps that name the shard; -1 */
    int again;       /* the STEP_ORDER that hands it its memory for the next run; -1 */
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
        for (int k = 0; k < p->steps.at[i].n_operands && !plan_orders_arena(&p->steps.at[i]); k++) {
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

/* The access of a step to a box of a shard. */
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

/* Operands that use shards which have views: each by its interval in one dim of its shard. Its group is 2 * shard, or 2
 * * shard + 1 where it has all of that dim. */
typedef struct uses {
    intervals list;
    int *dim;  /* [shards] the dim of a shard that has views; -1 of others */
    int *step; /* [operands] */
} uses;

/* The dim of each shard with views of which its last view has the smallest fraction; -1 for others. */
static int *find_dims(const plan *p)
{
    int *dim = trama_alloc((size_t)p->shards.n * sizeof *dim);
    memset(dim, -1, (size_t)p->shards.n * sizeof *dim);
    for (int i = 0; i < p->shards.n; i++) {
        const plan_shard *view = &p->shards.at[i];
        if (view->source != SHARD_VIEW || view->within < 0)
            continue;
        const box *whole = &p->shards.at[view->within].box;
        int most = 0;
        for (int d = 1; d < whole->ndim; d++)
            if ((double)view->box.n[d] * (double)whole->n[most] < (double)view->box.n[most] * (double)whole->n[d])
                most = d;
        dim[view->within] = most;
    }
    return dim;
}

static uses find_uses(const plan *p)
{
    uses u = {.dim = find_dims(p), .step = trama_alloc(((size_t)p->operands.n + 1) * sizeof(int))};
    for (int i = 0; i < p->steps.n; i++)
        for (int k = 0; k < p->steps.at[i].n_operands; k++) {
            const plan_operand *o = operand(p, i, k);
            const int shard = o->region.shard, d = u.dim[shard], what = (int)(o - p->operands.at);
            if (d < 0)
                continue;
            const box *whole = &p->shards.at[shard].box, *b = &o->region.box;
            bool all = b->ndim == 0 || b->n[d] == whole->n[d];
            u.step[what] = i;
            intervals_add(&u.list, 2 * shard + all, b->ndim ? b->lo[d] : 0, b->ndim ? b->lo[d] + b->n[d] : 1, what);
        }
    intervals_sort(&u.list);
    return u;
}

static void free_uses(uses *u)
{
    ARRAY_FREE(&u->list);
    free(u->dim);
    free(u->step);
}

/* Whether a step between the first and the last use of a view uses the same memory as it must not: writes it, or where
 * the view is received, also reads it. */
static bool is_disturbed(const plan *p, const uses *u, const plan_shard *view, span s, bool received)
{
    const box *b = &view->box;
    const int d = u->dim[view->within];
    const int64_t lo = b->ndim ? b->lo[d] : 0, hi = b->ndim ? b->lo[d] + b->n[d] : 1;
    for (int group = 2 * view->within; group <= 2 * view->within + 1; group++)
        for (int i = intervals_begin(&u->list, group, hi); (i = intervals_next(&u->list, group, lo, i)) >= 0; i--) {
            const int what = u->list.at[i].what, step = u->step[what];
            const plan_operand *o = &p->operands.at[what];
            box common;
            if (step > s.first && step < s.last && o->access != ACCESS_NONE && (received || o->access != ACCESS_READ) &&
                box_intersect(&o->region.box, b, &common))
                return true;
        }
    return false;
}

/* While a message is sent from its place in a shard, no step writes there. While one is received, no other step uses
 * it. */
static bool view_is_disjoint(const plan *p, const uses *u, int shard, span s)
{
    const plan_shard *view = &p->shards.at[shard];
    step_access first = access_of(p, s.first, view->within, &view->box);
    step_access last = access_of(p, s.last, view->within, &view->box);
    bool received = first != ACCESS_READ;
    if (s.first == s.last || first == ACCESS_NONE || last == ACCESS_NONE)
        return false;
    return !is_disturbed(p, u, view, s, received);
}

/* A STEP_ORDER's chain: orders that hand one memory on, each to the next. */
typedef struct chain {
    int head, number; /* the first step of the chain, -1: the step is no order; its number in the chain */
} chain;

/* The last use, if it is an order, of a shard that `step` lets be written; -1. */
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

/* Whether orders stand between the uses of two messages in one staging buffer: a before b, and b before a of the next
 * run. */
static bool in_turn(const plan *p, const chain *chains, const span *a, const span *b)
{
    bool opened = p->steps.at[a->first].kind == STEP_ORDER;
    return leads_to(chains, a->last, b->first) && (opened || (a->again >= 0 && leads_to(chains, b->last, a->again)));
}

/* Messages by the staging buffer or bundle that they lie in. */
static intervals find_messages(const plan *p)
{
    intervals list = {0};
    for (int i = 0; i < p->shards.n; i++) {
        const plan_shard *s = &p->shards.at[i];
        if (s->source == SHARD_MESSAGE && s->within >= 0 && !plan_in_arena(p, s))
            intervals_add(&list, s->within, s->at, s->at + box_count(&s->box), i);
    }
    intervals_sort(&list);
    return list;
}

/* Parts of a bundle are used at the same time, so they must not overlap. Messages in a staging buffer are
 * used in turn. */
static bool message_is_disjoint(const plan *p, const intervals *messages, const span *spans, const chain *chains,
                                int shard)
{
    const plan_shard *s = &p->shards.at[shard];
    const int64_t end = s->at + box_count(&s->box);
    const bool bundled = p->shards.at[s->within].source == SHARD_BUNDLE;
    for (int i = intervals_begin(messages, s->within, end); (i = intervals_next(messages, s->within, s->at, i)) >= 0;
         i--) {
        const int other = messages->at[i].what;
        if (other != shard && (bundled || (spans[other].first >= 0 && spans[other].first <= spans[shard].first &&
                                           !in_turn(p, chains, &spans[other], &spans[shard]))))
            return false;
    }
    return true;
}

/* Tables over a plan, made once for all its shards. */
typedef struct memory {
    span *spans;
    chain *chains;
    uses uses;
    intervals messages;
} memory;

static bool shard_is_disjoint(const plan *p, const memory *m, int shard)
{
    const plan_shard *s = &p->shards.at[shard];
    if (s->within < 0 || plan_in_arena(p, s) || m->spans[shard].first < 0)
        return true;
    if (s->source == SHARD_VIEW)
        return view_is_disjoint(p, &m->uses, shard, m->spans[shard]);
    return s->source != SHARD_MESSAGE || message_is_disjoint(p, &m->messages, m->spans, m->chains, shard);
}

static bool can_take_over(const plan_shard *s, const plan_shard *first)
{
    return s->source == SHARD_OWN && first->source == SHARD_OWN && first->reuses < 0 && plan_has_form_of(s, first);
}

/* A shard that takes over the buffer of one of another form, or while that one, or another that takes it over, is used:
 * once a buffer has another owner, it does not come back. */
static int find_early_reuse(const plan *p)
{
    int found = -1, *owner = trama_alloc((size_t)max_i64(1, p->shards.n) * sizeof *owner);
    bool *gone = trama_alloc((size_t)max_i64(1, p->shards.n) * sizeof *gone);
    memset(owner, -1, (size_t)p->shards.n * sizeof *owner);
    for (int i = 0; i < p->steps.n && found < 0; i++)
        for (int k = 0; k < 2 * p->steps.at[i].n_operands && !plan_orders_arena(&p->steps.at[i]);
             k++) { /* twice: one step does not use both */
            const int shard = plan_buffer_of(p, operand(p, i, k % p->steps.at[i].n_operands)->region.shard);
            const int first = p->shards.at[shard].reuses, buffer = first < 0 ? shard : first, before = owner[buffer];
            if (gone[shard] || (first >= 0 && !can_take_over(&p->shards.at[shard], &p->shards.at[first])))
                found = shard;
            if (before >= 0 && before != shard)
                gone[before] = true;
            owner[buffer] = shard;
        }
    free(owner);
    free(gone);
    return found;
}

int plan_unordered(const plan *p)
{
    span *spans = find_spans(p);
    int found = find_early_reuse(p);
    memory m = {spans, find_chains(p, spans), find_uses(p), find_messages(p)};
    for (int i = 0; i < p->shards.n && found < 0; i++)
        if (!shard_is_disjoint(p, &m, i))
            found = i;
    free(m.chains);
    free(m.spans);
    free_uses(&m.uses);
    ARRAY_FREE(&m.messages);
    return found < 0 ? plan_unordered_in_arenas(p) : found;
}

/* A step reads whole tiles of another memory of its rank; a sum may read parts of one. Messages on a GPU have buffers
 * of their own. */
static bool may_use(const plan *p, const plan_step *s, int k)
{
    const plan_operand *o = plan_step_operand(p, s, k);
    const plan_shard *shard = &p->shards.at[o->region.shard];
    bool sums = k >= s->n_operands - s->n_terms;
    int first, last;
    if (s->kind == STEP_SEND || s->kind == STEP_RECEIVE)
        return !plan_on_gpu(p, s->place) || shard->source == SHARD_MESSAGE || shard->source == SHARD_BUNDLE;
    if (s->kind == STEP_ORDER || o->access == ACCESS_NONE || !plan_is_remote(p, s->place, shard))
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

int64_t plan_message_buffers(const plan *p)
{
    int64_t bytes = 0;
    for (int i = 0; i < p->shards.n; i++) {
        const plan_shard *s = &p->shards.at[i];
        bytes += (s->within < 0 || plan_in_arena(p, s)) &&
                         (s->source == SHARD_MESSAGE || s->source == SHARD_WINDOW || s->source == SHARD_BUNDLE)
                     ? plan_shard_bytes(s)
                     : 0;
    }
    return bytes;
}

int64_t plan_memory(const plan *p, int place)
{
    int64_t bytes = 0;
    for (int i = 0; i < p->shards.n; i++) {
        const plan_shard *s = &p->shards.at[i];
        if (s->place == place && s->source != SHARD_INPUT && s->source != SHARD_IMPORT && s->within < 0 &&
            s->reuses < 0 && !plan_in_scratch(p, s))
            bytes += plan_shard_bytes(s);
    }
    return bytes;
}
