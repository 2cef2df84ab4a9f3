/* SPDX-License-Identifier: Apache-2.0 */
/* Moves of values into and out of wrapped tensors. A move is planned once for each pair of value references. */
#include <string.h>

#include "wrap.h"

enum { MOST_UNDER_WAY = 32 }; /* most moves in flight: with SYNC_CALLS it keeps tags distinct (message.h) */
static int under_way;         /* moves submitted since all had completed; there is one context at a time */

/* ---- Plans ---- */

/* The plan holds both instances, so no other instance gets their addresses, which are in the key. */
static trama_status find_move(const planning *p, trama_wrapped *w, plan_cache *plans, value_ref from, value_ref to,
                              kept_plan **found)
{
    const value_ref ends[] = {from, to};
    const int64_t words[] = {(int64_t)(intptr_t)from.in, from.as, (int64_t)(intptr_t)to.in, to.as};
    const plan_key key = {PLAN_MOVE, NULL, words, sizeof words};
    *found = plan_cache_find(plans, &key, NULL);
    if (*found)
        return TRAMA_OK;
    instance *in = NULL;
    compiled_program *s = compile_move(p, w->name, from, to);
    trama_status status = context_agree(w->context, "a move", instance_create(w->context, &s->of, ends, 1, &in));
    if (status) {
        instance_release(&in);
        compiled_program_destroy(&s);
        return status;
    }
    *found = plan_cache_keep(plans, &key, s, in, 2, ends);
    return TRAMA_OK;
}

static bool is_move(const kept_plan *k, const void *arg)
{
    (void)arg;
    return k->key.use == PLAN_MOVE;
}

static void submit(trama_wrapped *w, const kept_plan *m)
{
    plan_totals n = plan_count(m->s->of.plan);
    if (under_way++ == MOST_UNDER_WAY) {
        fence_wait_all(w->context, "a move");
        under_way = 1;
    }
    instance_submit(m->in, -1, w->f);
    w->last = (trama_traffic){.messages = n.messages,
                              .bytes_received = n.received,
                              .bytes_sent = n.sent,
                              .bound = n.least,
                              .steps = n.steps,
                              .tasks = n.steps - n.messages,
                              .collectives = n.collectives,
                              .collective_received = n.together_received,
                              .collective_sent = n.together_sent};
}

static value_ref stated_at(const trama_wrapped *w)
{
    return (value_ref){w->in, w->s->result};
}

/* Moves between a value of an executable and a wrapped tensor. In eager mode each call has new values, so the plan is
 * dropped. */
static trama_status move_value(trama_executable *e, trama_wrapped *w, value_ref from, value_ref to)
{
    kept_plan *m = NULL;
    wrapped_seen(e, w); /* first: it may forget moves */
    trama_status status = find_move(&e->planning, w, &e->plans, from, to, &m);
    if (status)
        return status;
    submit(w, m);
    w->writer = to.in == w->in ? e : w->writer;
    if (e->session) {
        status = fence_wait(e->context, w->f, "a move");
        plan_cache_drop(&e->plans, is_move, NULL);
    }
    return status;
}

/* ---- Checks ---- */

static trama_status check_fit(trama_where where, const char *call, const trama_wrapped *w, const char *name,
                              trama_dtype dtype, trama_shape shape)
{
    if (dtype != w->dtype)
        return trama_fail(where, TRAMA_E_DTYPE, "%s: '%s' is %s, %s is %s", call, w->name, trama_dtype_name(w->dtype),
                          name, trama_dtype_name(dtype));
    if (trama_shape_equal(shape, w->shape))
        return TRAMA_OK;
    text mine = {0}, theirs = {0};
    shape_text(&mine, w->shape);
    shape_text(&theirs, shape);
    trama_status status =
        trama_fail(where, TRAMA_E_SHAPE, "%s: '%s' is %s, %s is %s", call, w->name, mine.at, name, theirs.at);
    free(mine.at);
    free(theirs.at);
    return status;
}

static trama_status check_source(trama_where where, const char *call, const trama_wrapped *w)
{
    return w->complete ? TRAMA_OK
                       : trama_fail(where, TRAMA_E_LAYOUT,
                                    "%s: the boxes of '%s' have %lld of its %lld elements; a source needs all of them",
                                    call, w->name, (long long)box_index_count(&w->user_boxes),
                                    (long long)trama_shape_count(w->shape));
}

static trama_status check_target(trama_where where, const char *call, const trama_wrapped *w)
{
    return !w->read_only
               ? TRAMA_OK
               : trama_fail(where, TRAMA_E_ARGUMENT, "%s: '%s' was wrapped as TRAMA_READ_ONLY", call, w->name);
}

/* Refuses partial values: a write would have to choose the terms. */
static trama_status check_place(trama_where where, const char *call, const char *name, value_ref at)
{
    const plan_dist_value *h = value_ref_dist_value(at);
    return !layout_has(&h->layout, TRAMA_PARTIAL)
               ? TRAMA_OK
               : trama_fail(where, TRAMA_E_UNSUPPORTED, "%s: %s is a sum of terms that lie on several processes", call,
                            name);
}

/* ---- Feeding ---- */

/* The plan of an input in a wrapped tensor; its program is NULL where an input box lies in none of the rank's boxes.
 * The same on all ranks. */
static kept_plan *view_for(trama_executable *e, trama_wrapped *w, const trama_value *own)
{
    const plan_key key = {PLAN_VIEW, own, &w->in, sizeof w->in};
    const value_ref user_boxes = stated_at(w);
    kept_plan *v = plan_cache_find(&e->plans, &key, NULL);
    if (v)
        return v;
    wrapped_seen(e, w);
    compiled_program *s = compile_view(&e->planning, own, user_boxes, e->l.mesh[own->id], &e->l.value[own->id]);
    return plan_cache_keep(&e->plans, &key, s, NULL, 1, &user_boxes);
}

static trama_status feed_view(trama_executable *e, trama_wrapped *w, const trama_value *own, kept_plan *v)
{
    if (!v->in) {
        trama_status status = instance_create(e->context, &v->s->of, (value_ref[]){stated_at(w)}, 1, &v->in);
        if (status)
            return status;
        v->in->host = w;
    }
    executable_put(e, own->id, kept_at(v));
    return TRAMA_OK;
}

trama_status trama_feed_wrapped_at(trama_where where, trama_executable *e, const trama_value *input, trama_wrapped *w,
                                   bool *copied)
{
    static const char call[] = "trama_feed_wrapped";
    kept_plan *f = NULL;
    value_ref at;
    trama_status status = wrapped_check(where, call, w, e ? e->context : NULL);
    if (!status)
        status = check_source(where, call, w);
    if (!status)
        status = input_check(where, e, call, input, w->shape);
    const trama_value *own = status ? NULL : executable_value(e, where, call, input);
    if (!status)
        status = check_fit(where, call, w, own->name, own->dtype, w->shape);
    if (!status && layout_has(&e->l.value[own->id], TRAMA_PARTIAL))
        status = trama_fail(where, TRAMA_E_UNSUPPORTED,
                            "%s: %s is a sum of terms that lie on several processes; trama_feed gives it its value",
                            call, own->name);
    if (status)
        return status;
    kept_plan *v = view_for(e, w, own);
    if (copied)
        *copied = !v->s;
    e->kernels.may_fail |= v->s && w->user_boxes.strided; /* a product may need a packed copy */
    if (v->s)
        return feed_view(e, w, own, v);
    status = input_buffers(e, own, w->shape, &f);
    if (!status)
        status = input_take(e, own, f, &at);
    return status ? status : move_value(e, w, stated_at(w), at);
}

/* ---- Reading, writing, resharding ---- */

trama_status trama_read_wrapped_at(trama_where where, trama_executable *e, const trama_value *value, trama_wrapped *w)
{
    static const char call[] = "trama_read_wrapped";
    value_ref at;
    trama_status status = wrapped_check(where, call, w, e ? e->context : NULL);
    if (!status)
        status = executable_locate(e, where, call, value, &at);
    if (!status)
        status = check_fit(where, call, w, value->name, value->dtype, at.in->of->shapes[at.as]);
    if (!status)
        status = check_target(where, call, w);
    if (!status)
        status = executable_call(e, where, call, value->name, value->id, NULL);
    return status ? status : move_value(e, w, at, stated_at(w));
}

trama_status trama_write_wrapped_at(trama_where where, trama_executable *e, const trama_value *state, trama_wrapped *w)
{
    static const char call[] = "trama_write_wrapped";
    value_ref at;
    trama_status status = wrapped_check(where, call, w, e ? e->context : NULL);
    if (!status)
        status = check_source(where, call, w);
    if (!status)
        status = executable_locate(e, where, call, state, &at);
    if (!status && !value_storage(executable_value(e, where, call, state)))
        status = trama_fail(where, TRAMA_E_ARGUMENT, "%s: %s is no parameter or state", call, state->name);
    if (!status)
        status = check_fit(where, call, w, state->name, state->dtype, state->shape);
    if (!status)
        status = check_place(where, call, state->name, at);
    if (!status)
        status = executable_call(e, where, call, state->name, state->id, NULL);
    return status ? status : move_value(e, w, stated_at(w), at);
}

trama_status trama_reshard_wrapped_at(trama_where where, trama_wrapped *from, trama_wrapped *to)
{
    static const char call[] = "trama_reshard_wrapped";
    kept_plan *m = NULL;
    trama_status status = wrapped_check(where, call, from, NULL);
    if (!status)
        status = wrapped_check(where, call, to, from->context);
    if (!status && from == to)
        status = trama_fail(where, TRAMA_E_ARGUMENT, "%s: '%s' is both source and target", call, from->name);
    if (!status)
        status = check_source(where, call, from);
    if (!status)
        status = check_target(where, call, to);
    if (!status)
        status = check_fit(where, call, from, to->name, to->dtype, to->shape);
    if (!status)
        status = wrapped_call(where, from->context, call, from->name, to->name);
    if (!status)
        wrapped_forget_sources(to);
    if (!status)
        status = find_move(&from->planning, to, &to->moves, stated_at(from), stated_at(to), &m);
    if (status)
        return status;
    wrapped_source(to, from);
    submit(to, m);
    from->last = to->last;
    return TRAMA_OK;
}

trama_status trama_wrapped_traffic(const trama_wrapped *w, trama_traffic *traffic)
{
    trama_status status = wrapped_check(NOWHERE, "trama_wrapped_traffic", w, NULL);
    if (!status && !traffic)
        status = trama_fail(NOWHERE, TRAMA_E_ARGUMENT, "trama_wrapped_traffic: the traffic's address is NULL");
    return status ? status : traffic_write("trama_wrapped_traffic", &w->last, traffic);
}
