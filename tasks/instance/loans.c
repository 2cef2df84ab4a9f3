/* SPDX-License-Identifier: Apache-2.0 */
/* The agreement on loans: each rank tells the other rank of a message where its elements lie, or that its buffer may
 * lie elsewhere, and for how many exchanges (plan_step.span). Both then decide alike. */
#include "loans.h"

#include <assert.h>
#include <stdlib.h>

/* A rank's words about one message. */
typedef struct offer {
    int64_t at;     /* of the sender: in its memory; of the receiver: 0; -1: no loan */
    int64_t span;   /* plan_step.span */
    loan_cell cell; /* of this end */
} offer;

typedef struct candidate {
    int step;
    const plan_step *of;
    offer mine;
    loan *end; /* NULL: no loan */
} candidate;

/* Sorts by rank, those of one rank into sends and receives, and these by tag. */
static int compare_candidates(const void *a, const void *b)
{
    const plan_step *s = ((const candidate *)a)->of, *t = ((const candidate *)b)->of;
    const int keys[][2] = {{s->peer, t->peer}, {(int)s->kind, (int)t->kind}, {s->tag > t->tag, s->tag < t->tag}};
    return COMPARE_KEYS(keys);
}

/* A receive takes all of its buffer; a send lies in one run of shared memory. */
static offer offer_of(const instance *in, const plan_step *s)
{
    const plan_region *r = &plan_step_operand(in->of->plan, s, 0)->region;
    const box *whole = &in->of->plan->shards.at[r->shard].box;
    const shard *bound = in->shards[r->shard];
    offer made = {.at = -1, .span = s->span};
    if (!bound || !s->span)
        return made;
    if (s->kind == STEP_RECEIVE)
        made.at = box_equal(&r->box, whole) ? 0 : -1;
    else if (box_is_run(whole, &r->box))
        made.at = shard_shared_at(in->context, instance_view(in, r, bound).data);
    return made;
}

/* Of a message that both ranks make a loan. */
static void keep_loan(instance *in, candidate *c, const offer *theirs)
{
    const plan *p = in->of->plan;
    const int number = plan_step_operand(p, c->of, 0)->region.shard;
    const plan_shard *s = &p->shards.at[number];
    if (!in->loans) {
        in->loans = arena_take(&in->memory, (size_t)p->steps.n * sizeof *in->loans, 0);
        in->borrowed = arena_take(&in->memory, (size_t)p->shards.n * sizeof *in->borrowed, 0);
    }
    if (c->of->kind == STEP_RECEIVE) {
        shard *b = shard_borrow(in->context, s->place, c->of->peer, theirs->at, s->dtype, s->box.ndim, s->box.n);
        assert(b); /* a message has too few bytes to be too large */
        instance_label(in, s, b);
        in->borrowed[number] = b;
    }
    loan_meet(c->end, c->of->peer, theirs->cell);
    in->loans[c->step] = c->end;
    c->end = NULL;
}

/* The n messages with one other rank, which has as many and sorts them alike: its receives are the sends of this one.
 */
static trama_status agree_with(instance *in, const char *call, candidate *of, int n)
{
    offer *both = trama_alloc(2 * (size_t)n * sizeof *both), *theirs = both + n;
    int sends = 0;
    for (int i = 0; i < n; i++) {
        both[i] = of[i].mine;
        sends += of[i].of->kind == STEP_SEND;
    }
    trama_status status = context_swap(in->context, call, of[0].of->peer, both, theirs, (size_t)n * sizeof *both);
    for (int i = 0; i < n && !status; i++) {
        const bool sent = i < sends;
        const offer *other = &theirs[sent ? n - sends + i : i - sends];
        const offer *from = sent ? &both[i] : other, *to = sent ? other : &both[i];
        if (from->at >= 0 && to->at >= 0 && plan_is_loan(from->span, to->span))
            keep_loan(in, &of[i], other);
    }
    free(both);
    return status;
}

static candidate candidate_of(const instance *in, int step)
{
    const plan_step *s = &in->of->plan->steps.at[step];
    candidate c = {.step = step, .of = s, .mine = offer_of(in, s)};
    if (c.mine.at >= 0)
        c.end = loan_make(in->context, (size_t)plan_message_bytes(in->of->plan, s));
    if (c.end)
        c.mine.cell = loan_here(c.end);
    else
        c.mine.at = -1;
    return c;
}

/* A failure leaves other ranks no wait: all swaps are made, and then all ranks agree. */
trama_status loans_agree(instance *in, const char *call)
{
    const plan *p = in->of->plan;
    const machine *m = context_machine(in->context);
    if (!m->loan_bytes)
        return TRAMA_OK;
    ARRAY(candidate) list = {0};
    for (int i = 0; i < p->steps.n; i++)
        if (plan_may_lend(p, m, &p->steps.at[i]))
            *ARRAY_PUSH(&list) = candidate_of(in, i);
    if (list.n)
        qsort(list.at, (size_t)list.n, sizeof *list.at, compare_candidates);
    trama_status status = TRAMA_OK;
    for (int i = 0, next; i < list.n; i = next) {
        for (next = i + 1; next < list.n && list.at[next].of->peer == list.at[i].of->peer;)
            next++;
        const trama_status of_rank = agree_with(in, call, &list.at[i], next - i);
        status = status ? status : of_rank;
    }
    for (int i = 0; i < list.n; i++)
        loan_end(&list.at[i].end);
    ARRAY_FREE(&list);
    return context_agree(in->context, call, status);
}

void loans_end(instance *in)
{
    for (int i = 0; in->loans && i < in->of->plan->steps.n; i++)
        loan_end(&in->loans[i]);
    for (int i = 0; in->borrowed && i < in->of->plan->shards.n; i++)
        if (in->borrowed[i])
            shard_end(in->borrowed[i]);
}

static int compare_ends(const void *a, const void *b)
{
    const loan_return_point *one = a, *other = b;
    const int keys[][2] = {{one->step, other->step}, {one->receive, other->receive}};
    return COMPARE_KEYS(keys);
}

void loans_lower(const instance *in, lowering *l)
{
    const plan *p = in->of->plan;
    if (!in->loans)
        return;
    int *last = trama_alloc((size_t)p->shards.n * sizeof *last); /* step that uses it */
    for (int i = 0; i < p->steps.n; i++) {
        for (int k = 0; k < p->steps.at[i].n_operands && !plan_orders_arena(&p->steps.at[i]); k++)
            last[plan_step_operand(p, &p->steps.at[i], k)->region.shard] = i;
        if (l->steps[i].kind >= STEP_SEND)
            l->steps[i].loan = in->loans[i];
    }
    l->returns = arena_take(&l->memory, (size_t)p->steps.n * sizeof *l->returns, in->of->lowering_bytes);
    for (int i = 0; i < p->steps.n; i++)
        if (in->loans[i] && p->steps.at[i].kind == STEP_RECEIVE)
            l->returns[l->n_returns++] =
                (loan_return_point){last[plan_step_operand(p, &p->steps.at[i], 0)->region.shard], i};
    if (l->n_returns)
        qsort(l->returns, (size_t)l->n_returns, sizeof *l->returns, compare_ends);
    free(last);
}
