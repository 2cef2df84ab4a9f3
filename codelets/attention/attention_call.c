/* SPDX-License-Identifier: Apache-2.0 */
/* The views of a call of attention as matrices of heads. */
#include "attention.h"

#include <math.h>

#include "ops.h"

attention attention_of(const trama_call *call, bool masked)
{
    const trama_view *q = &call->in[0], *k = &call->in[1], *v = &call->in[2];
    const int h = q->ndim - 3, g = k->ndim - 3;
    attention a = {.type = attention_type_of(q->dtype),
                   .masked = masked,
                   .goes_on = call->goes_on,
                   .mask = masked ? call->in[3].dtype : q->dtype};
    if (!a.type->size)
        kernel_impossible(call, "attention is for real numbers");
    a.n = q->extent[h + 1];
    a.m = k->extent[g + 1];
    a.d = q->extent[h + 2];
    a.e = v->extent[v->ndim - 1];
    a.groups = k->extent[g];
    a.heads = k->global[g] == 1 ? q->extent[h] : k->global[g] ? q->global[h] / k->global[g] : 0;
    a.scale = call->attributes->real[ATTENTION_SCALE];
    if (a.scale == 0)
        a.scale = 1 / sqrt((double)max_i64(1, q->global[h + 2]));
    a.ahead = call->attributes->integer[ATTENTION_CAUSAL] ? q->offset[h + 1] - k->offset[g + 1] + 1 : a.m;
    return a;
}

attention_array attention_array_of(const attention *a, const trama_view *view, int trailing, trama_view *groups)
{
    attention_array array = {.first = {view->data, trama_dtype_size(view->dtype), 0, 0}};
    const int row = view->ndim - trailing, column = view->ndim - 1, h = row - 1;
    *groups = *view;
    groups->ndim = row > 0 ? row : 0;
    if (row >= 0 && view->extent[row] != 1)
        array.first.row = view->stride[row];
    if (trailing == 2 && column >= 0 && view->extent[column] != 1)
        array.first.column = view->stride[column];
    if (h >= 0 && a->heads != 1 && view->extent[h] == a->groups * a->heads) {
        array.head = view->stride[h];
        groups->extent[h] = a->groups;
        groups->stride[h] = view->stride[h] * a->heads;
    }
    return array;
}

attention_matrix attention_at(const attention_array *array, int64_t head, int64_t i, int64_t j)
{
    attention_matrix m = array->first;
    m.data += (head * array->head + i * m.row + j * m.column) * (int64_t)m.size;
    return m;
}

int64_t attention_visible(const attention *a, int64_t i)
{
    return max_i64(0, min_i64(a->m, i - 1 + a->ahead));
}
