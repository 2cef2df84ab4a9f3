/* SPDX-License-Identifier: Apache-2.0 */
/* The user's annotations: layouts of values and of one op, stages, offload, the order of processes. They steer planning
 * only. */
#include <string.h>

#include "program.h"

const trama_mesh *program_mesh(trama_program *program, const trama_mesh *mesh)
{
    for (int i = 0; i < program->meshes.n; i++)
        if (trama_mesh_equal(program->meshes.at[i], mesh))
            return program->meshes.at[i];
    trama_mesh *own = *ARRAY_PUSH(&program->meshes) = mesh_copy(mesh);
    program_is_short(program, NOWHERE, "mesh");
    return own;
}

const trama_mesh *program_given_mesh(trama_program *program, const trama_mesh *mesh)
{
    const trama_mesh *own = program_mesh(program, mesh);
    if (mesh_same(own, mesh))
        return own;
    for (int i = 0; i < program->given.n; i++)
        if (mesh_same(program->given.at[i], mesh))
            return program->given.at[i];
    trama_mesh *given = *ARRAY_PUSH(&program->given) = mesh_copy(mesh);
    program_is_short(program, NOWHERE, "mesh");
    return given;
}

trama_status program_layout(trama_program *program, const trama_mesh *given, int ndim, const char *source,
                            trama_layout *layout)
{
    trama_status status = trama_layout_parse(given, ndim, source, layout);
    if (!status)
        layout->mask = mesh_mask(program_mesh(program, given), layout->mask);
    return status;
}

bool program_is_weighted(const trama_program *program)
{
    for (int i = 0; i < program->meshes.n; i++)
        if (mesh_is_weighted(program->meshes.at[i]))
            return true;
    return false;
}

/* The first process id of a mesh that is n or more; -1 without one. */
static int process_beyond(int n, const trama_mesh *mesh)
{
    for (int i = 0; i < mesh->size; i++)
        if (mesh->ids[i] >= n)
            return mesh->ids[i];
    return -1;
}

bool program_has_order(trama_where where, trama_program *p, const char *call, const char *name, const trama_mesh *mesh)
{
    int process = p->order.n ? process_beyond(p->order.n, mesh) : -1;
    if (process >= 0)
        program_fail(p, where, TRAMA_E_LAYOUT,
                     "%s of %s: the order of processes (%s:%d) has %d, and none for process %d", call, name,
                     p->order.where.file, p->order.where.line, p->order.n, process);
    return process < 0;
}

/* Complex numbers have no order. */
bool program_combines(trama_where where, trama_program *p, const char *call, const trama_value *value,
                      const trama_mesh *mesh, const trama_layout *layout)
{
    bool orders = false;
    for (int a = 0; a < mesh->ndim && trama_dtype_kind_of(value->dtype) == TRAMA_KIND_COMPLEX; a++)
        orders |= layout->axis[a].kind == TRAMA_PARTIAL && !reduce_is_linear(layout->axis[a].reduce);
    if (orders)
        program_fail(p, where, TRAMA_E_LAYOUT, "%s of %s: %s has no largest and no smallest element: use P(sum)", call,
                     value->name, trama_dtype_name(value->dtype));
    return !orders;
}

trama_value *trama_shard_at(trama_where where, trama_value *value, const trama_mesh *mesh, const char *layout)
{
    if (!value)
        return NULL;
    trama_program *p = value->program;
    if (!mesh || !layout)
        return program_fail(p, where, TRAMA_E_LAYOUT, "shard of %s: the %s is NULL%s", value->name,
                            mesh ? "layout" : "mesh", mesh ? "" : mesh_reason());
    if (value->kind == VALUE_EFFECT || (value->kind == VALUE_RESULT && value_storage(value)))
        return program_fail(p, where, TRAMA_E_LAYOUT, "shard of %s: shard the state that is updated instead",
                            value->name);
    if (value->computed)
        return program_fail(p, where, TRAMA_E_ORDER, "shard of %s: it is computed already; use trama_reshard",
                            value->name);
    if (!program_has_order(where, p, "shard", value->name, mesh))
        return NULL;
    const trama_mesh *own = program_mesh(p, mesh);
    trama_layout parsed;
    if (program_layout(p, mesh, value->shape.ndim, layout, &parsed))
        return program_fail(p, where, TRAMA_E_LAYOUT, "shard of %s: %s", value->name, trama_error());
    if (!program_combines(where, p, "shard", value, own, &parsed))
        return NULL;
    if (value->mesh && (value->mesh != own || !trama_layout_equal(value->layout, &parsed)))
        return program_fail(p, where, TRAMA_E_LAYOUT,
                            "shard of %s: it has another annotation already (%s:%d); use trama_reshard to change it",
                            value->name, value->annotated.where.file, value->annotated.where.line);
    value->mesh = own;
    value->annotated.given = program_given_mesh(p, mesh);
    value->annotated.where = where;
    program_lay_out(value, parsed);
    return value;
}

/* ---- One op ---- */

static bool may_fix(trama_where where, const trama_value *value, const trama_mesh *mesh, int n,
                    const char *const *layouts)
{
    trama_program *p = value->program;
    const trama_node *node = value->node;
    if (value->kind != VALUE_RESULT || node->op->updates || node->op->alias)
        return program_fail(p, where, TRAMA_E_LAYOUT, "shard_op: %s is %s; shard the value instead", value->name,
                            !node             ? "not the result of an op"
                            : node->op->alias ? "another value in another layout, nothing computes it"
                                              : "an updated state"),
               false;
    if (!mesh || !layouts)
        return program_fail(p, where, TRAMA_E_LAYOUT, "shard_op of %s: the %s is NULL%s", node->op->name,
                            mesh ? "list of layouts" : "mesh", mesh ? "" : mesh_reason()),
               false;
    if (n != node->op->n_in + node->op->n_out)
        return program_fail(p, where, TRAMA_E_LAYOUT, "shard_op of %s: %d layouts for %d operands and %d results",
                            node->op->name, n, node->op->n_in, node->op->n_out),
               false;
    if (p->session)
        return program_fail(p, where, TRAMA_E_ORDER, "shard_op of %s: it is computed already; use trama_reshard",
                            node->op->name),
               false;
    if (node->fixed && !node->fixed->by_scope)
        return program_fail(p, where, TRAMA_E_LAYOUT, "shard_op of %s: its layouts are fixed already (%s:%d)",
                            node->op->name, node->fixed->where.file, node->fixed->where.line),
               false;
    return program_has_order(where, p, "shard_op", node->op->name, mesh);
}

trama_value *trama_shard_op_at(trama_where where, trama_value *value, const trama_mesh *mesh, int n,
                               const char *const *layouts)
{
    if (!value || !may_fix(where, value, mesh, n, layouts))
        return NULL;
    trama_program *p = value->program;
    trama_node *node = value->node;
    op_fixed *fixed = trama_alloc(sizeof *fixed);
    fixed->mesh = program_mesh(p, mesh);
    fixed->given = program_given_mesh(p, mesh);
    fixed->where = where;
    for (int t = 0; t < node->op->n_in && !p->status; t++) {
        fixed->in[t] = layout_uniform(fixed->mesh, TRAMA_OPEN);
        if (layouts[t] && program_layout(p, mesh, node->in[t]->shape.ndim, layouts[t], &fixed->in[t]))
            program_fail(p, where, TRAMA_E_LAYOUT, "shard_op of %s: operand %d (%s): %s", node->op->name, t,
                         node->in[t]->name, trama_error());
        if (!p->status)
            program_combines(where, p, "shard_op", node->in[t], fixed->mesh, &fixed->in[t]);
    }
    for (int o = 0; o < node->op->n_out && !p->status; o++)
        if (layouts[node->op->n_in + o])
            trama_shard_at(where, node->out[o], mesh, layouts[node->op->n_in + o]);
    if (p->status) {
        free(fixed);
        return NULL;
    }
    free(node->fixed);
    node->fixed = fixed;
    return value;
}

/* ---- Stages and offload ---- */

trama_status trama_stage_at(trama_where where, trama_program *program, int stage)
{
    if (!program || stage < TRAMA_NO_STAGE) {
        program_fail(program, where, TRAMA_E_ARGUMENT, "stage: %d is no stage of a pipeline; they begin with 0", stage);
        return TRAMA_E_ARGUMENT;
    }
    if (program->session) {
        program_fail(program, where, TRAMA_E_UNSUPPORTED,
                     "stage: pipelines cannot be run yet, so eager programs have none");
        return TRAMA_E_UNSUPPORTED;
    }
    program->stage = stage + 1;
    return program->status;
}

trama_value *trama_offload_at(trama_where where, trama_value *value, const char *device)
{
    if (!value)
        return NULL;
    if (!device || strcmp(device, "cpu"))
        return program_fail(value->program, where, TRAMA_E_ARGUMENT,
                            "offload of %s: '%s' is no memory that values can rest in; there is \"cpu\"", value->name,
                            device ? device : "(null)");
    if (value->program->session)
        return program_fail(value->program, where, TRAMA_E_UNSUPPORTED,
                            "offload of %s: it cannot be run yet, so eager programs have none", value->name);
    if (value->kind == VALUE_EFFECT)
        return program_fail(value->program, where, TRAMA_E_ARGUMENT, "offload of %s: it is an update, not a value",
                            value->name);
    value->offload = true;
    return value;
}

/* ---- The order of processes ---- */

static trama_status check_permutation(trama_where where, trama_program *p, int n, const int *order)
{
    int *from = trama_try_alloc((size_t)n * sizeof *from), i = 0; /* 1 + the process on that place */
    if (!from)
        return program_fail(p, where, TRAMA_E_MEMORY, "order: no memory to check the places of %d processes", n),
               TRAMA_E_MEMORY;
    for (; i < n && order[i] >= 0 && order[i] < n && !from[order[i]]; i++)
        from[order[i]] = i + 1;
    if (i < n && (order[i] < 0 || order[i] >= n))
        program_fail(p, where, TRAMA_E_ARGUMENT,
                     "order: process %d to place %d: the places of %d processes are 0 to %d", i, order[i], n, n - 1);
    else if (i < n)
        program_fail(p, where, TRAMA_E_ARGUMENT, "order: processes %d and %d both to place %d: it takes a permutation",
                     from[order[i]] - 1, i, order[i]);
    free(from);
    return i == n ? TRAMA_OK : TRAMA_E_ARGUMENT;
}

/* Whether the ids of all meshes annotated so far are below n. */
static bool has_meshes(trama_where where, trama_program *p, int n)
{
    for (int i = 0; i < p->values.n; i++) {
        const trama_value *v = p->values.at[i];
        const op_fixed *fixed = v->node ? v->node->fixed : NULL;
        const trama_mesh *mesh = v->mesh ? v->mesh : fixed ? fixed->mesh : NULL;
        trama_where said = v->mesh || !fixed ? v->annotated.where : fixed->where;
        int process = mesh ? process_beyond(n, mesh) : -1;
        if (process >= 0)
            return program_fail(p, where, TRAMA_E_ARGUMENT, "order: of %d processes, and %s (%s:%d) is on process %d",
                                n, v->name, said.file, said.line, process),
                   false;
    }
    return true;
}

trama_status trama_order_at(trama_where where, trama_program *p, int n, const int *order)
{
    if (!p || !order || n < 1 || n > MAX_PROCESSES)
        return program_fail(p, where, TRAMA_E_ARGUMENT, "order: %s",
                            !p       ? "the program is NULL"
                            : !order ? "it is NULL"
                                     : "it takes the places of 1 to 2^24 processes"),
               TRAMA_E_ARGUMENT;
    if (p->session && p->session->started)
        return program_fail(p, where, TRAMA_E_ORDER,
                            "order: processes are on their places already; say it before a value is computed"),
               TRAMA_E_ORDER;
    trama_status status = check_permutation(where, p, n, order);
    if (status || !has_meshes(where, p, n))
        return status ? status : TRAMA_E_ARGUMENT;
    size_t bytes = (size_t)n * sizeof *order;
    if (p->order.n && (p->order.n != n || memcmp(p->order.place, order, bytes)))
        return program_fail(p, where, TRAMA_E_ARGUMENT, "order: processes are in another order already (%s:%d)",
                            p->order.where.file, p->order.where.line),
               TRAMA_E_ARGUMENT;
    if (p->order.n)
        return p->status;
    int *place = trama_try_alloc(bytes);
    if (!place)
        return program_fail(p, where, TRAMA_E_MEMORY, "order: no memory for the places of %d processes", n),
               TRAMA_E_MEMORY;
    p->order = (process_order){.n = n, .place = memcpy(place, order, bytes), .where = where};
    return p->status;
}

static trama_status search(const char *call, trama_where where, trama_program *p, int64_t limit, bool of_states)
{
    if (!p)
        return trama_fail(where, TRAMA_E_ARGUMENT, "%s: the program is NULL", call);
    if (p->session)
        return program_fail(p, where, TRAMA_E_UNSUPPORTED,
                            "%s: eager mode lays out each op as it comes; search in a compiled program", call),
               TRAMA_E_UNSUPPORTED;
    p->search = (search_request){.asked = true, .limit = limit, .of_states = of_states, .where = where};
    return p->status;
}

trama_status trama_search_layouts_at(trama_where where, trama_program *p)
{
    return search("search_layouts", where, p, 0, false);
}

static trama_status search_within(const char *call, trama_where where, trama_program *p, int64_t limit, bool of_states)
{
    if (p && limit <= 0)
        return program_fail(p, where, TRAMA_E_ARGUMENT, "%s: %lld bytes of %s; it must be > 0", call, (long long)limit,
                            of_states ? "states" : "memory"),
               TRAMA_E_ARGUMENT;
    return search(call, where, p, limit, of_states);
}

trama_status trama_search_layouts_within_at(trama_where where, trama_program *p, int64_t state_bytes)
{
    return search_within("search_layouts_within", where, p, state_bytes, true);
}

trama_status trama_search_layouts_in_memory_at(trama_where where, trama_program *p, int64_t bytes)
{
    return search_within("search_layouts_in_memory", where, p, bytes, false);
}
