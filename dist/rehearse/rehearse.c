/* SPDX-License-Identifier: Apache-2.0 */
/* trama_rehearse: completes, maps and plans a target for a described machine, one rank after the other, and simulates
 * it. Each plan is freed before the next one is made. */
#include <inttypes.h>
#include <string.h>

#include "rehearsal.h"
#include "sized.h"
#include "split_form.h"
#include "target_plans.h"

enum { RUNS = 1, IN_FLIGHT = 2, ANY = 1024, MOST_RUNS = 10000, MOST_IN_FLIGHT = 64 };

#define OPTIONS SIZED(trama_rehearsal_options, closure)

/* ---- Options ---- */

static trama_status read_options(const trama_rehearsal_options *given, trama_rehearsal_options *o)
{
    memset(o, 0, sizeof *o);
    trama_status status = given ? sized_read(NOWHERE, "trama_rehearse", OPTIONS, o, given) : TRAMA_OK;
    if (status)
        return status;
    const struct {
        const char *name;
        int64_t value, most;
    } limits[] = {{"ranks", o->ranks, 1 << 20},
                  {"runs", o->runs, MOST_RUNS},
                  {"max_in_flight", o->max_in_flight, MOST_IN_FLIGHT},
                  {"any", o->any, INT64_C(1) << 48},
                  {"nominal", o->nominal, INT64_C(1) << 48},
                  {"max_tiles", o->max_tiles, 1 << 20},
                  {"grain_flops", o->grain_flops, INT64_MAX},
                  {"grain_bytes", o->grain_bytes, INT64_MAX},
                  {"staging_bytes", o->staging_bytes, INT64_MAX},
                  {"rank", o->rank, 1 << 20},
                  {"reads", o->reads, 1 << 20}};
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
        if (limits[i].value < 0 || limits[i].value > limits[i].most)
            return trama_fail(NOWHERE, TRAMA_E_ARGUMENT,
                              "trama_rehearse: options.%s is %" PRId64 "; it may be 0 to %" PRId64, limits[i].name,
                              limits[i].value, limits[i].most);
    if (!(o->own_seconds >= 0 && o->own_seconds < 1e9)) /* no NaN */
        return trama_fail(NOWHERE, TRAMA_E_ARGUMENT,
                          "trama_rehearse: options.own_seconds is %g; it may be 0 to 1e9 seconds", o->own_seconds);
    o->runs = o->runs ? o->runs : RUNS;
    o->max_in_flight = o->max_in_flight ? o->max_in_flight : IN_FLIGHT;
    o->any = o->any ? o->any : ANY;
    return TRAMA_OK;
}

static trama_status check_target(const trama_target *target)
{
    const trama_program *p = target->program;
    if (p->status)
        return trama_fail(NOWHERE, p->status, "%s", p->error);
    if (target->merge.k > 1)
        return trama_fail(target->merge.where, TRAMA_E_UNSUPPORTED,
                          "trama_rehearse: %s merges gradients over %" PRId64
                          " micro-steps; rehearse it without trama_gradient_merge",
                          target->name, target->merge.k);
    for (int i = 0; i < p->nodes.n; i++)
        if (p->nodes.at[i]->stage)
            return trama_fail(p->nodes.at[i]->where, TRAMA_E_UNSUPPORTED,
                              "trama_rehearse: %s is in a pipeline stage, and pipelines cannot be run yet; leave out "
                              "trama_stage",
                              p->nodes.at[i]->op->name);
    return scope_check_closed(NOWHERE, p, "trama_rehearse");
}

static trama_status choose_ranks(const trama_cluster *cluster, int processes, trama_rehearsal_options *o)
{
    if (o->ranks > cluster->ranks)
        return trama_fail(NOWHERE, TRAMA_E_ARGUMENT,
                          "trama_rehearse: options.ranks is %d, and the machine has %d ranks", o->ranks,
                          cluster->ranks);
    if (!o->ranks)
        o->ranks = processes < cluster->ranks ? processes : cluster->ranks;
    if (o->plan_only && o->rank >= o->ranks)
        return trama_fail(NOWHERE, TRAMA_E_ARGUMENT, "trama_rehearse: options.rank is %d, and %d ranks take part",
                          o->rank, o->ranks);
    return TRAMA_OK;
}

/* ---- The phases ---- */

typedef struct rehearsing {
    const trama_cluster *cluster;
    trama_rehearsal_options o;
    target_plans plans;
    step_names names;
    simulated *s; /* NULL with plan_only */
    trama_rehearsal *result;
} rehearsing;

static void tell(const rehearsing *r, trama_rehearsal_phase phase, int made)
{
    if (r->o.tell)
        r->o.tell(r->o.closure, phase, made, r->o.ranks);
}

static trama_status complete(rehearsing *r)
{
    target_plans *p = &r->plans;
    const trama_rehearsal_options *o = &r->o;
    p->options.max_tiles = o->max_tiles;
    p->options.grain_flops = o->grain_flops ? o->grain_flops : p->options.grain_flops;
    p->options.grain_bytes = o->grain_bytes ? o->grain_bytes : p->options.grain_bytes;
    p->options.staging_bytes = o->staging_bytes;
    p->nominal = o->nominal ? o->nominal : p->nominal;
    trama_status status = target_plans_complete(p);
    if (status)
        return status;
    tell(r, TRAMA_REHEARSAL_COMPLETE, 0);
    target_plans_map(p);
    tell(r, TRAMA_REHEARSAL_MAP, 0);
    return target_plans_prepare(p);
}

/* Tells of all steps of a rank. */
static void tell_steps(const rehearsing *r, const plan *p, const step_graph *g, const graph_messages *messages)
{
    const cluster_kind *k = cluster_kind_of(r->cluster, p->rank);
    if (!r->o.step)
        return;
    for (int i = 0; i < g->n; i++) {
        const graph_step *s = &g->steps[i];
        trama_rehearsed_step told = {.rank = p->rank,
                                     .step = i,
                                     .worker = s->worker,
                                     .place = s->place,
                                     .priority = s->priority,
                                     .peer = -1,
                                     .orders = s->kind == STEP_ORDER,
                                     .gpu = s->message < 0 && plan_on_gpu(p, p->steps.at[i].place),
                                     .name = r->names.at.at[s->name],
                                     .seconds = s->seconds,
                                     .flops = s->flops,
                                     .n_next = s->again - s->next,
                                     .next = g->next + s->next,
                                     .n_again = s[1].next - s->again,
                                     .again = g->next + s->again};
        if (s->message >= 0) {
            const graph_message *m = &messages->at[s->message];
            told.peer = m->peer;
            told.name = trama_value_name(r->names.program->values.at[m->value]);
            told.sends = s->kind == STEP_SEND;
            told.bytes = m->bytes;
            told.tag = m->tag;
            told.seconds += cluster_copy_seconds(k, m->bytes);
        }
        r->o.step(r->o.closure, &told);
    }
}

static trama_status plan_rank(rehearsing *r, int rank)
{
    graph_messages messages = {0};
    plan *leaves = target_plans_leaves(&r->plans, rank);
    plan *made = target_plans_plan(&r->plans, rank, leaves);
    trama_status status = memory_status(NOWHERE, "trama_rehearse");
    if (!status) {
        const graph_source source = {made,      leaves,       r->plans.machine, cluster_kind_of(r->cluster, rank),
                                     &r->names, r->o.runs > 1};
        step_graph g = step_graph_new(&source, &messages);
        rehearsal_count(r->result, rank, made, &g, r->o.max_in_flight < r->o.runs ? r->o.max_in_flight : r->o.runs);
        tell_steps(r, made, &g, &messages);
        if (r->s)
            status = simulated_add(r->s, g, &messages);
        else
            step_graph_free(&g);
    }
    ARRAY_FREE(&messages);
    plan_destroy(&made);
    plan_destroy(&leaves);
    return status;
}

static trama_status plan_ranks(rehearsing *r)
{
    trama_status status = TRAMA_OK;
    const int first = r->o.plan_only ? r->o.rank : 0, end = r->o.plan_only ? first + 1 : r->o.ranks;
    for (int rank = first; rank < end && !status; rank++) {
        status = plan_rank(r, rank);
        if (!status)
            tell(r, TRAMA_REHEARSAL_PLAN, rank - first + 1);
    }
    return status;
}

static trama_status rehearse(rehearsing *r)
{
    trama_status status = complete(r);
    r->result = rehearsal_new(&r->o);
    if (!status && !r->o.plan_only) {
        r->s = simulated_new(r->cluster, r->plans.machine, &r->names, r->o.runs, r->o.max_in_flight);
        r->s->own = r->o.own_seconds;
        r->s->reads = r->o.reads;
        r->s->event = r->o.event;
        r->s->closure = r->o.closure;
    }
    if (!status)
        status = plan_ranks(r);
    if (status || !r->s)
        return status;
    status = simulated_run(r->s);
    if (!status) {
        rehearsal_take(r->result, r->s);
        tell(r, TRAMA_REHEARSAL_SIMULATE, r->o.ranks);
    }
    return status;
}

/* A copy of the program, with split forms. */
static trama_status copy_split(const trama_program *program, int64_t nominal, trama_program **copy)
{
    trama_program *own = program_copy(program);
    trama_mesh *single = trama_mesh_create("1");
    layouts l = {0};
    trama_status status = own->status ? trama_fail(NOWHERE, own->status, "%s", own->error)
                                      : split_forms_complete(own, nominal, single, &l);
    layouts_free(&l);
    trama_mesh_destroy(&single);
    if (status)
        trama_program_destroy(&own);
    *copy = own;
    return status;
}

trama_status trama_rehearse(const trama_target *target, const trama_cluster *cluster,
                            const trama_rehearsal_options *options, trama_rehearsal **rehearsal)
{
    rehearsing r = {.cluster = cluster};
    if (!target || !cluster || !rehearsal)
        return trama_fail(NOWHERE, TRAMA_E_ARGUMENT, "trama_rehearse: the %s is NULL",
                          !target   ? "target"
                          : cluster ? "rehearsal's address"
                                    : "cluster");
    trama_status status = read_options(options, &r.o);
    if (!status)
        status = check_target(target);
    if (!status)
        status = choose_ranks(cluster, target_plans_processes(target->program), &r.o);
    trama_program *own = NULL;
    if (!status)
        status = copy_split(target->program, r.o.nominal ? r.o.nominal : TARGET_PLANS_NOMINAL, &own);
    if (status)
        return status;
    r.names = step_names_new(own);
    r.plans = target_plans_new(own, own->targets.at[target->id], cluster_machine(cluster, r.o.ranks), r.o.any);
    status = rehearse(&r);
    if (!status)
        status = memory_status(NOWHERE, "trama_rehearse");
    simulated_free(&r.s);
    target_plans_free(&r.plans);
    step_names_free(&r.names);
    trama_program_destroy(&own);
    if (status)
        trama_rehearsal_destroy(&r.result);
    else
        *rehearsal = r.result;
    return status;
}
