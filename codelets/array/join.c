/* SPDX-License-Identifier: Apache-2.0 */
/* Concat, stride and flip as copies between views, for CPUs; join.cu has the same for GPUs. */
#include "join.h"
#include "kernel.h"
#include "loop.h"
#include "ops.h"

bool concat_views(const trama_call *call, int i, trama_view *to, trama_view *from)
{
    const int axis = (int)call->attributes->integer[CONCAT_AXIS];
    const int64_t size = (int64_t)trama_dtype_size(call->out[0].dtype);
    int64_t before = 0;
    for (int t = 0; t < i; t++)
        before += call->in[t].global[axis];
    *to = call->out[0];
    *from = call->in[i];
    /* The box of the operand begins at this element of the result's box. */
    const int64_t begin = before + from->offset[axis] - to->offset[axis], end = begin + from->extent[axis];
    const int64_t lo = begin > 0 ? begin : 0, hi = end < to->extent[axis] ? end : to->extent[axis];
    if (hi <= lo)
        return false;
    to->data = (char *)to->data + lo * to->stride[axis] * size;
    from->data = (char *)from->data + (lo - begin) * from->stride[axis] * size;
    to->extent[axis] = from->extent[axis] = hi - lo;
    return true;
}

trama_view strided_view(const trama_call *call)
{
    const trama_view *x = &call->in[0], *out = &call->out[0];
    trama_view from = *x;
    int64_t first = 0;
    for (int d = 0; d < x->ndim; d++) {
        const int64_t step = call->attributes->integer[STRIDE_STEP + d];
        first += (out->offset[d] * step - x->offset[d]) * x->stride[d];
        from.stride[d] = x->stride[d] * step;
        from.extent[d] = out->extent[d];
    }
    if (view_count(out))
        from.data = (char *)x->data + first * (int64_t)trama_dtype_size(x->dtype);
    return from;
}

trama_view flipped_view(const trama_call *call)
{
    trama_view from = call->in[0];
    for (int d = 0; d < from.ndim; d++)
        if (call->attributes->integer[FLIP_AXES] >> d & 1 && from.extent[d]) {
            from.data =
                (char *)from.data + (from.extent[d] - 1) * from.stride[d] * (int64_t)trama_dtype_size(from.dtype);
            from.stride[d] = -from.stride[d];
        }
    return from;
}

static void concat(const trama_call *call)
{
    for (int i = 0; i < call->n_in; i++) {
        trama_view to, from;
        if (concat_views(call, i, &to, &from))
            kernel_copy(&to, &from);
    }
}

#define CONCAT_KERNEL(n)                                                                                               \
    void cpu_concat##n(const trama_call *call)                                                                         \
    {                                                                                                                  \
        concat(call);                                                                                                  \
    }
EACH_CONCAT(CONCAT_KERNEL)

void cpu_stride(const trama_call *call)
{
    const trama_view from = strided_view(call);
    kernel_copy(&call->out[0], &from);
}

void cpu_flip(const trama_call *call)
{
    const trama_view from = flipped_view(call);
    kernel_copy(&call->out[0], &from);
}
