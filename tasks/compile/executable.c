/* SPDX-License-Identifier: Apache-2.0 */
/* The executable as a store: meshes and processes, where each value is, waiting. It does not know how values get there.
 */
#include "executable.h"

#include <inttypes.h>
#include <string.h>

#include "trama_drawing.h"
#include "wrap.h"

/* ---- Meshes and processes ---- */

static int count_processes(const trama_program *p)
{
    int n = 1;
    for (int m = 0; m < p->meshes.n; m++)
        n = (int)max_i64(n, mesh_processes(p->meshes.at[m]));
    return n;
}

/* The mesh of process 0 alone, and the mesh of the ranks themselves, whose ids no user's mesh has. */
static void own_meshes(trama_executable *e)
{
    int ranks = context_ranks(e->context);
    trama_mesh *single = mesh_new(1, (int[]){1}, NULL, NULL);
    trama_mesh *readers = mesh_new(1, &ranks, NULL, NULL);
    for (int r = 0; r < ranks; r++)
        readers->ids[r] = MAP_RANK + r;
    e->single = program_mesh(e->program, single);
    e->readers = program_mesh(e->program, readers);
    trama_mesh_destroy(&single);
    trama_mesh_destroy(&readers);
}

/* Steps in flight where the user leaves it open. Each slot has buffers for the inputs; short steps need more than two
 * to hide how long the caller takes to wake up. The same on all ranks, since global bytes count. */
static int choose_max_in_flight(const trama_program *program, const trama_config *config)
{
    enum { SMALL = 64 << 10, FEW = 2, MANY = 8 };
    double bytes = 0;
    for (int i = 0; i < program->values.n; i++) {
        const trama_value *v = program->values.at[i];
        double of_value = v->kind == VALUE_INPUT ? (double)trama_dtype_size(v->dtype) : 0;
        for (int d = 0; d < v->shape.ndim; d++)
            of_value *= (double)(v->shape.dim[d] == TRAMA_ANY ? config->nominal : v->shape.dim[d]);
        bytes += of_value;
    }
    return config->max_in_flight ? config->max_in_flight : bytes <= SMALL ? MANY : FEW;
}

trama_status executable_begin(trama_where where, trama_context *context, trama_program *program,
                              trama_executable **made)
{
    trama_executable *e = trama_alloc(sizeof *e);
    const trama_config *config = context_config(context);
    e->context = context;
    e->number = context_next_call(context);
    e->program = program;
    int processes = program->order.n ? program->order.n : count_processes(program);
    e->map = map_by_order(processes, program->order.place, context_machine(context));
    own_meshes(e);
    e->planning = planning_in(context, e->map);
    e->planning.faults = &e->kernels.faults;
    e->kernels.faults.context = context;
    e->runs.max = e->runs.ahead = choose_max_in_flight(program, config);
    e->runs.fences = trama_alloc((size_t)e->runs.max * sizeof(fence *));
    for (int i = 0; i < e->runs.max; i++)
        e->runs.fences[i] = fence_new(context);
    e->tenant = (context_tenant){.what = where.file ? "the executable" : "the executable of an eager program",
                                 .ends = "trama_executable_destroy",
                                 .where = where};
    context_enter(context, &e->tenant);
    *made = e;
    return TRAMA_OK;
}

/* ---- Where values are ---- */

void executable_put(trama_executable *e, int value, value_ref at)
{
    if (value >= e->n_value_refs) {
        int n = (int)max_i64(value + 1, 2 * e->n_value_refs);
        e->at = trama_resize(e->at, (size_t)n * sizeof *e->at);
        memset(e->at + e->n_value_refs, 0, (size_t)(n - e->n_value_refs) * sizeof *e->at);
        e->n_value_refs = n;
    }
    instance *before = e->at[value].in;
    if (at.in)
        at.in->holders++;
    e->at[value] = at;
    if (e->session) {
        e->program->values.at[value]->computed = at.in != NULL;
        e->program->session->started = true;
    }
    instance_release(&before);
}

trama_value *executable_value(const trama_executable *e, trama_where where, const char *call, const trama_value *value)
{
    if (!e || !value) {
        trama_fail(where, TRAMA_E_ARGUMENT, "%s: the %s is NULL", call, e ? "value" : "executable");
        return NULL;
    }
    trama_value *own = value->id < e->program->values.n ? e->program->values.at[value->id] : NULL;
    if (!own || (e->session && own != value) || strcmp(own->name, value->name) || own->kind != value->kind) {
        trama_fail(where, TRAMA_E_ARGUMENT, "%s: %s was not in the program when it was compiled", call, value->name);
        return NULL;
    }
    return own;
}

/* Whether the value is a result of the end of a cycle: it changes only when gradients are applied. */
static bool is_applied(const trama_executable *e, int value)
{
    for (int i = 0; i < e->targets.n; i++) {
        const value_ids *results = &e->targets.at[i].form[TARGET_APPLY].results;
        for (int k = 0; k < results->n; k++)
            if (results->at[k] == value)
                return true;
    }
    return false;
}

trama_status executable_locate(trama_executable *e, trama_where where, const char *call, const trama_value *value,
                               value_ref *at)
{
    trama_value *own = executable_value(e, where, call, value);
    if (!own)
        return TRAMA_E_ARGUMENT;
    if (context_check(where, call))
        return TRAMA_E_ORDER;
    if (own->kind == VALUE_EFFECT)
        return trama_fail(where, TRAMA_E_ARGUMENT, "%s: %s is an update, it has no content", call, own->name);
    trama_value *state = value_storage(own);
    int id = state ? state->id : own->id;
    if (e->session) {
        trama_status status = session_place(e, e->program->values.at[id], e->single);
        if (status)
            return status;
    }
    if (id < e->n_value_refs && e->at[id].in) {
        const trama_wrapped *host = e->at[id].in->host;
        if (host && host->released)
            return trama_fail(where, TRAMA_E_ORDER,
                              "%s: %s was fed from '%s' without a copy, and that was released: feed it again", call,
                              own->name, host->name);
        *at = e->at[id];
        return TRAMA_OK;
    }
    if (own->kind == VALUE_INPUT)
        return trama_fail(where, TRAMA_E_ORDER, "%s: the input %s was not fed yet", call, own->name);
    if (is_applied(e, id))
        return trama_fail(where, TRAMA_E_NOT_KEPT,
                          "%s: %s is computed when gradients are applied, and no gradients were applied yet",
                          call, own->name);
    if (e->targets.n && own->fetched)
        return trama_fail(where, TRAMA_E_ORDER, "%s: no target that lists %s was run yet", call, own->name);
    return trama_fail(where, TRAMA_E_NOT_KEPT,
                      "%s: %s is not kept; list it in a target (trama_target_create) to read it after a run", call,
                      own->name);
}

/* ---- The order of calls, and kernels that failed ---- */

trama_status executable_agree(trama_executable *e, const char *call)
{
    if (!e->kernels.may_fail && context_ranks(e->context) > 1)
        return TRAMA_OK;
    if (e->kernels.refusal)
        return trama_fail(NOWHERE, e->kernels.status, "%s", e->kernels.refusal);
    trama_status status = context_agree(e->context, call, faults_status(&e->kernels.faults));
    if (status == TRAMA_E_KERNEL || status == TRAMA_E_MEMORY) {
        e->kernels.refusal = trama_text_copy(trama_error());
        e->kernels.status = status;
    }
    return status;
}

void executable_note_kernel(trama_executable *e, const trama_node *node)
{
    const trama_dtype dtype = node->out[0]->dtype;
    e->kernels.may_fail |= node->op->own || (node->op->product && (dtype == TRAMA_F16 || dtype == TRAMA_BF16));
}

trama_status executable_fault(trama_executable *e)
{
    return context_ranks(e->context) == 1 ? executable_agree(e, "") : faults_status(&e->kernels.faults);
}

trama_status executable_begin_call(trama_executable *e, trama_where where, const char *call, const char *words)
{
    if (context_check(NOWHERE, call))
        return TRAMA_E_ORDER;
    trama_status known = e->kernels.refusal || context_ranks(e->context) == 1 ? executable_agree(e, call) : TRAMA_OK;
    return known ? known : context_call(e->context, where, call, words);
}

trama_status executable_call(trama_executable *e, trama_where where, const char *call, const char *name, int id,
                             const trama_shape *shape)
{
    text words = {0};
    if (context_compares(e->context)) {
        text_add(&words, "%s(%s #%d", call, name, id);
        if (shape) {
            text_add(&words, ", ");
            shape_text(&words, *shape);
        }
        text_add(&words, ") of executable %" PRId64, e->number);
    }
    trama_status status = executable_begin_call(e, where, call, words.at);
    free(words.at);
    return status;
}

/* ---- Waiting ---- */

trama_status trama_wait(trama_executable *e)
{
    if (!e)
        return trama_fail(NOWHERE, TRAMA_E_ARGUMENT, "trama_wait: the executable is NULL");
    if (context_check(NOWHERE, "trama_wait"))
        return TRAMA_E_ORDER;
    for (int i = 0; i < e->runs.max; i++)
        fence_wait(e->context, e->runs.fences[i], "trama_wait");
    if (e->session)
        session_wait(e);
    return executable_fault(e);
}

void executable_shrink(trama_executable *e, const plan_key *key)
{
    if (!plan_cache_is_full(&e->plans, key))
        return;
    trama_wait(e);
    fence_wait_all(e->context, "trama_run");
    plan_cache_shrink(&e->plans, key);
}

trama_status executable_make_room(trama_executable *e, int steps, const char *call)
{
    enum { FEW = 2, STEPS = 256 }; /* of more steps each comes out of the cache when it is run */
    int most = (int)max_i64(FEW, STEPS / max_i64(1, steps));
    e->runs.ahead = context_config(e->context)->max_in_flight ? e->runs.max : (int)min_i64(e->runs.max, most);
    trama_status status = executable_wait_run(e, e->runs.n - e->runs.ahead, call);
    return status ? status : executable_wait_run(e, e->runs.n - e->runs.max, call);
}

/* A caller that is as far ahead as it may sleeps until half of these runs are done, one wake-up for several; not where
 * the user has set max_in_flight: then only for the run that fills it. */
trama_status executable_wait_run(trama_executable *e, int64_t i, const char *call)
{
    fence *f = i < 0 || i < e->runs.n - e->runs.max ? NULL : e->runs.fences[i % e->runs.max];
    if (!f || fence_done(f))
        return TRAMA_OK;
    int more = context_config(e->context)->max_in_flight ? 0 : (e->runs.ahead - 1) / 2;
    int64_t half = i + more < e->runs.n ? i + more : e->runs.n - 1;
    trama_status status = fence_wait(e->context, e->runs.fences[half % e->runs.max], call);
    return status ? status : fence_wait(e->context, f, call);
}

/* ---- Questions ---- */

trama_status trama_layout_of(trama_executable *e, const trama_value *value, char **out)
{
    trama_value *own = executable_value(e, NOWHERE, "trama_layout_of", value);
    if (!own)
        return TRAMA_E_ARGUMENT;
    if (context_check(NOWHERE, "trama_layout_of"))
        return TRAMA_E_ORDER;
    if (!out)
        return trama_fail(NOWHERE, TRAMA_E_ARGUMENT, "trama_layout_of: the text's address is NULL");
    if (own->id >= e->l.n_values || !e->l.mesh[own->id])
        return trama_fail(NOWHERE, TRAMA_E_ORDER, "trama_layout_of: %s has no layout yet", own->name);
    *out = trama_layout_text(e->l.mesh[own->id], &e->l.value[own->id]);
    return TRAMA_OK;
}

/* A tensor to look at, and the heading above its holders: "w f32[17,13] on dp=2,mp=2 as R,S(0)". */
typedef struct sight {
    const trama_mesh *mesh;
    const trama_layout *layout;
    trama_shape shape;
    text heading;
} sight;

static trama_status look_at_tensor(trama_executable *e, const trama_value *value, const char *call, char **out,
                                   sight *seen)
{
    *seen = (sight){0};
    if (!out)
        return trama_fail(NOWHERE, TRAMA_E_ARGUMENT, "%s: the text's address is NULL", call);
    value_ref at;
    const trama_value *own = executable_value(e, NOWHERE, call, value);
    trama_status status = own ? executable_locate(e, NOWHERE, call, value, &at) : TRAMA_E_ARGUMENT;
    if (status)
        return status;
    seen->shape = at.in->of->shapes[at.as];
    seen->mesh = e->l.mesh[own->id];
    seen->layout = &e->l.value[own->id];
    text_add(&seen->heading, "%s %s", own->name, trama_dtype_name(own->dtype));
    shape_text(&seen->heading, seen->shape);
    text_add(&seen->heading, " on ");
    mesh_text(&seen->heading, seen->mesh);
    text_add(&seen->heading, " as ");
    layout_text(&seen->heading, seen->mesh, seen->layout);
    return TRAMA_OK;
}

trama_status trama_tensor_describe(trama_executable *e, const trama_value *value, char **out)
{
    sight seen;
    char *holders = NULL, *picture = NULL;
    trama_status status = look_at_tensor(e, value, "trama_tensor_describe", out, &seen);
    if (!status)
        status = trama_layout_describe(seen.mesh, seen.layout, seen.shape, &holders);
    if (!status)
        status = trama_layout_picture(seen.mesh, seen.layout, seen.shape, &picture);
    if (!status) {
        text_add(&seen.heading, "\n%s%s%s", holders, *picture ? "\n" : "", picture);
        status = text_give(&seen.heading, "trama_tensor_describe", out);
    }
    free(seen.heading.at);
    free(holders);
    free(picture);
    return status;
}

trama_status trama_tensor_svg(trama_executable *e, const trama_value *value, char **svg)
{
    sight seen;
    trama_status status = look_at_tensor(e, value, "trama_tensor_svg", svg, &seen);
    if (!status)
        status = trama_layout_svg(seen.mesh, seen.layout, seen.shape, seen.heading.at, svg);
    free(seen.heading.at);
    return status;
}

trama_status trama_extents(trama_executable *e, const trama_value *value, trama_shape *shape)
{
    value_ref at = {0};
    if (!shape)
        return trama_fail(NOWHERE, TRAMA_E_ARGUMENT, "trama_extents: the shape's address is NULL");
    trama_status status = executable_locate(e, NOWHERE, "trama_extents", value, &at);
    if (!status)
        *shape = at.in->of->shapes[at.as];
    return status;
}
