/* SPDX-License-Identifier: Apache-2.0 */
/* Compiling: from the user's program to an executable with initialised state; and destroying it. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "executable.h"
#include "host.h"
#include "layout_search.h"
#include "map_traffic.h"
#include "merge_gradients.h"

/* ---- First contents ---- */

static void keep_content(trama_executable *e, const trama_value *v, compiled_program *s)
{
    plan_cache_keep(&e->plans, &(plan_key){PLAN_CONTENT, v, "", 0}, s, NULL, 0, NULL);
}

/* Runs an op without operands into the layout of the value. */
static trama_status place_source(trama_executable *e, const trama_value *v, const trama_op *op,
                                 const trama_attributes *attributes)
{
    compiled_program *s = NULL;
    instance *in = NULL;
    trama_status status =
        compile_source(&e->planning, v->name, op, attributes, e->l.mesh[v->id], &e->l.value[v->id], &s);
    if (status == TRAMA_E_MEMORY)
        return status;
    if (status)
        return trama_fail(v->where, status, "%s: its first content does not fit its type", v->name);
    keep_content(e, v, s);
    s->program->values.at[s->result]->where = v->where; /* for messages */
    status = instance_create(e->context, &s->of, NULL, 1, &in);
    if (status)
        return status;
    executable_put(e, v->id, (value_ref){in, s->result});
    fence *f = fence_new(e->context);
    instance_submit(in, 0, f);
    status = fence_wait(e->context, f, "the first content of state");
    fence_free(f);
    instance_release(&in);
    return status;
}

/* Copies the host array of a constant or state into the layout of the value. */
static trama_status place_data(trama_executable *e, const trama_value *v)
{
    instance *in = NULL;
    compiled_program *s = compile_feed(&e->planning, v, v->shape, e->l.mesh[v->id], &e->l.value[v->id]);
    keep_content(e, v, s);
    trama_status status = instance_create(e->context, &s->of, NULL, 1, &in);
    if (status)
        return status;
    executable_put(e, v->id, (value_ref){in, s->result});
    instance_release(&in);
    return host_to_value(e->at[v->id], v->data, v->shape, "trama_compile");
}

trama_status state_may_lie(const trama_value *v, const trama_layout *layout)
{
    if (layout_has(layout, TRAMA_PARTIAL) && !v->state->terms)
        return trama_fail(v->where, TRAMA_E_LAYOUT, "%s: state cannot be partial; leave the axis R or S", v->name);
    return TRAMA_OK;
}

static trama_status place_state(trama_executable *e, const trama_value *v)
{
    trama_status status = state_may_lie(v, &e->l.value[v->id]);
    if (status || v->data)
        return status ? status : place_data(e, v);
    trama_attributes a;
    const trama_op *op = state_source(v, &a);
    return place_source(e, v, op, &a);
}

static trama_status place(trama_executable *e, const trama_value *v)
{
    if (v->kind == VALUE_STATE)
        return place_state(e, v);
    if (v->kind == VALUE_CONSTANT)
        return place_data(e, v);
    return place_source(e, v, v->node->op, v->node->attributes);
}

/* Buffers of merged gradients wait for a cycle of more than one micro-step. */
static bool has_first_content(const trama_value *v)
{
    return (v->kind == VALUE_STATE && !v->state->terms) || v->kind == VALUE_CONSTANT ||
           (v->kind == VALUE_RESULT && v->node->op->n_in == 0);
}

trama_status buffers_place(trama_executable *e, const target_form *t)
{
    trama_status status = TRAMA_OK;
    for (int i = 0; i < t->leaves.n && !status; i++) {
        const trama_value *v = e->program->values.at[t->leaves.at[i]];
        if (v->state->terms && !e->at[v->id].in)
            status = place(e, v);
    }
    return status;
}

/* ---- Compile and destroy ---- */

/* Refuses marks that a program may record but no executable runs yet. */
static trama_status refuse_marks(const trama_program *p)
{
    for (int i = 0; i < p->nodes.n; i++)
        if (p->nodes.at[i]->stage)
            return trama_fail(
                p->nodes.at[i]->where, TRAMA_E_UNSUPPORTED,
                "trama_compile: %s is in pipeline stage %d, and pipelines cannot be run yet; leave out trama_stage",
                p->nodes.at[i]->op->name, p->nodes.at[i]->stage - 1);
    for (int i = 0; i < p->values.n; i++)
        if (p->values.at[i]->offload)
            return trama_fail(p->values.at[i]->where, TRAMA_E_UNSUPPORTED,
                              "trama_compile: %s is offloaded, which cannot be run yet; leave out trama_offload",
                              p->values.at[i]->name);
    return TRAMA_OK;
}

/* Maps processes to places by their traffic. The map stays in order where the user orders processes or gives weights,
 * since weights are for places in order. */
static void map_processes(trama_executable *e)
{
    const trama_config *config = context_config(e->context);
    if (config->map_by_order || e->program->order.n || program_is_weighted(e->program))
        return;
    process_traffic *t = traffic_of_program(e->program, &e->l, config->nominal, e->map->n, NULL);
    process_map *map = map_by_traffic(t, e->map->n, context_machine(e->context));
    traffic_destroy(&t);
    map_destroy(&e->map);
    e->map = map;
    e->planning.map = map;
}

/* Gives the leaves that both programs read the layouts of plain training, which keep the limit. */
static void lay_leaves_as_plain(trama_executable *e)
{
    for (int i = 0; i < e->plain.program->values.n; i++) {
        trama_value *v = e->program->values.at[i];
        if (v->kind > VALUE_CONSTANT || v->kind != e->plain.program->values.at[i]->kind ||
            e->plain.l.mesh[i] == e->single)
            continue;
        v->mesh = program_mesh(e->program, e->plain.l.mesh[i]);
        trama_layout layout = e->plain.l.value[i];
        layout.mask = mesh_mask(v->mesh, layout.mask);
        program_lay_out(v, layout);
    }
    if (e->program->search.of_states) /* the merged program has more of them */
        e->program->search.limit = 0;
}

/* Plain training has no split forms: their values would have numbers that other values have in the merged program. */
static trama_status complete_both(trama_executable *e)
{
    int64_t nominal = context_config(e->context)->nominal;
    trama_status status = TRAMA_OK;
    if (e->plain.program) {
        status = complete_program(e->plain.program, nominal, e->single, &e->plain.l);
        if (!status)
            status = search_if_asked(e->plain.program, nominal, &e->plain.l);
        if (!status)
            lay_leaves_as_plain(e);
    }
    return status ? status : search_complete(e->program, nominal, e->single, &e->l);
}

static trama_status complete_and_place(trama_executable *e)
{
    trama_status status = complete_both(e);
    executable_put(e, e->program->values.n, (value_ref){0});
    if (!status)
        map_processes(e);
    if (!status && *e->l.report)
        context_log(e->context, TRAMA_LOG_INFO, "%s", e->l.report);
    for (int i = 0; i < e->program->values.n && !status; i++)
        if (has_first_content(e->program->values.at[i]))
            status = place(e, e->program->values.at[i]);
    return status;
}

/* The checks that need no other rank. */
static trama_status check_program(trama_where where, const trama_program *program)
{
    if (program->status)
        return trama_fail(NOWHERE, program->status, "%s", program->error);
    if (!program->targets.n)
        return trama_fail(where, TRAMA_E_ARGUMENT,
                          "trama_compile: the program has no target; create one for the values to compute "
                          "(trama_target_create)");
    trama_status status = scope_check_closed(where, program, "trama_compile");
    return status ? status : refuse_marks(program);
}

/* Checks that each rank's program can be compiled and that all are the same. */
static trama_status agree(trama_where where, trama_context *context, const trama_program *program)
{
    trama_status status = context_call(context, where, "trama_compile", "trama_compile()");
    return status ? status : same_program(where, context, program, check_program(where, program));
}

trama_status trama_compile_at(trama_where where, trama_context *context, const trama_program *program,
                              trama_executable **executable)
{
    if (!context || !program || !executable)
        return trama_fail(where, TRAMA_E_ARGUMENT, "trama_compile: the %s is NULL",
                          !context  ? "context"
                          : program ? "executable's address"
                                    : "program");
    if (context_check(where, "trama_compile"))
        return TRAMA_E_ORDER;
    trama_status status = agree(where, context, program);
    if (status)
        return status;
    trama_executable *e;
    trama_program *own = program_copy(program);
    accumulation *made = own->status ? NULL : merge_gradients(own);
    executable_begin(where, context, own, &e);
    e->owns_program = true;
    for (int i = 0; i < own->nodes.n; i++)
        executable_note_kernel(e, own->nodes.at[i]);
    if (made)
        e->plain.program = program_copy(program);
    if (made && e->plain.program->status) /* no memory */
        own = e->plain.program;
    status = own->status ? trama_fail(NOWHERE, own->status, "%s", own->error) : complete_and_place(e);
    if (!status)
        status = targets_prepare(e, made);
    free(made);
    if (!status)
        status = memory_status(where, "trama_compile");
    status = context_agree(context, "trama_compile", status);
    if (status)
        trama_executable_destroy(&e);
    else
        *executable = e;
    return status;
}

/* Begins the collective call; its error does not stop the destruction. */
static trama_status call_destroy(const trama_executable *e)
{
    char words[60];
    snprintf(words, sizeof words, "trama_executable_destroy() of executable %" PRId64, e->number);
    return context_call(e->context, NOWHERE, "trama_executable_destroy", words);
}

trama_status trama_executable_destroy(trama_executable **executable)
{
    if (!executable || !*executable)
        return TRAMA_OK;
    if (context_check(NOWHERE, "trama_executable_destroy"))
        return TRAMA_E_ORDER;
    trama_executable *e = *executable;
    trama_status order = call_destroy(e);
    bool told = e->kernels.refusal;
    trama_wait(e);
    fence_wait_all(e->context, "trama_executable_destroy");
    trama_status status = told || order ? order : executable_agree(e, "trama_executable_destroy");
    saving_end(e);
    feeders_end(e);
    watches_end(e);
    readings_end(e);
    if (e->session)
        session_end(e);
    for (int i = 0; i < e->n_value_refs; i++)
        executable_put(e, i, (value_ref){0});
    targets_free(e);
    plan_cache_free(&e->plans);
    plan_cache_free(&e->asked);
    wrapped_forget(e);
    for (int i = 0; i < e->runs.max; i++)
        fence_free(e->runs.fences[i]);
    free(e->runs.fences);
    free(e->at);
    layouts_free(&e->l);
    layouts_free(&e->plain.l);
    map_destroy(&e->map);
    if (e->owns_program)
        trama_program_destroy(&e->program);
    trama_program_destroy(&e->plain.program);
    context_leave(e->context, &e->tenant);
    free(e->kernels.refusal);
    free(e);
    *executable = NULL;
    return status;
}
