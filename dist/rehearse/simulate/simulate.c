/* SPDX-License-Identifier: Apache-2.0 */
/* Time, and the steps of all ranks: a step is ready when it is submitted and all that it waits for is done. */
#include "simulate.h"

#include <math.h>
#include <string.h>

simulated *simulated_new(const trama_cluster *c, const machine *m, step_names *names, int runs, int window)
{
    simulated *s = trama_alloc(sizeof *s);
    s->c = c;
    s->m = m;
    s->names = names;
    s->runs = runs;
    s->window = window < runs ? window : runs;
    s->slots = runs > 1 ? s->window + 1 : 1; /* a step of the last run in flight may be waited for by the next run */
    s->graph = trama_alloc((size_t)m->n_ranks * sizeof *s->graph);
    s->ranks = trama_alloc((size_t)m->n_ranks * sizeof *s->ranks);
    s->run_ends = trama_alloc((size_t)runs * sizeof *s->run_ends);
    s->net = network_new(c);
    return s;
}

void simulated_free(simulated **s_)
{
    simulated *s = *s_;
    if (!s)
        return;
    for (int r = 0; r < s->n_ranks; r++) {
        step_graph_free(&s->graph[r]);
        free(s->ranks[r].left);
        free(s->ranks[r].submit_at);
    }
    for (int i = 0; i < s->workers.n; i++)
        event_queue_free(&s->workers.at[i].own);
    for (int i = 0; i < s->places.n; i++)
        event_queue_free(&s->places.at[i].ready);
    ARRAY_FREE(&s->workers);
    ARRAY_FREE(&s->orders);
    ARRAY_FREE(&s->woken);
    ARRAY_FREE(&s->places);
    for (int i = 0; i < s->cores.n; i++)
        free(s->cores.at[i].free_at);
    ARRAY_FREE(&s->cores);
    ARRAY_FREE(&s->messages);
    hash_table_free(&s->by_pair);
    network_free(&s->net);
    event_queue_free(&s->events);
    void *owned[] = {s->graph, s->ranks, s->run_ends, s->flows, s->waits, s->finish, s->cause, s};
    for (size_t i = 0; i < sizeof owned / sizeof *owned; i++)
        free(owned[i]);
    *s_ = NULL;
}

trama_status simulated_add(simulated *s, step_graph graph, const graph_messages *messages)
{
    const int rank = s->n_ranks++;
    s->graph[rank] = graph;
    s->ranks[rank] = (sim_rank){.first = (int)s->n_steps,
                                .left = trama_alloc((size_t)s->slots * sizeof(int)),
                                .submit_at = trama_alloc((size_t)s->slots * sizeof(double))};
    if (s->n_steps + graph.n > INT32_MAX - 2)
        return trama_fail(NOWHERE, TRAMA_E_UNSUPPORTED,
                          "trama_rehearse: the plans of %d ranks have more than 2^31 steps; rehearse fewer layers",
                          rank);
    s->n_steps += graph.n;
    workers_add(s, rank);
    return messages_add(s, rank, &s->graph[rank], messages);
}

int simulated_rank(const simulated *s, int64_t step)
{
    int low = 0, high = s->n_ranks - 1;
    while (low < high) {
        const int middle = (low + high + 1) / 2;
        if (s->ranks[middle].first <= step)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

const graph_step *simulated_step(const simulated *s, int64_t step)
{
    const int rank = simulated_rank(s, step);
    return &s->graph[rank].steps[step - s->ranks[rank].first];
}

double simulated_submission(const simulated *s, int rank, int64_t run, int64_t step)
{
    const sim_rank *r = &s->ranks[rank];
    return r->submit_at[run % s->slots] + s->graph[rank].submission * (double)(step - r->first + 1) / s->graph[rank].n;
}

void simulated_change(simulated *s, int rank, int tasks, int flows)
{
    sim_rank *r = &s->ranks[rank];
    const double passed = s->now - r->changed;
    r->moving += r->flows ? passed : 0;
    r->exposed += r->flows && !r->tasks ? passed : 0;
    r->changed = s->now;
    r->tasks += tasks;
    r->flows += flows;
}

/* ---- Steps ---- */

static int *waits_of(const simulated *s, int64_t run)
{
    return s->waits + run % s->slots * s->n_steps;
}

static void make_ready(simulated *s, int64_t item)
{
    if (simulated_step(s, item % s->n_steps)->message >= 0)
        messages_ready(s, item);
    else
        workers_queue(s, item);
}

/* One of the things that a step waits for is done: a step, or its submission. */
static void count_down(simulated *s, int rank, int64_t run, int64_t step, int cause)
{
    if (--waits_of(s, run)[step] > 0)
        return;
    const double at = simulated_submission(s, rank, run, step);
    s->cause[step] = cause;
    if (at <= s->now) {
        make_ready(s, run * s->n_steps + step);
        return;
    }
    s->cause[step] = SIM_SUBMISSION;
    simulate_later(s, at, EVENT_READY, run * s->n_steps + step);
}

/* A run waits for its submission, for steps of its own and, behind the first, for steps of the run before. */
static void prepare_run(simulated *s, int rank, int64_t run)
{
    if (run >= s->runs)
        return;
    const step_graph *g = &s->graph[rank];
    int *waits = waits_of(s, run) + s->ranks[rank].first;
    for (int i = 0; i < g->n; i++)
        waits[i] = 1 + g->steps[i].waits + (run ? g->steps[i].later : 0);
    s->ranks[rank].left[run % s->slots] = g->n;
}

static void submit_run(simulated *s, int rank)
{
    sim_rank *r = &s->ranks[rank];
    const step_graph *g = &s->graph[rank];
    const int64_t run = r->submitted;
    if (run >= s->runs)
        return;
    const cluster_kind *k = cluster_kind_of(s->c, rank);
    const double before = s->own + k->submit_run + s->reads * k->read + (double)g->inputs / k->feed;
    r->submitted++;
    r->submit_at[run % s->slots] = cores_submit(s, rank, before + g->submission) + before;
    for (int i = 0; i < g->n; i++)
        count_down(s, rank, run, r->first + i, SIM_SUBMISSION);
}

/* Runs end in their order: each end lets one more be submitted. */
static void end_runs(simulated *s, int rank)
{
    sim_rank *r = &s->ranks[rank];
    while (r->ended < r->submitted && !r->left[r->ended % s->slots]) {
        const int run = r->ended++;
        s->run_ends[run] = fmax(s->run_ends[run], s->now);
        prepare_run(s, rank, run + s->slots);
        submit_run(s, rank);
    }
}

void simulated_finish(simulated *s, int64_t item)
{
    const int64_t run = item / s->n_steps, step = item % s->n_steps;
    const int rank = simulated_rank(s, step);
    const step_graph *g = &s->graph[rank];
    const sim_rank *r = &s->ranks[rank];
    const graph_step *of = &g->steps[step - r->first];
    s->finish[step] = s->now;
    s->n_done++;
    for (int i = of->next; i < of->again; i++)
        count_down(s, rank, run, r->first + g->next[i], (int)step);
    for (int i = of->again; i < of[1].next && run + 1 < s->runs; i++)
        count_down(s, rank, run + 1, r->first + g->next[i], -2 - (int)step);
    if (--r->left[run % s->slots] == 0)
        end_runs(s, rank);
}

/* ---- The loop ---- */

static trama_status begin(simulated *s)
{
    const size_t steps = (size_t)max_i64(1, s->n_steps);
    s->waits = trama_try_alloc((size_t)s->slots * steps * sizeof *s->waits);
    s->finish = trama_try_alloc(steps * sizeof *s->finish);
    s->cause = trama_try_alloc(steps * sizeof *s->cause);
    if (!s->waits || !s->finish || !s->cause)
        return trama_fail(NOWHERE, TRAMA_E_MEMORY,
                          "trama_rehearse: no memory for %lld steps; rehearse fewer layers or ranks",
                          (long long)s->n_steps);
    for (int r = 0; r < s->n_ranks; r++)
        for (int64_t run = 0; run < s->slots; run++)
            prepare_run(s, r, run);
    for (int r = 0; r < s->n_ranks; r++) {
        for (int i = 0; i < s->window; i++)
            submit_run(s, r);
        end_runs(s, r);
    }
    return TRAMA_OK;
}

static void take_event(simulated *s)
{
    const int64_t code = event_queue_take(&s->events), number = code / N_EVENTS;
    switch ((sim_event)(code % N_EVENTS)) {
    case EVENT_WORKER:
        workers_end(s, (int)number);
        return;
    case EVENT_READY:
        make_ready(s, number);
        return;
    case EVENT_SUBMITTED:
        cores_submitted(s, (int)number);
        return;
    default:
        messages_flow(s, number);
    }
}

trama_status simulated_run(simulated *s)
{
    trama_status status = messages_match(s);
    if (!status)
        status = begin(s);
    while (!status) {
        workers_choose(s);
        const double flow = network_next(s->net, s->now), event = s->events.n ? s->events.at[0].key : INFINITY;
        s->now = fmin(flow, event);
        if (isinf(s->now))
            break;
        while (s->events.n && s->events.at[0].key <= s->now)
            take_event(s);
        while (flow <= s->now && network_has_ended(s->net, s->now))
            messages_flow_end(s, network_end(s->net));
    }
    for (int r = 0; r < s->n_ranks && !status; r++)
        if (s->ranks[r].ended < s->runs)
            status = messages_stuck(s);
    s->now = s->run_ends[s->runs - 1];
    return status ? status : memory_status(NOWHERE, "trama_rehearse");
}
