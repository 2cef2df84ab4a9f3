/* SPDX-License-Identifier: Apache-2.0 */
/* Instances: their making and end, and the submission of their steps. Buffers are in bind.c, lowering in lower.c. */
#include "instance.h"

#include <string.h>

#include "bind.h"
#include "loans.h"
#include "lower.h"
#include "segments.h"

enum { MAX_LOWERINGS = 16, MAX_READERS = 256, MAX_READERS_RUNS = 16 };
enum {
    MOST_SUBMITTED = 4096, /* tasks of a run that wait or run, each of which takes 1.3 KB of StarPU's memory */
    PACE = 256             /* steps from one look at their number to the next */
};

/* A name that traces can hold: [A-Za-z0-9_.] only. */
static char *plain_name(const char *name)
{
    char *plain = trama_text_copy(name);
    for (char *c = plain; *c; c++)
        if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.", *c))
            *c = '_';
    return plain;
}

void compiled_plan_finish(compiled_plan *b)
{
    b->names = trama_alloc((size_t)b->program->values.n * sizeof *b->names);
    for (int i = 0; i < b->plan->shards.n; i++) {
        int value = b->plan->shards.at[i].value;
        if (!b->names[value])
            b->names[value] = plain_name(b->program->values.at[value]->name);
    }
}

void compiled_plan_clear(compiled_plan *b)
{
    for (int i = 0; b->names && i < b->program->values.n; i++)
        free(b->names[i]);
    free(b->names);
    free(b->groups);
    free(b->forms);
    node_rules_free(&b->rules);
    free(b->shapes);
    plan_destroy(&b->plan);
}

/* An instance may import a shard that its owner has imported too. */
static struct owner owner_of(instance *in, int number)
{
    const plan_shard *s = &in->of->plan->shards.at[number];
    return s->source == SHARD_IMPORT ? in->owners[s->import] : (struct owner){in, number};
}

bool instance_keeps(const instance *in, int number)
{
    shard_source source = in->of->plan->shards.at[number].source;
    return source != SHARD_IMPORT && source != SHARD_INPUT;
}

/* Bytes that a step's data take of a GPU at a time. */
static int64_t bytes_of(const plan *p, const plan_step *step)
{
    int64_t bytes = 0;
    for (int i = 0; i < step->n_operands; i++) {
        int number = plan_used_as(p, plan_step_operand(p, step, i)->region.shard);
        bool counted = false;
        for (int k = 0; k < i && !counted; k++)
            counted = plan_used_as(p, plan_step_operand(p, step, k)->region.shard) == number;
        if (!counted)
            bytes += plan_shard_bytes(&p->shards.at[number]);
    }
    return bytes;
}

/* The step that takes most of a GPU at a time; NULL if none runs there. */
static const plan_step *largest_on_gpu(trama_context *context, const plan *p, int64_t *bytes)
{
    const plan_step *largest = NULL;
    *bytes = 0;
    for (int i = 0; i < p->steps.n; i++) {
        const plan_step *step = &p->steps.at[i];
        if (step->kind == STEP_ORDER || step->kind >= STEP_SEND || !context_machine(context)->places[step->place].gpu)
            continue;
        int64_t of_step = bytes_of(p, step);
        if (!largest || of_step > *bytes) {
            largest = step;
            *bytes = of_step;
        }
    }
    return largest;
}

/* Tensors come to a GPU and leave it, but all operands of one task must fit there at once. */
static trama_status check_gpus(trama_context *context, compiled_plan *of)
{
    const plan *p = of->plan;
    int64_t room = context_gpu_bytes(context);
    const plan_step *step = largest_on_gpu(context, p, &of->gpu_bytes);
    if (!step)
        return TRAMA_OK;
    const trama_node *node = step->kind == STEP_COMPUTE ? of->program->nodes.at[p->calls.at[step->call].node] : NULL;
    snprintf(of->gpu_step, sizeof of->gpu_step, "%.60s %.90s", node ? node->op->name : "a change of layout of",
             of->program->values.at[p->shards.at[plan_step_operand(p, step, 0)->region.shard].value]->name);
    if (of->gpu_bytes <= room)
        return TRAMA_OK;
    return trama_fail(node ? node->where : NOWHERE, TRAMA_E_MEMORY,
                      "%s takes %lld MB of a GPU at a time, and tensors may take %lld MB of it (config.gpu_memory,"
                      " TRAMA_GPU_MEMORY): split them over more processes, or run on the cores (TRAMA_DEVICE=cpu)",
                      of->gpu_step, (long long)(of->gpu_bytes >> 20), (long long)(room >> 20));
}

/* By piece, since plans of values that are stored alike may number their shards otherwise. */
static struct owner owner_of_import(value_ref from, const plan_import *import)
{
    const plan_dist_value *h = plan_find(from.in->of->plan, from.as);
    return owner_of(from.in, h->pieces.at[import->piece].region.shard);
}

/* All ranks have the same groups, and come here with the same plans in one order, before any of them can fail alone. */
static trama_status join_groups(trama_context *context, compiled_plan *of)
{
    int n = of->plan->groups.n, *size = trama_alloc(((size_t)n + 1) * sizeof *size);
    const int **places = trama_alloc(((size_t)n + 1) * sizeof *places);
    for (int i = 0; i < n; i++) {
        size[i] = of->plan->groups.at[i].n;
        places[i] = of->plan->groups.at[i].places;
    }
    of->groups = trama_alloc((size_t)n * sizeof *of->groups);
    trama_status status = gpu_groups_make(context, n, size, places, of->groups);
    free(size);
    free(places);
    return status;
}

trama_status instance_create(trama_context *context, compiled_plan *of, const value_ref *at, int n_slots,
                             instance **created)
{
    const plan *p = of->plan;
    trama_status status = memory_status(NOWHERE, "planning");
    if (!status && p->groups.n && !of->groups)
        status = join_groups(context, of);
    if (!status)
        status = check_gpus(context, of);
    if (status)
        return status;
    arena memory = {0};
    size_t expected = of->instance_bytes;
    instance *in = arena_take(&memory, sizeof *in, expected);
    *in = (instance){.context = context, .of = of, .n_slots = n_slots, .holders = 1};
    of->users++;
    in->shards = arena_take(&memory, (size_t)(n_slots * p->shards.n) * sizeof(shard *), expected);
    in->slot_used = arena_take(&memory, (size_t)n_slots * sizeof *in->slot_used, expected);
    for (int i = 0; i < n_slots; i++)
        in->slot_used[i] = -1;
    in->owners = arena_take(&memory, (size_t)p->imports.n * sizeof *in->owners, expected);
    for (int i = 0; i < p->imports.n; i++) {
        in->owners[i] = owner_of_import(at[p->imports.at[i].value], &p->imports.at[i]);
        in->owners[i].in->holders++;
    }
    of->instance_bytes = memory.total;
    in->memory = memory;
    status = bind_begin(in);
    if (status)
        instance_release(&in);
    else
        *created = in;
    return status;
}

void instance_release(instance **instance_)
{
    instance *in = *instance_;
    *instance_ = NULL;
    if (!in || --in->holders > 0)
        return;
    for (int i = 0; i < in->lowerings.n; i++)
        lower_free(in, &in->lowerings.at[i]);
    ARRAY_FREE(&in->lowerings);
    loans_end(in);
    bind_end(in);
    for (int i = 0; i < in->of->plan->imports.n; i++)
        instance_release(&in->owners[i].in);
    in->of->users--;
    arena memory = in->memory;
    arena_free(&memory);
}

shard *instance_shard(const instance *in, int number)
{
    struct owner o = owner_of((instance *)in, number);
    return o.in->shards[o.in->slot * o.in->of->plan->shards.n + o.shard];
}

trama_view instance_region(const instance *in, const plan_region *region, const box *whole, const int64_t *stride,
                           int64_t *at)
{
    const plan_shard *s = &in->of->plan->shards.at[region->shard];
    const trama_shape *shape = &in->of->shapes[s->value];
    trama_view v = {.dtype = s->dtype, .ndim = region->box.ndim};
    *at = 0;
    for (int d = 0; d < v.ndim; d++) {
        v.extent[d] = region->box.n[d];
        v.offset[d] = region->box.lo[d];
        v.stride[d] = stride[d];
        v.global[d] = shape->dim[d];
        *at += (region->box.lo[d] - whole->lo[d]) * stride[d];
    }
    *at = box_count(&region->box) ? *at * (int64_t)trama_dtype_size(s->dtype) : 0;
    return v;
}

trama_view instance_view(const instance *in, const plan_region *region, const shard *bound)
{
    int64_t at;
    trama_view v = instance_region(in, region, &in->of->plan->shards.at[region->shard].box, bound->stride, &at);
    v.data = (char *)bound->data + at;
    return v;
}

/* ---- Submission ---- */

static bool has_slots(const instance *in, const lowering *l)
{
    for (int i = 0; i < in->of->plan->imports.n; i++)
        if (l->slots[i] != in->owners[i].in->slot)
            return false;
    return true;
}

/* Which shards one submission uses, and how. */
static void count_uses(const instance *in, lowering *l)
{
    const plan *p = in->of->plan;
    size_t expected = in->of->lowering_bytes;
    int *slot = arena_take(&l->memory, (size_t)p->shards.n * sizeof *slot, expected);
    l->used = arena_take(&l->memory, (size_t)p->shards.n * sizeof *l->used, expected);
    for (int i = 0; i < p->steps.n; i++)
        for (int k = 0; k < p->steps.at[i].n_operands; k++) {
            const plan_operand *o = plan_step_operand(p, &p->steps.at[i], k);
            if (o->access == ACCESS_NONE)
                continue;
            int number = plan_used_as(p, o->region.shard), *u = &slot[number];
            if (!*u) {
                l->used[l->n_used].s = l->shards[number];
                *u = ++l->n_used;
            }
            l->used[*u - 1].reads++;
            l->used[*u - 1].writes |= o->access != ACCESS_READ;
        }
}

/* StarPU remembers the readers of a handle until the next write. A handle without writes needs a call to forget them;
 * the call is rare, since the next readers depend on it. */
static void forget_readers(const instance *in, const lowering *l, fence *f)
{
    for (int i = 0; i < l->n_used; i++) {
        shard *s = l->used[i].s;
        s->readers = l->used[i].writes ? 0 : s->readers + l->used[i].reads;
        if (s->readers < MAX_READERS + MAX_READERS_RUNS * l->used[i].reads)
            continue;
        shard_forget_readers(in->context, s, f);
        s->readers = 0;
    }
}

static bool is_task(const lowered *s)
{
    return s->kind < STEP_SEND && (!s->on_gpu || s->segment);
}

static lowering *lowering_now(instance *in)
{
    for (int i = 0; i < in->lowerings.n; i++)
        if (has_slots(in, &in->lowerings.at[i]))
            return &in->lowerings.at[i];
    if (in->lowerings.n == MAX_LOWERINGS) { /* inputs that are fed at many different paces */
        fence_wait_all(in->context, "trama_run");
        for (int i = 0; i < in->lowerings.n; i++)
            lower_free(in, &in->lowerings.at[i]);
        in->lowerings.n = 0;
    }
    lowering *l = ARRAY_PUSH(&in->lowerings);
    starpu_task_init(&l->task);
    l->task.cl = &work_codelet;
    l->task.destroy = 1;
    l->task.callback_func = fence_signal;
    l->n = in->of->plan->steps.n;
    size_t expected = in->of->lowering_bytes;
    l->slots = arena_take(&l->memory, (size_t)in->of->plan->imports.n * sizeof *l->slots, expected);
    for (int i = 0; i < in->of->plan->imports.n; i++)
        l->slots[i] = in->owners[i].in->slot;
    l->steps = arena_take(&l->memory, (size_t)l->n * sizeof *l->steps, expected);
    lower_shards(in, l);
    for (int i = 0; i < l->n; i++)
        lower_step(in, &in->of->plan->steps.at[i], l, &l->steps[i]);
    segments_make(in, l);
    loans_lower(in, l);
    for (int i = 0; i < l->n; i++) {
        l->tasks += is_task(&l->steps[i]);
        l->orders += is_task(&l->steps[i]) && l->steps[i].nowhere;
    }
    count_uses(in, l);
    in->of->lowering_bytes = l->memory.total;
    return l;
}

/* Fresh tasks from templates: their jobs have their own numbers in traces, and a task may still be ending while the
 * next one of the same step is submitted. */
static void submit_task(const instance *in, const struct starpu_task *common, lowered *s, fence *f)
{
    /* as starpu_task_create, which would fill it in first */
    struct starpu_task *task = trama_resize(NULL, sizeof *task);
    const size_t n = (size_t)s->n_handles;
    *task = *common;
    if (s->segment)
        task->cl = &segment_codelet;
    task->cl_arg = s->segment ? (void *)s->segment : (void *)&s->work;
    task->name = s->label;
    task->flops = s->flops;
    task->priority = s->priority;
    task_room(task, s->n_handles);
    memcpy(task->dyn_handles ? task->dyn_handles : task->handles, s->handles, n * sizeof *s->handles);
    memcpy(task->dyn_modes ? task->dyn_modes : task->modes, s->modes, n * sizeof *s->modes);
    if (s->nowhere)
        task->where = STARPU_NOWHERE;
    if (s->worker >= 0) {
        task->execute_on_a_specific_worker = 1;
        task->workerid = (unsigned)s->worker;
    } else if (s->mask) {
        task->workerids = (uint32_t *)s->mask;
        task->workerids_len = context_mask_words(in->context);
    }
    task->callback_arg = f;
    int error = starpu_task_submit(task);
    if (error)
        context_log(in->context, TRAMA_LOG_ERROR, "StarPU refused task %s: error %d", s->label, error);
}

static void submit_message(const instance *in, const lowered *s, envelope m, fence *f)
{
    if (s->kind == STEP_SEND && s->loan)
        loan_give(in->context, s->loan, s->handles[0], m, f);
    else if (s->kind == STEP_SEND)
        message_send(in->context, s->handles[0], m, f);
    else if (s->loan)
        loan_take(in->context, s->loan, s->handles[0], m, f);
    else
        message_receive(in->context, s->handles[0], m, f);
}

void instance_submit(instance *in, int64_t step, fence *f)
{
    int64_t call = context_next_call(in->context);
    if (call % SYNC_CALLS == 0)
        context_barrier(in->context, "a run");
    message_begin_call(in->context, call);
    const lowering *l = lowering_now(in);
    const int tasks = l->tasks;
    if (l->gpu_bytes > in->of->gpu_bytes)
        context_gpu_wanted(in->context, l->gpu_bytes, l->gpu_name);
    else if (in->of->gpu_bytes)
        context_gpu_wanted(in->context, in->of->gpu_bytes, in->of->gpu_step);
    context_wake(in->context);
    context_count_tasks(in->context, tasks - l->orders);
    fence_add(f, tasks);
    /* On one rank no task waits for a step that is not submitted yet, so the submission may wait for tasks. */
    const bool paced = context_ranks(in->context) == 1 && tasks > MOST_SUBMITTED;
    for (int i = 0, returned = 0; i < l->n; i++) {
        lowered *s = &l->steps[i];
        if (paced && i % PACE == 0)
            fence_wait_below(in->context, f, l->n - i + MOST_SUBMITTED, "trama_run");
        if (is_task(s))
            submit_task(in, &l->task, s, f);
        if (s->kind >= STEP_SEND)
            submit_message(
                in, s,
                (envelope){s->peer, call << MESSAGE_TAG_BITS | s->tag, s->priority, s->label, step, s->rendezvous}, f);
        for (; returned < l->n_returns && l->returns[returned].step == i; returned++) {
            const lowered *taken = &l->steps[l->returns[returned].receive];
            loan_return(taken->loan, taken->handles[0], f);
        }
    }
    forget_readers(in, l, f);
    context_rest(in->context);
}
