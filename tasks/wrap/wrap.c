/* SPDX-License-Identifier: Apache-2.0 */
/* Wrapping the host's arrays: handles on their memory, their users, their release. wrap_boxes.c has the checks,
 * wrap_move.c the moves into and out of them. */
#include "wrap.h"

#include <string.h>

/* ---- Life ---- */

static void wrapped_free(trama_wrapped *w)
{
    box_index_free(&w->user_boxes);
    instance_release(&w->in);
    compiled_program_destroy(&w->s);
    free(w->name);
    free(w);
}

/* Unregisters the handles: the host alone uses the memory again. */
static void unbind(trama_wrapped *w)
{
    const plan *p = w->s->of.plan;
    for (int i = 0; i < p->shards.n; i++)
        if (w->in->shards[i])
            shard_unwrap(w->in->shards[i]);
    memset(w->in->shards, 0, (size_t)p->shards.n * sizeof *w->in->shards);
    fence_free(w->f);
    w->f = NULL;
}

/* Registers the boxes' memory as the plan's shards. */
static trama_status bind(trama_wrapped *w, const trama_host_box *pieces)
{
    const plan *p;
    w->s = compile_user_boxes(&w->planning, w->name, w->dtype, w->shape, &w->user_boxes);
    trama_status status = instance_create(w->context, &w->s->of, NULL, 1, &w->in);
    if (status)
        return status;
    p = w->s->of.plan;
    const plan_dist_value *h = plan_find(p, w->s->result);
    for (int i = 0; i < h->pieces.n; i++) {
        const plan_shard *s = &p->shards.at[h->pieces.at[i].region.shard];
        const trama_host_box *piece = &pieces[h->pieces.at[i].position];
        int64_t stride[TRAMA_MAX_NDIM];
        boxes_strides(piece, s->box.ndim, stride);
        shard *bound = shard_wrap(w->context, s->place, s->dtype, s->box.ndim, s->box.n, stride, piece->data,
                                  s->cut_dim, s->cut_parts, piece->handle);
        w->in->shards[h->pieces.at[i].region.shard] = bound;
        instance_label(w->in, s, bound);
    }
    w->f = fence_new(w->context);
    return TRAMA_OK;
}

trama_status wrapped_call(trama_where where, trama_context *context, const char *call, const char *name, const char *to)
{
    text words = {0};
    if (context_compares(context))
        text_add(&words, "%s('%s'%s%s%s)", call, name ? name : "", to ? ", '" : "", to ? to : "", to ? "'" : "");
    trama_status status = context_call(context, where, call, words.at);
    free(words.at);
    return status;
}

trama_status wrap_agree(trama_where where, trama_context *context, const char *name, trama_status mine)
{
    trama_status status = wrapped_call(where, context, "trama_wrap", name, NULL);
    return status ? status : context_agree(context, "trama_wrap", mine);
}

trama_status trama_wrap_at(trama_where where, trama_context *context, const char *name, trama_dtype dtype,
                           trama_shape shape, int n, const trama_host_box *pieces, trama_access access,
                           trama_wrapped **wrapped)
{
    if (!context || !wrapped)
        return trama_fail(where, TRAMA_E_ARGUMENT, "trama_wrap: the %s is NULL",
                          context ? "wrapped tensor's address" : "context");
    if (context_check(where, "trama_wrap"))
        return TRAMA_E_ORDER;
    trama_wrapped *w = trama_alloc(sizeof *w);
    *w = (trama_wrapped){.context = context,
                         .name = trama_text_copy(name),
                         .dtype = dtype,
                         .shape = shape,
                         .read_only = access == TRAMA_READ_ONLY,
                         .users = 1,
                         .planning = planning_in(context, NULL)};
    trama_status status = boxes_check(where, w, n, pieces);
    status = wrap_agree(where, context, name, status);
    for (int i = 0; i < n && !status; i++)
        w->user_boxes.handled |= pieces[i].handle != NULL;
    if (!status)
        status = boxes_gather(where, w, n, pieces);
    if (!status)
        status = context_agree(context, "trama_wrap", bind(w, pieces));
    if (status) {
        if (w->f)
            unbind(w);
        wrapped_free(w);
        return status;
    }
    w->tenant =
        (context_tenant){.what = "the wrapped tensor", .name = w->name, .ends = "trama_release", .where = where};
    context_enter(context, &w->tenant);
    *wrapped = w;
    return TRAMA_OK;
}

trama_status wrapped_check(trama_where where, const char *call, const trama_wrapped *w, const trama_context *context)
{
    if (!w)
        return trama_fail(where, TRAMA_E_ARGUMENT, "%s: the wrapped tensor is NULL; was it released?", call);
    if (w->released)
        return trama_fail(where, TRAMA_E_ARGUMENT, "%s: '%s' was released: the host has its memory back", call,
                          w->name);
    if (context && w->context != context)
        return trama_fail(where, TRAMA_E_ARGUMENT, "%s: '%s' is of another context", call, w->name);
    return context_check(where, call);
}

static trama_status wait_for(trama_wrapped *w)
{
    trama_status status = TRAMA_OK;
    fence_wait(w->context, w->f, "trama_wait_wrapped");
    const plan *p = w->s->of.plan;
    for (int i = 0; i < p->shards.n && !status; i++) {
        if (!w->in->shards[i])
            continue;
        status = shard_acquire(w->context, w->in->shards[i], STARPU_RW, "trama_wait_wrapped");
        if (!status)
            shard_release(w->context, w->in->shards[i]);
    }
    return status;
}

trama_status trama_wait_wrapped(trama_wrapped *w)
{
    trama_status status = wrapped_check(NOWHERE, "trama_wait_wrapped", w, NULL);
    if (!status)
        status = wait_for(w);
    return status || !w->writer ? status : faults_status(&w->writer->kernels.faults);
}

static void let_go(trama_wrapped *w)
{
    if (--w->users == 0)
        wrapped_free(w);
}

/* Drops the plans of released tensors, and lets go of the tensors that no plan holds then. */
static void forget_released(trama_executable *e)
{
    int n = 0;
    for (int i = 0; i < e->open.wrapped.n; i++) {
        trama_wrapped *w = e->open.wrapped.at[i];
        if (w->released)
            plan_cache_drop(&e->plans, plan_names, w->in);
        if (w->released && w->in->holders == 1)
            let_go(w);
        else
            e->open.wrapped.at[n++] = w;
    }
    e->open.wrapped.n = n;
}

void wrapped_seen(trama_executable *e, trama_wrapped *w)
{
    for (int i = 0; i < e->open.wrapped.n; i++)
        if (e->open.wrapped.at[i] == w)
            return;
    forget_released(e);
    *ARRAY_PUSH(&e->open.wrapped) = w;
    w->users++;
}

void wrapped_forget(trama_executable *e)
{
    for (int i = 0; i < e->open.wrapped.n; i++) {
        if (e->open.wrapped.at[i]->writer == e)
            e->open.wrapped.at[i]->writer = NULL;
        let_go(e->open.wrapped.at[i]);
    }
    ARRAY_FREE(&e->open.wrapped);
}

void wrapped_forget_sources(trama_wrapped *w)
{
    int n = 0;
    bool any = false;
    for (int i = 0; i < w->sources.n; i++)
        any |= w->sources.at[i]->released;
    if (!any)
        return;
    fence_wait(w->context, w->f, "trama_reshard_wrapped");
    for (int i = 0; i < w->sources.n; i++) {
        trama_wrapped *from = w->sources.at[i];
        if (from->released) {
            plan_cache_drop(&w->moves, plan_names, from->in);
            let_go(from);
        } else {
            w->sources.at[n++] = from;
        }
    }
    w->sources.n = n;
}

void wrapped_source(trama_wrapped *w, trama_wrapped *from)
{
    for (int i = 0; i < w->sources.n; i++)
        if (w->sources.at[i] == from)
            return;
    *ARRAY_PUSH(&w->sources) = from;
    from->users++;
}

trama_status trama_release(trama_wrapped **wrapped)
{
    if (!wrapped || !*wrapped)
        return TRAMA_OK;
    trama_wrapped *w = *wrapped;
    trama_status status = wrapped_check(NOWHERE, "trama_release", w, NULL);
    if (!status)
        status = wait_for(w);
    if (status)
        return status;
    status = wrapped_call(NOWHERE, w->context, "trama_release", w->name, NULL); /* an error does not stop the release */
    if (!status)
        status = context_barrier(w->context, "trama_release");
    plan_cache_free(&w->moves);
    for (int i = 0; i < w->sources.n; i++)
        let_go(w->sources.at[i]);
    ARRAY_FREE(&w->sources);
    unbind(w);
    context_leave(w->context, &w->tenant);
    w->released = true;
    *wrapped = NULL;
    let_go(w);
    return status;
}
