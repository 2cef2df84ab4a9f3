/* SPDX-License-Identifier: Apache-2.0 */
/* Eager mode: each op that is recorded becomes a compiled program (from a cache), an instance and tasks, at once.
 * Forgetting is in rewind.c. */
#include "eager.h"

#include <string.h>

#include "host.h"
#include "trama_eager.h"

/* ---- Ops in flight ---- */

static void land_first(trama_executable *e)
{
    eager_session *s = e->session;
    outstanding *o = &s->queue[s->first];
    fence_wait(e->context, o->f, "an eager op");
    fence_free(o->f);
    instance_release(&o->in);
    s->first = (s->first + 1) % MAX_OUTSTANDING;
    s->n--;
}

void session_wait(trama_executable *e)
{
    while (e->session->n)
        land_first(e);
}

/* Submits and holds the instance until its tasks are done; takes the caller's hold. */
static void submit(trama_executable *e, instance *in)
{
    eager_session *s = e->session;
    if (s->n == MAX_OUTSTANDING) /* half of them at a time: waking up for each would cost more than the op */
        fence_wait(e->context, s->queue[(s->first + MAX_OUTSTANDING / 2) % MAX_OUTSTANDING].f, "an eager op");
    while (s->n && (s->n == MAX_OUTSTANDING || fence_done(s->queue[s->first].f)))
        land_first(e);
    fence *f = fence_new(e->context);
    s->queue[(s->first + s->n++) % MAX_OUTSTANDING] = (outstanding){in, f};
    instance_submit(in, s->ops, f);
}

/* ---- Values that are only declared: constants, state, sources ---- */

static void key_layout(eager_key *key, const trama_mesh *mesh, const trama_layout *layout)
{
    key->mesh = mesh;
    for (int a = 0; a < layout->naxes; a++) {
        const trama_placement *p = &layout->axis[a];
        key->axes[a][0] = p->kind;
        key->axes[a][1] = p->dim;
        key->axes[a][2] = p->order;
        key->axes[a][3] = p->reduce;
    }
    key->mask = layout->mask;
}

/* The first mesh of more than one process decides how processes are spread over the places, unless the user has. */
static void meet_mesh(trama_executable *e, const trama_mesh *mesh)
{
    const process_order *order = &e->program->order;
    const int n = (int)max_i64(max_i64(order->n, 1), mesh_processes(mesh));
    if (e->map->n > 1 || n == 1)
        return;
    map_destroy(&e->map);
    e->map = map_by_order(n, order->place, context_machine(e->context));
    e->planning.map = e->map;
}

static void lay_out_leaf(trama_executable *e, const trama_value *v, const trama_mesh *mesh)
{
    layouts_room(&e->l, e->program->values.n, e->program->nodes.n);
    if (v->node && v->node->fixed)
        mesh = v->node->fixed->mesh;
    e->l.mesh[v->id] = v->mesh ? v->mesh : mesh;
    trama_layout *layout = &e->l.value[v->id];
    *layout = v->mesh ? *v->layout : layout_uniform(mesh, TRAMA_REPLICATE);
    for (int a = 0; a < layout->naxes; a++)
        if (layout->axis[a].kind == TRAMA_OPEN)
            layout->axis[a] = (trama_placement){.kind = TRAMA_REPLICATE};
    meet_mesh(e, e->l.mesh[v->id]);
}

static trama_status leaf_plan(trama_executable *e, const trama_value *v, kept_plan **found)
{
    const trama_mesh *mesh = e->l.mesh[v->id];
    const trama_layout *layout = &e->l.value[v->id];
    eager_key key;
    memset(&key, 0, sizeof key);
    key_layout(&key, mesh, layout);
    if (v->kind == VALUE_STATE && !v->data)
        key.op = state_source(v, &key.attributes);
    else if (v->kind == VALUE_RESULT) {
        key.op = v->node->op;
        key.attributes = *v->node->attributes;
    }
    key.dtype = v->dtype;
    key.ndim = v->shape.ndim;
    memcpy(key.dim, v->shape.dim, (size_t)v->shape.ndim * sizeof *key.dim);
    *found = eager_find(e, &key);
    if (*found)
        return TRAMA_OK;
    compiled_program *made = NULL;
    trama_status status = TRAMA_OK;
    if (key.op)
        status = compile_source(&e->planning, v->name, key.op, &key.attributes, mesh, layout, &made);
    else
        made = compile_feed(&e->planning, v, v->shape, mesh, layout);
    if (!status)
        *found = eager_keep(e, &key, made);
    return status;
}

trama_status session_place(trama_executable *e, trama_value *v, const trama_mesh *mesh)
{
    if (v->computed)
        return TRAMA_OK;
    bool declared =
        v->kind == VALUE_CONSTANT || v->kind == VALUE_STATE || (v->kind == VALUE_RESULT && v->node->op->n_in == 0);
    if (!declared)
        return trama_fail(v->where, TRAMA_E_UNSUPPORTED,
                          "%s: inputs have no place in eager mode; use trama_constant or trama_tensor", v->name);
    lay_out_leaf(e, v, mesh);
    kept_plan *k;
    instance *in = NULL;
    trama_status status = v->kind == VALUE_STATE ? state_may_lie(v, &e->l.value[v->id]) : TRAMA_OK;
    if (!status)
        status = leaf_plan(e, v, &k);
    if (!status)
        status = instance_create(e->context, &k->s->of, NULL, 1, &in);
    if (status)
        return status;
    executable_put(e, v->id, (value_ref){in, k->s->result});
    if (v->kind == VALUE_CONSTANT || v->data) {
        instance_release(&in);
        return host_to_value(e->at[v->id], v->data, v->shape, value_is_state(v) ? "trama_initial" : "trama_constant");
    }
    submit(e, in);
    return TRAMA_OK;
}

/* ---- Ops ---- */

/* Host arrays and sources without an annotation can be made anew on any mesh. They go where they are used. */
static bool floats(const trama_value *v)
{
    bool source = v->kind == VALUE_RESULT && v->node->op->n_in == 0 && !v->node->fixed;
    return !v->mesh && v->shape.ndim && ((v->kind == VALUE_CONSTANT && v->data) || source);
}

/* State that was placed before it was used: it goes where it is used, unless the user says where it is. */
static bool follows(const trama_executable *e, const trama_value *v)
{
    return v->computed && v->kind == VALUE_STATE && !v->mesh && e->l.mesh[v->id] == e->single;
}

/* As completion has it, but that values which go where they are used decide only where no other operand does. */
static trama_status op_mesh(const trama_executable *e, const trama_node *node, const trama_mesh **mesh)
{
    const trama_mesh *of[TRAMA_MAX_OPERANDS], *last = e->single;
    for (int t = node->op->n_in - 1; t >= 0; t--) {
        const trama_value *v = node->in[t];
        of[t] = v->mesh ? v->mesh : v->computed ? e->l.mesh[v->id] : NULL;
        if (!floats(v) && !follows(e, v))
            continue;
        last = of[t] ? of[t] : last;
        of[t] = NULL;
    }
    trama_status status = complete_mesh(node, of, NULL, mesh);
    *mesh = *mesh ? *mesh : last;
    return status;
}

/* An updated value is where its state is. */
static trama_value *stored(trama_value *v)
{
    trama_value *state = value_storage(v);
    return state ? state : v;
}

/* The layouts that the user fixed for an op, in words. */
static char *fixed_words(const trama_node *node)
{
    text words = {0};
    text_add(&words, "%p", (const void *)node->fixed->mesh);
    for (int t = 0; t < node->op->n_in; t++) {
        text_add(&words, ";");
        layout_text(&words, node->fixed->mesh, &node->fixed->in[t]);
    }
    return text_take(&words);
}

static trama_status op_plan(trama_executable *e, const trama_node *node, const value_ref *operands, kept_plan **found)
{
    eager_key key;
    memset(&key, 0, sizeof key);
    key.op = node->op;
    key.attributes = *node->attributes;
    for (int t = 0; t < node->op->n_in; t++)
        key.in[t] = 1 + eager_form(operands[t]);
    if (node->op->n_out && node->out[0]->mesh)
        key_layout(&key, node->out[0]->mesh, node->out[0]->layout);
    if (node->fixed)
        key.fixed = 1 + eager_number(e->session, fixed_words(node));
    *found = eager_find(e, &key);
    if (*found)
        return TRAMA_OK;
    if (node->fixed)
        meet_mesh(e, node->fixed->mesh);
    if (node->out[0]->mesh)
        meet_mesh(e, node->out[0]->mesh);
    compiled_program *made = NULL;
    trama_status status = compile_op(&e->planning, node, operands, &e->l, e->single, &made);
    if (!status)
        *found = eager_keep(e, &key, made);
    return status;
}

trama_status session_copy(trama_executable *e, const trama_value *v, value_ref at, const trama_mesh *mesh,
                          const trama_layout *layout, kept_plan **found)
{
    eager_key key;
    memset(&key, 0, sizeof key);
    key.in[0] = 1 + eager_form(at);
    key_layout(&key, mesh, layout);
    *found = eager_find(e, &key);
    if (!*found)
        *found = eager_keep(e, &key, compile_copy(&e->planning, v, at, mesh, layout));
    return TRAMA_OK;
}

static trama_status bind_op(trama_executable *e, const trama_node *node, const value_ref *operands, const kept_plan *k)
{
    const compiled_program *s = k->s;
    instance *in = NULL;
    trama_status status = instance_create(e->context, &k->s->of, operands, 1, &in);
    if (status)
        return status;
    for (int o = 0; o < node->op->n_out; o++) {
        int id = node->out[o]->id;
        e->l.mesh[id] = s->l.mesh[s->result + o];
        e->l.value[id] = s->l.value[s->result + o];
        if (!(node->op->updates >> o & 1))
            executable_put(e, id, (value_ref){in, s->result + o});
    }
    submit(e, in);
    return TRAMA_OK;
}

static trama_status follow_mesh(trama_executable *e, const trama_value *v, const trama_mesh *mesh)
{
    if (mesh == e->single || !follows(e, v))
        return TRAMA_OK;
    value_ref at = e->at[v->id];
    trama_layout everywhere = layout_uniform(mesh, TRAMA_REPLICATE);
    kept_plan *k;
    instance *in = NULL;
    meet_mesh(e, mesh);
    trama_status status = session_copy(e, v, at, mesh, &everywhere, &k);
    if (!status)
        status = instance_create(e->context, &k->s->of, &at, 1, &in);
    if (status)
        return status;
    executable_put(e, v->id, (value_ref){in, k->s->result});
    e->l.mesh[v->id] = mesh;
    e->l.value[v->id] = everywhere;
    submit(e, in);
    return TRAMA_OK;
}

static trama_status run_node(trama_executable *e, const trama_node *node)
{
    value_ref operands[TRAMA_MAX_OPERANDS];
    layouts_room(&e->l, e->program->values.n, e->program->nodes.n);
    const trama_mesh *mesh;
    trama_status status = op_mesh(e, node, &mesh);
    e->session->ops++;
    if (status)
        return status;
    for (int t = 0; t < node->op->n_in; t++) {
        trama_value *v = stored(node->in[t]);
        if (floats(v) && v->computed && e->l.mesh[v->id] != mesh)
            executable_put(e, v->id, (value_ref){0});
        status = follow_mesh(e, v, mesh);
        if (!status)
            status = session_place(e, v, mesh);
        if (status)
            return status;
        operands[t] = e->at[v->id];
        if (v != node->in[t]) {
            e->l.mesh[node->in[t]->id] = e->l.mesh[v->id];
            e->l.value[node->in[t]->id] = e->l.value[v->id];
        }
    }
    kept_plan *k;
    status = op_plan(e, node, operands, &k);
    return status ? status : bind_op(e, node, operands, k);
}

static void lay_colocated(const trama_executable *e, const trama_node *node)
{
    trama_value *v = node->out[0];
    const trama_value *colocated = v->gradient.colocated;
    if (!colocated || v->mesh || !colocated->computed || e->l.mesh[colocated->id] == e->l.mesh[node->in[0]->id])
        return;
    v->mesh = e->l.mesh[colocated->id];
    program_lay_out(v, layout_colocated(&e->l.value[colocated->id]));
}

/* Begins the call, with the op and the operands that no op has made in words. */
static trama_status call_op(trama_executable *e, const trama_node *node)
{
    text words = {0};
    if (context_compares(e->context)) {
        value_in_words(&words, node->out[0]);
        for (int t = 0; t < node->op->n_in; t++)
            if (!node->in[t]->node || node->in[t]->node->op->n_in == 0) {
                text_add(&words, t ? ", " : " with ");
                value_in_words(&words, node->in[t]);
            }
    }
    trama_status status = executable_begin_call(e, node->where, node->op->name, words.at);
    free(words.at);
    return status;
}

static void run_recorded(program_session *session, trama_node *node)
{
    trama_executable *e = ((eager_session *)session)->e;
    lay_colocated(e, node);
    executable_note_kernel(e, node);
    if (node->op->n_in == 0)
        return; /* placed when first used, on the mesh where that is */
    trama_status status = call_op(e, node);
    if (!status)
        status = run_node(e, node);
    if (status)
        program_fail(node->program, status == TRAMA_E_MEMORY ? node->where : NOWHERE, status, "%s", trama_error());
}

/* ---- Life ---- */

static const trama_mesh *mesh_of_computed(const program_session *session, const trama_value *v)
{
    return ((const eager_session *)session)->e->l.mesh[v->id];
}

void session_end(trama_executable *e)
{
    eager_session *s = e->session;
    session_wait(e);
    eager_forms_free(s);
    ARRAY_FREE(&s->kept);
    free(s);
    e->session = NULL;
    e->program->session = NULL;
}

trama_status trama_eager(trama_context *context, trama_program **program, trama_executable **executable)
{
    if (!context || !program || !executable)
        return trama_fail(NOWHERE, TRAMA_E_ARGUMENT, "trama_eager: the %s is NULL",
                          !context   ? "context"
                          : !program ? "program's address"
                                     : "executable's address");
    if (context_check(NOWHERE, "trama_eager"))
        return TRAMA_E_ORDER;
    trama_status status = context_call(context, NOWHERE, "trama_eager", "trama_eager()");
    if (status)
        return status;
    trama_executable *e;
    trama_program *p = trama_program_create();
    executable_begin(NOWHERE, context, p, &e);
    e->session = trama_alloc(sizeof *e->session);
    *e->session = (eager_session){.base = {.run = run_recorded, .mesh_of = mesh_of_computed}, .e = e};
    p->session = &e->session->base;
    *program = p;
    *executable = e;
    return TRAMA_OK;
}

trama_value *trama_tensor_at(trama_where where, trama_program *program, trama_dtype dtype, trama_shape shape,
                             const void *data, const trama_mesh *mesh, const char *layout)
{
    return trama_shard_at(where, trama_constant_at(where, program, dtype, shape, data), mesh, layout);
}
