/* SPDX-License-Identifier: Apache-2.0 */
/* Compiling: from the user's program to an executable with initialised state. Runs, feeds and reads stand in files of
 * their own. */
#include "executable.h"

#include <string.h>

/* ---- Meshes and processes ---- */

static int count_processes(const trama_program *p)
{
    int n = 1;
    for (int m = 0; m < p->meshes.n; m++)
        for (int i = 0; i < p->meshes.at[m]->size; i++)
            n = (int)max_i64(n, p->meshes.at[m]->ids[i] + 1);
    return n;
}

/* The mesh of process 0 alone, and the mesh of the ranks themselves. */
static void own_meshes(trama_executable *e)
{
    int ranks = context_ranks(e->context), *ids = trama_alloc((size_t)ranks * sizeof *ids);
    for (int r = 0; r < ranks; r++)
        ids[r] = MAP_RANK + r;
    trama_mesh *single = trama_mesh_create(1, (int[]){1}, NULL, NULL);
    trama_mesh *readers = trama_mesh_create(1, &ranks, NULL, ids);
    e->single = program_mesh(e->program, single);
    e->readers = program_mesh(e->program, readers);
    trama_mesh_destroy(&single);
    trama_mesh_destroy(&readers);
    free(ids);
}

trama_status executable_begin(trama_context *context, trama_program *program, trama_executable **made)
{
    trama_executable *e = trama_alloc(sizeof *e);
    const trama_config *config = context_config(context);
    e->context = context;
    e->program = program;
    e->map = map_by_order((int)max_i64(count_processes(program), 1), NULL, context_machine(context));
    own_meshes(e);
    e->planning = (planning){.map = e->map,
                             .machine = context_machine(context),
                             .options = {.ways = config->ways,
                                         .grain_flops = config->grain_flops,
                                         .grain_bytes = config->grain_bytes,
                                         .no_fusion = config->no_fusion},
                             .rank = context_rank(context)};
    e->window = config->window;
    e->flights = trama_alloc((size_t)e->window * sizeof(flight *));
    for (int i = 0; i < e->window; i++)
        e->flights[i] = flight_new(context);
    context_live_add(context, 1);
    *made = e;
    return TRAMA_OK;
}

/* ---- Where values are ---- */

const plan_holding *located_holding(located at)
{
    return plan_find(at.in->of->plan, at.as);
}

void executable_put(trama_executable *e, int value, located at)
{
    if (value >= e->n_located) {
        int n = (int)max_i64(value + 1, 2 * e->n_located);
        e->at = trama_resize(e->at, (size_t)n * sizeof *e->at);
        memset(e->at + e->n_located, 0, (size_t)(n - e->n_located) * sizeof *e->at);
        e->n_located = n;
    }
    instance *before = e->at[value].in;
    if (at.in)
        at.in->holders++;
    e->at[value] = at;
    instance_release(&before);
}

trama_value *executable_value(const trama_executable *e, trama_where where, const char *call, const trama_value *value)
{
    if (!e || !value) {
        trama_fail(where, TRAMA_E_ARGUMENT, "%s: the %s is NULL", call, e ? "value" : "executable");
        return NULL;
    }
    trama_value *own = value->id < e->program->values.n ? e->program->values.at[value->id] : NULL;
    if (!own || (e->eager && own != value) || strcmp(own->name, value->name) || own->kind != value->kind) {
        trama_fail(where, TRAMA_E_ARGUMENT, "%s: %s was not in the program when it was compiled", call, value->name);
        return NULL;
    }
    return own;
}

static bool is_in_target(const trama_executable *e, int value)
{
    for (int i = 0; i < e->targets.n; i++)
        if (e->targets.at[i].kept[value])
            return true;
    return false;
}

trama_status executable_locate(trama_executable *e, trama_where where, const char *call, const trama_value *value,
                               located *at)
{
    trama_value *own = executable_value(e, where, call, value);
    if (!own)
        return TRAMA_E_ARGUMENT;
    if (own->kind == VALUE_EFFECT)
        return trama_fail(where, TRAMA_E_ARGUMENT, "%s: %s is an update, it has no content", call, own->name);
    trama_value *state = value_storage(own);
    int id = state ? state->id : own->id;
    if (e->eager) {
        trama_status status = eager_place(e, e->program->values.at[id], e->single);
        if (status)
            return status;
    }
    if (id < e->n_located && e->at[id].in) {
        *at = e->at[id];
        return TRAMA_OK;
    }
    if (own->kind == VALUE_INPUT)
        return trama_fail(where, TRAMA_E_ORDER, "%s: the input %s was not fed yet", call, own->name);
    if (is_in_target(e, id))
        return trama_fail(where, TRAMA_E_ORDER, "%s: no target that lists %s was run yet", call, own->name);
    return trama_fail(where, TRAMA_E_NOT_KEPT,
                      "%s: %s is not kept; list it in a target (trama_target_new) to read it after a run", call,
                      own->name);
}

/* ---- First contents ---- */

/* Runs an op without operands into the layout of the value. */
static trama_status place_source(trama_executable *e, const trama_value *v, const trama_op *op,
                                 const trama_attributes *attributes)
{
    snippet *s = NULL;
    instance *in = NULL;
    trama_status status =
        snippet_of_source(&e->planning, v->name, op, attributes, e->l.mesh[v->id], &e->l.value[v->id], &s);
    if (status)
        return trama_fail(v->where, status, "%s: its first content does not fit its type", v->name);
    *ARRAY_PUSH(&e->snippets) = s;
    status = instance_create(e->context, &s->of, NULL, 1, &in);
    if (status)
        return status;
    executable_put(e, v->id, (located){in, s->result});
    flight *f = flight_new(e->context);
    instance_submit(in, context_next_call(e->context), 0, f);
    status = flight_wait(e->context, f, "the first content of state");
    flight_free(f);
    instance_release(&in);
    return status;
}

/* Uniform from the parameter's stream, or constant. */
const trama_op *state_source(const trama_value *v, trama_attributes *a)
{
    const trama_op *op = v->init.low == v->init.high ? &trama_op_fill : &trama_op_uniform;
    *a = (trama_attributes){.integer = {[SOURCE_DTYPE] = v->dtype, [SOURCE_NDIM] = v->shape.ndim},
                            .real = {v->init.low, v->init.high}};
    memcpy(&a->integer[SOURCE_DIM], v->shape.dim, (size_t)v->shape.ndim * sizeof *v->shape.dim);
    if (op == &trama_op_uniform) {
        a->integer[SOURCE_SEED] = (int64_t)v->init.seed;
        a->integer[SOURCE_STREAM] = (int64_t)v->init.stream;
    } else {
        a->real[SOURCE_HIGH] = 0;
    }
    return op;
}

static trama_status place_state(trama_executable *e, const trama_value *v)
{
    trama_attributes a;
    const trama_op *op = state_source(v, &a);
    return place_source(e, v, op, &a);
}

static trama_status place_constant(trama_executable *e, const trama_value *v)
{
    instance *in = NULL;
    snippet *s = snippet_of_feed(&e->planning, v, v->shape, e->l.mesh[v->id], &e->l.value[v->id]);
    *ARRAY_PUSH(&e->snippets) = s;
    trama_status status = instance_create(e->context, &s->of, NULL, 1, &in);
    if (status)
        return status;
    executable_put(e, v->id, (located){in, s->result});
    instance_release(&in);
    return copy_in(e, e->at[v->id], v->data, v->shape, "trama_compile");
}

static trama_status check_state(const trama_executable *e, const trama_value *v)
{
    const trama_layout *layout = &e->l.value[v->id];
    if (layout_has(layout, TRAMA_PARTIAL) || layout->mask)
        return trama_fail(v->where, TRAMA_E_LAYOUT, "%s: state cannot be partial or masked; leave the axis R or S",
                          v->name);
    return TRAMA_OK;
}

trama_status executable_place(trama_executable *e, const trama_value *v)
{
    if (v->kind == VALUE_STATE) {
        trama_status status = check_state(e, v);
        return status ? status : place_state(e, v);
    }
    if (v->kind == VALUE_CONSTANT)
        return place_constant(e, v);
    return place_source(e, v, v->node->op, &v->node->attributes);
}

static bool has_first_content(const trama_value *v)
{
    return v->kind == VALUE_STATE || v->kind == VALUE_CONSTANT || (v->kind == VALUE_RESULT && v->node->op->n_in == 0);
}

/* ---- Compile and destroy ---- */

static uint64_t hash_text(const char *at)
{
    uint64_t h = 0xcbf29ce484222325u; /* FNV-1a */
    for (; *at; at++)
        h = (h ^ (unsigned char)*at) * 0x100000001b3u;
    return h;
}

/* All ranks must have recorded the same program. */
static trama_status check_agreement(trama_context *context, const trama_program *program)
{
    char *source = trama_program_text(program);
    trama_status status = context_all_equal(context, "trama_compile", hash_text(source));
    free(source);
    return status;
}

static trama_status complete_and_place(trama_executable *e)
{
    trama_status status = complete_program(e->program, context_config(e->context)->nominal, e->single, &e->l);
    if (!status && *e->l.report)
        context_log(e->context, TRAMA_LOG_INFO, "%s", e->l.report);
    for (int i = 0; i < e->program->values.n && !status; i++)
        if (has_first_content(e->program->values.at[i]))
            status = executable_place(e, e->program->values.at[i]);
    return status;
}

trama_status trama_compile_at(trama_where where, trama_context *context, const trama_program *program,
                              trama_executable **executable)
{
    if (!context || !program || !executable)
        return trama_fail(where, TRAMA_E_ARGUMENT, "trama_compile: the %s is NULL",
                          !context ? "context" : program ? "executable's address" : "program");
    if (program->status)
        return trama_fail(NOWHERE, program->status, "%s", program->error);
    if (!program->targets.n)
        return trama_fail(where, TRAMA_E_ARGUMENT, "trama_compile: the program has no target; name what is to be run "
                                                   "with trama_target_new");
    trama_status status = check_agreement(context, program);
    if (status)
        return status;
    trama_executable *e;
    executable_begin(context, program_copy(program), &e);
    e->owns_program = true;
    executable_put(e, e->program->values.n, (located){0});
    status = complete_and_place(e);
    if (!status)
        targets_prepare(e);
    status = context_agree(context, "trama_compile", status);
    if (status)
        trama_executable_destroy(&e);
    else
        *executable = e;
    return status;
}

trama_status trama_wait(trama_executable *e)
{
    if (!e)
        return trama_fail(NOWHERE, TRAMA_E_ARGUMENT, "trama_wait: the executable is NULL");
    for (int i = 0; i < e->window; i++)
        flight_wait(e->context, e->flights[i], "trama_wait");
    return TRAMA_OK;
}

trama_status executable_wait_run(trama_executable *e, int64_t i)
{
    if (i < 0 || i < e->runs - e->window)
        return TRAMA_OK;
    return flight_wait(e->context, e->flights[i % e->window], "trama_feed");
}

trama_status trama_executable_destroy(trama_executable **executable)
{
    if (!executable || !*executable)
        return TRAMA_OK;
    trama_executable *e = *executable;
    trama_wait(e);
    flight_wait_all(e->context, "trama_executable_destroy");
    readers_free(e);
    targets_free(e);
    for (int i = 0; i < e->n_located; i++)
        executable_put(e, i, (located){0});
    inputs_free(e);
    for (int i = 0; i < e->snippets.n; i++)
        snippet_destroy(&e->snippets.at[i]);
    ARRAY_FREE(&e->snippets);
    eager_free(e);
    for (int i = 0; i < e->window; i++)
        flight_free(e->flights[i]);
    free(e->flights);
    free(e->at);
    layouts_free(&e->l);
    map_destroy(&e->map);
    if (e->owns_program)
        trama_program_destroy(&e->program);
    context_live_add(e->context, -1);
    free(e);
    *executable = NULL;
    return TRAMA_OK;
}

/* ---- Questions ---- */

trama_status trama_layout_of(trama_executable *e, const trama_value *value, char **out)
{
    trama_value *own = executable_value(e, NOWHERE, "trama_layout_of", value);
    if (!own)
        return TRAMA_E_ARGUMENT;
    if (own->id >= e->l.n_values || !e->l.mesh[own->id])
        return trama_fail(NOWHERE, TRAMA_E_ORDER, "trama_layout_of: %s has no layout yet", own->name);
    *out = trama_layout_text(e->l.mesh[own->id], &e->l.value[own->id]);
    return TRAMA_OK;
}

trama_status trama_extents(trama_executable *e, const trama_value *value, trama_shape *shape)
{
    located at;
    trama_status status = executable_locate(e, NOWHERE, "trama_extents", value, &at);
    if (!status)
        *shape = at.in->of->shapes[at.as];
    return status;
}
