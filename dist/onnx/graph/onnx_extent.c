/* SPDX-License-Identifier: Apache-2.0 */
/* Extents that are only known when fed: which of them are the same, and values of them. A dim of a result has the
 * extent of the operands' dims with the same factor in the rule of its op; dims of inputs are the same where the graph
 * gives them one name. */
#include <string.h>

#include "families.h"
#include "onnx.h"

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

/* Goes from a dim of a result to one of an operand. */
static bool step_back(const trama_value **v, int *d)
{
    const trama_node *node = (*v)->node;
    const rule_dim *dim =
        (*v)->kind == VALUE_RESULT ? &node->rule->tensor[node->op->n_in + (*v)->result].dim[*d] : NULL;
    for (int i = 0; dim && dim->n == 1 && i < node->op->n_in; i++)
        if (find_factor(&node->rule->tensor[i], dim->factor[0], d)) {
            *v = node->in[i];
            return true;
        }
    return false;
}

int onnx_origin(const trama_onnx *graph, const trama_value *v, int d)
{
    while (step_back(&v, &d))
        ;
    int origin = open_extent(v->id, d);
    for (int i = 0; i < graph->symbols.n; i++)
        if (graph->symbols.at[i].origin == origin)
            return graph->symbols.at[i].same_as;
    return origin;
}

void onnx_name_extent(trama_onnx *graph, const trama_value *input, int d, const char *name)
{
    int origin = open_extent(input->id, d), same_as = origin;
    for (int i = graph->symbols.n - 1; i >= 0; i--)
        if (!strcmp(graph->symbols.at[i].name, name))
            same_as = graph->symbols.at[i].same_as;
    *ARRAY_PUSH(&graph->symbols) = (onnx_symbol){name, origin, same_as};
}

/* ---- Values ---- */

/* The input with the fewest dims that has a dim of that origin, *dim; NULL. */
static trama_value *find_input(const trama_onnx *graph, int origin, int *dim)
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

trama_value *onnx_trues_of(trama_onnx *graph, int origin)
{
    for (int i = 0; i < graph->trues.n; i++)
        if (graph->trues.at[i].origin == origin)
            return graph->trues.at[i].vector;
    int dim;
    trama_value *input = find_input(graph, origin, &dim), *v = input ? trues_along(graph->where, input, dim) : NULL;
    if (v)
        *ARRAY_PUSH(&graph->trues) = (onnx_trues){origin, v};
    return v;
}

/* The extent of an origin wherever t has it, else 0; NULL without an input that has one. */
static trama_value *extent_at(trama_onnx *graph, const host_tensor *t, int origin)
{
    const trama_where where = graph->where;
    trama_value *trues = onnx_trues_of(graph, origin);
    host_tensor *places = trues ? host_create(t->dtype, t->shape) : NULL;
    if (!places)
        return NULL;
    for (int64_t i = 0; i < t->count; i++)
        element_set(t->dtype, places->data, i, t->open[i] == origin);
    trama_value *ones = trama_constant_at(where, graph->program, t->dtype, t->shape, places->data);
    host_free(places);
    trama_value *extent = trama_sum_at(where, trama_cast_at(where, trues, TRAMA_I64), 0, NULL, false);
    return trama_mul_at(where, ones, trama_cast_at(where, extent, t->dtype));
}

/* The known numbers, plus each extent wherever it stands; extents are 0 in t. */
trama_value *onnx_extents_value(trama_onnx *graph, const host_tensor *t)
{
    trama_value *v = trama_constant_at(graph->where, graph->program, t->dtype, t->shape, t->data);
    ARRAY(int) done = {0};
    for (int64_t i = 0; v && i < t->count; i++) {
        bool is_new = t->open[i] != 0;
        for (int k = 0; k < done.n && is_new; k++)
            is_new = done.at[k] != t->open[i];
        if (!is_new)
            continue;
        *ARRAY_PUSH(&done) = t->open[i];
        trama_value *extent = extent_at(graph, t, t->open[i]);
        v = extent ? trama_add_at(graph->where, v, extent) : NULL;
    }
    ARRAY_FREE(&done);
    return v;
}
