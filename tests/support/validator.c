/* SPDX-License-Identifier: Apache-2.0 */
/* Splitting, running and recombining one op call. */
#include "validator.h"

#include <math.h>
#include <string.h>

#include "reference.h"

/* ---- One call under given layouts ---- */

typedef struct spread {
    dense *terms[2 * TRAMA_MAX_OPERANDS];
    const trama_layout *layout[2 * TRAMA_MAX_OPERANDS];
} spread;

/* The box of a process within a whole tensor. */
static trama_view local_view(const dense *whole, trama_dtype dtype, const box *b)
{
    trama_view v = dense_view(whole, dtype);
    double *data = v.data;
    for (int d = 0; d < v.ndim; d++) {
        v.offset[d] = b->lo[d];
        v.extent[d] = b->n[d];
        data += b->lo[d] * v.stride[d];
    }
    v.data = data;
    return v;
}

static dense *domain_terms(const sample *s, int operand, const trama_layout *layout)
{
    int n = naive_terms(s->mesh, layout);
    dense *terms = trama_alloc((size_t)n * sizeof *terms);
    for (int t = 0; t < n; t++)
        terms[t] = dense_of_domain(s->node->in[operand]->shape, s->c->domains[operand], case_classes(s->node),
                                   s->seed + (uint64_t)(100 * operand + t));
    return terms;
}

static void whole_results(const sample *s, const dense *in, dense *out)
{
    trama_view views_in[TRAMA_MAX_OPERANDS], views_out[TRAMA_MAX_OPERANDS];
    const trama_node *node = s->node;
    for (int t = 0; t < node->op->n_in; t++)
        views_in[t] = dense_view(&in[t], node->in[t]->dtype);
    for (int o = 0; o < node->op->n_out; o++) {
        out[o] = dense_new(node->out[o]->shape);
        views_out[o] = dense_view(&out[o], node->out[o]->dtype);
    }
    reference_call(&(trama_call){node->op, &node->attributes, node->op->n_in, node->op->n_out, views_in, views_out});
}

/* Adds a process's box to its term; false where it differs from what a replica put there. */
static bool store_box(dense *term, const dense *local, const box *b)
{
    trama_view from = local_view(local, TRAMA_F64, b), to = local_view(term, TRAMA_F64, b);
    for (int64_t k = 0; k < box_count(b); k++) {
        int64_t at = 0, rest = k;
        for (int d = b->ndim - 1; d >= 0; d--) {
            at += rest % b->n[d] * from.stride[d];
            rest /= b->n[d];
        }
        double x = ((double *)from.data)[at], *y = (double *)to.data + at;
        if (!isnan(*y) && !isnan(x) && fabs(*y - x) > 1e-9 * fmax(1, fabs(x)))
            return false;
        *y = x;
    }
    return true;
}

/* Runs one process on its boxes. */
static bool run_process(const sample *s, const spread *given, int position, dense *locals)
{
    const trama_node *node = s->node;
    trama_view views[2 * TRAMA_MAX_OPERANDS];
    int n_in = node->op->n_in;
    for (int t = 0; t < n_in + node->op->n_out; t++) {
        const trama_value *v = t < n_in ? node->in[t] : node->out[t - n_in];
        const dense *whole =
            t < n_in ? &given->terms[t][naive_term(s->mesh, given->layout[t], position)] : &locals[t - n_in];
        box b = naive_box(s->mesh, given->layout[t], v->shape, position);
        views[t] = local_view(whole, v->dtype, &b);
        if (t < n_in && (node->op->shape_only >> t & 1))
            views[t].data = NULL;
    }
    return reference_try(&(trama_call){node->op, &node->attributes, n_in, node->op->n_out, views, views + n_in});
}

/* Whether the op on operands laid out as `in`, run by every process on its own, gives results laid out as `out`. */
bool is_right(const sample *s, const trama_layout *in, const trama_layout *out)
{
    const trama_node *node = s->node;
    int n_in = node->op->n_in, n_out = node->op->n_out;
    spread given = {0};
    dense wholes[TRAMA_MAX_OPERANDS], expected[TRAMA_MAX_OPERANDS], locals[TRAMA_MAX_OPERANDS];
    bool right = true;
    for (int t = 0; t < n_in; t++) {
        given.layout[t] = &in[t];
        given.terms[t] = domain_terms(s, t, &in[t]);
        wholes[t] = combine_terms(s->mesh, &in[t], given.terms[t]);
    }
    whole_results(s, wholes, expected);
    for (int o = 0; o < n_out; o++) {
        given.layout[n_in + o] = &out[o];
        given.terms[n_in + o] = trama_alloc((size_t)naive_terms(s->mesh, &out[o]) * sizeof(dense));
        for (int t = 0; t < naive_terms(s->mesh, &out[o]); t++)
            given.terms[n_in + o][t] = dense_new(node->out[o]->shape);
    }
    for (int position = 0; position < s->mesh->size && right; position++) {
        for (int o = 0; o < n_out; o++)
            locals[o] = dense_new(node->out[o]->shape);
        right = run_process(s, &given, position, locals);
        for (int o = 0; o < n_out; o++) {
            box b = naive_box(s->mesh, &out[o], node->out[o]->shape, position);
            dense *term = &given.terms[n_in + o][naive_term(s->mesh, &out[o], position)];
            right = right && store_box(term, &locals[o], &b);
            dense_free(&locals[o]);
        }
    }
    for (int o = 0; o < n_out; o++) {
        dense got = combine_terms(s->mesh, &out[o], given.terms[n_in + o]);
        right = right && dense_difference(&got, &expected[o]) < 1e-9;
        dense_free(&got);
        dense_free(&expected[o]);
        free_terms(s->mesh, &out[o], given.terms[n_in + o]);
    }
    for (int t = 0; t < n_in; t++) {
        dense_free(&wholes[t]);
        free_terms(s->mesh, &in[t], given.terms[t]);
    }
    return right;
}

/* ---- Combinations of placements ---- */

void describe_call(text *t, const sample *s, const trama_layout *in, const trama_layout *out)
{
    const trama_node *node = s->node;
    text_add(t, "%s", s->c->name);
    for (int i = 0; i < node->op->n_in; i++) {
        text_add(t, i ? ", " : " (");
        shape_text(t, node->in[i]->shape);
        text_add(t, " ");
        layout_text(t, s->mesh, &in[i]);
    }
    text_add(t, node->op->n_in ? ")" : "");
    for (int o = 0; out && o < node->op->n_out; o++) {
        text_add(t, o ? ", " : " -> ");
        layout_text(t, s->mesh, &out[o]);
    }
}

/* Updates are asked for on equal layouts of all that has the state's shape. */
static bool is_asked(const trama_node *node, const combination *c)
{
    for (int t = 1; node->op->updates && t < node->op->n_in; t++)
        if (node->in[t]->shape.ndim && !trama_layout_equal(&c->in[t], &c->in[0]))
            return false;
    return true;
}

op_layouts infer_combination(const sample *s, const combination *c)
{
    const trama_layout *given[TRAMA_MAX_OPERANDS];
    op_layouts result;
    for (int t = 0; t < s->node->op->n_in; t++)
        given[t] = &c->in[t];
    infer_op(s->node, s->rule, s->mesh, given, NULL, &result, NULL);
    return result;
}

static void each_from(const sample *s, int operand, combination *c, combination_visit *visit, void *arg)
{
    if (operand == s->node->op->n_in) {
        if (is_asked(s->node, c))
            visit(arg, s, c);
        return;
    }
    layout_list list = {0};
    every_layout(s->mesh, s->node->in[operand]->shape.ndim, true, &list);
    for (int i = 0; i < list.n; i++) {
        c->in[operand] = list.at[i];
        bool alike = s->node->op->updates && operand > 0 && s->node->in[operand]->shape.ndim;
        if (!alike || trama_layout_equal(&c->in[operand], &c->in[0]))
            each_from(s, operand + 1, c, visit, arg);
    }
    ARRAY_FREE(&list);
}

void each_combination(const sample *s, combination_visit *visit, void *arg)
{
    combination c = {0};
    each_from(s, 0, &c, visit, arg);
}

/* Whether inference takes a given split or partial value away: what was whole may be split for nothing. */
bool is_refused(const sample *s, const combination *c)
{
    op_layouts inferred = infer_combination(s, c);
    for (int t = 0; t < s->node->op->n_in; t++)
        if (c->in[t].axis[0].kind != TRAMA_REPLICATE && !(s->node->op->shape_only >> t & 1) &&
            !trama_layout_equal(&c->in[t], &inferred.in[t]))
            return true;
    return false;
}
