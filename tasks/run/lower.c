/* SPDX-License-Identifier: Apache-2.0 */
/* Lowering: views, handles, access modes, the workers that may run it, and names for traces. */
#include "lower.h"

#include <assert.h>
#include <string.h>

#include "step_name.h"

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
        l->shards[i] = is_own(in, i) ? instance_lend(in, s, instance_shard(in, s->within)) : instance_shard(in, i);
    }
}

void lower_free(const instance *in, lowering *l)
{
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
        if (o->access == ACCESS_NONE && !on_gpu(in, step))
            continue;
        int first, last;
        plan_tiles(s, &o->region.box, &first, &last);
        const shard *bound = of->shards[o->region.shard];
        for (int t = first; t <= last; t++)
            add_handle(l, bound->tile[t], mode_of(o->access));
    }
}

/* ---- Work ---- */

static void lower_compute(const instance *in, const plan_step *step, arena *memory, work *w)
{
    int n_views = 0;
    for (int i = 0; i < step->n_calls; i++) {
        const trama_op *op = in->of->program->nodes.at[in->of->plan->calls.at[step->call + i].node]->op;
        n_views += op->n_in + op->n_out;
    }
    size_t expected = in->of->lowering_bytes, n = (size_t)step->n_calls;
    trama_view *operands = w->views, *views = arena_take(memory, (size_t)n_views * sizeof *views, expected);
    w->views = views;
    w->n_calls = step->n_calls;
    w->n_terms = step->n_terms;
    w->sum = &operands[step->sum];
    w->terms = &operands[step->n_operands - step->n_terms];
    w->calls = arena_take(memory, n * sizeof *w->calls, expected);
    w->kernels = arena_take(memory, n * sizeof *w->kernels, expected);
    w->where = arena_take(memory, n * sizeof *w->where, expected);
    w->inner = arena_take(memory, n * sizeof *w->inner, expected);
    w->fused = arena_take(memory, n * sizeof *w->fused, expected);
    w->kind = &work_compute;
    w->failed = in->of->faults ? faults_note : NULL;
    w->failed_arg = in->of->faults;
    for (int i = 0; i < step->n_calls; i++) {
        const plan_call *call = &in->of->plan->calls.at[step->call + i];
        const trama_node *node = in->of->program->nodes.at[call->node];
        trama_view *in_views = views, *out_views = views + node->op->n_in;
        for (int t = 0; t < node->op->n_in; t++) {
            const trama_shape *shape = &in->of->shapes[node->in[t]->id];
            if (call->in[t] >= 0)
                in_views[t] = operands[(int)call->in[t]];
            else
                in_views[t] = (trama_view){.dtype = node->in[t]->dtype, .ndim = shape->ndim};
            memcpy(in_views[t].global, shape->dim, sizeof shape->dim);
        }
        const plan_call *into = call->fused.kind == FUSED_ADDITION ? call + 1 : call;
        for (int o = 0; o < node->op->n_out; o++) {
            out_views[o] = operands[(int)into->out[o]];
            w->inner[i] |= (unsigned)(plan_step_operand(in->of->plan, step, call->out[o])->access == ACCESS_NONE) << o;
        }
        w->fused[i] = call->fused;
        w->calls[i] = (trama_call){
            node->op, &node->attributes, node->op->n_in, node->op->n_out, in_views, out_views, call->goes_on};
        w->kernels[i] = kernel_of(node->op);
        w->where[i] = node->where;
        views = out_views + node->op->n_out;
    }
    work_find_chunk(w);
}

/* The token is no buffer of it. A broadcast has one, which the root gives and the others get. */
static void lower_collective(const instance *in, const plan_step *step, work *w)
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
    w->collective = (collective){.kind = kinds[c->form], .n = g->n, .root = c->root, .count = c->count};
    for (int i = 0; i < g->n_local; i++)
        if (g->local[i].place == step->place)
            w->collective.comm = g->local[i].comm;
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
        const plan_region *region = &in->of->plan->operands.at[step->operand + i].region;
        w->views[i] = instance_view(in, region, of->shards[region->shard]);
    }
    w->combine = combine[step->reduce];
    w->scale = step->scale;
    if (step->kind == STEP_COMPUTE)
        lower_compute(in, step, &of->memory, w);
    else if (step->kind == STEP_COLLECTIVE)
        lower_collective(in, step, w);
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

/* Where the buffers begin that views point into: a task on a GPU has them elsewhere. */
static void find_buffers(const lowered *l, arena *memory, size_t expected, work *w)
{
    work_buffer *buffers = arena_take(memory, (size_t)l->n_handles * sizeof *buffers, expected);
    for (int i = 0; i < l->n_handles; i++)
        buffers[i] = work_buffer_of(starpu_data_get_interface_on_node(l->handles[i], STARPU_MAIN_RAM));
    w->buffers = buffers;
}

/* The host's own memory may lie in any order, and is not for GPUs. */
static bool is_of_host(const instance *in, const plan_step *step)
{
    for (int i = 0; i < step->n_operands; i++)
        if (in->of->plan->shards.at[plan_step_operand(in->of->plan, step, i)->region.shard].host)
            return true;
    return false;
}

/* Which workers may run it: one lane of the place, or all of the place; GPUs have one for collectives. A CPU worker
 * runs tasks without a GPU kernel. A step that only orders others runs on no worker. */
static void hold(const instance *in, const plan_step *step, const work *w, struct starpu_task *task)
{
    const trama_context *c = in->context;
    if (on_gpu(in, step) && step->kind == STEP_ORDER) {
        task->where = STARPU_NOWHERE;
    } else if (step->kind == STEP_COLLECTIVE) {
        task->execute_on_a_specific_worker = 1;
        task->workerid = (unsigned)context_exchanger(c, step->place);
    } else if (on_gpu(in, step) && (!work_on_gpu(w) || is_of_host(in, step))) {
        task->workerids = (uint32_t *)context_cpu_mask(c);
        task->workerids_len = context_mask_words(c);
    } else if (step->lane >= 0) {
        task->execute_on_a_specific_worker = 1;
        task->workerid = (unsigned)context_lane_worker(c, step->place, step->lane);
    } else if (context_n_places(c) > 1 || on_gpu(in, step)) {
        task->workerids = (uint32_t *)context_place_mask(c, step->place);
        task->workerids_len = context_mask_words(c);
    }
}

void lower_step(const instance *in, const plan_step *step, lowering *of, lowered *l)
{
    *l = (lowered){.kind = step->kind,
                   .peer = step->peer,
                   .tag = step->tag,
                   .priority = step->priority,
                   .rendezvous = step->kind == STEP_SEND && in->of->plan->exchanges.at[step->exchange].rendezvous};
    l->label = in->of->names[in->of->plan->shards.at[in->of->plan->operands.at[step->operand].region.shard].value];
    find_handles(in, step, of, l);
    if (step->kind >= STEP_SEND)
        return;
    lower_work(in, step, of, &l->work);
    if (on_gpu(in, step))
        find_buffers(l, &of->memory, in->of->lowering_bytes, &l->work);
    struct starpu_task *t = &l->task;
    starpu_task_init(t);
    t->cl = &work_codelet;
    t->cl_arg = &l->work;
    t->cl_arg_size = 0;
    t->destroy = 1;
    t->name = name_of(in, step, &of->memory);
    t->flops = step->flops;
    t->priority = step->priority;
    t->callback_func = fence_signal;
    t->nbuffers = l->n_handles;
    for (int i = 0; i < l->n_handles && l->n_handles <= STARPU_NMAXBUFS; i++) {
        t->handles[i] = l->handles[i];
        t->modes[i] = l->modes[i];
    }
    hold(in, step, &l->work, t);
}
