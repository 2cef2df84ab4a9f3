/* SPDX-License-Identifier: Apache-2.0 */
/* The progress of all ranks: a receive waits for its send, a collective for its members, and a send whose elements the
 * receiver reads in place for these readers. */
#include <stdlib.h>

#include "flow.h"
#include "uses.h"
#include "verification.h"

typedef struct walk {
    verification *v;
    int rank;
    flow *steps;
    plan_uses uses;
    struct walk *all; /* [v->n] */
    bool *moved;      /* a step was done, or a message sent, in this round */
} walk;

static message *find(messages *list, int from, int to, int64_t tag)
{
    message key = {.from = from, .to = to, .tag = tag};
    return bsearch(&key, list->at, (size_t)list->n, sizeof *list->at, compare_messages);
}

/* Whether a rank has done all steps that use a shard. */
static bool are_done(const walk *w, int shard)
{
    const plan *p = w->v->plans[w->rank];
    for (int i = 0; i < w->uses.of[shard].n; i++) {
        const int step = w->uses.of[shard].at[i].step;
        if (!flow_is_done(w->steps, step) && !plan_orders_arena(&p->steps.at[step]))
            return false;
    }
    return true;
}

/* Whether the elements of a message that has been sent may be overwritten. */
static bool is_over(const walk *w, const plan_step *s)
{
    const message *to = find(&w->v->receives, w->rank, s->peer, s->tag);
    return !plan_is_loan(s->span, to->step->span) || are_done(&w->all[s->peer], message_buffer(to)->region.shard);
}

static bool take(void *arg, int step)
{
    const walk *w = arg;
    const plan_step *s = &w->v->plans[w->rank]->steps.at[step];
    if (s->kind == STEP_COLLECTIVE)
        return verify_meet(w->v, w->rank, step);
    if (s->kind == STEP_RECEIVE)
        return find(&w->v->sends, s->peer, w->rank, s->tag)->sent;
    if (s->kind != STEP_SEND)
        return true;
    message *m = find(&w->v->sends, w->rank, s->peer, s->tag);
    *w->moved |= !m->sent;
    m->sent = true;
    return is_over(w, s);
}

/* A message that the rank waits for, which is not sent, or whose elements are not given back; NULL: none. */
static const message *first_wait(const walk *w)
{
    const plan *p = w->v->plans[w->rank];
    for (int i = 0; i < p->steps.n; i++) {
        const plan_step *s = &p->steps.at[i];
        if (flow_is_done(w->steps, i))
            continue;
        if (s->kind == STEP_RECEIVE && !find(&w->v->sends, s->peer, w->rank, s->tag)->sent)
            return find(&w->v->receives, s->peer, w->rank, s->tag);
        if (s->kind == STEP_SEND && find(&w->v->sends, w->rank, s->peer, s->tag)->sent)
            return find(&w->v->sends, w->rank, s->peer, s->tag);
    }
    return NULL;
}

trama_status verify_progress(verification *v)
{
    trama_status status = TRAMA_OK;
    bool moved = true;
    walk *ranks = trama_alloc((size_t)v->n * sizeof *ranks);
    for (int r = 0; r < v->n; r++)
        ranks[r] = (walk){v, r, flow_new(v->plans[r]), plan_find_uses(v->plans[r]), ranks, &moved};
    while (moved) {
        moved = false;
        for (int r = 0; r < v->n; r++)
            if (flow_first(ranks[r].steps) >= 0 && flow_advance(ranks[r].steps, take, &ranks[r]))
                moved = true;
    }
    for (int r = 0; r < v->n && !status; r++) {
        const message *m = first_wait(&ranks[r]);
        if (m)
            status = verify_fails(v, m, "it is waited for in a circle");
    }
    for (int i = 0; i < v->parts.n && !status; i++)
        if (!flow_is_done(ranks[v->parts.at[i].rank].steps, v->parts.at[i].step))
            status = verify_fails_at(v, &v->parts.at[i], "it is waited for in a circle");
    for (int r = 0; r < v->n; r++) {
        flow_destroy(&ranks[r].steps);
        plan_uses_free(&ranks[r].uses);
    }
    free(ranks);
    return status;
}
