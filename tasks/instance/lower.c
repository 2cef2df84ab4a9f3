/* SPDX-License-Identifier: Apache-2.0 */
/* Lowering: views, handles, access modes, the workers that may run it, and names for traces. */
#include "lower.h"

#include <assert.h>
#include <limits.h>
#include <string.h>

#include "segments.h"
#include "step_name.h"
#include "worker_memory.h"

/* ---- Shards ---- */

/* Whether the shard lies within another one that may change with a feed. */
static bool is_own(const instance *in, int number)
{
    int within = in->of->plan->shards.at[number].within;
    return within >= 0 && !instance_keeps(in, within);
}

void lower_shards(const instance *in, lowering *l)
{
    const plan *p = in->of->plan;
    l->shards = arena_take(&l->memory, (size_t)p->shards.n * sizeof(shard *), in->of->lowering_bytes);
    for (int i = 0; i < p->shards.n; i++) {
        const plan_shard *s = &p->shards.at[i];
        l->shards[i] = in->borrowed && in->borrowed[i] ? in->borrowed[i]
                       : is_own(in, i)                 ? instance_lend(in, s, instance_shard(in, s->within))
                                                       : instance_shard(in, i);
    }
}

void lower_free(const instance *in, lowering *l)
{
    segments_free(l);
    for (int i = 0; i < in->of->plan->shards.n; i++)
        if (is_own(in, i))
            shard_end(l->shards[i]);
    arena_free(&l->memory);
}

/* ---- Handles ---- */

/* Values that only the calls of one task see have memory of their own on a GPU. */
static enum starpu_data_access_mode mode_of(step_access access)
{
    return access == ACCESS_READ ? STARPU_R : access == ACCESS_WRITE || access == ACCESS_NONE ? STARPU_W : STARPU_RW;
}

/* One handle stands once on a task: two regions of a tile join their modes. */
static void add_handle(lowered *l, starpu_data_handle_t handle, enum starpu_data_access_mode mode)
{
    for (int i = 0; i < l->n_handles; i++)
        if (l->handles[i] == handle) {
            l->modes[i] |= mode;
            return;
        }
    l->handles[l->n_handles] = handle;
    l->modes[l->n_handles++] = mode;
}

static int count_tiles(const instance *in, const plan_step *step)
{
    int n = 0;
    for (int i = 0; i < step->n_operands; i++)
        n += in->of->plan->shards.at[in->of->plan->operands.at[step->operand + i].region.shard].cut_parts;
    return n;
}

static bool on_gpu(const instance *in, const plan_step *step)
{
    return context_machine(in->context)->places[step->place].gpu;
}

static void find_handles(const instance *in, const plan_step *step, lowering *of, lowered *l)
{
    size_t most = (size_t)count_tiles(in, step);
    size_t expected = in->of->lowering_bytes;
    l->handles = arena_take(&of->memory, most * sizeof *l->handles, expected);
    l->modes = arena_take(&of->memory, most * sizeof *l->modes, expected);
    for (int i = 0; i < step->n_operands; i++) {
        const plan_operand *o = &in->of->plan->operands.at[step->operand + i];
        const plan_shard *s = &in->of->plan->shards.at[o->region.shard];
        if (plan_in_scratch(in->of->plan, s))
            continue;
        int first, last;
        plan_tiles(s, &o->region.box, &first, &last);
        const shard *bound = of->shards[o->region.shard];
        for (int t = first; t <= last; t++)
            add_handle(l, bound->tile[t], mode_of(o->access));
    }
}

/* ---- Work ---- */

/* Whether numbers follow each other. */
static bool is_row(const signed char *numbers, int n)
{
    bool row = n > 0 && numbers[0] >= 0;
    for (int i = 1; i < n; i++)
        row &= numbers[i] == numbers[0] + i;
    return row;
}

/* Whether operands of the step are also the call's, with their tensors' shapes. */
static bool have_shapes(const instance *in, const trama_node *node, const trama_view *views)
{
    bool same = true;
    for (int t = 0; t < node->op->n_in; t++) {
        const trama_shape *shape = &in->of->shapes[node->in[t]->id];
        same &= !memcmp(views[t].global, shape->dim, sizeof shape->dim);
    }
    return same;
}

/* The call's operands among those of the step, or copies of them. */
static const trama_view *views_in(const instance *in, const trama_node *node, const plan_call *call,
                                  const trama_view *operands, arena *memory)
{
    const int n = node->op->n_in;
    if (is_row(call->in, n) && have_shapes(in, node, &operands[(int)call->in[0]]))
        return &operands[(int)call->in[0]];
    trama_view *views = arena_take(memory, (size_t)n * sizeof *views, in->of->lowering_bytes);
    for (int t = 0; t < n; t++) {
        const trama_shape *shape = &in->of->shapes[node->in[t]->id];
        if (call->in[t] >= 0)
            views[t] = operands[(int)call->in[t]];
        else
            views[t] = (trama_view){.dtype = node->in[t]->dtype, .ndim = shape->ndim};
        memcpy(views[t].global, shape->dim, sizeof shape->dim);
    }
    return views;
}

static const trama_view *views_out(const instance *in, const trama_node *node, const plan_call *into,
                                   const trama_view *operands, arena *memory)
{
    const int n = node->op->n_out;
    if (is_row(into->out, n))
        return &operands[(int)into->out[0]];
    trama_view *views = arena_take(memory, (size_t)n * sizeof *views, in->of->lowering_bytes);
    for (int o = 0; o < n; o++)
        views[o] = operands[(int)into->out[o]];
    return views;
}

static bool is_inner(const instance *in, const plan_step *step, int operand)
{
    return operand >= 0 && plan_step_operand(in->of->plan, step, operand)->access == ACCESS_NONE;
}

/* The operands and results of a call in scratch memory; into: the call that has the results. */
static unsigned find_in_scratch(const instance *in, const plan_step *step, const trama_node *node,
                                const plan_call *call, const plan_call *into)
{
    unsigned bits = 0;
    for (int t = 0; t < node->op->n_in; t++)
        bits |= (unsigned)is_inner(in, step, call->in[t]) << t;
    for (int o = 0; o < node->op->n_out; o++)
        bits |= (unsigned)is_inner(in, step, into->out[o]) << (TRAMA_MAX_OPERANDS + o);
    return bits;
}

/* A result that a call behind its chain reads is written to memory. */
static void keep_for_other_chains(const instance *in, const plan_step *step, const work *w)
{
    const plan_call *calls = &in->of->plan->calls.at[step->call];
    int last_read[SCHAR_MAX + 1] = {0}; /* by operand: the last call that reads it */
    for (int i = 0; i < step->n_calls; i++)
        for (int t = 0; t < w->calls[i].n_in; t++)
            if (calls[i].in[t] >= 0)
                last_read[(int)calls[i].in[t]] = i;
    for (int i = 0; i < step->n_calls; i++) {
        const int end = calls[i].fused.kind == FUSED_CHAIN ? i + calls[i].fused.n : i + 1;
        for (int o = 0; o < w->calls[i].n_out; o++)
            if (last_read[(int)calls[i].out[o]] >= end)
                w->inner[i] &= ~(1u << o);
    }
}

static void lower_compute(const instance *in, const plan_step *step, arena *memory, work *w)
{
    size_t expected = in->of->lowering_bytes, n = (size_t)step->n_calls;
    const trama_view *operands = w->views;
    w->n_calls = step->n_calls;
    w->n_terms = step->n_terms;
    w->sum = &w->views[step->sum];
    w->terms = &w->views[step->n_operands - step->n_terms];
    w->calls = arena_take(memory, n * sizeof *w->calls, expected);
    w->kernels = arena_take(memory, n * sizeof *w->kernels, expected);
    w->where = arena_take(memory, n * sizeof *w->where, expected);
    w->inner = arena_take(memory, n * sizeof *w->inner, expected);
    w->fused = arena_take(memory, n * sizeof *w->fused, expected);
    w->kind = &work_compute;
    if (plan_scratch_bytes(in->of->plan, step)) {
        w->scratch = worker_memory(in->context);
        w->in_scratch = arena_take(memory, n * sizeof *w->in_scratch, expected);
    }
    w->failed = in->of->faults ? faults_note : NULL;
    w->failed_arg = in->of->faults;
    for (int i = 0; i < step->n_calls; i++) {
        const plan_call *call = &in->of->plan->calls.at[step->call + i];
        const trama_node *node = in->of->program->nodes.at[call->node];
        const plan_call *into = call->fused.kind == FUSED_ADDITION ? call + 1 : call;
        const trama_view *in_views = views_in(in, node, call, operands, memory),
                         *out_views = views_out(in, node, into, operands, memory);
        for (int o = 0; o < node->op->n_out; o++)
            w->inner[i] |= (unsigned)is_inner(in, step, call->out[o]) << o;
        if (w->scratch)
            w->in_scratch[i] = find_in_scratch(in, step, node, call, into);
        w->fused[i] = call->fused;
        w->calls[i] = (trama_call){node->op, node->attributes, node->op->n_in, node->op->n_out,
                                   in_views, out_views,        call->goes_on};
        w->kernels[i] = kernel_of(node->op);
        w->where[i] = node->where;
    }
    keep_for_other_chains(in, step, w);
    work_find_chunk(w);
}

/* The token is no buffer of it. A broadcast has one, which the root gives and the others get. */
static void lower_collective(const instance *in, const plan_step *step, arena *memory, work *w)
{
    static const collective_kind kinds[] = {[PLAN_ALL_GATHER] = COLLECTIVE_ALL_GATHER,
                                            [PLAN_ALL_TO_ALL] = COLLECTIVE_ALL_TO_ALL,
                                            [PLAN_BROADCAST] = COLLECTIVE_BROADCAST,
                                            [PLAN_REDUCE_SCATTER] = COLLECTIVE_REDUCE_SCATTER,
                                            [PLAN_ALL_REDUCE] = COLLECTIVE_ALL_REDUCE};
    const plan_collective *c = &step->collective;
    const gpu_group *g = in->of->groups[c->group];
    if (w->n_views == 2)
        w->views[1] = w->views[0];
    w->n_views = 2;
    w->kind = &work_collective;
    w->collective = arena_take(memory, sizeof *w->collective, in->of->lowering_bytes);
    *w->collective = (collective){.kind = kinds[c->form], .n = g->n, .root = c->root, .count = c->count};
    for (int i = 0; i < g->n_local; i++)
        if (g->local[i].place == step->place)
            w->collective->comm = g->local[i].comm;
}

/* A part of a value that only the step's calls see: data is its offset in the worker's scratch memory. */
static trama_view scratch_view(const instance *in, const plan_step *step, int operand)
{
    const plan_scratch scratch = plan_scratch_of(in->of->plan, step, operand);
    const plan_alias dense = plan_dense(&scratch.box);
    int64_t at;
    trama_view v =
        instance_region(in, &plan_step_operand(in->of->plan, step, operand)->region, &scratch.box, dense.stride, &at);
    v.data = (void *)(uintptr_t)(scratch.at + at);
    return v;
}

static void lower_work(const instance *in, const plan_step *step, lowering *of, work *w)
{
    static const kernel_combine combine[] = {
        [TRAMA_SUM] = COMBINE_SUM, [TRAMA_AVG] = COMBINE_SUM, [TRAMA_MAX] = COMBINE_MAX, [TRAMA_MIN] = COMBINE_MIN};
    static const work_kind *const kinds[] = {
        [STEP_COPY] = &work_copy, [STEP_REDUCE] = &work_reduce, [STEP_FILL] = &work_fill, [STEP_ORDER] = &work_nothing};
    w->n_views = step->n_operands;
    w->views = arena_take(&of->memory, (size_t)step->n_operands * sizeof *w->views, in->of->lowering_bytes);
    for (int i = 0; i < step->n_operands; i++) {
        const plan_operand *o = plan_step_operand(in->of->plan, step, i);
        w->views[i] = plan_in_scratch(in->of->plan, &in->of->plan->shards.at[o->region.shard])
                          ? scratch_view(in, step, i)
                          : instance_view(in, &o->region, of->shards[o->region.shard]);
    }
    w->combine = combine[step->reduce];
    w->scale = step->scale;
    if (step->kind == STEP_COMPUTE)
        lower_compute(in, step, &of->memory, w);
    else if (step->kind == STEP_COLLECTIVE)
        lower_collective(in, step, &of->memory, w);
    else
        w->kind = kinds[step->kind];
}

static const char *name_of(const instance *in, const plan_step *step, arena *memory)
{
    if (step->kind != STEP_COMPUTE)
        return step_movement_name(step);
    const trama_node *node = step_main_node(in->of->plan, in->of->program, step);
    if (node->role == NODE_FORWARD)
        return node->op->name;
    size_t bytes = (size_t)step_compute_name(node, NULL, 0) + 1;
    char *name = arena_take(memory, bytes, in->of->lowering_bytes);
    step_compute_name(node, name, bytes);
    return name;
}

/* The host's own memory may lie in any order, and is not for GPUs. */
static bool is_of_host(const instance *in, const plan_step *step)
{
    for (int i = 0; i < step->n_operands; i++)
        if (in->of->plan->shards.at[plan_step_operand(in->of->plan, step, i)->region.shard].host)
            return true;
    return false;
}

/* Which workers may run it: one lane of the place, or all of the place. A GPU has one worker, and one more for
 * collectives. A CPU worker runs tasks without a GPU kernel. */
static void hold(const instance *in, const plan_step *step, lowered *l)
{
    const trama_context *c = in->context;
    if (step->kind == STEP_COLLECTIVE)
        l->worker = context_exchanger(c, step->place);
    else if (on_gpu(in, step) && (!work_on_gpu(&l->work) || is_of_host(in, step)))
        l->mask = context_cpu_mask(c);
    else if (step->lane >= 0 || on_gpu(in, step))
        l->worker = context_lane_worker(c, step->place, step->lane >= 0 ? step->lane : 0);
    else if (context_n_places(c) > 1)
        l->mask = context_place_mask(c, step->place);
    l->on_gpu = on_gpu(in, step) && l->worker >= 0;
}

void lower_step(const instance *in, const plan_step *step, lowering *of, lowered *l)
{
    *l = (lowered){.kind = step->kind, .priority = step->priority};
    find_handles(in, step, of, l);
    if (step->kind >= STEP_SEND) {
        const plan *p = in->of->plan;
        l->label = in->of->names[p->shards.at[plan_step_operand(p, step, 0)->region.shard].value];
        l->peer = step->peer;
        l->tag = step->tag;
        l->rendezvous = step->kind == STEP_SEND && p->exchanges.at[step->exchange].rendezvous;
        return;
    }
    l->label = name_of(in, step, &of->memory);
    l->flops = step->flops;
    l->worker = -1;
    l->nowhere = step->kind == STEP_ORDER && !step->on_worker;
    if (l->nowhere)
        return;
    lower_work(in, step, of, &l->work);
    hold(in, step, l);
}
