/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that share cores: all work at one speed, which changes as threads begin and end. */
#include <math.h>

#include "simulate.h"

void cores_add(simulated *s, int rank)
{
    sim_rank *r = &s->ranks[rank];
    const int node = cluster_node_of(s->c, rank);
    const cluster_kind *k = cluster_kind_of(s->c, rank);
    const bool shared = k->cores < k->ranks;
    if (!shared || !s->cores.n || s->cores.at[s->cores.n - 1].node != node)
        *ARRAY_PUSH(&s->cores) = (sim_cores){.cores = shared ? k->cores : cluster_cores_of(s->c, rank),
                                             .node = shared ? node : -1,
                                             .first_worker = r->first_worker,
                                             .free_at = shared ? trama_alloc((size_t)k->cores * sizeof(double)) : NULL};
    r->cores = s->cores.n - 1;
    sim_cores *own = &s->cores.at[r->cores];
    own->n_workers = s->workers.n - own->first_worker;
    for (int w = r->first_worker; w < s->workers.n; w++) {
        sim_worker *worker = &s->workers.at[w];
        worker->cores = worker->place >= 0 && s->m->places[worker->place].gpu ? -1 : r->cores;
    }
}

/* Seconds of work in a second. */
static double speed(const sim_cores *c)
{
    const int free = c->cores > c->submitting ? c->cores - c->submitting : 0;
    return c->working > free ? (double)free / c->working : 1;
}

static void find_end(simulated *s, int worker, double at_speed)
{
    sim_worker *w = &s->workers.at[worker];
    w->ends = at_speed > 0 ? s->now + w->left / at_speed : INFINITY;
    if (at_speed > 0)
        simulate_later(s, w->ends, EVENT_WORKER, worker);
}

static void change(simulated *s, int cores, int working, int submitting)
{
    if (cores < 0)
        return;
    sim_cores *c = &s->cores.at[cores];
    const double before = speed(c);
    c->working += working;
    c->submitting += submitting;
    const double now = speed(c);
    for (int i = c->first_worker; i < c->first_worker + c->n_workers && now != before; i++) {
        sim_worker *w = &s->workers.at[i];
        if (w->item < 0 || w->cores != cores)
            continue;
        w->left = fmax(0, w->left - before * (s->now - w->changed));
        w->changed = s->now;
        find_end(s, i, now);
    }
}

void cores_work(simulated *s, int worker, double seconds)
{
    sim_worker *w = &s->workers.at[worker];
    if (w->item < 0)
        change(s, w->cores, 1, 0);
    w->left = seconds;
    w->changed = s->now;
    find_end(s, worker, w->cores < 0 ? 1 : speed(&s->cores.at[w->cores]));
}

void cores_idle(simulated *s, int worker)
{
    change(s, s->workers.at[worker].cores, -1, 0);
}

/* The core of a node on which a submission ended first. */
static double *first_free(const sim_cores *c)
{
    double *first = c->free_at;
    for (int i = 1; i < c->cores; i++)
        first = c->free_at[i] < *first ? &c->free_at[i] : first;
    return first;
}

double cores_submit(simulated *s, int rank, double seconds)
{
    sim_rank *r = &s->ranks[rank];
    const sim_cores *c = &s->cores.at[r->cores];
    double *core = c->free_at ? first_free(c) : &r->submits_until;
    const double begin = fmax(fmax(s->now, r->submits_until), *core);
    r->submits_until = *core = begin + seconds;
    if (r->submits_until <= s->now)
        return begin;
    simulate_later(s, r->submits_until, EVENT_SUBMITTED, rank);
    if (!r->submitting)
        change(s, r->cores, 0, 1);
    r->submitting = true;
    return begin;
}

void cores_submitted(simulated *s, int rank)
{
    sim_rank *r = &s->ranks[rank];
    if (!r->submitting || r->submits_until > s->now)
        return;
    change(s, r->cores, 0, -1);
    r->submitting = false;
}
