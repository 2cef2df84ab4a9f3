/* SPDX-License-Identifier: Apache-2.0 */
#include "step_cache.h"

/* The last use of a tile: the core, -1 where it is not known, and the bytes that it had used until then. */
typedef struct last_use {
    int core;
    bool lent; /* it was received as a loan */
    double clock;
} last_use;

typedef struct walk {
    const graph_source *source;
    plan_tile_numbers numbers;
    last_use *of_tile; /* [tiles] */
    double *clock;     /* [workers of the rank] */
} walk;

/* The worker that takes a step; -1: one of several, or none with a cache. */
static int core_of(const graph_source *source, const plan_step *s)
{
    if (s->kind == STEP_SEND || s->kind == STEP_RECEIVE || plan_on_gpu(source->plan, s->place))
        return -1;
    const int lane = s->lane < 0 && source->machine->places[s->place].workers == 1 ? 0 : s->lane;
    return graph_worker(source, s->place, lane);
}

/* Adds bytes of a tile to those of their kind; `used` by the step up to them. */
static void add_reuse(const walk *w, int core, double used, const last_use *last, float bytes, step_reuse *reuse)
{
    const cluster_kind *k = w->source->kind;
    reuse->lent += last->lent ? bytes : 0;
    if (core < 0 || last->core < 0)
        return;
    const double since = w->clock[last->core] + (last->core == core ? used : 0) - last->clock;
    if (last->core == core && since <= k->cache)
        reuse->cached += bytes;
    else if (k->far > 0 && since > k->far)
        reuse->far += bytes;
}

static step_reuse use(walk *w, const plan_step *s)
{
    const plan *p = w->source->plan;
    const int core = core_of(w->source, s);
    step_reuse reuse = {0};
    if (!step_moves(s) && s->kind != STEP_RECEIVE)
        return reuse;
    const bool lent = s->kind == STEP_RECEIVE && s->span && plan_may_lend(p, w->source->machine, s);
    double used = 0;
    for (int i = 0; i < s->n_operands; i++) {
        const plan_operand *o = plan_step_operand(p, s, i);
        const plan_range tiles = plan_tiles_used(p, &w->numbers, o);
        const double bytes = (double)plan_region_bytes(p, &o->region) / max_i64(1, tiles.last - tiles.first + 1);
        for (int t = tiles.first; t <= tiles.last; t++) {
            used += bytes;
            add_reuse(w, core, used, &w->of_tile[t], (float)(step_times(o) * bytes), &reuse);
        }
    }
    if (core >= 0)
        w->clock[core] += used;
    for (int i = 0; i < s->n_operands; i++) {
        const plan_range tiles = plan_tiles_used(p, &w->numbers, plan_step_operand(p, s, i));
        for (int t = tiles.first; t <= tiles.last; t++)
            w->of_tile[t] = (last_use){core, lent, core >= 0 ? w->clock[core] : 0};
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
    walk w = {.source = source,
              .numbers = plan_number_tiles(p),
              .clock = trama_alloc((size_t)max_i64(1, workers) * sizeof *w.clock)};
    w.of_tile = trama_alloc((size_t)max_i64(1, w.numbers.n) * sizeof *w.of_tile);
    step_reuse *reuse = trama_alloc((size_t)max_i64(1, p->steps.n) * sizeof *reuse);
    for (int i = 0; i < w.numbers.n; i++)
        w.of_tile[i].core = -1;
    for (int run = 0; run <= source->repeats && describes_caches(source->kind); run++)
        for (int i = 0; i < p->steps.n; i++)
            reuse[i] = use(&w, &p->steps.at[i]);
    free(w.numbers.first);
    free(w.of_tile);
    free(w.clock);
    return reuse;
}
