/* SPDX-License-Identifier: Apache-2.0 */
/* Binds the shards of a plan to buffers with handles: of the pool, in an arena of the plan, or within other shards. */
#include "bind.h"

#include "shard.h"
#include "worker_memory.h"

static trama_status no_memory(const trama_value *v)
{
    char *why = trama_text_copy(trama_error());
    trama_status status = trama_fail(v->where, TRAMA_E_MEMORY, "%s: %s", v->name, why);
    free(why);
    return status;
}

/* Which tile of its tensor the shard's first one is, as balanced pieces of the shard's size count. */
static int tile_index(const plan_shard *s, int dim)
{
    if (dim >= s->box.ndim || s->box.n[dim] == 0)
        return 0;
    int64_t piece = (s->box.lo[dim] + s->box.n[dim] - 1) / s->box.n[dim];
    return (int)(piece * (s->cut_dim == dim ? s->cut_parts : 1));
}

void instance_label(const instance *in, const plan_shard *s, shard *bound)
{
    if (context_traces(in->context))
        shard_label(bound, in->of->names[s->value], tile_index(s, 0), tile_index(s, 1));
}

shard *instance_lend(const instance *in, const plan_shard *s, const shard *base)
{
    const plan_shard *of = &in->of->plan->shards.at[s->within];
    if (of->source == SHARD_BUNDLE)
        return shard_part(base, s->at, s->box.ndim, s->box.n);
    if (s->source == SHARD_ALIAS) {
        const plan_alias *a = plan_alias_of(in->of->plan, s);
        return shard_alias(base, a->at, s->box.ndim, s->box.n, a->stride, s->cut_dim);
    }
    const box *outer = s->source == SHARD_VIEW ? &of->box : &s->box;
    const plan_alias dense = plan_dense(outer);
    box_rows r;
    box_in_rows(outer, &s->box, &r);
    shard_rows rows = {s->at + r.first, r.run, r.rows, r.ld};
    shard *lent = shard_lend(in->context, base, rows, s->box.ndim, s->box.n, dense.stride);
    instance_label(in, s, lent);
    return lent;
}

/* Those within others, which are the same in all lowerings, so that runs are in order with each other. */
static void bind_lent(instance *in)
{
    plan *p = in->of->plan;
    for (int i = 0; i < p->shards.n; i++) {
        const plan_shard *s = &p->shards.at[i];
        if (s->within >= 0 && !plan_in_arena(p, s) && instance_keeps(in, s->within))
            for (int slot = 0; slot < in->n_slots; slot++)
                in->shards[slot * p->shards.n + i] = slot ? in->shards[i] : instance_lend(in, s, in->shards[s->within]);
    }
}

/* Written or read by the host or by messages, run after run. */
static bool is_staging(const plan_shard *s)
{
    return s->source == SHARD_INPUT || s->source == SHARD_MESSAGE || s->source == SHARD_WINDOW ||
           s->source == SHARD_BUNDLE;
}

/* A shard with memory of its own, or in the arena of its place. */
static shard *make_shard(instance *in, int number)
{
    const plan *p = in->of->plan;
    const plan_shard *s = &p->shards.at[number];
    shard *made;
    if (plan_in_arena(p, s))
        made = shard_within(in->context, in->shards[s->within], s->at, s->dtype, s->box.ndim, s->box.n, s->cut_dim,
                            s->cut_parts);
    else
        made = (s->shared ? shard_get_shared : shard_get)(in->context, s->place, s->dtype, s->box.ndim, s->box.n,
                                                          s->cut_dim, s->cut_parts);
    if (!made)
        return NULL;
    instance_label(in, s, made);
    if (context_machine(in->context)->places[s->place].gpu && is_staging(s))
        shard_pin(made);
    return made;
}

static trama_status bind_shard(instance *in, int slot, int number)
{
    const plan *p = in->of->plan;
    const plan_shard *s = &p->shards.at[number];
    shard **bound = &in->shards[slot * p->shards.n + number];
    if (s->source == SHARD_TOKEN)
        *bound = gpu_groups_token(in->context, s->place);
    else if (slot && s->source != SHARD_INPUT)
        *bound = in->shards[number];
    else
        *bound = make_shard(in, number);
    return *bound ? TRAMA_OK : no_memory(in->of->program->values.at[s->value]);
}

/* Whether the plan itself makes the shard; the call that wraps the host's memory binds that. */
static bool is_made(const plan *p, const plan_shard *s)
{
    return s->source != SHARD_IMPORT && s->source != SHARD_HOST && s->reuses < 0 && !plan_in_scratch(p, s) &&
           (s->within < 0 || plan_in_arena(p, s));
}

/* Arenas first, since others lie in them. */
trama_status bind_begin(instance *in)
{
    const plan *p = in->of->plan;
    trama_status status = TRAMA_OK;
    for (int i = 0; i < p->shards.n && !status; i++)
        if (p->shards.at[i].source == SHARD_ARENA)
            status = bind_shard(in, 0, i);
    for (int i = 0; i < in->n_slots * p->shards.n && !status; i++) {
        const plan_shard *s = &p->shards.at[i % p->shards.n];
        if (is_made(p, s) && !in->shards[i])
            status = bind_shard(in, i / p->shards.n, i % p->shards.n);
    }
    for (int i = 0; i < in->n_slots * p->shards.n && !status; i++)
        if (p->shards.at[i % p->shards.n].reuses >= 0)
            in->shards[i] = in->shards[p->shards.at[i % p->shards.n].reuses];
    for (int i = 0; i < p->footprint.n && !status; i++)
        if (p->footprint.at[i].scratch)
            status = worker_memory_provide(in->context, i, p->footprint.at[i].scratch);
    if (!status)
        bind_lent(in);
    return status;
}

void bind_end(instance *in)
{
    const plan *p = in->of->plan;
    for (int i = 0; i < p->shards.n; i++)
        if (p->shards.at[i].within >= 0 && in->shards[i]) {
            shard_end(in->shards[i]);
            in->shards[i] = NULL;
        }
    for (int slot = 0; slot < in->n_slots; slot++)
        for (int i = 0; i < p->shards.n; i++)
            if (p->shards.at[i].source == SHARD_HOST || p->shards.at[i].source == SHARD_TOKEN ||
                p->shards.at[i].reuses >= 0)
                continue;
            else if (slot == 0 || p->shards.at[i].source == SHARD_INPUT)
                shard_put(in->context, in->shards[slot * p->shards.n + i]);
}
