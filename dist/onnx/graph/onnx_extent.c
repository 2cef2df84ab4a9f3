/* SPDX-License-Identifier: Apache-2.0 */
/* Extents that are only known when fed: which of them are the same, and values of them. A dim of a result has the
 * extent of the operands' dims with the same factor in the rule of its op; dims of inputs are the same where the graph
 * gives them one name. */
#include <string.h>

#include "families.h"
#include "onnx.h"
#include "trama_array.h"

/* Whether a tensor of a rule has that factor alone in a dim; sets *dim. */
static bool find_factor(const rule_tensor *t, int factor, int *dim)
{
    for (int d = 0; d < t->ndim; d++)
        if (t->dim[d].n == 1 && t->dim[d].factor[0] == factor && !t->reach[d].own_extent) {
            *dim = d;
            return true;
        }
    return false;
}

/* The factor that a dim of a result has alone; -1 without one. */
static int factor_alone(const trama_value *v, int d)
{
    const rule_dim *dim = v->kind == VALUE_RESULT ? &v->node->rule->tensor[v->node->op->n_in + v->result].dim[d] : NULL;
    return dim && dim->n == 1 ? dim->factor[0] : -1;
}

/* Goes from a dim of a result to one of an operand. */
static bool step_back(const trama_value **v, int *d)
{
    const int factor = factor_alone(*v, *d);
    const trama_node *node = (*v)->node;
    for (int t = 0; factor >= 0 && t < node->op->n_in; t++)
        if (find_factor(&node->rule->tensor[t], factor, d)) {
            *v = node->in[t];
            return true;
        }
    return false;
}

/* A dim that is by / per times as long as another one, which the reader has gone back from. */
typedef struct origin_dim {
    const trama_value *v;
    int d;
    int64_t by, per;
} origin_dim;

/* Goes from a dim of a reshape's result, whose rows have another length than those of dim e of operand t, to the one
 * dim of the operand that is only known when fed and makes its extent. */
static bool step_over_rows(origin_dim *at, int t, int e)
{
    const trama_node *node = at->v->node;
    const rule_reach *reach = &node->rule->tensor[t].reach[e];
    const trama_shape *shape = &node->in[t]->shape;
    const bool first = shape->dim[e] == TRAMA_ANY;
    origin_dim next = {node->in[t], e, at->by, at->per};
    int open = first;
    bool fits = first || count_times(&next.by, shape->dim[e], INT32_MAX);
    for (int f = 0; f < node->rule->n_factors && fits; f++) {
        const int64_t extent = node->rule->factor[f].extent;
        if (reach->of_row >> f & 1)
            fits = extent != TRAMA_ANY && count_times(&next.per, extent, INT32_MAX);
        else if (!(reach->of_dim >> f & 1))
            continue;
        else if (extent == TRAMA_ANY)
            fits = ++open == 1 && find_factor(&node->rule->tensor[t], f, &next.d);
        else
            fits = count_times(&next.by, extent, INT32_MAX);
    }
    if (!fits || open != 1 || !next.by || !next.per)
        return false;
    const int64_t common = common_divisor(next.by, next.per);
    next.by /= common;
    next.per /= common;
    *at = next;
    return true;
}

static bool step_over_merged(origin_dim *at)
{
    const int factor = factor_alone(at->v, at->d);
    const trama_node *node = at->v->node;
    for (int t = 0; factor >= 0 && t < node->op->n_in; t++)
        for (int e = 0; e < node->rule->tensor[t].ndim; e++)
            if (reach_is_rows(&node->rule->tensor[t].reach[e]) && node->rule->tensor[t].dim[e].factor[0] == factor)
                return step_over_rows(at, t, e);
    return false;
}

int64_t onnx_origin(const trama_onnx *graph, const trama_value *v, int d)
{
    origin_dim at = {v, d, 1, 1}, whole = at; /* the last one of which the dim is a multiple */
    do {
        while (step_back(&at.v, &at.d))
            ;
        whole = at.per == 1 ? at : whole;
    } while (step_over_merged(&at));
    int64_t origin = open_extent(whole.v->id, whole.d);
    for (int i = 0; i < graph->symbols.n; i++)
        if (graph->symbols.at[i].origin == origin)
            return open_scaled(graph->symbols.at[i].same_as, whole.by, 1);
    return open_scaled(origin, whole.by, 1);
}

int64_t onnx_origin_named(const trama_onnx *graph, const char *name)
{
    for (int i = 0; i < graph->symbols.n; i++)
        if (!strcmp(graph->symbols.at[i].name, name))
            return graph->symbols.at[i].same_as;
    return 0;
}

void onnx_name_extent(trama_onnx *graph, const trama_value *input, int d, const char *name)
{
    const int64_t origin = open_extent(input->id, d), same_as = onnx_origin_named(graph, name);
    *ARRAY_PUSH(&graph->symbols) = (onnx_symbol){name, origin, same_as ? same_as : origin};
}

/* ---- Values ---- */

/* The input with the fewest dims that has a dim of that origin, *dim; NULL. */
static trama_value *find_input(const trama_onnx *graph, int64_t origin, int *dim)
{
    trama_value *found = NULL;
    for (int i = 0; i < trama_onnx_count(graph, TRAMA_ONNX_INPUTS); i++) {
        trama_value *v = trama_onnx_number(graph, TRAMA_ONNX_INPUTS, i);
        for (int d = 0; v && d < v->shape.ndim; d++)
            if (v->shape.dim[d] == TRAMA_ANY && onnx_origin(graph, v, d) == origin &&
                (!found || v->shape.ndim < found->shape.ndim)) {
                found = v;
                *dim = d;
            }
    }
    return found;
}

/* [extent] of an input's dim to [times extent]. */
static trama_value *repeated(trama_where where, trama_value *v, int64_t times)
{
    v = trama_reshape_at(where, v, TRAMA_SHAPE(TRAMA_ANY, 1));
    return trama_reshape_at(where, trama_broadcast_to_at(where, v, TRAMA_SHAPE(TRAMA_ANY, times)),
                            TRAMA_SHAPE(TRAMA_ANY));
}

/* The value whose dim is that origin. */
static trama_value *value_of(const trama_onnx *graph, int64_t base, int *dim)
{
    *dim = (int)((base - 1) % TRAMA_MAX_NDIM);
    return graph->program->values.at[(base - 1) / TRAMA_MAX_NDIM];
}

trama_value *onnx_trues_of(trama_onnx *graph, int64_t origin)
{
    for (int i = 0; i < graph->trues.n; i++)
        if (graph->trues.at[i].origin == origin)
            return graph->trues.at[i].vector;
    if (origin <= 0)
        return NULL;
    int dim;
    trama_value *x = find_input(graph, open_base(origin), &dim);
    x = x ? x : value_of(graph, open_base(origin), &dim);
    trama_value *v = trues_along(graph->where, x, dim);
    if (v && open_times(origin) > 1)
        v = repeated(graph->where, v, open_times(origin));
    if (v)
        *ARRAY_PUSH(&graph->trues) = (onnx_trues){origin, v};
    return v;
}

/* The multiples of an extent wherever t has them, else 0; NULL after an error. */
static trama_value *multiples_at(trama_onnx *graph, const host_tensor *t, int64_t base)
{
    const trama_where where = graph->where;
    trama_value *trues = onnx_trues_of(graph, base);
    host_tensor *times = trues ? host_create(t->dtype, t->shape) : NULL;
    if (!times)
        return NULL;
    for (int64_t i = 0; i < t->count; i++)
        if (open_base(t->open[i]) == base)
            element_set(t->dtype, times->data, i, (double)open_times(t->open[i]));
    trama_value *factors = trama_constant_at(where, graph->program, t->dtype, t->shape, times->data);
    host_free(times);
    return trama_mul_at(where, factors, trama_cast_at(where, count_trues(where, trues), t->dtype));
}

trama_value *onnx_extent_value(trama_onnx *graph, int64_t origin)
{
    return count_trues(graph->where, onnx_trues_of(graph, origin));
}

/* The known numbers, plus the multiples of each extent wherever they stand; they are 0 in t. */
trama_value *onnx_extents_value(trama_onnx *graph, const host_tensor *t)
{
    trama_value *v = trama_constant_at(graph->where, graph->program, t->dtype, t->shape, t->data);
    ARRAY(int64_t) done = {0};
    for (int64_t i = 0; v && i < t->count; i++) {
        const int64_t base = open_base(t->open[i]);
        bool is_new = base != 0;
        for (int k = 0; k < done.n && is_new; k++)
            is_new = done.at[k] != base;
        if (!is_new)
            continue;
        *ARRAY_PUSH(&done) = base;
        trama_value *multiples = multiples_at(graph, t, base);
        v = multiples ? trama_add_at(graph->where, v, multiples) : NULL;
    }
    ARRAY_FREE(&done);
    return v;
}
