/* SPDX-License-Identifier: Apache-2.0 */
/* The cycle of a target that accumulates gradients: which micro-step the next run is, its weight, and whether it ends
 * the cycle. This is known when a run is submitted, so only the last micro-step has the tasks and messages that apply
 * the gradients. */
#include <math.h>
#include <string.h>

#include "executable.h"
#include "trama_optimizer.h"
#include "trama_state.h"

/* Feeds the scalars that have changed, or all. */
static trama_status feed(trama_where where, trama_executable *e, target_state *t, const double *values, bool all)
{
    trama_status status = TRAMA_OK;
    for (int i = 0; i < MERGE_SCALARS && !status; i++) {
        if (!all && t->cycle.fed[i] == values[i])
            continue;
        status = trama_feed_at(where, e, t->cycle.scalar[i], &values[i], TRAMA_SCALAR);
        if (!status)
            t->cycle.fed[i] = values[i];
    }
    return status;
}

trama_status cycle_begin(trama_executable *e, target_state *t)
{
    const double values[MERGE_SCALARS] = {[MERGE_WEIGHT] = 1, [MERGE_SCALE] = 1};
    const target_merge *merge = &t->form[TARGET_RUN].target->merge;
    t->cycle.k = merge->k;
    trama_status status = merge->k > 1 ? buffers_place(e, &t->form[TARGET_RUN]) : TRAMA_OK;
    return merge->k && !status ? feed(merge->where, e, t, values, true) : status;
}

/* The number of samples: the extent of the first TRAMA_ANY dim of the target's first input that has one; else 1. */
static double samples(const trama_executable *e, const target_state *t)
{
    int first = -1;
    int64_t extent = 1;
    const value_ids *leaves = &t->form[TARGET_RUN].leaves;
    for (int i = 0; i < leaves->n; i++) {
        const trama_value *v = e->program->values.at[leaves->at[i]];
        value_ref at = e->at[v->id];
        if (v->kind != VALUE_INPUT || !at.in || (first >= 0 && v->id > first))
            continue;
        for (int d = v->shape.ndim - 1; d >= 0; d--)
            if (v->shape.dim[d] == TRAMA_ANY) {
                first = v->id;
                extent = at.in->of->shapes[at.as].dim[d];
            }
    }
    return (double)extent;
}

/* The scalars of the next micro-step, and the cycle after it. A flush adds no samples; only the end of a cycle reads
 * the scale. */
trama_status cycle_feed(trama_where where, trama_executable *e, target_state *t, bool flush, merge_cycle *next)
{
    bool mean = !(t->form[TARGET_RUN].target->merge.how & TRAMA_MERGE_SUM), begins = !t->cycle.at;
    double n = flush ? 0 : samples(e, t), first = begins ? n : t->cycle.first, sum = begins ? n : t->cycle.sum + n;
    int64_t at = flush || t->cycle.at + 1 >= t->cycle.k ? 0 : t->cycle.at + 1;
    double values[MERGE_SCALARS];
    memcpy(values, t->cycle.fed, sizeof values);
    if (!flush) {
        values[MERGE_KEEP] = !begins;
        values[MERGE_WEIGHT] = mean && first > 0 ? n / first : 1;
    }
    if (at == 0)
        values[MERGE_SCALE] = mean && sum > 0 ? first / sum : 1;
    trama_status status = feed(where, e, t, values, false);
    *next = t->cycle;
    next->first = first;
    next->sum = sum;
    next->at = at;
    return status;
}

static trama_status find_merging(trama_where where, trama_executable *e, const trama_target *target, const char *call,
                                 target_state **t)
{
    trama_status status = target_find(where, e, target, call, t);
    if (!status && !(*t)->cycle.k)
        status = trama_fail(where, TRAMA_E_ARGUMENT, "%s: target '%s' merges no gradients (trama_gradient_merge)", call,
                            target->name);
    return status;
}

static trama_status set_length(trama_executable *e, target_state *t, const char *call, int64_t k)
{
    trama_status status = k > 1 ? context_agree(e->context, call, buffers_place(e, &t->form[TARGET_RUN])) : TRAMA_OK;
    if (!status)
        t->cycle.k = k;
    return status;
}

trama_status trama_merge_set_at(trama_where where, trama_executable *e, const trama_target *target, int64_t k)
{
    target_state *t;
    trama_shape steps = TRAMA_SHAPE(k);
    trama_status status = find_merging(where, e, target, "trama_merge_set", &t);
    if (!status && k < 1)
        status = trama_fail(where, TRAMA_E_ARGUMENT, "trama_merge_set: k is %lld; it takes micro-steps, 1 or more",
                            (long long)k);
    if (!status && t->cycle.at)
        status =
            trama_fail(where, TRAMA_E_ORDER,
                       "trama_merge_set: %lld of %lld micro-steps of target '%s' are done; change k between cycles, "
                       "after the last one or trama_flush",
                       (long long)t->cycle.at, (long long)t->cycle.k, target->name);
    if (!status)
        status = executable_call(e, where, "trama_merge_set", target->name, target->id, &steps);
    return status ? status : set_length(e, t, "trama_merge_set", k);
}

trama_status trama_flush_at(trama_where where, trama_executable *e, const trama_target *target)
{
    target_state *t;
    merge_cycle next;
    trama_status status = find_merging(where, e, target, "trama_flush", &t);
    if (!status)
        status = executable_call(e, where, "trama_flush", target->name, target->id, NULL);
    if (status || !t->cycle.at)
        return status;
    target_form *apply = &t->form[TARGET_APPLY];
    if (apply->carried && !apply->from)
        return trama_fail(where, TRAMA_E_ORDER,
                          "trama_flush: target '%s' goes on with %s as the last micro-step left it, and none was run "
                          "since trama_merge_resume; run one first",
                          target->name, e->program->values.at[apply->leaves.at[0]]->name);
    status = cycle_feed(where, e, t, true, &next);
    if (!status)
        status = target_submit(where, e, t, (target_run){apply, 1});
    if (!status)
        t->cycle = next;
    return status;
}

/* ---- Going on from elsewhere ---- */

trama_status trama_merge_position_at(trama_where where, trama_executable *e, const trama_target *target,
                                     trama_merge_cycle *cycle)
{
    static const char call[] = "trama_merge_position";
    target_state *t;
    if (!cycle)
        return trama_fail(where, TRAMA_E_ARGUMENT, "%s: the cycle's address is NULL", call);
    trama_status status = find_merging(where, e, target, call, &t);
    if (!status)
        *cycle = (trama_merge_cycle){t->cycle.k, t->cycle.at, t->cycle.first, t->cycle.sum};
    return status;
}

static bool is_cycle(const trama_merge_cycle *c)
{
    bool counted = c->at == 0 || (isfinite(c->first) && isfinite(c->sum) && c->first >= 0 && c->sum >= c->first);
    return c->k >= 1 && c->at >= 0 && c->at < c->k && counted;
}

trama_status trama_merge_resume_at(trama_where where, trama_executable *e, const trama_target *target,
                                   const trama_merge_cycle *cycle)
{
    static const char call[] = "trama_merge_resume";
    target_state *t;
    if (!cycle)
        return trama_fail(where, TRAMA_E_ARGUMENT, "%s: the cycle is NULL", call);
    trama_status status = find_merging(where, e, target, call, &t);
    if (!status && !is_cycle(cycle))
        status =
            trama_fail(where, TRAMA_E_ARGUMENT,
                       "%s: target '%s' cannot be at micro-step %lld of %lld with %g samples, %g of them in the first; "
                       "give the cycle that trama_merge_position answered",
                       call, target->name, (long long)cycle->at, (long long)cycle->k, cycle->sum, cycle->first);
    trama_shape steps = TRAMA_SHAPE(cycle->k, cycle->at);
    if (!status)
        status = executable_call(e, where, call, target->name, target->id, &steps);
    if (!status)
        status = set_length(e, t, call, cycle->k);
    if (!status) {
        t->cycle.at = cycle->at;
        t->cycle.first = cycle->first;
        t->cycle.sum = cycle->sum;
    }
    return status;
}
