/* SPDX-License-Identifier: Apache-2.0 */
#include "step_cache.h"

/* The last use of a shard: the core, -1 where it is not known, and the bytes that it had used until then. */
typedef struct last_use {
    int core;
    bool lent; /* it was received as a loan */
    double clock;
} last_use;

typedef struct walk {
    const graph_source *source;
    last_use *of_shard; /* [shards] */
    double *clock;      /* [workers of the rank] */
} walk;

/* The worker that takes a step; -1: one of several, or none with a cache. */
static int core_of(const graph_source *source, const plan_step *s)
{
    if (s->kind == STEP_SEND || s->kind == STEP_RECEIVE || plan_on_gpu(source->plan, s->place))
        return -1;
    const int lane = s->lane < 0 && source->machine->places[s->place].workers == 1 ? 0 : s->lane;
    return graph_worker(source, s->place, lane);
}

static step_reuse use(walk *w, const plan_step *s)
{
    const plan *p = w->source->plan;
    const int core = core_of(w->source, s);
    const cluster_kind *k = w->source->kind;
    step_reuse reuse = {0};
    if (!step_moves(s) && s->kind != STEP_RECEIVE)
        return reuse;
    const bool lent = s->kind == STEP_RECEIVE && s->span && plan_may_lend(p, w->source->machine, s);
    double used = 0;
    for (int i = 0; i < s->n_operands; i++) {
        const plan_operand *o = plan_step_operand(p, s, i);
        if (o->access == ACCESS_NONE)
            continue;
        last_use *last = &w->of_shard[plan_used_as(p, o->region.shard)];
        const double bytes = (double)plan_region_bytes(p, &o->region);
        used += bytes;
        if (last->lent)
            reuse.lent += (float)(step_times(o) * bytes);
        if (core < 0 || last->core < 0)
            continue;
        const double since = w->clock[last->core] + (last->core == core ? used : 0) - last->clock;
        if (last->core == core && since <= k->cache)
            reuse.cached += (float)(step_times(o) * bytes);
        else if (k->far > 0 && since > k->far)
            reuse.far += (float)(step_times(o) * bytes);
    }
    if (core >= 0)
        w->clock[core] += used;
    for (int i = 0; i < s->n_operands; i++) {
        const plan_operand *o = plan_step_operand(p, s, i);
        if (o->access != ACCESS_NONE)
            w->of_shard[plan_used_as(p, o->region.shard)] = (last_use){core, lent, core >= 0 ? w->clock[core] : 0};
    }
    return reuse;
}

static bool describes_caches(const cluster_kind *k)
{
    return k->cache > 0 || k->far > 0 || cluster_has_rates(k, "lent");
}

step_reuse *step_reuses(const graph_source *source)
{
    const plan *p = source->plan;
    const int workers = machine_workers(source->machine, p->rank);
    walk w = {source, trama_alloc((size_t)max_i64(1, p->shards.n) * sizeof *w.of_shard),
              trama_alloc((size_t)max_i64(1, workers) * sizeof *w.clock)};
    step_reuse *reuse = trama_alloc((size_t)max_i64(1, p->steps.n) * sizeof *reuse);
    for (int i = 0; i < p->shards.n; i++)
        w.of_shard[i].core = -1;
    for (int run = 0; run <= source->repeats && describes_caches(source->kind); run++)
        for (int i = 0; i < p->steps.n; i++)
            reuse[i] = use(&w, &p->steps.at[i]);
    free(w.of_shard);
    free(w.clock);
    return reuse;
}
