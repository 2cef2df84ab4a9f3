/* SPDX-License-Identifier: Apache-2.0 */
/* Split forms of reductions and of softmax: each process reduces its part, and the parts' sums or extrema are combined
 * (pass/split_form.h). Halves are computed in f32, as the kernels of these ops do. */
#include "families.h"

trama_value *widened(trama_where where, trama_value *x)
{
    const bool half = x->dtype == TRAMA_F16 || x->dtype == TRAMA_BF16;
    return half ? trama_cast_at(where, x, TRAMA_F32) : x;
}

/* ---- Softmax ---- */

trama_value *softmax_by_parts(trama_where where, trama_value *x, int axis)
{
    trama_value *top = trama_max_at(where, x, 1, &axis, true);
    trama_value *e = trama_exp_at(where, trama_sub_at(where, x, top));
    return trama_div_at(where, e, trama_sum_at(where, e, 1, &axis, true));
}

void softmax_split_form(const trama_node *node, int dim, int64_t n, trama_value **out)
{
    trama_value *y = softmax_by_parts(node->where, widened(node->where, node->in[0]), dim);
    out[0] = trama_cast_at(node->where, y, node->out[0]->dtype);
}

/* y (g - sum of g y) */
void softmax_grad_split_form(const trama_node *node, int dim, int64_t n, trama_value **out)
{
    const trama_where where = node->where;
    trama_value *g = widened(where, node->in[0]), *y = widened(where, node->in[1]);
    trama_value *sum = trama_sum_at(where, trama_mul_at(where, g, y), 1, &dim, true);
    out[0] = trama_cast_at(where, trama_mul_at(where, y, trama_sub_at(where, g, sum)), node->out[0]->dtype);
}
