/* SPDX-License-Identifier: Apache-2.0 */
/* Completion: meshes (meshes.c), then sweeps over the program that only add splits. freeze.c makes layouts of these
 * splits. */
#include "complete_internal.h"

#include <string.h>

#include "hash.h"

/* ---- Tables ---- */

static void *grow(void *at, int old, int n, size_t size)
{
    at = trama_resize(at, (size_t)n * size);
    memset((char *)at + (size_t)old * size, 0, (size_t)(n - old) * size);
    return at;
}

void layouts_room(layouts *l, int n_values, int n_nodes)
{
    if (n_values > l->n_values) {
        int n = (int)max_i64(n_values, 2 * l->n_values);
        l->mesh = grow(l->mesh, l->n_values, n, sizeof *l->mesh);
        l->value = grow(l->value, l->n_values, n, sizeof *l->value);
        l->n_values = n;
    }
    if (n_nodes > l->n_nodes) {
        int n = (int)max_i64(n_nodes, 2 * l->n_nodes);
        l->op = grow(l->op, l->n_nodes, n, sizeof *l->op);
        l->n_nodes = n;
    }
}

void layouts_free(layouts *l)
{
    free(l->mesh);
    free(l->value);
    free(l->op);
    for (int i = 0; i < l->pool.n; i++)
        free(l->pool.at[i]);
    ARRAY_FREE(&l->pool);
    hash_table_free(&l->by_content);
    free(l->report);
    *l = (layouts){0};
}

static uint64_t hash_of_op(const op_layouts *op)
{
    uint64_t hash = hash_address(HASH_START, op->mesh);
    for (int t = 0; t < TRAMA_MAX_OPERANDS; t++)
        hash = layout_hash(layout_hash(hash, &op->in[t]), &op->out[t]);
    return hash;
}

static bool same_op(const op_layouts *a, const op_layouts *b)
{
    bool same = a->mesh == b->mesh;
    for (int t = 0; same && t < TRAMA_MAX_OPERANDS; t++)
        same = trama_layout_equal(&a->in[t], &b->in[t]) && trama_layout_equal(&a->out[t], &b->out[t]);
    return same;
}

void layouts_set_op(layouts *l, int node, const op_layouts *op)
{
    const uint64_t hash = hash_of_op(op);
    for (int probe = 0, i; (i = hash_table_find(&l->by_content, hash, &probe)) >= 0;)
        if (same_op(l->pool.at[i], op)) {
            l->op[node] = l->pool.at[i];
            return;
        }
    op_layouts *made = trama_alloc(sizeof *made);
    *made = *op;
    hash_table_add(&l->by_content, hash, l->pool.n);
    *ARRAY_PUSH(&l->pool) = made;
    l->op[node] = made;
}

/* ---- Sweeps ---- */

/* Operand or result t; for an updated value its state, which decides the layout of both. */
static const trama_value *tensor_of(const trama_node *node, int t)
{
    trama_value *v = node_tensor(node, t), *state = value_storage(v);
    return state ? state : v;
}

const trama_layout *operand_layout(const layouts *l, const trama_node *node, int t, const trama_mesh *mesh)
{
    const trama_value *v = node->in[t];
    if (node->fixed && layout_axes(&node->fixed->in[t], TRAMA_OPEN) != (1u << mesh->ndim) - 1)
        return &node->fixed->in[t];
    return l->mesh[v->id] == mesh ? &l->value[v->id] : NULL;
}

/* Whether the mask leaves each piece a holder where open axes are R. */
static bool mask_fits(const trama_mesh *mesh, int ndim, const trama_layout *layout)
{
    trama_layout closed = *layout;
    close_open_axes(&closed);
    return !layout->mask || !layout_check(mesh, ndim, &closed, false);
}

/* Splits the open axes of a value as the op splits the factors of its dims. */
static bool adopt(layouts *l, const trama_value *v, const trama_layout *wanted)
{
    trama_layout *have = &l->value[v->id];
    const trama_layout before = *have;
    bool changed = false;
    for (int d = 0; d < v->shape.ndim; d++) {
        int has[TRAMA_MAX_AXES], wants[TRAMA_MAX_AXES];
        int n = layout_dim_axes(have, d, has), m = layout_dim_axes(wanted, d, wants);
        if (m <= n || (n && memcmp(has, wants, (size_t)n * sizeof *has)))
            continue; /* nothing more, or another split: the edge reshards */
        for (int i = n; i < m && have->axis[wants[i]].kind == TRAMA_OPEN; i++) {
            have->axis[wants[i]] = (trama_placement){.kind = TRAMA_SPLIT, .dim = d, .order = i};
            changed = true;
        }
    }
    if (changed && !mask_fits(l->mesh[v->id], v->shape.ndim, have)) {
        *have = before;
        return false;
    }
    return changed;
}

/* A parameter trains, and the results of forward ops on values that do. */
static void find_trained(completion *c)
{
    const trama_program *p = c->program;
    for (int i = 0; i < p->values.n; i++)
        c->trains[i] = p->values.at[i]->state->trainable;
    for (int i = 0; i < p->nodes.n; i++) {
        const trama_node *node = p->nodes.at[i];
        const bool trains = trained_operands(c, node) && node->op->gradient;
        for (int o = 0; o < node->op->n_out && trains; o++)
            c->trains[node->out[o]->id] |= trama_dtype_is_float(dtype_part(node->out[o]->dtype));
    }
}

unsigned trained_operands(const completion *c, const trama_node *node)
{
    unsigned set = 0;
    for (int t = 0; node->role == NODE_FORWARD && c->trains && t < node->op->n_in; t++)
        set |= (unsigned)(c->trains[node->in[t]->id] && !(node->op->shape_only >> t & 1)) << t;
    return set;
}

static bool sweep_node(completion *c, const trama_node *node)
{
    layouts *l = c->l;
    const trama_mesh *mesh;
    node_mesh(l, node, &mesh);
    const trama_layout *given[RULE_MAX_TENSORS] = {0};
    int n = node->op->n_in + node->op->n_out;
    for (int t = 0; t < n; t++) {
        const trama_value *v = tensor_of(node, t);
        given[t] = l->mesh[v->id] == mesh ? &l->value[v->id] : NULL;
        if (t < node->op->n_in && !(node->op->updates >> t & 1))
            given[t] = operand_layout(l, node, t, mesh);
    }
    op_layouts inferred;
    infer_op(&(infer_question){.node = node,
                               .rule = c->rules.of[node->id],
                               .mesh = mesh,
                               .in = given,
                               .out = given + node->op->n_in,
                               .trains = trained_operands(c, node),
                               .moves = true},
             &inferred, NULL);
    bool changed = false;
    for (int t = 0; t < n; t++) {
        bool result = t >= node->op->n_in;
        if (l->mesh[tensor_of(node, t)->id] == mesh && !(node->op->alias && tensor_of(node, t)->mesh))
            changed |= adopt(l, tensor_of(node, t), result ? &inferred.out[t - node->op->n_in] : &inferred.in[t]);
    }
    return changed;
}

/* Pass 1 takes the pointwise and shape ops of the forward program, pass 2 all of its ops. */
static bool in_pass(const trama_node *node, int pass)
{
    return node->role == NODE_FORWARD &&
           (pass == 2 || node->op->pointwise || node->op->alias || node->op == &trama_op_transpose ||
            node->op == &trama_op_reshape || node->op == &trama_op_reshape_like);
}

static void sweep(completion *c)
{
    const trama_program *p = c->program;
    for (int pass = 1; pass <= 2; pass++)
        for (bool changed = true; changed;) {
            changed = false;
            for (int i = 0; i < p->nodes.n; i++)
                if (in_pass(p->nodes.at[i], pass))
                    changed |= sweep_node(c, p->nodes.at[i]);
            for (int i = p->nodes.n - 1; i >= 0; i--)
                if (in_pass(p->nodes.at[i], pass))
                    changed |= sweep_node(c, p->nodes.at[i]);
        }
}

/* ---- The whole program ---- */

/* Whether every value has at most MOST_BYTES where TRAMA_ANY is `nominal`. */
static bool is_countable(const trama_program *p, int64_t nominal)
{
    for (int i = 0; i < p->values.n; i++) {
        const trama_value *v = p->values.at[i];
        int64_t bytes = v ? (int64_t)trama_dtype_size(v->dtype) : 0;
        const trama_shape shape = v ? value_nominal_shape(v, nominal) : TRAMA_SCALAR;
        for (int d = 0; d < shape.ndim; d++)
            if (!count_times(&bytes, max_i64(1, shape.dim[d]), MOST_BYTES))
                return false;
    }
    return true;
}

int64_t complete_nominal(const trama_program *program, int64_t nominal)
{
    nominal = program->start.nominal ? program->start.nominal : nominal;
    while (nominal > 1 && !is_countable(program, nominal))
        nominal /= 2;
    return nominal;
}

void complete_rule(const trama_node *node, int64_t nominal, trama_rule *rule)
{
    memcpy(rule, node->rule, sizeof *rule);
    for (int f = 0; f < rule->n_factors; f++)
        rule->factor[f].extent = node_nominal_extent(node, f, nominal);
    trama_shape operands[TRAMA_MAX_OPERANDS];
    if (rule_reaches_any(rule)) { /* as joined dims do */
        for (int t = 0; t < rule->n_in; t++)
            operands[t] = value_nominal_shape(node->in[t], nominal);
        rule_join(rule, operands);
    }
    rule_settle(rule);
}

node_rules complete_rules(const trama_program *program, int64_t nominal)
{
    node_rules rules = node_rules_new(program->nodes.n);
    nominal = complete_nominal(program, nominal);
    for (int i = 0; i < program->nodes.n; i++) {
        trama_rule rule;
        complete_rule(program->nodes.at[i], nominal, &rule);
        node_rules_set(&rules, i, program->nodes.at[i]->rule, &rule);
    }
    return rules;
}

/* Whether start i counts: the user may have annotated the value since. */
static bool starts(const trama_program *p, int i)
{
    return !p->values.at[p->start.at.at[i].value]->mesh;
}

static void start_values(completion *c)
{
    const trama_program *p = c->program;
    for (int i = 0; i < p->values.n; i++) {
        const trama_value *v = p->values.at[i], *of = v->state->slot_of;
        c->l->mesh[i] = of && !v->mesh ? of->mesh : v->mesh;
    }
    for (int i = 0; i < p->start.at.n; i++)
        if (starts(p, i))
            c->l->mesh[p->start.at.at[i].value] = p->start.mesh;
}

static void start_layouts(completion *c)
{
    const trama_program *p = c->program;
    for (int i = 0; i < p->values.n; i++) {
        const trama_value *v = p->values.at[i];
        c->l->value[i] = v->mesh ? *v->layout : layout_uniform(c->l->mesh[i], TRAMA_OPEN);
    }
    for (int i = 0; i < p->start.at.n; i++) {
        const start_split *start = &p->start.at.at[i];
        for (int a = 0, order = 0; a < p->start.mesh->ndim && starts(p, i); a++)
            if (start->axes >> a & 1)
                c->l->value[start->value].axis[a] =
                    (trama_placement){.kind = TRAMA_SPLIT, .dim = start->dim, .order = order++};
    }
}

/* States that one op updates get the first mask among them, where they have no annotation. */
static void join_masks(layouts *l, const trama_node *node, const trama_layout *const *given)
{
    const unsigned char *mask = NULL;
    for (int o = 0; o < node->op->n_out && !mask; o++)
        mask = given[o] ? given[o]->mask : NULL;
    for (int o = 0; o < node->op->n_out && mask; o++)
        if (given[o] && !value_storage(node->in[o])->mesh)
            l->value[value_storage(node->in[o])->id].mask = mask;
}

/* State without an annotation gets the layout of the state that one op updates with it. */
static void join_states(completion *c)
{
    const trama_program *p = c->program;
    for (int i = 0; i < p->nodes.n; i++) {
        const trama_node *node = p->nodes.at[i];
        const trama_layout *given[TRAMA_MAX_OPERANDS] = {0};
        op_layouts inferred;
        if (!node->op->updates)
            continue;
        const trama_mesh *mesh = c->l->mesh[node->in[0]->id];
        for (int o = 0; o < node->op->n_out; o++)
            if ((node->op->updates >> o & 1) && c->l->mesh[node->in[o]->id] == mesh)
                given[o] = &c->l->value[value_storage(node->in[o])->id];
        infer_op(&(infer_question){.node = node, .rule = c->rules.of[i], .mesh = mesh, .in = given, .moves = true},
                 &inferred, NULL);
        for (int o = 0; o < node->op->n_out; o++)
            if (given[o])
                adopt(c->l, value_storage(node->in[o]), &inferred.in[o]);
        join_masks(c->l, node, given);
    }
}

/* Closes the open axes of all but results, which freezing closes. */
static void close_leaves(completion *c)
{
    const trama_program *p = c->program;
    for (int i = 0; i < p->values.n; i++)
        if (p->values.at[i]->kind != VALUE_RESULT)
            close_open_axes(&c->l->value[i]);
}

trama_status complete_program(const trama_program *program, int64_t nominal, const trama_mesh *single, layouts *result)
{
    completion c = {.program = program, .l = result, .single = single};
    *result = (layouts){0};
    layouts_room(result, program->values.n, program->nodes.n);
    c.rules = complete_rules(program, nominal);
    c.summed = trama_alloc((size_t)program->values.n * sizeof *c.summed);
    c.held = trama_alloc((size_t)program->values.n * sizeof *c.held);
    c.shares = trama_alloc((size_t)program->values.n * sizeof *c.shares);
    c.slot = trama_alloc((size_t)program->values.n * sizeof *c.slot);
    c.wished = trama_alloc((size_t)program->values.n * sizeof *c.wished);
    c.updated = trama_alloc((size_t)program->values.n * sizeof *c.updated);
    c.trains = trama_alloc((size_t)program->values.n * sizeof *c.trains);
    start_values(&c);
    find_trained(&c);
    trama_status status = spread_meshes(&c);
    if (!status) {
        start_layouts(&c);
        sweep(&c);
        join_states(&c);
        close_leaves(&c);
        find_shared(&c);
        status = freeze_program(&c);
    }
    result->report = text_take(&c.report);
    node_rules_free(&c.rules);
    free(c.summed);
    free(c.held);
    free(c.trains);
    free(c.shares);
    free(c.slot);
    free(c.wished);
    free(c.updated);
    if (!status)
        status = memory_status(NOWHERE, "completing the layouts");
    if (status)
        layouts_free(result);
    return status;
}
