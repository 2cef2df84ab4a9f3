/* SPDX-License-Identifier: Apache-2.0 */
/* Running targets: a plan for each set of fed extents, replayed. */
#include <string.h>

#include "executable.h"
#include "fuse.h"
#include "wrap.h"

enum { MAX_COMPILED = 8 };

/* ---- What a target needs ---- */

static void add_once(value_ids *ids, int value)
{
    for (int i = 0; i < ids->n; i++)
        if (ids->at[i] == value)
            return;
    *ARRAY_PUSH(ids) = value;
}

static bool is_leaf(const trama_value *v)
{
    return v->kind == VALUE_INPUT || v->kind == VALUE_STATE || v->kind == VALUE_CONSTANT ||
           (v->kind == VALUE_RESULT && v->node->op->n_in == 0);
}

static void prepare(target_form *t, const trama_program *p, int target, const layouts *l)
{
    t->target = p->targets.at[target];
    t->l = l;
    t->needed = trama_alloc((size_t)max_i64(1, p->nodes.n));
    t->kept = trama_alloc((size_t)p->values.n);
    t->leader = trama_alloc((size_t)max_i64(1, p->nodes.n) * sizeof *t->leader);
    program_closure(p, t->target->values.n, t->target->values.at, t->needed);
    for (int i = 0; i < t->target->values.n; i++) {
        trama_value *v = t->target->values.at[i];
        t->kept[v->id] = v->kind != VALUE_EFFECT;
        if (is_leaf(v))
            add_once(&t->leaves, v->id);
        else if (t->kept[v->id] && !value_storage(v))
            add_once(&t->results, v->id);
    }
    for (int i = 0; i < p->nodes.n; i++)
        for (int k = 0; t->needed[i] && k < p->nodes.at[i]->op->n_in; k++)
            if (is_leaf(p->nodes.at[i]->in[k]))
                add_once(&t->leaves, p->nodes.at[i]->in[k]->id);
    for (int i = 0; i < p->nodes.n; i++)
        if (p->nodes.at[i]->op->n_in == 0)
            t->needed[i] = false; /* done once, at compile */
}

trama_status targets_prepare(trama_executable *e)
{
    trama_status status = TRAMA_OK;
    for (int i = 0; i < e->program->targets.n; i++) {
        target_state *t = ARRAY_PUSH(&e->targets);
        prepare(&t->form, e->program, i, &e->l);
        if (t->form.target->merge.k)
            prepare(&t->plain, e->plain, i, &e->plain_l);
    }
    for (int i = 0; i < e->targets.n && !status; i++)
        status = cycle_begin(e, &e->targets.at[i]);
    return status;
}

/* ---- Compiling a target for the extents fed ---- */

static void compiled_destroy(compiled *c)
{
    instance_release(&c->in);
    blueprint_clear(&c->of);
    free(c->hosts);
    free(c);
}

static void forget_values(trama_executable *e, const compiled *c)
{
    for (int i = 0; i < e->n_located; i++)
        if (e->at[i].in == c->in)
            executable_put(e, i, (located){0});
}

static void form_free(trama_executable *e, target_form *t)
{
    for (int i = 0; i < t->cache.n; i++) {
        forget_values(e, t->cache.at[i]);
        compiled_destroy(t->cache.at[i]);
    }
    ARRAY_FREE(&t->cache);
    ARRAY_FREE(&t->leaves);
    ARRAY_FREE(&t->results);
    free(t->needed);
    free(t->kept);
    free(t->leader);
}

/* Not those that hold values which can be read, or readings under way. */
static void drop_idle_plans(target_form *t)
{
    int n = 0;
    for (int i = 0; i < t->cache.n; i++)
        if (t->cache.at[i]->in->holders == 1)
            compiled_destroy(t->cache.at[i]);
        else
            t->cache.at[n++] = t->cache.at[i];
    t->cache.n = n;
}

void compiled_forget(trama_executable *e)
{
    trama_wait(e);
    flight_wait_all(e->context, "trama_run");
    readers_forget(e);
    moves_free(&e->moves);
    for (int i = 0; i < e->targets.n; i++) {
        drop_idle_plans(&e->targets.at[i].form);
        drop_idle_plans(&e->targets.at[i].plain);
    }
}

void targets_free(trama_executable *e)
{
    for (int i = 0; i < e->targets.n; i++) {
        form_free(e, &e->targets.at[i].form);
        form_free(e, &e->targets.at[i].plain);
    }
    ARRAY_FREE(&e->targets);
}

static compiled *cached(const trama_executable *e, const target_form *t)
{
    for (int i = 0; i < t->cache.n; i++) {
        const compiled *c = t->cache.at[i];
        bool same = true;
        for (int k = 0; k < t->leaves.n && same; k++) {
            int v = t->leaves.at[k];
            located at = e->at[v];
            same = c->hosts[k] == at.in->host && trama_shape_equal(c->of.shapes[v], at.in->of->shapes[at.as]);
        }
        if (same)
            return t->cache.at[i];
    }
    return NULL;
}

/* Shapes for the extents fed, and the factor tables that follow. */
static trama_status resolve_target(const trama_executable *e, const target_form *t, blueprint *of)
{
    const trama_program *p = t->target->program;
    of->program = p;
    of->faults = e->planning.faults;
    of->shapes = trama_alloc((size_t)p->values.n * sizeof *of->shapes);
    of->rules = trama_alloc((size_t)max_i64(1, p->nodes.n) * sizeof *of->rules);
    for (int i = 0; i < p->values.n; i++)
        of->shapes[i] = p->values.at[i]->shape;
    for (int i = 0; i < t->leaves.n; i++) {
        located at = e->at[t->leaves.at[i]];
        of->shapes[t->leaves.at[i]] = at.in->of->shapes[at.as];
    }
    return program_resolve(p, t->needed, of->shapes, of->rules);
}

static void plan_target(const trama_executable *e, target_form *t, blueprint *of)
{
    plan_source source = planning_source(&e->planning, of, t->l, e->planning.rank);
    fuse_program(of->program, t->needed, t->l, of->shapes, !e->planning.options.no_fusion, t->leader);
    partition *q = partition_begin(&source);
    for (int i = 0; i < t->leaves.n; i++) {
        located at = e->at[t->leaves.at[i]];
        partition_import(q, t->leaves.at[i], at.in->of->plan, at.as);
    }
    partition_run(q, t->needed, t->leader, t->kept);
    of->plan = partition_end(&q);
    blueprint_finish(of);
}

static trama_status instantiate(trama_executable *e, compiled *c)
{
    return instance_create(e->context, &c->of, e->at, 1, &c->in);
}

static trama_status compile_target(trama_executable *e, target_form *t, compiled **made)
{
    compiled *c = trama_alloc(sizeof *c);
    trama_status status = resolve_target(e, t, &c->of);
    c->hosts = trama_alloc((size_t)max_i64(1, t->leaves.n) * sizeof *c->hosts);
    for (int i = 0; i < t->leaves.n; i++)
        c->hosts[i] = e->at[t->leaves.at[i]].in->host;
    if (!status) {
        plan_target(e, t, &c->of);
        if (context_config(e->context)->verify)
            status = verify_target(e, t, &c->of);
        status = context_agree(e->context, "trama_run", status ? status : instantiate(e, c));
    }
    if (status) {
        compiled_destroy(c);
        return status;
    }
    if (t->cache.n >= MAX_COMPILED)
        compiled_forget(e);
    *ARRAY_PUSH(&t->cache) = c;
    *made = c;
    return TRAMA_OK;
}

/* ---- Running ---- */

trama_status target_find(trama_where where, trama_executable *e, const trama_target *target, const char *call,
                         target_state **found)
{
    if (!e || !target)
        return trama_fail(where, TRAMA_E_ARGUMENT, "%s: the %s is NULL", call, e ? "target" : "executable");
    if (context_check(where, call))
        return TRAMA_E_ORDER;
    if (target->id >= e->targets.n || strcmp(e->targets.at[target->id].form.target->name, target->name))
        return trama_fail(where, TRAMA_E_ARGUMENT, "%s: target '%s' was not in the program when it was compiled", call,
                          target->name);
    *found = &e->targets.at[target->id];
    return TRAMA_OK;
}

static trama_status check_fed(trama_where where, const trama_executable *e, const target_form *t, const char *call)
{
    for (int i = 0; i < t->leaves.n; i++) {
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

static trama_status ready_target(trama_where where, trama_executable *e, target_form *t, compiled **c)
{
    trama_status status = check_fed(where, e, t, "trama_run");
    if (status)
        return status;
    *c = cached(e, t);
    return *c ? TRAMA_OK : compile_target(e, t, c);
}

static bool has_part(const trama_value *v, run_parts parts)
{
    return parts & (v->node && v->node->gated ? RUN_GATED : RUN_MICRO);
}

trama_status target_submit(trama_where where, trama_executable *e, target_state *of, run_parts parts)
{
    target_form *t = target_now(of);
    compiled *c = NULL;
    trama_status status = ready_target(where, e, t, &c);
    if (status)
        return status;
    flight *f = e->flights[e->runs % e->window];
    executable_make_room(e, c->of.plan->steps.n, "trama_run");
    for (int i = 0; i < t->leaves.n; i++) {
        instance *in = e->at[t->leaves.at[i]].in;
        in->slot_used[in->slot] = e->runs;
    }
    context_step(e->context, e->steps, of->cycle.k > 1 ? of->cycle.at : -1);
    instance_submit(c->in, e->runs, f, parts);
    context_step(e->context, -1, -1);
    e->steps += (parts & RUN_GATED) != 0;
    for (int i = 0; i < t->results.n; i++)
        if (has_part(t->target->program->values.at[t->results.at[i]], parts))
            executable_put(e, t->results.at[i], (located){c->in, t->results.at[i]});
    e->runs++;
    return TRAMA_OK;
}

trama_status trama_run_at(trama_where where, trama_executable *e, const trama_target *target)
{
    target_state *t = NULL;
    trama_status status = target_find(where, e, target, "trama_run", &t);
    if (!status)
        status = executable_call(e, where, "trama_run", target->name, target->id, NULL);
    if (status || t->cycle.k < 2)
        return status ? status : target_submit(where, e, t, RUN_ALL);
    merge_cycle next;
    status = cycle_feed(where, e, t, false, &next);
    if (!status)
        status = target_submit(where, e, t, next.at ? RUN_MICRO : RUN_ALL);
    if (!status)
        t->cycle = next;
    return status;
}

/* ---- Questions: not collective, so that a plan which no run has made is made to be looked at only ---- */

trama_status target_look_at(trama_executable *e, const trama_target *target, const char *call, target_look *look,
                            void *arg)
{
    target_state *of = NULL;
    target_form *t = NULL;
    trama_status status = target_find(NOWHERE, e, target, call, &of);
    if (!status)
        status = check_fed(NOWHERE, e, t = target_now(of), call);
    if (status)
        return status;
    const compiled *c = cached(e, t);
    blueprint own = {0};
    if (!c)
        status = resolve_target(e, t, &own);
    if (!c && !status)
        plan_target(e, t, &own);
    if (!status)
        look(t, c ? c->of.plan : own.plan, arg);
    blueprint_clear(&own);
    return status;
}

typedef struct description {
    bool every_step;
    text words;
} description;

static void describe(const target_form *t, const plan *p, void *arg)
{
    description *d = arg;
    (d->every_step ? plan_describe : plan_summary)(p, t->target->program, &d->words);
}

trama_status trama_plan_text(trama_executable *e, const trama_target *target, bool every_step, char **out)
{
    description d = {.every_step = every_step};
    if (!out)
        return trama_fail(NOWHERE, TRAMA_E_ARGUMENT, "trama_plan_text: the text's address is NULL");
    trama_status status = target_look_at(e, target, "trama_plan_text", describe, &d);
    if (!status)
        *out = text_take(&d.words);
    return status;
}

static void count_traffic(const target_form *t, const plan *p, void *arg)
{
    (void)t;
    plan_totals n = plan_count(p), g = plan_count_gated(p);
    *(trama_traffic *)arg = (trama_traffic){.messages = n.messages,
                                            .bytes_received = n.received,
                                            .bytes_sent = n.sent,
                                            .bound = n.least,
                                            .steps = n.steps,
                                            .tasks = n.steps - n.messages,
                                            .collectives = n.collectives,
                                            .collective_received = n.together_received,
                                            .collective_sent = n.together_sent,
                                            .gated_messages = g.messages,
                                            .gated_received = g.received,
                                            .gated_sent = g.sent,
                                            .gated_tasks = g.steps - g.messages};
}

trama_status trama_target_traffic(trama_executable *e, const trama_target *target, trama_traffic *traffic)
{
    if (!traffic)
        return trama_fail(NOWHERE, TRAMA_E_ARGUMENT, "trama_target_traffic: the traffic's address is NULL");
    return target_look_at(e, target, "trama_target_traffic", count_traffic, traffic);
}
