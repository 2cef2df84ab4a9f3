/* SPDX-License-Identifier: Apache-2.0 */
/* Messages that are loans: the receiver, on the sender's node, reads the elements in the sender's memory, and the
 * sender writes over them once it hears that the readers are done. So a step of one rank waits for steps of another,
 * which must not wait for the first. spans.h counts exchanges: a step that is made when there are m may wait for those
 * that need m or fewer. Within one exchange steps of two ranks have no order, so the readers must be made when there
 * are fewer than m; and steps that stand behind the writer may wait for it, so m is the least that there are at it or
 * behind it. Then on any way from the writer back to itself m would fall. The next run of the plan may wait for all of
 * this one. */
#include "spans.h"

/* A view gets its order back within its exchange, too early for a loan; other buffers are made elsewhere. */
void mark_shared(partition *q)
{
    plan *p = q->p;
    for (int i = 0; i < p->steps.n; i++) {
        const plan_step *s = &p->steps.at[i];
        if (s->kind != STEP_SEND || !plan_may_lend(p, q->s.machine, s))
            continue;
        plan_shard *of = &p->shards.at[plan_step_operand(p, s, 0)->region.shard];
        of->shared |= of->within < 0 && (of->source == SHARD_OWN || of->source == SHARD_MESSAGE);
    }
}

/* Shards that use one buffer have one number. */
static int owner_of(const plan *p, int shard)
{
    const int buffer = plan_buffer_of(p, shard);
    return p->shards.at[buffer].reuses >= 0 ? p->shards.at[buffer].reuses : buffer;
}

/* The exchanges that there are before a step that others wait for. A step on a bundle belongs to the exchange of the
 * bundle's first message, but a step that waits for the bundle needs all exchanges of its bucket. */
static int exchanges_at(const plan *p, const plan_step *s, const int *bucket_ends)
{
    const int n = exchanges_before(s);
    if (s->exchange < 0 || s->kind == STEP_COMPUTE || !s->n_operands)
        return n;
    const int used_as = plan_used_as(p, plan_step_operand(p, s, 0)->region.shard);
    return p->shards.at[used_as].source == SHARD_BUNDLE ? (int)max_i64(n, bucket_ends[s->exchange] - 1) : n;
}

/* Backwards, so that the writers behind a send are known. Only the next run waits for the orders of arenas at the end
 * of the plan. */
static void find_spans_of_sends(plan *p, const machine *m)
{
    int *least = trama_alloc((size_t)max_i64(1, p->shards.n) * sizeof *least), behind = INT32_MAX;
    int *bucket_ends = find_bucket_ends(p), last = p->steps.n - 1;
    for (int i = 0; i < p->shards.n; i++)
        least[i] = INT32_MAX;
    while (last >= 0 && plan_orders_arena(&p->steps.at[last]))
        last--;
    for (int i = last; i >= 0; i--) {
        plan_step *s = &p->steps.at[i];
        const int first = s->n_operands ? plan_step_operand(p, s, 0)->region.shard : -1;
        if (s->kind == STEP_SEND && plan_may_lend(p, m, s) && p->shards.at[first].shared)
            s->span = least[owner_of(p, first)];
        behind = (int)min_i64(behind, exchanges_at(p, s, bucket_ends));
        for (int k = 0; k < s->n_operands; k++) {
            const plan_operand *o = plan_step_operand(p, s, k);
            if (o->access != ACCESS_READ)
                least[owner_of(p, o->region.shard)] = behind;
        }
    }
    free(bucket_ends);
    free(least);
}

/* A shard that is all of a buffer, that no other plan reads, and that nothing but one message writes. writers: steps.
 */
static bool may_borrow(const plan *p, const shard_spans *s, const int *writers, int shard)
{
    const plan_shard *at = &p->shards.at[shard];
    return at->source == SHARD_MESSAGE && plan_buffer_of(p, shard) == shard && at->cut_parts <= 1 && at->reuses < 0 &&
           writers[shard] == 1 && !s->fixed[shard];
}

static void find_spans_of_receives(plan *p, const machine *m, const shard_spans *s)
{
    int *made = new_numbers(p->shards.n); /* most exchanges that there are when a step that uses it is made */
    int *writers = trama_alloc((size_t)max_i64(1, p->shards.n) * sizeof *writers);
    for (int i = 0; i < p->shards.n; i++) { /* those of shards that lie in its memory count too */
        if (p->shards.at[i].within >= 0)
            writers[p->shards.at[i].within]++;
        if (p->shards.at[i].reuses >= 0)
            writers[p->shards.at[i].reuses]++;
    }
    for (int i = 0; i < p->steps.n; i++)
        for (int k = 0; k < p->steps.at[i].n_operands && !plan_orders_arena(&p->steps.at[i]); k++) {
            const plan_operand *o = plan_step_operand(p, &p->steps.at[i], k);
            int *of = &made[o->region.shard];
            *of = (int)max_i64(*of, exchanges_before(&p->steps.at[i]));
            writers[o->region.shard] += o->access != ACCESS_READ;
        }
    for (int i = 0; i < p->steps.n; i++) {
        plan_step *step = &p->steps.at[i];
        if (step->kind != STEP_RECEIVE || !plan_may_lend(p, m, step))
            continue;
        const int shard = plan_step_operand(p, step, 0)->region.shard;
        if (may_borrow(p, s, writers, shard))
            step->span = (int)max_i64(s->needs[shard], made[shard] + 1);
    }
    free(made);
    free(writers);
}

void find_loan_spans(partition *q, const shard_spans *s)
{
    if (!q->s.machine->loan_bytes)
        return;
    find_spans_of_sends(q->p, q->s.machine);
    find_spans_of_receives(q->p, q->s.machine, s);
}
