/* SPDX-License-Identifier: Apache-2.0 */
/* Priorities from estimated times: flops and bytes give the time of a step, by the same numbers on every machine. Steps
 * depend on each other through the tiles that they use. */
#include "priority.h"

#include <math.h>
#include <string.h>

#include "planner.h"

/* µs per task and per message; flops and bytes per µs of one worker; bytes per µs of a message. */
static const double task_costs = 5, message_costs = 20, flops_take = 2e4, bytes_take = 1e4, way_takes = 2e3;

/* The users of a tile on one side of the current step: before it, or behind it. */
typedef struct tile_use {
    double read, written; /* the longest path through its readers since it was written, and through the writer */
    bool sent;            /* it is sent, or copied to a tile that is sent */
} tile_use;

typedef struct clockwork {
    const plan *p;
    plan_tile_numbers tiles;
    double *costs;          /* [steps] */
    double *since, *until;  /* [steps] the longest path up to its begin, and from there to the end of the run */
    double *ahead;          /* [steps] the longest path to the end of the next run, which begins with these states */
    double *behind;         /* [exchanges] the longest path from a receive on */
    bool *sent;             /* [steps] its result is sent */
    const bool *sent_later; /* [shards] what they hold at the end of the run is sent */
    tile_use *uses;         /* [tiles] */
} clockwork;

static double cost_of(const plan *p, const plan_step *s)
{
    double bytes = 0;
    if (s->kind == STEP_ORDER) /* it runs on no worker */
        return 0;
    for (int k = 0; k < s->n_operands; k++) {
        const plan_operand *o = plan_step_operand(p, s, k);
        if (o->access != ACCESS_NONE)
            bytes += (double)plan_region_bytes(p, &o->region);
    }
    if (s->kind >= STEP_COLLECTIVE)
        return message_costs + bytes / way_takes;
    return task_costs + s->flops / flops_take + bytes / bytes_take;
}

/* The longest path that reaches a step through its operands: a reader follows a writer, a writer readers and writer. */
static double path_to(const clockwork *w, const plan_step *s)
{
    double most = 0;
    for (int k = 0; k < s->n_operands; k++) {
        const plan_operand *o = plan_step_operand(w->p, s, k);
        const plan_range r = plan_tiles_used(w->p, &w->tiles, o);
        for (int t = r.first; t <= r.last; t++) {
            most = fmax(most, w->uses[t].written);
            if (o->access != ACCESS_READ)
                most = fmax(most, w->uses[t].read);
        }
    }
    return most;
}

static void use_tiles(const clockwork *w, const plan_step *s, double path, bool sent)
{
    for (int k = 0; k < s->n_operands; k++) {
        const plan_operand *o = plan_step_operand(w->p, s, k);
        const plan_range r = plan_tiles_used(w->p, &w->tiles, o);
        for (int t = r.first; t <= r.last; t++) {
            if (o->access != ACCESS_READ)
                w->uses[t] = (tile_use){.written = path};
            if (o->access != ACCESS_WRITE) {
                w->uses[t].read = fmax(w->uses[t].read, path);
                w->uses[t].sent |= sent;
            }
        }
    }
}

static void go_forth(clockwork *w)
{
    for (int i = 0; i < w->p->steps.n; i++) {
        const plan_step *s = &w->p->steps.at[i];
        w->since[i] = path_to(w, s);
        use_tiles(w, s, w->since[i] + w->costs[i], false);
    }
}

static bool makes_what_is_sent(const clockwork *w, const plan_step *s)
{
    for (int k = 0; k < s->n_operands; k++) {
        const plan_operand *o = plan_step_operand(w->p, s, k);
        const plan_range r = plan_tiles_used(w->p, &w->tiles, o);
        for (int t = r.first; t <= r.last && o->access != ACCESS_READ; t++)
            if (w->uses[t].sent)
                return true;
    }
    return false;
}

static bool is_move(const plan_step *s)
{
    return s->kind == STEP_COPY || s->kind == STEP_REDUCE || s->kind == STEP_ORDER;
}

/* The path behind a sent message, on the peer, is taken to be as long as that behind the receives of the same
 * exchange. */
static void go_back(clockwork *w, double *paths)
{
    for (int i = w->p->steps.n - 1; i >= 0; i--) {
        const plan_step *s = &w->p->steps.at[i];
        const bool makes = makes_what_is_sent(w, s), gives = s->kind == STEP_SEND || s->kind == STEP_COLLECTIVE;
        const double beyond = s->kind == STEP_SEND && s->exchange >= 0 ? w->behind[s->exchange] : 0;
        paths[i] = w->costs[i] + fmax(beyond, path_to(w, s));
        w->sent[i] = makes;
        use_tiles(w, s, paths[i], gives || (is_move(s) && makes));
    }
}

static void find_what_is_behind(clockwork *w, const double *paths)
{
    for (int i = 0; i < w->p->steps.n; i++) {
        const plan_step *s = &w->p->steps.at[i];
        if (s->kind == STEP_RECEIVE && s->exchange >= 0)
            w->behind[s->exchange] = fmax(w->behind[s->exchange], paths[i]);
    }
}

/* Twice, since a send comes before the receives of its exchange. later: what uses each tile behind the run. */
static void find_paths(clockwork *w, const tile_use *later, double *paths)
{
    for (int round = 0; round < 2; round++) {
        memcpy(w->uses, later, (size_t)w->tiles.n * sizeof *w->uses);
        for (int i = 0; i < w->p->shards.n; i++)
            for (int t = 0; t < w->p->shards.at[i].cut_parts; t++)
                w->uses[w->tiles.first[i] + t].sent = w->sent_later[i];
        go_back(w, paths);
        find_what_is_behind(w, paths);
    }
}

static int as_priority(double path)
{
    return (int)fmin(path, PRIORITY_SENT - 1);
}

static void set_priorities(const clockwork *w, plan *p, int workers)
{
    double all = 0;
    for (int i = 0; i < p->steps.n; i++)
        all += p->steps.at[i].kind < STEP_COLLECTIVE ? w->costs[i] : 0;
    for (int i = 0; i < p->steps.n; i++) {
        plan_step *s = &p->steps.at[i];
        const bool in_path = w->since[i] > 0 || w->until[i] > w->costs[i];
        const bool holds_up = in_path && w->since[i] + w->until[i] > all / workers;
        const int path = as_priority(w->ahead[i]);
        if (s->kind >= STEP_COLLECTIVE)
            s->priority = path;
        else if (w->sent[i])
            s->priority = (is_move(s) ? PRIORITY_MOVED : PRIORITY_SENT) + path;
        else
            s->priority = holds_up ? path : 0;
    }
}

/* [shard] whether it is a term of a partial state that also has terms on other ranks: a reader's plan sends it. */
static bool *find_sent_later(const partition *q)
{
    bool *sent = trama_alloc((size_t)max_i64(1, q->p->shards.n));
    for (int i = 0; i < q->p->dist_values.n; i++) {
        const plan_dist_value *h = &q->p->dist_values.at[i];
        bool apart = false;
        for (int k = 0; layout_has(&h->layout, TRAMA_PARTIAL) && k < h->mesh->size; k++)
            apart |= !is_mine(q, place_of(q, h->mesh, k));
        for (int k = 0; apart && k < h->pieces.n; k++)
            sent[h->pieces.at[k].region.shard] |= value_is_state(q->s.program->values.at[h->value]);
    }
    return sent;
}

/* Of the uses at the begin of a run those of states: they are behind the run before. */
static void keep_states(const partition *q, const plan_tile_numbers *tiles, const tile_use *uses, tile_use *later)
{
    for (int i = 0; i < q->p->shards.n; i++)
        for (int t = 0; t < q->p->shards.at[i].cut_parts; t++)
            if (value_is_state(q->s.program->values.at[q->p->shards.at[i].value]))
                later[tiles->first[i] + t] = uses[tiles->first[i] + t];
}

void plan_prioritize(partition *q)
{
    plan *p = q->p;
    const size_t steps = (size_t)max_i64(1, p->steps.n);
    clockwork w = {.p = p, .tiles = plan_number_tiles(p)};
    const size_t tiles = (size_t)max_i64(1, w.tiles.n);
    tile_use *later = trama_alloc(tiles * sizeof *later);
    bool *sent_later = find_sent_later(q);
    w.uses = trama_alloc(tiles * sizeof *w.uses);
    w.costs = trama_alloc(4 * steps * sizeof *w.costs);
    w.since = w.costs + steps;
    w.until = w.since + steps;
    w.ahead = w.until + steps;
    w.sent = trama_alloc(steps);
    w.sent_later = sent_later;
    w.behind = trama_alloc((size_t)max_i64(1, p->exchanges.n) * sizeof *w.behind);
    for (int i = 0; i < p->steps.n; i++)
        w.costs[i] = cost_of(p, &p->steps.at[i]);
    go_forth(&w);
    find_paths(&w, later, w.until);
    keep_states(q, &w.tiles, w.uses, later);
    find_paths(&w, later, w.ahead);
    set_priorities(&w, p, machine_workers(q->s.machine, q->s.rank));
    free(sent_later);
    free(later);
    free(w.uses);
    free(w.behind);
    free(w.sent);
    free(w.costs);
    free(w.tiles.first);
}
