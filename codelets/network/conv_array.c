/* SPDX-License-Identifier: Apache-2.0 */
/* The views and attributes of ops over windows. */
#include "conv_array.h"

#include "ops.h"

conv_array conv_array_of(const trama_view *view)
{
    conv_array a = {.data = view->data};
    for (int d = 0; d < CONV_SPACE; d++)
        a.space[d] = 1;
    for (int d = 0; d < 2; d++) {
        a.n[d] = view->extent[d];
        a.step[d] = view->stride[d];
    }
    for (int d = 2; d < view->ndim; d++) {
        const int to = d + CONV_SPACE - view->ndim;
        a.space[to] = view->extent[d];
        a.space_step[to] = view->stride[d];
        a.offset[to] = view->offset[d];
    }
    return a;
}

int64_t conv_attribute(const trama_call *call, int slot, int d, int64_t leading)
{
    const int first = CONV_SPACE - (call->in[0].ndim - 2);
    return d < first ? leading : call->attributes->integer[slot + d - first];
}

conv_call conv_call_of(const trama_call *call, int x, int w, int y)
{
    const trama_view *tensors[3] = {&call->in[0], &call->in[1], &call->out[0]};
    const int64_t groups = call->attributes->integer[CONV_GROUPS], out = tensors[w]->global[0] / groups;
    conv_call c = {.dtype = call->out[0].dtype,
                   .x = conv_array_of(tensors[x]),
                   .w = conv_array_of(tensors[w]),
                   .y = conv_array_of(tensors[y])};
    for (int d = 0; d < CONV_SPACE; d++) {
        c.stride[d] = conv_attribute(call, CONV_STRIDE, d, 1);
        c.dilation[d] = conv_attribute(call, CONV_DILATION, d, 1);
        c.before[d] = conv_attribute(call, CONV_BEFORE, d, 0);
    }
    c.groups = groups == 1 ? 1 : out ? c.w.n[0] / out : 0;
    c.in = c.w.n[1];
    c.out = groups == 1 ? c.w.n[0] : out;
    return c;
}
