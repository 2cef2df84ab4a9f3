/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic element by element with broadcasting, and casts, on a GPU. */
#include "pointwise_ops.cuh"

#include "pointwise.def"

extern "C" void cuda_cast(const trama_call *call, const gpu *g)
{
    const trama_view *in[] = {&call->in[0]};

    with_dtype(call->out[0].dtype, [&](auto o) {
        with_dtype(in[0]->dtype, [&](auto x) {
            pointwise_run<cast_formula<decltype(o), decltype(x)>, decltype(o), decltype(x)>(&call->out[0], in,
                                                                                            call->attributes->real, g);
        });
    });
}
