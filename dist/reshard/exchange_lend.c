/* SPDX-License-Identifier: Apache-2.0 */
/* Shards lent to messages that lie in them: steps that do no work order the message behind the uses of the shard before
 * it, and the uses behind it after the message. */
#include <stdlib.h>

#include "exchange.h"

plan_region message_view(exchange *x, int place, const plan_region *of)
{
    int view = partition_shard(x->q, SHARD_VIEW, x->value, place, &of->box, -1, 1);
    x->q->p->shards.at[view].within = of->shard;
    return (plan_region){view, of->box};
}

static void add_order(exchange *x, int phase, int place, const plan_region *region, step_access access,
                      const plan_region *view, step_access view_access)
{
    exchange_step *s = add_step(x, phase, STEP_ORDER, place);
    s->n = 2;
    s->operands[0] = (plan_operand){*region, access};
    s->operands[1] = (plan_operand){*view, view_access};
}

void lend_to_sends(exchange *x, int level, int place, const plan_region *region, const plan_region *view)
{
    add_order(x, level ? PACK_AGAIN : PACK, place, region, ACCESS_READ, view, ACCESS_WRITE);
    add_order(x, RETURN, place, region, ACCESS_READ, view, ACCESS_UPDATE);
}

void lend_to_receive(exchange *x, int level, int place, const plan_region *region, const plan_region *view)
{
    add_order(x, LEND, place, region, write_access(x->q->p, region), view, ACCESS_WRITE);
    add_order(x, level ? UNPACK_AGAIN : UNPACK, place, region, ACCESS_UPDATE, view, ACCESS_READ);
}

/* ---- Loans of the same tiles ---- */

typedef struct loan {
    int phase, place, shard, access, first, last; /* tiles of the shard */
    int step;                                     /* in exchange.steps */
} loan;

static int compare_tiles(const loan *a, const loan *b)
{
    const int keys[][2] = {{a->phase, b->phase},   {a->place, b->place}, {a->shard, b->shard},
                           {a->access, b->access}, {a->first, b->first}, {a->last, b->last}};
    return COMPARE_KEYS(keys);
}

static int compare_loans(const void *a, const void *b)
{
    const loan *one = a, *other = b;
    int order = compare_tiles(one, other);
    return order ? order : (one->step > other->step) - (one->step < other->step);
}

/* One step in place of n: the first, with the operands of all. */
static void merge(exchange *x, const loan *loans, int n)
{
    exchange_step *all = &x->steps.at[loans->step];
    const int first = x->sources.n;
    for (int i = 0; i < n; i++) {
        exchange_step *s = &x->steps.at[loans[i].step];
        *ARRAY_PUSH(&x->sources) = s->operands[0];
        *ARRAY_PUSH(&x->sources) = s->operands[1];
        s->n = 0;
    }
    all->many = first;
    all->n = x->sources.n - first;
}

void merge_loans(exchange *x)
{
    ARRAY(loan) loans = {0};
    for (int i = 0; i < x->steps.n; i++) {
        const exchange_step *s = &x->steps.at[i];
        if (s->step.kind != STEP_ORDER)
            continue;
        const plan_operand *of = &s->operands[0];
        loan *l = ARRAY_PUSH(&loans);
        *l = (loan){s->phase, s->step.place, of->region.shard, (int)of->access, 0, 0, i};
        plan_tiles(&x->q->p->shards.at[l->shard], &of->region.box, &l->first, &l->last);
    }
    if (loans.n)
        qsort(loans.at, (size_t)loans.n, sizeof *loans.at, compare_loans);
    for (int i = 0, n; i < loans.n; i += n) {
        for (n = 1; i + n < loans.n && compare_tiles(&loans.at[i], &loans.at[i + n]) == 0;)
            n++;
        if (n > 1)
            merge(x, &loans.at[i], n);
    }
    ARRAY_FREE(&loans);
}
