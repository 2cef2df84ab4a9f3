/* SPDX-License-Identifier: Apache-2.0 */
/* Reverse-mode differentiation: appends ordinary ops to the program. */
#include "families.h"
#include "trama_ops.h"

/* ---- Which values lie between x and the loss ---- */

/* The error for a user-defined op without a gradient. A built-in op without one is constant almost everywhere, so it
 * ends the path instead. */
static void no_gradient(trama_where where, const trama_value *loss, const trama_node *node)
{
    program_fail(node->program, where, TRAMA_E_UNSUPPORTED,
                 "gradient: %s depends on it through %s (%s:%d), an op that was defined without a gradient; define "
                 ".gradient, or use trama_stop_gradient where none shall go through it",
                 loss->name, node->op->name, node->where.file ? node->where.file : "?", node->where.line);
}

static void mark_path(trama_where where, const trama_program *p, const trama_value *loss, int n, trama_value *const *x,
                      bool *on_path)
{
    bool *above = trama_alloc((size_t)p->nodes.n * sizeof *above);
    program_closure(p, 1, (trama_value *[]){(trama_value *)loss}, above);
    for (int i = 0; i < n; i++)
        on_path[x[i]->id] = true;
    for (int i = 0; i < p->nodes.n; i++) {
        const trama_node *node = p->nodes.at[i];
        if (!node || !above[i] || (!node->op->gradient && !node->op->own))
            continue;
        bool depends = false, real = false;
        for (int t = 0; t < node->op->n_in; t++)
            depends |= on_path[node->in[t]->id] && !(node->op->shape_only >> t & 1);
        for (int o = 0; o < node->op->n_out && depends; o++)
            real |= on_path[node->out[o]->id] |= trama_dtype_is_float(dtype_part(node->out[o]->dtype));
        if (real && !node->op->gradient)
            return no_gradient(where, loss, node), free(above);
    }
    free(above);
}

static gradient_table *table_of(trama_program *p, trama_value *loss)
{
    for (int i = 0; i < p->gradients.n; i++)
        if (p->gradients.at[i].loss == loss)
            return &p->gradients.at[i];
    gradient_table *t = ARRAY_PUSH(&p->gradients);
    t->loss = loss;
    return t;
}

static trama_value **entry(gradient_table *t, int id)
{
    while (t->of.n <= id)
        *ARRAY_PUSH(&t->of) = NULL;
    return &t->of.at[id];
}

/* E_ORDER in eager mode if an operand's state was updated since: its old content is gone. */
static bool operands_are_there(trama_where where, const trama_node *node)
{
    for (int i = 0; node->program->session && i < node->op->n_in; i++) {
        const trama_value *state = value_storage(node->in[i]);
        if (state && state->state->updated_by > node->id + 1)
            return program_fail(node->program, where, TRAMA_E_ORDER,
                                "gradient: %s was updated after %s used it; derive the gradient before the update",
                                state->name, node->out[0]->name),
                   false;
    }
    return true;
}

/* The meshes [n_values] of values as far as annotations give them: a value's own; for a result that of its op, else
 * that of the first operand with dims and a mesh. NULL: the value goes to the mesh of its reader. */
static const trama_mesh **known_meshes(const trama_program *p, int n_values)
{
    const trama_mesh **mesh = trama_alloc((size_t)n_values * sizeof *mesh);
    for (int i = 0; i < n_values; i++)
        mesh[i] = p->values.at[i] ? p->values.at[i]->mesh : NULL;
    for (int i = 0; i < p->nodes.n; i++) {
        const trama_node *node = p->nodes.at[i];
        const trama_mesh *on = node && node->fixed ? node->fixed->mesh : NULL;
        for (int t = 0; node && t < node->op->n_in && !on; t++)
            on = node->in[t]->shape.ndim ? mesh[node->in[t]->id] : NULL;
        for (int o = 0; node && o < node->op->n_out; o++)
            if (!mesh[node->out[o]->id])
                mesh[node->out[o]->id] = on;
    }
    return mesh;
}

/* Bit mask of the operands that the user's annotation of the op moves from another mesh. */
static unsigned crossing(const trama_node *node, const trama_mesh *const *mesh)
{
    unsigned set = 0;
    for (int i = 0; node->fixed && i < node->op->n_in; i++)
        set |= (unsigned)(mesh[node->in[i]->id] && mesh[node->in[i]->id] != node->fixed->mesh) << i;
    return set;
}

/* Notes on the nodes from `first` on which results of the op they derive from: completion lays gradients out by it. */
static void note_results(const trama_node *node, trama_value *const *d_out, int first)
{
    const trama_program *p = node->program;
    for (int i = first; i < p->nodes.n; i++)
        for (int t = 0; p->nodes.at[i] && t < p->nodes.at[i]->op->n_in; t++)
            for (int o = 0; o < node->op->n_out; o++)
                if (d_out[o] && p->nodes.at[i]->in[t] == d_out[o])
                    p->nodes.at[i]->gradient_of[t] = node->out[o];
}

/* Derives the gradients of one op's operands on the op's mesh, and reshards each to the mesh of its operand. */
static void derive_node(trama_node *node, const trama_mesh *const *mesh, trama_value *const *d_out, trama_value **d_in)
{
    trama_program *p = node->program;
    unsigned crosses = crossing(node, mesh);
    int first = p->nodes.n;
    p->ops_on = crosses ? node->fixed->mesh : NULL;
    node->op->gradient(node, d_out, d_in);
    p->ops_on = NULL;
    note_results(node, d_out, first);
    for (int i = 0; i < node->op->n_in; i++)
        if ((crosses >> i & 1) && d_in[i])
            d_in[i] = reshard_colocated(node->where, d_in[i], node->in[i]);
}

static trama_value *sum_of(trama_where where, trama_value *x, trama_value *y)
{
    trama_value *joined = joined_windows(where, x, y);
    return joined ? joined : trama_add_at(where, x, y);
}

/* Adds one node's contributions to the gradients of its operands. */
static void back_through(trama_where where, trama_node *node, trama_value **d, const bool *on_path,
                         const bool *complete, const trama_mesh *const *mesh)
{
    trama_value *d_out[TRAMA_MAX_OPERANDS] = {0}, *d_in[TRAMA_MAX_OPERANDS] = {0};
    bool any = false;
    for (int o = 0; o < node->op->n_out; o++) {
        d_out[o] = d[node->out[o]->id];
        any |= d_out[o] != NULL;
    }
    node->wants = 0;
    for (int i = 0; i < node->op->n_in; i++) {
        int id = node->in[i]->id;
        bool wanted = on_path[id] && !complete[id] && !(node->op->shape_only >> i & 1);
        node->wants |= (unsigned)wanted << i;
    }
    if (!any || !node->wants || !node->op->gradient || !operands_are_there(where, node))
        return;
    int outer = node->program->stage;
    node->program->stage = node->stage; /* a gradient belongs to the stage of its op */
    derive_node(node, mesh, d_out, d_in);
    for (int i = 0; i < node->op->n_in; i++) {
        int id = node->in[i]->id;
        if (node_wants(node, i) && d_in[i])
            d[id] = d[id] ? sum_of(node->where, d[id], d_in[i]) : d_in[i];
    }
    node->program->stage = outer;
}

bool program_gradients(trama_where where, trama_value *loss, int n, trama_value *const *x, trama_value **d)
{
    trama_program *p = loss->program;
    int n_values = p->values.n, n_nodes = p->nodes.n;
    bool *on_path = trama_alloc((size_t)n_values), *complete = trama_alloc((size_t)n_values);
    trama_value **of = trama_alloc((size_t)n_values * sizeof(trama_value *));
    gradient_table *known = table_of(p, loss);
    for (int i = 0; i < n_values && i < known->of.n; i++) {
        of[i] = known->of.at[i];
        complete[i] = of[i] != NULL;
    }
    mark_path(where, p, loss, n, x, on_path);
    const trama_mesh **mesh = known_meshes(p, n_values);
    node_role outer = p->role;
    p->role = NODE_GRADIENT;
    if (!of[loss->id])
        of[loss->id] = trama_fill_at(where, p, loss->dtype, TRAMA_SCALAR, 1);
    complete[loss->id] = true;
    for (int i = n_nodes - 1; i >= 0 && !p->status; i--)
        if (p->nodes.at[i])
            back_through(where, p->nodes.at[i], of, on_path, complete, mesh);
    p->role = outer;
    known = table_of(p, loss);
    for (int i = 0; i < n_values; i++)
        if (on_path[i] && of[i])
            *entry(known, i) = of[i];
    *entry(known, loss->id) = of[loss->id];
    for (int i = 0; i < n; i++)
        d[i] = of[x[i]->id];
    free(on_path);
    free(complete);
    free(mesh);
    free(of);
    return !p->status;
}

bool program_check_loss(trama_where where, const char *what, trama_value *loss)
{
    if (!loss)
        return false;
    if (loss->kind == VALUE_EFFECT || loss->shape.ndim || !trama_dtype_is_float(loss->dtype))
        return program_fail(loss->program, where, TRAMA_E_SHAPE, "%s: the loss must be a float scalar, %s is not", what,
                            loss->name),
               false;
    return true;
}

trama_value *trama_gradient_at(trama_where where, trama_value *loss, trama_value *x)
{
    if (!x || !program_check_loss(where, "gradient", loss))
        return NULL;
    if (x->program != loss->program || x->kind == VALUE_EFFECT)
        return program_fail(loss->program, where, TRAMA_E_ARGUMENT, "gradient: %s is no value of the loss's program",
                            x->name);
    if (!trama_dtype_is_float(dtype_part(x->dtype)))
        return program_fail(loss->program, where, TRAMA_E_DTYPE, "gradient: %s is %s, which has no gradient", x->name,
                            trama_dtype_name(x->dtype));
    trama_value *d = NULL;
    if (!program_gradients(where, loss, 1, &x, &d))
        return NULL;
    if (!d)
        return trama_scale_at(where, x, 0);
    if (!d->gradient.of)
        d->gradient.of = x;
    return d;
}
