/* SPDX-License-Identifier: Apache-2.0 */
/* Concat, stride and flip, which move elements, and builders that are made of them. */
#include <string.h>

#include "families.h"
#include "trama_array.h"
#include "trama_composed.h"

/* dim from 0 on, or -1 after an error on the program; negative dims count from the end of n_dims. */
static int dim_of(trama_where where, const char *name, const trama_value *x, int dim, int n_dims)
{
    const int at = dim < 0 ? dim + n_dims : dim;
    if (at >= 0 && at < n_dims)
        return at;
    program_fail(x->program, where, TRAMA_E_SHAPE, "%s of %s: dim %d is not there (%d dims)", name, x->name, dim,
                 n_dims);
    return -1;
}

/* The extent of a dim that must be known; -1 after an error. */
static int64_t known_extent(trama_where where, const char *name, const trama_value *x, int dim)
{
    if (x->shape.dim[dim] == TRAMA_ANY)
        program_fail(x->program, where, TRAMA_E_SHAPE, "%s of %s: dim %d is only known when fed", name, x->name, dim);
    return x->shape.dim[dim];
}

/* ---- concat ---- */

/* A process reads of each operand the part that falls into its part of the result. */
trama_status concat_infer(trama_rule *rule, const trama_node *node)
{
    const trama_shape *first = &node->in[0]->shape;
    const int64_t axis = node->attributes->integer[CONCAT_AXIS];
    trama_shape operands[TRAMA_MAX_OPERANDS];
    if (axis < 0 || axis >= first->ndim)
        return trama_fail(node->where, TRAMA_E_SHAPE, "concat of %s: axis is %lld, and it has %d dims",
                          node->in[0]->name, (long long)axis, first->ndim);
    for (int t = 0; t < rule->n_in; t++) {
        const trama_shape *shape = &node->in[t]->shape;
        bool fits = shape->ndim == first->ndim;
        for (int d = 0; d < first->ndim && fits; d++)
            fits = d == axis || shape->dim[d] == first->dim[d];
        if (!fits)
            return trama_fail(node->where, TRAMA_E_SHAPE,
                              "concat: the shapes of %s and %s differ in more than dim %lld", node->in[0]->name,
                              node->in[t]->name, (long long)axis);
        operands[t] = *shape;
    }
    for (int d = 0; d < first->ndim; d++) {
        int f = rule_add_factor(rule, first->dim[d]);
        for (int t = 0; t <= rule->n_in; t++)
            rule_add_dim(&rule->tensor[t], f);
    }
    for (int t = 0; t < rule->n_in; t++)
        rule->tensor[t].reach[axis] = (rule_reach){.own_extent = true, .joins = true};
    rule_join(rule, operands);
    return rule->factor[axis].extent < INT64_MAX
               ? TRAMA_OK
               : trama_fail(node->where, TRAMA_E_SHAPE, "concat: the extents of dim %lld add up to more than 2^63",
                            (long long)axis);
}

/* Joins 1 to 4 values in one op, and more of them by fours. */
static trama_value *concat(trama_where where, int dim, int n, trama_value *const *x)
{
#define CONCAT_OP(n) &trama_op_concat##n
    static const trama_op *const ops[] = {NULL, NULL, CONCAT_OP(2), CONCAT_OP(3), CONCAT_OP(4)};
    enum { MOST = sizeof ops / sizeof *ops - 1 };
    const trama_attributes a = {.integer = {[CONCAT_AXIS] = dim}};
    trama_value *part[MOST];
    int parts = 0;
    if (n == 1)
        return x[0];
    if (n <= MOST)
        return program_append(NULL, where, ops[n], n, x, &a);
    int step = MOST;
    while (step * MOST < n)
        step *= MOST;
    for (int from = 0; from < n; from += step, parts++)
        if (!(part[parts] = concat(where, dim, n - from < step ? n - from : step, x + from)))
            return NULL;
    return concat(where, dim, parts, part);
}

trama_value *trama_concat_at(trama_where where, int dim, int n, trama_value *const *x)
{
    trama_program *program = x && n > 0 && x[0] ? x[0]->program : NULL;
    if (n < 1 || !x)
        return program_fail(program, where, TRAMA_E_ARGUMENT, "concat: %d values%s; it joins 1 or more", n,
                            x ? "" : ", which are NULL");
    for (int i = 0; i < n; i++)
        if (!x[i])
            return NULL;
    dim = dim_of(where, "concat", x[0], dim, x[0]->shape.ndim);
    return dim < 0 ? NULL : concat(where, dim, n, x);
}

trama_value *trama_stack_at(trama_where where, int dim, int n, trama_value *const *x)
{
    if (n < 1 || !x || !x[0])
        return trama_concat_at(where, dim, n, x);
    dim = dim_of(where, "stack", x[0], dim, x[0]->shape.ndim + 1);
    trama_value **wide = dim < 0 ? NULL : trama_alloc((size_t)n * sizeof *wide);
    for (int i = 0; wide && i < n; i++)
        wide[i] = trama_unsqueeze_at(where, x[i], dim);
    trama_value *y = wide ? trama_concat_at(where, dim, n, wide) : NULL;
    free(wide);
    return y;
}

/* The part of g along a dim that is as long as the vector, from the number `from` on. */
static trama_value *fed_part(trama_where where, trama_value *g, int axis, trama_value *trues, trama_value *from)
{
    trama_value *index = trama_cumsum_at(where, trama_cast_at(where, trues, TRAMA_I64), 0, true, false);
    return trama_gather_at(where, g, from ? trama_add_at(where, index, from) : index, axis);
}

/* Parts behind one whose extent is only known when fed begin at a sum of extents. */
static void fed_gradients(const trama_node *node, trama_value *g, trama_value **d_in)
{
    const trama_where where = node->where;
    const int axis = (int)node->attributes->integer[CONCAT_AXIS];
    trama_value *from = NULL;
    for (int i = 0; i < node->op->n_in; i++) {
        trama_value *trues = trues_along(where, node->in[i], axis);
        d_in[i] = fed_part(where, g, axis, trues, from);
        if (i + 1 == node->op->n_in)
            break;
        trama_value *extent = count_trues(where, trues);
        from = from ? trama_add_at(where, from, extent) : extent;
    }
}

void concat_gradient(const trama_node *node, trama_value *const *d_out, trama_value **d_in)
{
    const int axis = (int)node->attributes->integer[CONCAT_AXIS];
    int64_t from = 0;
    if (node->out[0]->shape.dim[axis] == TRAMA_ANY) {
        fed_gradients(node, d_out[0], d_in);
        return;
    }
    for (int i = 0; i < node->op->n_in; from += node->in[i++]->shape.dim[axis])
        d_in[i] = trama_slice_at(node->where, d_out[0], axis, from, node->in[i]->shape.dim[axis]);
}

/* ---- Sums of windows ---- */

enum { MOST_JOINED = 16 };

/* A value that lies in dim `axis` of a larger shape from `from` on, and is 0 elsewhere: values beside each other. */
typedef struct strip {
    int axis; /* -1: there is no such one, or more */
    int64_t from, n;
    int n_parts;
    trama_value *part[MOST_JOINED];
    const trama_value *gradient_of[MOST_JOINED]; /* of each part, as of a node */
} strip;

/* The operand of a window, or the values that it joins. */
static void add_parts(strip *s, const trama_node *window)
{
    const trama_node *made = window->in[0]->node;
    const bool joined = made && made->op->infer == concat_infer && made->attributes->integer[CONCAT_AXIS] == s->axis;
    const trama_node *node = joined ? made : window;
    for (; s->n_parts < node->op->n_in; s->n_parts++) {
        s->part[s->n_parts] = node->in[s->n_parts];
        s->gradient_of[s->n_parts] = node->gradient_of[s->n_parts];
    }
}

static strip strip_of(const trama_value *v)
{
    strip s = {.axis = -1};
    const trama_node *node = v->node;
    for (int d = 0; node && node->op == &trama_op_window && d < v->shape.ndim; d++) {
        const int64_t from = -node->attributes->integer[WINDOW_OFFSET + d], n = node->in[0]->shape.dim[d];
        if (from == 0 && n == v->shape.dim[d])
            continue;
        if (s.axis >= 0 || n == TRAMA_ANY || from < 0 || from > v->shape.dim[d] - n)
            return (strip){.axis = -1};
        s = (strip){.axis = d, .from = from, .n = n};
    }
    if (s.axis >= 0)
        add_parts(&s, node);
    return s;
}

trama_value *joined_windows(trama_where where, trama_value *x, trama_value *y)
{
    strip a = strip_of(x), b = strip_of(y);
    const strip *first = a.from < b.from ? &a : &b, *second = a.from < b.from ? &b : &a;
    if (a.axis < 0 || b.axis != a.axis || first->from + first->n != second->from || a.n_parts + b.n_parts > MOST_JOINED)
        return NULL;
    strip all = *first;
    memcpy(all.part + first->n_parts, second->part, (size_t)second->n_parts * sizeof *second->part);
    memcpy(all.gradient_of + first->n_parts, second->gradient_of,
           (size_t)second->n_parts * sizeof *second->gradient_of);
    trama_value *both = concat(where, a.axis, a.n_parts + b.n_parts, all.part);
    if (both && both->node->op->n_in == a.n_parts + b.n_parts)
        memcpy(both->node->gradient_of, all.gradient_of, (size_t)both->node->op->n_in * sizeof *all.gradient_of);
    int64_t offset[TRAMA_MAX_NDIM] = {0};
    offset[a.axis] = -first->from;
    return !both || a.n + b.n == x->shape.dim[a.axis] ? both : trama_window_at(where, both, offset, x->shape);
}

trama_value *trama_part_at(trama_where where, trama_value *x, int dim, int parts, int i)
{
    if (!x || (dim = dim_of(where, "part", x, dim, x->shape.ndim)) < 0)
        return NULL;
    const int64_t extent = known_extent(where, "part", x, dim);
    if (extent < 0)
        return NULL;
    if (parts < 1 || i < 0 || i >= parts)
        return program_fail(x->program, where, TRAMA_E_ARGUMENT, "part of %s: part %d of %d; parts count from 0",
                            x->name, i, parts);
    const int64_t part = extent / parts + (extent % parts > 0), from = min_i64(i * part, extent);
    return trama_slice_at(where, x, dim, from, min_i64(part, extent - from));
}

/* ---- stride ---- */

trama_status stride_infer(trama_rule *rule, const trama_node *node)
{
    const trama_shape *x = &node->in[0]->shape;
    for (int d = 0; d < x->ndim; d++) {
        const int64_t step = node->attributes->integer[STRIDE_STEP + d], n = x->dim[d];
        if (step < 1 || step > INT64_C(1) << 60 || (n == TRAMA_ANY && step > 1))
            return trama_fail(node->where, TRAMA_E_SHAPE, "stride of %s: step %lld of dim %d; it is 1 or more%s",
                              node->in[0]->name, (long long)step, d,
                              n == TRAMA_ANY ? ", and 1 where the dim is only known when fed" : "");
        int f = rule_add_factor(rule, n == TRAMA_ANY ? n : n / step + (n % step > 0));
        rule_add_dim(&rule->tensor[0], f);
        rule_add_dim(&rule->tensor[1], f);
        if (step > 1)
            rule->tensor[0].reach[d] = (rule_reach){.stride = step, .own_extent = true};
    }
    return TRAMA_OK;
}

bool stride_view(const trama_attributes *a, const trama_view *x, trama_view *y, int64_t *at)
{
    bool within = true;
    *at = 0;
    for (int d = 0; d < y->ndim; d++) {
        const int64_t step = a->integer[STRIDE_STEP + d], lo = y->offset[d] * step - x->offset[d];
        within &= lo >= 0 && lo + (y->extent[d] - 1) * step < x->extent[d];
        y->stride[d] = x->stride[d] * step;
        *at += lo * x->stride[d];
    }
    return within;
}

static trama_value *stride(trama_where where, trama_value *x, int dim, int64_t step)
{
    trama_attributes a = {0};
    for (int d = 0; d < x->shape.ndim; d++)
        a.integer[STRIDE_STEP + d] = d == dim ? step : 1;
    return program_append(NULL, where, &trama_op_stride, 1, &x, &a);
}

/* Element i of x becomes element step i of `extent`, the others are 0: [n] -> [n, 1] -> [n, step] -> [n step]. */
static trama_value *dilated(trama_where where, trama_value *x, int dim, int64_t step, int64_t extent)
{
    if (step == 1 || !x)
        return x;
    trama_value *wide = trama_pad_at(where, trama_unsqueeze_at(where, x, dim + 1), dim + 1, 0, step - 1);
    trama_value *flat = trama_flatten_at(where, wide, dim, dim + 1);
    int64_t offset[TRAMA_MAX_NDIM] = {0};
    trama_shape shape = x->shape;
    shape.dim[dim] = extent;
    return trama_window_at(where, flat, offset, shape);
}

void stride_gradient(const trama_node *node, trama_value *const *d_out, trama_value **d_in)
{
    d_in[0] = d_out[0];
    for (int d = 0; d < node->in[0]->shape.ndim; d++)
        d_in[0] =
            dilated(node->where, d_in[0], d, node->attributes->integer[STRIDE_STEP + d], node->in[0]->shape.dim[d]);
}

trama_value *trama_slice_by_at(trama_where where, trama_value *x, int dim, int64_t from, int64_t extent, int64_t step)
{
    if (!x || (dim = dim_of(where, "slice", x, dim, x->shape.ndim)) < 0)
        return NULL;
    const int64_t n = known_extent(where, "slice", x, dim), size = step < 0 ? 0 - (uint64_t)step : (uint64_t)step;
    if (n < 0)
        return NULL;
    bool fits = step && extent >= 0 && (!extent || (from >= 0 && from < n));
    const int64_t room = step > 0 ? n - 1 - from : from; /* behind the first element */
    if (!fits || (extent > 1 && (size < 0 || extent - 1 > room / size)))
        return program_fail(x->program, where, TRAMA_E_SHAPE,
                            "slice of %s: %lld elements from %lld by steps of %lld are not within the %lld of dim %d",
                            x->name, (long long)extent, (long long)from, (long long)step, (long long)n, dim);
    if (!extent)
        return trama_slice_at(where, x, dim, 0, 0);
    const int64_t reached = (extent - 1) * (extent > 1 ? size : 1);
    x = trama_slice_at(where, x, dim, step > 0 ? from : from - reached, reached + 1);
    if (x && size > 1 && extent > 1)
        x = stride(where, x, dim, size);
    return step < 0 ? trama_flip_at(where, x, 1, &dim) : x;
}

/* ---- flip ---- */

trama_status flip_infer(trama_rule *rule, const trama_node *node)
{
    const trama_shape *x = &node->in[0]->shape;
    const int64_t axes = node->attributes->integer[FLIP_AXES];
    if (axes >> x->ndim)
        return trama_fail(node->where, TRAMA_E_SHAPE, "flip of %s: axes is %lld; it has a bit for each of %d dims",
                          node->in[0]->name, (long long)axes, x->ndim);
    for (int d = 0; d < x->ndim; d++) {
        int f = rule_add_factor(rule, x->dim[d]);
        rule->factor[f].whole = axes >> d & 1;
        rule_add_dim(&rule->tensor[0], f);
        rule_add_dim(&rule->tensor[1], f);
    }
    return TRAMA_OK;
}

trama_value *trama_flip_at(trama_where where, trama_value *x, int n, const int *dims)
{
    trama_attributes a = {0};
    if (x && (n < 0 || (n && !dims)))
        return program_fail(x->program, where, TRAMA_E_ARGUMENT, "flip of %s: a list of %d dims%s", x->name, n,
                            n < 0 ? "" : ", which is NULL");
    if (!x)
        return NULL;
    for (int i = 0; i < n; i++) {
        const int d = dim_of(where, "flip", x, dims[i], x->shape.ndim);
        if (d < 0)
            return NULL;
        a.integer[FLIP_AXES] ^= INT64_C(1) << d;
    }
    return program_append(NULL, where, &trama_op_flip, 1, &x, &a);
}

void flip_gradient(const trama_node *node, trama_value *const *d_out, trama_value **d_in)
{
    d_in[0] = program_append(NULL, node->where, &trama_op_flip, 1, d_out, node->attributes);
}
