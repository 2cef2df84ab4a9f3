/* SPDX-License-Identifier: Apache-2.0 */
#include "step_cache.h"

#include <math.h>

/* The last use of a tile: the core, -1 where it is not known, and the bytes that it had used until then. */
typedef struct last_use {
    int core;
    bool lent; /* it was received as a loan */
    double clock;
    uint64_t holders; /* cores modulo 64 that used it since it was written, its writer too */
    double shared;    /* bytes that others of these read */
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

/* Bytes that an operand uses of each of its tiles. */
static double tile_bytes(const plan *p, const plan_operand *o, plan_range tiles)
{
    return (double)plan_region_bytes(p, &o->region) / max_i64(1, tiles.last - tiles.first + 1);
}

/* Bytes that the core of a tile's last use has used since, `used` of them by the present step; -1: it is not known. */
static double used_since(const walk *w, const last_use *last, int core, double used)
{
    if (core < 0 || last->core < 0)
        return -1;
    return w->clock[last->core] + (last->core == core ? used : 0) - last->clock;
}

static bool is_far(const cluster_kind *k, double since)
{
    return k->far > 0 && since > k->far;
}

/* Adds bytes of a tile, and those of them that go back to memory, to those of their kind. */
static void add_reuse(const cluster_kind *k, bool cached, double since, float bytes, float written, step_reuse *reuse)
{
    if (since < 0)
        return;
    if (cached) {
        reuse->cached += bytes;
    } else if (is_far(k, since)) {
        reuse->far += bytes;
        reuse->far_written += written;
    }
}

/* The core reads bytes of a tile, or writes them, which takes those away that other cores have. Of several parts of a
 * tile it is not known whether they are the same. */
static void hold(last_use *tile, int core, bool writes, double bytes)
{
    const uint64_t own = core < 0 ? 0 : (uint64_t)1 << core % 64;
    if (writes) {
        tile->shared = fmax(0, tile->shared - bytes);
        tile->holders = own | (tile->shared > 0 ? tile->holders : 0);
    } else if (own & ~tile->holders) {
        tile->shared += tile->holders ? bytes : 0;
        tile->holders |= own;
    }
}

static step_reuse use(walk *w, const plan_step *s)
{
    const plan *p = w->source->plan;
    const int core = core_of(w->source, s);
    step_reuse reuse = {0};
    if (!step_moves(s) && s->kind != STEP_RECEIVE)
        return reuse;
    const bool lent = s->kind == STEP_RECEIVE && s->span && plan_may_lend(p, w->source->machine, s);
    const cluster_kind *k = w->source->kind;
    double used = 0;
    for (int i = 0; i < s->n_operands; i++) {
        const plan_operand *o = plan_step_operand(p, s, i);
        const plan_range tiles = plan_tiles_used(p, &w->numbers, o);
        const double bytes = tile_bytes(p, o, tiles);
        const float moved = (float)(step_times(o) * bytes);
        for (int t = tiles.first; t <= tiles.last; t++) {
            const last_use *last = &w->of_tile[t];
            used += bytes;
            reuse.lent += last->lent ? moved : 0;
            const double since = used_since(w, last, core, used);
            if (o->access != ACCESS_READ && !is_far(k, since))
                reuse.shared += (float)fmin(bytes, last->shared);
            add_reuse(k, last->core == core && since <= k->cache, since, moved, fmaxf(0, moved - (float)bytes), &reuse);
        }
    }
    if (core >= 0)
        w->clock[core] += used;
    for (int i = 0; i < s->n_operands; i++) {
        const plan_operand *o = plan_step_operand(p, s, i);
        const plan_range tiles = plan_tiles_used(p, &w->numbers, o);
        for (int t = tiles.first; t <= tiles.last; t++) {
            last_use *tile = &w->of_tile[t];
            tile->core = core;
            tile->lent = lent;
            tile->clock = core >= 0 ? w->clock[core] : 0;
            hold(tile, core, o->access != ACCESS_READ, tile_bytes(p, o, tiles));
        }
    }
    return reuse;
}

static bool describes_caches(const cluster_kind *k)
{
    return k->cache > 0 || k->far > 0 || cluster_has_rates(k, "lent") || cluster_has_rates(k, "shared");
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
