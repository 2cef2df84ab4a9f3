/* SPDX-License-Identifier: Apache-2.0 */
/* The choice between an op and its split form, by the bytes that a process receives, and the replacement. It knows no
 * op. */
#include "split_form.h"

#include <assert.h>
#include <string.h>

#include "changes.h"

/* ---- Replacing ---- */

/* The value takes the place of the result `made` of the split form; `made` becomes an effect without updates, since
 * values keep their numbers. */
static void take_place(trama_program *p, trama_value *value, trama_value *made, int first)
{
    assert(made->dtype == value->dtype && trama_shape_equal(made->shape, value->shape));
    for (int i = first; i < p->nodes.n; i++)
        for (int t = 0; t < p->nodes.at[i]->op->n_in; t++)
            if (p->nodes.at[i]->in[t] == made)
                p->nodes.at[i]->in[t] = value;
    value->node = made->node;
    value->result = made->result;
    value->node->out[value->result] = value;
    made->kind = VALUE_EFFECT;
    made->node = NULL;
}

/* Operands of the split form are gradients of the same results as those of the node. */
static void note_gradients(const trama_program *p, const trama_node *node, int first)
{
    for (int i = first; i < p->nodes.n; i++)
        for (int t = 0; t < p->nodes.at[i]->op->n_in; t++)
            for (int k = 0; k < node->op->n_in; k++)
                if (p->nodes.at[i]->in[t] == node->in[k])
                    p->nodes.at[i]->gradient_of[t] = node->gradient_of[k];
}

/* "softmax4.max", for plans and traces. */
static void name_values(const trama_program *p, const trama_value *replaced, int first)
{
    for (int i = first; i < p->nodes.n; i++)
        for (int o = 0; o < p->nodes.at[i]->op->n_out; o++) {
            text name = {0};
            text_add(&name, "%s.%s", replaced->name, p->nodes.at[i]->op->name);
            free(p->nodes.at[i]->out[o]->name);
            p->nodes.at[i]->out[o]->name = text_take(&name);
        }
}

/* Moves the nodes from `first` on to place `at`, where one was, those without operands first; and numbers all from
 * there on. */
static void insert(trama_program *p, int at, int first)
{
    const int n = p->nodes.n - first;
    const size_t size = sizeof *p->nodes.at;
    trama_node **made = trama_alloc((size_t)n * size);
    for (int sources = 1, k = 0; sources >= 0; sources--)
        for (int i = first; i < p->nodes.n; i++)
            if ((p->nodes.at[i]->op->n_in == 0) == sources)
                made[k++] = p->nodes.at[i];
    memmove(p->nodes.at + at + n, p->nodes.at + at + 1, (size_t)(first - at - 1) * size);
    memcpy(p->nodes.at + at, made, (size_t)n * size);
    p->nodes.n--;
    free(made);
    for (int i = at; i < p->nodes.n; i++) {
        trama_node *node = p->nodes.at[i];
        node->id = i;
        for (int o = 0; o < node->op->n_out; o++)
            if (node->op->updates >> o & 1)
                value_storage(node->in[o])->state->updated_by = i + 1;
    }
}

bool split_form_replace(trama_program *p, trama_node *node, whole_split split)
{
    const int first = p->nodes.n;
    trama_value *made[TRAMA_MAX_OPERANDS] = {0};
    const node_role outer = p->role;
    p->role = node->role;
    p->stage = node->stage;
    p->ops_on = node->fixed ? node->fixed->mesh : NULL;
    node->op->split_form(node, split.dim, split.parts, made);
    p->role = outer;
    p->stage = 0;
    p->ops_on = NULL;
    if (!made[0])
        return false;
    note_gradients(p, node, first);
    name_values(p, node->out[0], first);
    for (int o = 0; o < node->op->n_out; o++)
        take_place(p, node->out[o], made[o], first);
    insert(p, node->id, first);
    program_node_free(node);
    return true;
}

/* ---- The choice ---- */

static bool is_fixed(const trama_node *node)
{
    bool fixed = false;
    for (int t = 0; node->fixed && t < node->op->n_in; t++)
        for (int a = 0; a < node->fixed->in[t].naxes; a++)
            fixed |= node->fixed->in[t].axis[a].kind != TRAMA_OPEN;
    return fixed;
}

/* Whether the op can compute where dim d of operand t is split by these n axes of the layout. */
static bool may_split(const trama_rule *rule, const trama_mesh *mesh, int t, const trama_layout *layout, int d, int n)
{
    const rule_dim *dim = &rule->tensor[t].dim[d];
    int axes[TRAMA_MAX_AXES];
    bool may = false;
    for (int i = 0; i < dim->n && !may && !rule_dim_is_whole(rule, t, d); i++)
        may = infer_claim(rule, mesh, t, layout, dim->factor[i], axes) == n;
    return may;
}

/* The split of dim d of operand t, if the op must have it whole, or cannot have it in pieces of these sizes; parts 0:
 * it has none, or can. */
static whole_split find_split(const trama_node *node, const layouts *l, int t, int d)
{
    const trama_mesh *mesh = l->op[node->id]->mesh;
    const trama_value *v = node->in[t];
    whole_split split = {.dim = d, .parts = 1};
    int axes[TRAMA_MAX_AXES];
    if (l->mesh[v->id] != mesh || (node->op->shape_only >> t & 1))
        return (whole_split){0};
    const int n = layout_dim_axes(&l->value[v->id], d, axes);
    for (int i = 0; i < n; i++)
        split.parts *= mesh->weight_sum[axes[i]];
    return n && !may_split(node->rule, mesh, t, &l->value[v->id], d, n) ? split : (whole_split){0};
}

/* A program of the node's op alone, whose operands have the node's layouts, and its results those that the user gave.
 */
static trama_program *program_of(const trama_node *node, const layouts *l)
{
    trama_program *p = program_new();
    trama_value *in[TRAMA_MAX_OPERANDS];
    for (int t = 0; t < node->op->n_in; t++) {
        const trama_value *v = node->in[t];
        in[t] = program_value(p, v->where, VALUE_INPUT, v->dtype, v->shape, v->name);
        value_copy_open(in[t], v);
        in[t]->mesh = l->mesh[v->id];
        program_lay_out(in[t], l->value[v->id]);
    }
    p->role = node->role;
    const trama_value *made = program_append(p, node->where, node->op, node->op->n_in, in, node->attributes);
    for (int o = 0; made && o < node->op->n_out; o++)
        if (node->out[o]->mesh) {
            made->node->out[o]->mesh = node->out[o]->mesh;
            program_lay_out(made->node->out[o], *node->out[o]->layout);
        }
    return p;
}

static int64_t completed_bytes(const trama_program *p, int64_t nominal, const trama_mesh *single)
{
    layouts l;
    if (p->status || complete_program(p, nominal, single, &l))
        return INT64_MAX;
    const int64_t bytes = layouts_bytes(p, &l, nominal);
    layouts_free(&l);
    return bytes;
}

/* The bytes of the op alone, or of its split form; INT64_MAX where there is none. */
static int64_t bytes_of(const trama_node *node, const whole_split *split, const layouts *l, int64_t nominal,
                        const trama_mesh *single)
{
    trama_program *p = program_of(node, l);
    const bool there = !p->status && (!split || split_form_replace(p, p->nodes.at[0], *split));
    const int64_t bytes = there ? completed_bytes(p, nominal, single) : INT64_MAX;
    trama_program_destroy(&p);
    return bytes;
}

whole_split split_form_pays(const trama_node *node, const layouts *l, int64_t nominal, const trama_mesh *single)
{
    int64_t whole = -1; /* not counted */
    for (int t = 0; t < node->op->n_in && node->op->split_form && !is_fixed(node); t++)
        for (int d = 0; d < node->in[t]->shape.ndim; d++) {
            const whole_split split = find_split(node, l, t, d);
            if (split.parts && whole < 0)
                whole = bytes_of(node, NULL, l, nominal, single);
            if (split.parts && bytes_of(node, &split, l, nominal, single) < whole)
                return split;
        }
    return (whole_split){0};
}

typedef struct gain {
    trama_node *node;
    whole_split split;
} gain;

/* Replaces the nodes of a kind that gain by it; false where there are none. */
static bool replace_nodes(trama_program *p, bool forward, const layouts *l, int64_t nominal, const trama_mesh *single)
{
    ARRAY(gain) gains = {0};
    for (int i = 0; i < p->nodes.n; i++) {
        if ((p->nodes.at[i]->role == NODE_FORWARD) != forward)
            continue;
        const gain g = {p->nodes.at[i], split_form_pays(p->nodes.at[i], l, nominal, single)};
        if (g.split.parts)
            *ARRAY_PUSH(&gains) = g;
    }
    for (int i = 0; i < gains.n && !p->status; i++)
        split_form_replace(p, gains.at[i].node, gains.at[i].split);
    const bool any = gains.n;
    ARRAY_FREE(&gains);
    return any;
}

/* Layouts of gradients follow from those of forward ops, which are therefore replaced first. */
trama_status split_forms_complete(trama_program *p, int64_t nominal, const trama_mesh *single, layouts *result)
{
    const int64_t countable = complete_nominal(p, nominal);
    trama_status status = complete_program(p, nominal, single, result);
    while (!status &&
           (replace_nodes(p, true, result, countable, single) || replace_nodes(p, false, result, countable, single))) {
        layouts_free(result);
        status =
            p->status ? trama_fail(NOWHERE, p->status, "%s", p->error) : complete_program(p, nominal, single, result);
    }
    return status;
}
