/* SPDX-License-Identifier: Apache-2.0 */
/* Running targets: each set of fed extents has a plan, which its runs submit again. */
#include <string.h>

#include "executable.h"
#include "fuse.h"
#include "loans.h"
#include "sized.h"
#include "wrap.h"

/* ---- Compiling a target for the extents fed ---- */

static void form_free(target_form *t)
{
    if (t->last)
        t->last->last = NULL;
    instance_release(&t->from);
    ARRAY_FREE(&t->leaves);
    ARRAY_FREE(&t->results);
    ARRAY_FREE(&t->fed);
    free(t->needed);
    free(t->computed);
    free(t->kept);
    free(t->leader);
}

void targets_free(trama_executable *e)
{
    for (int i = 0; i < e->targets.n; i++)
        for (int k = 0; k < TARGET_FORMS; k++)
            form_free(&e->targets.at[i].form[k]);
    ARRAY_FREE(&e->targets);
}

static bool is_fed(const trama_executable *e, const target_form *t, int i)
{
    return i >= t->carried && e->program->values.at[t->leaves.at[i]]->kind == VALUE_INPUT;
}

/* The key of the target's plan: the instance whose values it carries on, and for each input its shape and the wrapped
 * tensor that it lies in. */
static plan_key key_now(const trama_executable *e, target_form *t)
{
    t->fed.n = 0;
    *ARRAY_PUSH(&t->fed) = (int64_t)(intptr_t)t->from;
    for (int i = 0; i < t->leaves.n; i++) {
        if (!is_fed(e, t, i))
            continue;
        value_ref at = e->at[t->leaves.at[i]];
        const trama_shape *shape = &at.in->of->shapes[at.as];
        *ARRAY_PUSH(&t->fed) = (int64_t)(intptr_t)at.in->host;
        for (int d = 0; d < shape->ndim; d++)
            *ARRAY_PUSH(&t->fed) = shape->dim[d];
    }
    return (plan_key){PLAN_TARGET, t->target, t->fed.at, (size_t)t->fed.n * sizeof *t->fed.at};
}

/* The plan that has leaf i, and the leaf's number there. before: the plan of the form whose values this form carries
 * on. */
static const compiled_plan *leaf_of(const trama_executable *e, const target_form *t, const compiled_plan *before, int i,
                                    int *as)
{
    *as = t->leaves.at[i];
    if (i < t->carried)
        return before;
    value_ref at = e->at[*as];
    *as = at.as;
    return at.in->of;
}

/* Sets the shapes and rules for the fed extents. */
static trama_status resolve_target(const trama_executable *e, const target_form *t, const compiled_plan *before,
                                   compiled_plan *of)
{
    const trama_program *p = t->target->program;
    of->program = p;
    of->faults = e->planning.faults;
    of->shapes = trama_alloc((size_t)p->values.n * sizeof *of->shapes);
    of->rules = node_rules_new(p->nodes.n);
    for (int i = 0; i < p->values.n; i++)
        of->shapes[i] = p->values.at[i]->shape;
    for (int i = 0, as; i < t->leaves.n; i++) {
        const compiled_plan *leaf = leaf_of(e, t, before, i, &as);
        of->shapes[t->leaves.at[i]] = leaf->shapes[as];
    }
    return program_resolve(p, t->needed, of->shapes, &of->rules);
}

static void plan_target(const trama_executable *e, target_form *t, const compiled_plan *before, compiled_plan *of)
{
    plan_source source = planning_source(&e->planning, of, t->l, e->planning.rank);
    free(t->computed);
    t->computed = fuse_computed(of->program, t->needed, t->kept);
    fuse_program(of->program, t->computed, t->l, of->shapes, of->rules.of, !e->planning.options.no_fusion, t->leader);
    partition *q = partition_begin(&source);
    for (int i = 0, as; i < t->leaves.n; i++) {
        const compiled_plan *leaf = leaf_of(e, t, before, i, &as);
        partition_import(q, t->leaves.at[i], leaf->plan, as);
    }
    if (before)
        partition_follow(q, before->plan);
    partition_run(q, t->computed, t->leader, t->kept);
    of->plan = partition_end(&q);
    compiled_plan_finish(of);
}

static trama_status instantiate(const trama_executable *e, const target_form *t, compiled_program *s, instance **in)
{
    value_ref *at = trama_alloc((size_t)t->target->program->values.n * sizeof *at);
    for (int i = 0; i < t->leaves.n; i++) {
        int v = t->leaves.at[i];
        at[v] = i < t->carried ? (value_ref){t->from, v} : e->at[v];
    }
    trama_status status = instance_create(e->context, &s->of, at, 1, in);
    free(at);
    return status;
}

static trama_status make_plan(trama_executable *e, target_form *t, const compiled_plan *before, compiled_program *s,
                              instance **in)
{
    trama_status status = resolve_target(e, t, before, &s->of);
    if (status)
        return status;
    plan_target(e, t, before, &s->of);
    if (context_config(e->context)->verify)
        status = verify_target(e, t, &s->of);
    status = context_agree(e->context, "trama_run", status ? status : instantiate(e, t, s, in));
    return status ? status : loans_agree(*in, "trama_run");
}

/* The plan holds all instances of its key, even where this rank has no box of them, so that all ranks drop the same
 * plans. */
static void keep_plan(trama_executable *e, const target_form *t, const plan_key *key, compiled_program *s, instance *in)
{
    int n = 0;
    value_ref *held = trama_alloc(((size_t)t->leaves.n + 1) * sizeof *held);
    if (t->from)
        held[n++] = (value_ref){t->from, 0};
    for (int i = 0; i < t->leaves.n; i++)
        if (is_fed(e, t, i))
            held[n++] = e->at[t->leaves.at[i]];
    executable_shrink(e, key);
    plan_cache_keep(&e->plans, key, s, in, n, held);
    free(held);
}

static trama_status compile_target(trama_executable *e, target_form *t, const compiled_plan *before,
                                   const plan_key *key)
{
    compiled_program *s = trama_alloc(sizeof *s);
    instance *in = NULL;
    trama_status status = make_plan(e, t, before, s, &in);
    if (!status) {
        keep_plan(e, t, key, s, in);
        return TRAMA_OK;
    }
    instance_release(&in);
    compiled_program_destroy(&s);
    return status;
}

/* ---- Running ---- */

trama_status target_find(trama_where where, trama_executable *e, const trama_target *target, const char *call,
                         target_state **found)
{
    if (!e || !target)
        return trama_fail(where, TRAMA_E_ARGUMENT, "%s: the %s is NULL", call, e ? "target" : "executable");
    if (context_check(where, call))
        return TRAMA_E_ORDER;
    if (target->id >= e->targets.n || strcmp(e->targets.at[target->id].form[TARGET_RUN].target->name, target->name))
        return trama_fail(where, TRAMA_E_ARGUMENT, "%s: target '%s' was not in the program when it was compiled", call,
                          target->name);
    *found = &e->targets.at[target->id];
    return TRAMA_OK;
}

static trama_status check_fed(trama_where where, const trama_executable *e, const target_form *t, const char *call)
{
    for (int i = t->carried; i < t->leaves.n; i++) {
        const instance *in = e->at[t->leaves.at[i]].in;
        const char *name = e->program->values.at[t->leaves.at[i]]->name;
        if (!in)
            return trama_fail(where, TRAMA_E_ORDER, "%s: target '%s' needs the input %s, which was not fed", call,
                              t->target->name, name);
        if (in->host && in->host->released)
            return trama_fail(where, TRAMA_E_ORDER,
                              "%s: target '%s' needs the input %s, which was fed from '%s' without a copy; that was "
                              "released: feed it again",
                              call, t->target->name, name, in->host->name);
    }
    return TRAMA_OK;
}

static trama_status ready_target(trama_where where, trama_executable *e, target_form *t, const compiled_plan *before)
{
    trama_status status = check_fed(where, e, t, "trama_run");
    if (status)
        return status;
    const plan_key key = key_now(e, t);
    if (!plan_cache_find(&e->plans, &key, &t->last))
        status = compile_target(e, t, before, &key);
    if (!status)
        plan_cache_find(&e->plans, &key, &t->last);
    return status;
}

/* Sets the instance that has the values which the form carries on. */
static void carry(target_form *t, instance *in)
{
    if (!t->carried)
        return;
    in->holders++;
    instance_release(&t->from);
    t->from = in;
}

/* Finds or makes the plan of each form. Each instance is held, so that the search for the next one does not drop it. */
static trama_status ready_forms(trama_where where, trama_executable *e, target_state *of, target_run run, instance **in)
{
    trama_status status = TRAMA_OK;
    for (int i = 0; i < run.n && !status; i++) {
        const instance *before = i ? in[i - 1] : run.form[i].from;
        status = ready_target(where, e, &run.form[i], before ? before->of : NULL);
        if (status)
            break;
        in[i] = run.form[i].last->in;
        in[i]->holders++;
        if (&run.form[i] == &of->form[TARGET_RUN])
            carry(&of->form[TARGET_APPLY], in[i]);
    }
    return status;
}

static void submit_form(trama_executable *e, const target_form *t, instance *in, fence *f)
{
    for (int i = t->carried; i < t->leaves.n; i++) {
        instance *leaf = e->at[t->leaves.at[i]].in;
        leaf->slot_used[leaf->slot] = e->runs.n;
    }
    instance_submit(in, e->runs.n, f);
    for (int i = 0; i < t->results.n; i++)
        executable_put(e, t->results.at[i], (value_ref){in, t->results.at[i]});
}

trama_status target_submit(trama_where where, trama_executable *e, target_state *of, target_run run)
{
    instance *in[TARGET_FORMS] = {NULL};
    bool in_cycle = of->cycle.k > 1, applies = !in_cycle || &run.form[run.n - 1] == &of->form[TARGET_APPLY];
    int steps = 0;
    trama_status status = ready_forms(where, e, of, run, in);
    if (!status) {
        for (int i = 0; i < run.n; i++)
            steps += in[i]->of->plan->steps.n;
        fence *f = e->runs.fences[e->runs.n % e->runs.max];
        executable_make_room(e, steps, "trama_run");
        context_step(e->context, e->runs.steps, in_cycle ? of->cycle.at : -1);
        for (int i = 0; i < run.n; i++)
            submit_form(e, &run.form[i], in[i], f);
        context_step(e->context, -1, -1);
        e->runs.steps += applies;
        e->runs.n++;
    }
    for (int i = 0; i < run.n; i++)
        instance_release(&in[i]);
    return status;
}

trama_status trama_run_at(trama_where where, trama_executable *e, const trama_target *target)
{
    target_state *t = NULL;
    trama_status status = target_find(where, e, target, "trama_run", &t);
    if (!status)
        status = executable_call(e, where, "trama_run", target->name, target->id, NULL);
    if (status || t->cycle.k < 2)
        return status ? status : target_submit(where, e, t, target_now(t, true));
    merge_cycle next;
    status = check_fed(where, e, &t->form[TARGET_APPLY], "trama_run");
    if (!status)
        status = cycle_feed(where, e, t, false, &next);
    if (!status)
        status = target_submit(where, e, t, target_now(t, next.at == 0));
    if (!status)
        t->cycle = next;
    return status;
}

/* ---- Questions: not collective, so they make a missing plan for themselves only ---- */

/* The plan of a form from the cache, else made in *own. */
static trama_status find_plan(trama_executable *e, target_form *t, const compiled_plan *before, const char *call,
                              compiled_plan *own, const compiled_plan **found)
{
    trama_status status = check_fed(NOWHERE, e, t, call);
    if (status)
        return status;
    const plan_key key = key_now(e, t);
    const kept_plan *c = !t->carried || (t->from && t->from->of == before) ? plan_cache_look(&e->plans, &key) : NULL;
    *found = c ? &c->s->of : own;
    if (!c)
        status = resolve_target(e, t, before, own);
    if (!c && !status)
        plan_target(e, t, before, own);
    return status;
}

trama_status target_look_at(trama_executable *e, const trama_target *target, const char *call, target_look *look,
                            void *arg)
{
    target_state *of = NULL;
    compiled_plan own[TARGET_FORMS] = {{0}};
    const compiled_plan *found[TARGET_FORMS] = {NULL};
    trama_status status = target_find(NOWHERE, e, target, call, &of);
    if (status)
        return status;
    target_run run = target_now(of, true);
    for (int i = 0; i < run.n && !status; i++)
        status = find_plan(e, &run.form[i], i ? found[i - 1] : NULL, call, &own[i], &found[i]);
    for (int i = 0; i < run.n && !status; i++)
        look(&run.form[i], (target_kind)(&run.form[i] - of->form), found[i]->plan, arg);
    for (int i = run.n - 1; i >= 0; i--)
        compiled_plan_clear(&own[i]);
    return status;
}

typedef struct description {
    bool every_step;
    text words;
} description;

static void describe(const target_form *t, target_kind kind, const plan *p, void *arg)
{
    description *d = arg;
    if (kind == TARGET_APPLY)
        text_add(&d->words, "the last micro-step of a cycle goes on:\n");
    (d->every_step ? plan_describe : plan_summary)(p, t->target->program, &d->words);
}

trama_status trama_plan_text(trama_executable *e, const trama_target *target, bool every_step, char **out)
{
    description d = {.every_step = every_step};
    if (!out)
        return trama_fail(NOWHERE, TRAMA_E_ARGUMENT, "trama_plan_text: the text's address is NULL");
    trama_status status = target_look_at(e, target, "trama_plan_text", describe, &d);
    return status ? status : text_give(&d.words, "trama_plan_text", out);
}

static void count_traffic(const target_form *t, target_kind kind, const plan *p, void *arg)
{
    trama_traffic *of = arg;
    plan_totals n = plan_count(p);
    (void)t;
    of->messages += n.messages;
    of->bytes_received += n.received;
    of->bytes_sent += n.sent;
    of->bound += n.least;
    of->steps += n.steps;
    of->tasks += n.steps - n.messages;
    of->collectives += n.collectives;
    of->collective_received += n.together_received;
    of->collective_sent += n.together_sent;
    if (kind != TARGET_APPLY)
        return;
    of->apply_messages = n.messages;
    of->apply_received = n.received;
    of->apply_sent = n.sent;
    of->apply_tasks = n.steps - n.messages;
}

trama_status traffic_write(const char *call, const trama_traffic *own, trama_traffic *given)
{
    return sized_write(NOWHERE, call, SIZED(trama_traffic, collective_sent), own, given);
}

trama_status trama_target_traffic(trama_executable *e, const trama_target *target, trama_traffic *traffic)
{
    if (!traffic)
        return trama_fail(NOWHERE, TRAMA_E_ARGUMENT, "trama_target_traffic: the traffic's address is NULL");
    trama_traffic counted = {0};
    trama_status status = target_look_at(e, target, "trama_target_traffic", count_traffic, &counted);
    return status ? status : traffic_write("trama_target_traffic", &counted, traffic);
}
