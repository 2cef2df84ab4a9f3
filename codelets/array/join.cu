/* SPDX-License-Identifier: Apache-2.0 */
/* Concat, stride and flip on a GPU, as copies between views. */
#include "join.h"
#include "kernel.h"

static void concat(const trama_call *call, const gpu *g)
{
    for (int i = 0; i < call->n_in; i++) {
        trama_view to, from;
        if (concat_views(call, i, &to, &from))
            gpu_copy(&to, &from, g);
    }
}

#define CONCAT_KERNEL(n)                                                                                               \
    extern "C" void cuda_concat##n(const trama_call *call, const gpu *g)                                               \
    {                                                                                                                  \
        concat(call, g);                                                                                               \
    }
EACH_CONCAT(CONCAT_KERNEL)

extern "C" void cuda_stride(const trama_call *call, const gpu *g)
{
    const trama_view from = strided_view(call);
    gpu_copy(&call->out[0], &from, g);
}

extern "C" void cuda_flip(const trama_call *call, const gpu *g)
{
    const trama_view from = flipped_view(call);
    gpu_copy(&call->out[0], &from, g);
}
