/* SPDX-License-Identifier: Apache-2.0 */
/* Splits, runs and recombines one op call. */
#include "trial.h"

#include <math.h>
#include <string.h>

/* ---- Whole tensors ---- */

typedef struct whole {
    trama_shape shape;
    int width;  /* doubles of an element: a complex one has two */
    double *at; /* [count, width] row-major */
} whole;

static whole whole_new(trama_shape shape, trama_dtype dtype)
{
    whole w = {.shape = shape, .width = dtype_parts(dtype)};
    const int64_t n = trama_shape_count(shape) * w.width;
    w.at = trama_alloc((size_t)n * sizeof *w.at);
    for (int64_t i = 0; i < n; i++)
        w.at[i] = NAN;
    return w;
}

static int64_t doubles_of(const whole *w)
{
    return trama_shape_count(w->shape) * w->width;
}

/* The box of a process within a whole tensor. */
static trama_view view_of(const whole *w, trama_dtype dtype, const box *b)
{
    trama_view v = {.data = w->at, .dtype = dtype, .ndim = w->shape.ndim};
    int64_t stride = 1, first = 0;
    for (int d = v.ndim - 1; d >= 0; d--) {
        v.global[d] = w->shape.dim[d];
        v.extent[d] = b->n[d];
        v.offset[d] = b->lo[d];
        v.stride[d] = stride;
        first += b->lo[d] * stride;
        stride *= w->shape.dim[d];
    }
    v.data = w->at + first * w->width;
    return v;
}

static double difference(const whole *a, const whole *b)
{
    double most = 0;
    for (int64_t i = 0, n = doubles_of(a); i < n; i++) {
        double x = a->at[i], y = b->at[i];
        if (x == y || (isnan(x) && isnan(y)))
            continue;
        double d = fabs(x - y) / fmax(1, fabs(y));
        most = isnan(d) ? INFINITY : fmax(most, d);
    }
    return most;
}

/* ---- A tensor as its terms ---- */

typedef struct spread {
    const trama_mesh *mesh;
    const trama_layout *layout;
    int n;
    whole *terms; /* [n] */
} spread;

static spread spread_new(const trama_mesh *mesh, const trama_layout *layout, const trama_value *value)
{
    spread s = {.mesh = mesh, .layout = layout, .n = axes_size(mesh, layout_axes(layout, TRAMA_PARTIAL))};
    s.terms = trama_alloc((size_t)s.n * sizeof *s.terms);
    for (int i = 0; i < s.n; i++)
        s.terms[i] = whole_new(value->shape, value->dtype);
    return s;
}

static void spread_free(spread *s)
{
    for (int i = 0; i < s->n; i++)
        free(s->terms[i].at);
    free(s->terms);
}

/* The term of the process at a position of the mesh. */
static whole *term_of(const spread *s, int position)
{
    int term = 0, scale = 1;
    for (int a = s->mesh->ndim - 1; a >= 0; a--) {
        if (s->layout->axis[a].kind == TRAMA_PARTIAL) {
            term += position % s->mesh->shape[a] * scale;
            scale *= s->mesh->shape[a];
        }
        position /= s->mesh->shape[a];
    }
    return &s->terms[term];
}

static double combined(trama_reduce how, double a, double b)
{
    return reduce_is_linear(how) ? a + b : isnan(a) || isnan(b) ? NAN : how == TRAMA_MAX ? fmax(a, b) : fmin(a, b);
}

static whole value_of(const spread *s, trama_dtype dtype)
{
    whole value = whole_new(s->terms[0].shape, dtype);
    trama_reduce how = TRAMA_SUM;
    double parts = 1;
    for (int a = 0; a < s->mesh->ndim; a++)
        if (s->layout->axis[a].kind == TRAMA_PARTIAL) {
            how = s->layout->axis[a].reduce;
            parts *= how == TRAMA_AVG ? s->mesh->shape[a] : 1;
        }
    for (int64_t i = 0, n = doubles_of(&value); i < n; i++) {
        value.at[i] = s->terms[0].at[i];
        for (int k = 1; k < s->n; k++)
            value.at[i] = combined(how, value.at[i], s->terms[k].at[i]);
        value.at[i] /= parts;
    }
    return value;
}

/* ---- One call under given layouts ---- */

typedef struct splitting {
    const trial *t;
    int n_in, n_out;
    spread tensor[2 * TRAMA_MAX_OPERANDS]; /* operands, then results */
} splitting;

/* Copies a process's box into its term; false where it differs from the box of a replica. */
static bool store_box(const splitting *s, whole *term, const whole *local, const box *b)
{
    trama_view from = view_of(local, TRAMA_F64, b), to = view_of(term, TRAMA_F64, b);
    for (int64_t k = 0, n = box_count(b); k < n; k++) {
        int64_t at = 0, rest = k;
        for (int d = b->ndim - 1; d >= 0; d--) {
            at += rest % b->n[d] * from.stride[d];
            rest /= b->n[d];
        }
        for (int part = 0; part < term->width; part++) {
            double x = ((double *)from.data)[at * term->width + part], *y = (double *)to.data + at * term->width + part;
            if (!isnan(*y) && !isnan(x) && fabs(*y - x) > s->t->tolerance * fmax(1, fabs(x)))
                return false;
            *y = x;
        }
    }
    return true;
}

/* Copies an operand's box with its neighbours out of the whole tensor, which wraps around. */
static trama_view reached_view(const whole *from, trama_dtype dtype, const box *b, whole *copy)
{
    *copy = whole_new(trama_shape_of(b->ndim, b->n), dtype);
    for (int64_t k = 0, elements = box_count(b); k < elements; k++) {
        int64_t at = 0, rest = k, scale = 1;
        for (int d = b->ndim - 1; d >= 0; d--) {
            int64_t n = from->shape.dim[d], index = b->lo[d] + rest % b->n[d];
            at += (index % n + n) % n * scale;
            scale *= n;
            rest /= b->n[d];
        }
        memcpy(&copy->at[k * copy->width], &from->at[at * copy->width], (size_t)copy->width * sizeof *copy->at);
    }
    box all = box_whole(copy->shape);
    trama_view v = view_of(copy, dtype, &all);
    for (int d = 0; d < v.ndim; d++) {
        v.offset[d] = b->lo[d];
        v.global[d] = from->shape.dim[d];
    }
    return v;
}

/* Makes the views of one call from the tensors and their boxes. The caller frees copies [n_in]. */
static void fill_views(const splitting *s, whole *const *tensors, const box *boxes, trama_view *views, whole *copies)
{
    const trama_node *node = s->t->node;
    for (int i = 0; i < s->n_in + s->n_out; i++) {
        trama_dtype dtype = node_tensor(node, i)->dtype;
        box all = box_whole(node_tensor(node, i)->shape);
        if (i < s->n_in && rule_reaches(s->t->rule, i)) {
            box needed = rule_operand_box(s->t->rule, i, boxes, &all);
            views[i] = reached_view(tensors[i], dtype, &needed, &copies[i]);
        } else {
            views[i] = view_of(tensors[i], dtype, &boxes[i]);
        }
    }
}

static bool run_on_whole(const splitting *s, whole *results)
{
    const trama_node *node = s->t->node;
    trama_view views[2 * TRAMA_MAX_OPERANDS];
    whole operands[TRAMA_MAX_OPERANDS], copies[TRAMA_MAX_OPERANDS] = {0}, *tensors[2 * TRAMA_MAX_OPERANDS];
    box boxes[2 * TRAMA_MAX_OPERANDS];
    for (int i = 0; i < s->n_in + s->n_out; i++) {
        const trama_value *v = node_tensor(node, i);
        boxes[i] = box_whole(v->shape);
        tensors[i] = i < s->n_in ? &operands[i] : &results[i - s->n_in];
        *tensors[i] = i < s->n_in ? value_of(&s->tensor[i], v->dtype) : whole_new(v->shape, v->dtype);
    }
    fill_views(s, tensors, boxes, views, copies);
    bool ran = s->t->run(s->t->arg,
                         &(trama_call){node->op, node->attributes, s->n_in, s->n_out, views, views + s->n_in, false});
    for (int i = 0; i < s->n_in; i++) {
        free(operands[i].at);
        free(copies[i].at);
    }
    return ran;
}

/* Runs one process on its boxes. */
static bool run_process(const splitting *s, int position)
{
    const trama_node *node = s->t->node;
    trama_view views[2 * TRAMA_MAX_OPERANDS];
    whole locals[TRAMA_MAX_OPERANDS], copies[TRAMA_MAX_OPERANDS] = {0}, *tensors[2 * TRAMA_MAX_OPERANDS];
    box boxes[2 * TRAMA_MAX_OPERANDS];
    for (int i = 0; i < s->n_in + s->n_out; i++) {
        const trama_value *v = node_tensor(node, i);
        box all = box_whole(v->shape);
        layout_box(s->t->mesh, s->tensor[i].layout, &all, position, &boxes[i]);
        if (i >= s->n_in)
            locals[i - s->n_in] = whole_new(v->shape, v->dtype);
        tensors[i] = i < s->n_in ? term_of(&s->tensor[i], position) : &locals[i - s->n_in];
    }
    fill_views(s, tensors, boxes, views, copies);
    for (int i = 0; i < s->n_in; i++)
        if (node->op->shape_only >> i & 1)
            views[i].data = NULL;
    bool right = s->t->run(s->t->arg,
                           &(trama_call){node->op, node->attributes, s->n_in, s->n_out, views, views + s->n_in, false});
    for (int i = 0; i < s->n_in; i++)
        free(copies[i].at);
    for (int o = 0; o < s->n_out; o++) {
        const spread *result = &s->tensor[s->n_in + o];
        right = right && store_box(s, term_of(result, position), &locals[o], &boxes[s->n_in + o]);
        free(locals[o].at);
    }
    return right;
}

static double compare_results(const splitting *s, const whole *expected)
{
    double most = 0;
    for (int o = 0; o < s->n_out; o++) {
        whole got = value_of(&s->tensor[s->n_in + o], s->t->node->out[o]->dtype);
        most = fmax(most, difference(&got, &expected[o]));
        free(got.at);
    }
    return most;
}

double trial_difference(const trial *t, const trama_layout *in, const trama_layout *out)
{
    const trama_node *node = t->node;
    splitting s = {.t = t, .n_in = node->op->n_in, .n_out = node->op->n_out};
    whole expected[TRAMA_MAX_OPERANDS];
    for (int i = 0; i < s.n_in + s.n_out; i++) {
        s.tensor[i] = spread_new(t->mesh, i < s.n_in ? &in[i] : &out[i - s.n_in], node_tensor(node, i));
        for (int k = 0; i < s.n_in && k < s.tensor[i].n; k++) {
            const whole *term = &s.tensor[i].terms[k];
            t->values(t->arg, node, i, t->seed + (uint64_t)(100 * i + k), doubles_of(term), term->at);
        }
    }
    bool ran = run_on_whole(&s, expected);
    for (int position = 0; position < t->mesh->size && ran; position++)
        ran = run_process(&s, position);
    double most = ran ? compare_results(&s, expected) : INFINITY;
    for (int i = 0; i < s.n_in + s.n_out; i++)
        spread_free(&s.tensor[i]);
    for (int o = 0; o < s.n_out; o++)
        free(expected[o].at);
    return most;
}

bool is_right(const trial *t, const trama_layout *in, const trama_layout *out)
{
    return trial_difference(t, in, out) < t->tolerance;
}

/* ---- Combinations of placements ---- */

void trial_layouts(const trama_mesh *mesh, const trama_value *value, bool partials, layout_list *list)
{
    int kept = list->n;
    every_layout(mesh, value->shape.ndim, partials, list);
    for (int i = kept; i < list->n; i++) {
        bool orders = false; /* complex numbers have no extremes */
        for (int a = 0; a < mesh->ndim && dtype_parts(value->dtype) > 1; a++)
            orders |= list->at[i].axis[a].kind == TRAMA_PARTIAL && !reduce_is_linear(list->at[i].axis[a].reduce);
        if (!orders)
            list->at[kept++] = list->at[i];
    }
    list->n = kept;
}

void describe_call(text *out, const trial *t, const trama_layout *in, const trama_layout *results)
{
    const trama_node *node = t->node;
    text_add(out, "%s", t->name);
    for (int i = 0; i < node->op->n_in; i++) {
        text_add(out, i ? ", " : " (");
        shape_text(out, node->in[i]->shape);
        text_add(out, " ");
        layout_text(out, t->mesh, &in[i]);
    }
    text_add(out, node->op->n_in ? ")" : "");
    for (int o = 0; results && o < node->op->n_out; o++) {
        text_add(out, o ? ", " : " -> ");
        layout_text(out, t->mesh, &results[o]);
    }
}

op_layouts infer_combination(const trial *t, const combination *c)
{
    const trama_layout *given[TRAMA_MAX_OPERANDS];
    op_layouts result;
    for (int i = 0; i < t->node->op->n_in; i++)
        given[i] = &c->in[i];
    infer_op(&(infer_question){.node = t->node, .rule = t->rule, .mesh = t->mesh, .in = given, .moves = true}, &result,
             NULL);
    return result;
}

/* Whether the operand lies as operand 0 does, as those of an update of state. */
bool is_alike(const trial *t, int operand)
{
    return t->node->op->updates && operand > 0 && t->node->in[operand]->shape.ndim;
}

/* most: of the operands from this one on, those that may be other than replicated. equal: those before lie equally. */
static void each_from(const trial *t, int operand, int most, bool equal, combination *c, combination_visit *visit,
                      void *arg)
{
    if (operand == t->node->op->n_in) {
        visit(arg, t, c);
        return;
    }
    layout_list list = {0};
    const bool alike = is_alike(t, operand);
    trial_layouts(t->mesh, t->node->in[operand], true, &list);
    for (int i = 0; i < list.n; i++) {
        const bool other = !alike && (layout_has(&list.at[i], TRAMA_SPLIT) || layout_has(&list.at[i], TRAMA_PARTIAL));
        c->in[operand] = list.at[i];
        const bool as_first = trama_layout_equal(&c->in[operand], &c->in[0]), still = equal && as_first;
        if (alike ? as_first : most >= other || still)
            each_from(t, operand + 1, most - other, still, c, visit, arg);
    }
    ARRAY_FREE(&list);
}

void each_combination(const trial *t, int most, combination_visit *visit, void *arg)
{
    combination c = {0};
    each_from(t, 0, most, true, &c, visit, arg);
}

bool is_refused(const trial *t, const combination *c)
{
    op_layouts inferred = infer_combination(t, c);
    for (int i = 0; i < t->node->op->n_in; i++)
        if (c->in[i].axis[0].kind != TRAMA_REPLICATE && !(t->node->op->shape_only >> i & 1) &&
            !trama_layout_equal(&c->in[i], &inferred.in[i]))
            return true;
    return false;
}
