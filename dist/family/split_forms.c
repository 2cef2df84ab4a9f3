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

/* ---- The places of extrema ---- */

/* Whether x equals `best`, or both are NaN. */
static trama_value *equals_best(trama_where where, trama_value *x, trama_value *best)
{
    trama_value *equal = trama_equal_at(where, x, best);
    if (!trama_dtype_is_float(x->dtype))
        return equal;
    trama_value *both = trama_logical_and_at(where, trama_isnan_at(where, x), trama_isnan_at(where, best));
    return trama_logical_or_at(where, equal, both);
}

trama_value *indices_along(const trama_node *node, int d, int ndim, int64_t n, int64_t step)
{
    trama_shape shape = {.ndim = ndim - d, .dim = {n}};
    for (int i = 1; i < shape.ndim; i++)
        shape.dim[i] = 1;
    trama_value *index = trama_arange_at(node->where, node->program, TRAMA_I64, n, 0, (double)step);
    return trama_reshape_at(node->where, index, shape);
}

/* The first, or last, of the indices of elements that equal the extremum of the whole line. */
static void place_split_form(const trama_node *node, int dim, const trama_op *extremum, trama_value **out)
{
    const trama_where where = node->where;
    trama_value *x = node->in[0];
    const int64_t n = x->shape.dim[dim];
    const bool last = node->attributes->integer[ARGMAX_LAST];
    if (node->attributes->integer[REDUCE_AXES] != (int64_t)1 << dim || n == TRAMA_ANY || n == 0)
        return;
    trama_value *hit = equals_best(where, x, reduce_dims(where, extremum, x, 1, &dim, true));
    trama_value *index = indices_along(node, dim, x->shape.ndim, n, 1);
    trama_value *none = scalar_like(where, index, last ? 0 : (double)n - 1);
    out[0] = reduce_dims(where, last ? &trama_op_max : &trama_op_min, trama_select_at(where, hit, index, none), 1, &dim,
                         node->attributes->integer[REDUCE_KEEP_DIM]);
}

void argmax_split_form(const trama_node *node, int dim, int64_t n, trama_value **out)
{
    place_split_form(node, dim, &trama_op_max, out);
}

void argmin_split_form(const trama_node *node, int dim, int64_t n, trama_value **out)
{
    place_split_form(node, dim, &trama_op_min, out);
}
