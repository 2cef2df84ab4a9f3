/* SPDX-License-Identifier: Apache-2.0 */
/* Extents that are only known when fed: which of them are the same. A dim of a result has the extent of the operands'
 * dims with the same factor in the rule of its op; dims of inputs are the same where the graph gives them one name. */
#include <string.h>

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
