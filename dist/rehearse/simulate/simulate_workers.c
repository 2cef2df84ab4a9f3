/* SPDX-License-Identifier: Apache-2.0 */
/* The queues of workers. An idle worker takes, of the ready tasks that it may run, the one with the highest priority,
 * and of equal ones the first in the order of submission. It serves messages before tasks, in the same order. It
 * chooses when all is ready that becomes so at the same time. */
#include <limits.h>
#include <math.h>

#include "simulate.h"

/* ---- The workers of a rank ---- */

static void add_worker(simulated *s, int rank, int place)
{
    *ARRAY_PUSH(&s->workers) = (sim_worker){.rank = rank, .place = place, .item = -1, .before = -1, .ended = -1};
}

void workers_add(simulated *s, int rank)
{
    sim_rank *r = &s->ranks[rank];
    r->first_worker = s->workers.n;
    r->first_place = s->places.n;
    for (int p = machine_first_place(s->m, rank); p < s->m->n_places && s->m->places[p].rank == rank; p++) {
        *ARRAY_PUSH(&s->places) = (sim_place){s->workers.n, s->m->places[p].workers, {0}};
        for (int i = 0; i < s->m->places[p].workers; i++)
            add_worker(s, rank, s->places.n - 1);
    }
    r->messenger = r->first_worker;
    if (cluster_has_messenger(s->c, rank, s->m->n_ranks) || s->m->places[machine_first_place(s->m, rank)].gpu) {
        r->messenger = s->workers.n;
        add_worker(s, rank, -1);
    }
    cores_add(s, rank);
}

/* ---- Work ---- */

static bool is_message(const graph_step *of)
{
    return of->message >= 0;
}

static void start(simulated *s, int worker, int64_t item)
{
    sim_worker *w = &s->workers.at[worker];
    const graph_step *of = simulated_step(s, item % s->n_steps);
    cores_work(s, worker, of->seconds);
    w->item = item;
    w->since = s->now;
    s->ranks[w->rank].work += w->place >= 0 ? of->seconds : 0;
    if (!is_message(of))
        simulated_change(s, w->rank, 1, 0);
}

/* Its idle workers choose at the end of this time. */
static void wake(simulated *s, int rank)
{
    if (!s->ranks[rank].woken)
        *ARRAY_PUSH(&s->woken) = rank;
    s->ranks[rank].woken = true;
}

static event_queue *queue_of(simulated *s, int rank, const graph_step *of)
{
    const sim_rank *r = &s->ranks[rank];
    if (is_message(of))
        return &s->workers.at[r->messenger].own;
    return of->worker >= 0 ? &s->workers.at[r->first_worker + of->worker].own
                           : &s->places.at[r->first_place + of->place].ready;
}

/* worker: of the rank; -1 where it took none. */
static void tell(const simulated *s, int64_t item, int worker, double begin)
{
    const int64_t step = item % s->n_steps;
    const int rank = simulated_rank(s, step);
    const graph_step *of = simulated_step(s, step);
    if (!s->event || is_message(of))
        return;
    const trama_rehearsed e = {.rank = rank,
                               .worker = worker,
                               .peer = -1,
                               .run = (int)(item / s->n_steps),
                               .priority = of->priority,
                               .name = s->names->at.at[of->name],
                               .begin = begin,
                               .end = s->now,
                               .flops = of->flops,
                               .step = (int)(step - s->ranks[rank].first),
                               .received = -1,
                               .submitted = simulated_submission(s, rank, item / s->n_steps, step)};
    s->event(s->closure, &e);
}

/* Orders end one after the other, the first of them all that it lets end: chains of them may be long. */
static void end_order(simulated *s, int64_t item)
{
    *ARRAY_PUSH(&s->orders) = item;
    if (s->orders.n > 1)
        return;
    for (int i = 0; i < s->orders.n; i++) {
        tell(s, s->orders.at[i], -1, s->now);
        simulated_finish(s, s->orders.at[i]);
    }
    s->orders.n = 0;
}

void workers_queue(simulated *s, int64_t item)
{
    const int rank = simulated_rank(s, item % s->n_steps);
    const graph_step *of = &s->graph[rank].steps[item % s->n_steps - s->ranks[rank].first];
    if (of->kind == STEP_ORDER) {
        end_order(s, item);
        return;
    }
    event_queue_put(queue_of(s, rank, of), -(double)of->priority - (is_message(of) ? 2.0 * INT_MAX : 0), item);
    wake(s, rank);
}

static bool goes_first(const event_queue *a, const event_queue *b)
{
    if (!a->n || !b->n)
        return a->n > 0;
    return a->at[0].key != b->at[0].key ? a->at[0].key < b->at[0].key : a->at[0].item < b->at[0].item;
}

/* Where the worker was busy until now, its next item waited for it. */
static void take_next(simulated *s, int worker)
{
    sim_worker *w = &s->workers.at[worker];
    event_queue none = {0}, *shared = w->place >= 0 ? &s->places.at[w->place].ready : &none;
    event_queue *from = goes_first(&w->own, shared) ? &w->own : shared;
    if (!from->n)
        return;
    const int64_t item = event_queue_take(from);
    if (w->ended == s->now) {
        const int step = (int)(w->before % s->n_steps);
        s->cause[item % s->n_steps] = item / s->n_steps == w->before / s->n_steps ? step : -2 - step;
    }
    start(s, worker, item);
}

void workers_choose(simulated *s)
{
    for (int i = 0; i < s->woken.n; i++) {
        const int rank = s->woken.at[i];
        const sim_rank *r = &s->ranks[rank];
        const int end = rank + 1 < s->n_ranks ? r[1].first_worker : s->workers.n;
        s->ranks[rank].woken = false;
        for (int w = r->first_worker; w < end; w++)
            if (s->workers.at[w].item < 0)
                take_next(s, w);
    }
    s->woken.n = 0;
}

void workers_end(simulated *s, int worker)
{
    sim_worker *w = &s->workers.at[worker];
    const int64_t item = w->item;
    if (item < 0 || w->ends > s->now)
        return;
    const graph_step *of = simulated_step(s, item % s->n_steps);
    tell(s, item, worker - s->ranks[w->rank].first_worker, w->since);
    if (!is_message(of))
        simulated_change(s, w->rank, -1, 0);
    w->before = item;
    s->ranks[w->rank].busy += w->place >= 0 ? s->now - w->since : 0;
    if (is_message(of))
        messages_served(s, item);
    else
        simulated_finish(s, item);
    w->item = -1;
    w->ended = s->now;
    cores_idle(s, worker);
    wake(s, w->rank);
}
