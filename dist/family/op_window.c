/* SPDX-License-Identifier: Apache-2.0 */
/* Window: an arbitrary part of the index space. Slice, pad and shift are special cases. */
#include <string.h>

#include "families.h"

static const int64_t MOST_OFFSET = INT64_C(1) << 60;

static trama_value *wrong(trama_where where, const char *call, const trama_value *x, const char *problem)
{
    text t = {0};
    value_text(&t, x);
    program_fail(x->program, where, TRAMA_E_SHAPE, "%s of %s: %s", call, t.at, problem);
    free(t.at);
    return NULL;
}

/* The reason why a window along a dim is invalid; NULL: it is valid. */
static const char *problem_along(int64_t extent_of_x, int64_t offset, int64_t extent)
{
    bool fed = extent_of_x == TRAMA_ANY;
    if (extent < 0 && extent != TRAMA_ANY)
        return "an extent is negative";
    if (offset > MOST_OFFSET || offset < -MOST_OFFSET || extent > MOST_OFFSET)
        return "an offset or extent is beyond 2^60";
    if ((extent == TRAMA_ANY) != fed || (fed && offset))
        return "a dim that is known when fed stays as it is: offset 0, extent TRAMA_ANY";
    return NULL;
}

/* Appends the window. Errors name `call`, the user's builder. */
static trama_value *window(trama_where where, const char *call, trama_value *x, const int64_t *offset,
                           trama_shape shape)
{
    trama_attributes a = {0};
    if (shape.ndim != x->shape.ndim || (shape.ndim && !offset))
        return wrong(where, call, x, "it needs an offset and an extent for each dim");
    for (int d = 0; d < shape.ndim; d++) {
        const char *problem = problem_along(x->shape.dim[d], offset[d], shape.dim[d]);
        if (problem)
            return wrong(where, call, x, problem);
        a.integer[WINDOW_DIM + d] = shape.dim[d];
        a.integer[WINDOW_OFFSET + d] = offset[d];
    }
    return program_append(NULL, where, &trama_op_window, 1, &x, &a);
}

trama_value *trama_window_at(trama_where where, trama_value *x, const int64_t *offset, trama_shape shape)
{
    return x ? window(where, "window", x, offset, shape) : NULL;
}

/* A window that changes one dim only. */
static trama_value *along(trama_where where, const char *call, trama_value *x, int dim, int64_t offset, int64_t extent)
{
    int64_t offsets[TRAMA_MAX_NDIM] = {0};
    trama_shape shape = x->shape;
    if (shape.dim[dim] == TRAMA_ANY)
        return wrong(where, call, x, "the dim is only known when fed");
    offsets[dim] = offset;
    shape.dim[dim] = extent;
    return window(where, call, x, offsets, shape);
}

/* Negative dims count from the last one, -1. */
static bool has_dim(trama_where where, const char *call, const trama_value *x, int *dim)
{
    if (x && *dim < 0)
        *dim += x->shape.ndim;
    if (x && *dim >= 0 && *dim < x->shape.ndim)
        return true;
    if (x)
        wrong(where, call, x, "it has no such dim");
    return false;
}

trama_value *trama_slice_at(trama_where where, trama_value *x, int dim, int64_t from, int64_t extent)
{
    if (!has_dim(where, "slice", x, &dim))
        return NULL;
    int64_t n = x->shape.dim[dim];
    if (n != TRAMA_ANY && (from < 0 || extent < 0 || extent > n || from > n - extent))
        return wrong(where, "slice", x, "the slice is not within the dim");
    return along(where, "slice", x, dim, from, extent);
}

trama_value *trama_pad_at(trama_where where, trama_value *x, int dim, int64_t before, int64_t after)
{
    int64_t extent;
    if (!has_dim(where, "pad", x, &dim))
        return NULL;
    if (before < 0 || after < 0 || __builtin_add_overflow(before, after, &extent) ||
        __builtin_add_overflow(extent, x->shape.dim[dim], &extent))
        return wrong(where, "pad", x, "as many elements cannot be added; trama_slice takes some away");
    return along(where, "pad", x, dim, -before, extent);
}

trama_value *trama_shift_at(trama_where where, trama_value *x, int dim, int64_t by)
{
    if (!has_dim(where, "shift", x, &dim))
        return NULL;
    return along(where, "shift", x, dim, by < -MOST_OFFSET ? INT64_MAX : -by, x->shape.dim[dim]);
}

trama_status window_infer(trama_rule *rule, const trama_node *node)
{
    const trama_shape *x = &node->in[0]->shape;
    for (int d = 0; d < x->ndim; d++) {
        int64_t extent = node->attributes->integer[WINDOW_DIM + d],
                offset = node->attributes->integer[WINDOW_OFFSET + d];
        const char *problem = problem_along(x->dim[d], offset, extent);
        if (problem) /* attributes may be the user's (trama_apply) */
            return trama_fail(node->where, TRAMA_E_SHAPE, "window of %s: %s", node->in[0]->name, problem);
        int f = rule_add_factor(rule, extent);
        bool moves = offset || extent != x->dim[d];
        rule_add_dim(&rule->tensor[0], f);
        rule_add_dim(&rule->tensor[1], f);
        if (moves)
            rule->tensor[0].reach[d] = (rule_reach){.before = -offset, .after = offset, .own_extent = true};
    }
    return TRAMA_OK;
}

/* The gradient is the reverse window: positions outside of x give nothing, elements not taken get 0. */
void window_gradient(const trama_node *node, trama_value *const *d_out, trama_value **d_in)
{
    int64_t back[TRAMA_MAX_NDIM];
    for (int d = 0; d < node->in[0]->shape.ndim; d++)
        back[d] = -node->attributes->integer[WINDOW_OFFSET + d];
    d_in[0] = trama_window_at(node->where, d_out[0], back, node->in[0]->shape);
}

bool window_view(const trama_attributes *a, const trama_view *x, trama_view *y, int64_t *at)
{
    bool within = true;
    *at = 0;
    for (int d = 0; d < y->ndim; d++) {
        const int64_t lo = y->offset[d] + a->integer[WINDOW_OFFSET + d] - x->offset[d];
        within &= lo >= 0 && lo + y->extent[d] <= x->extent[d];
        y->stride[d] = x->stride[d];
        *at += lo * x->stride[d];
    }
    return within;
}
