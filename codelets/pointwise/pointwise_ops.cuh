/* SPDX-License-Identifier: Apache-2.0 */
/* The forms of ops.def as kernels for GPUs: a file that includes this and then a part of the list defines cuda_NAME for
 * all pointwise ops of that part. */
#ifndef CODELETS_POINTWISE_OPS_CUH
#define CODELETS_POINTWISE_OPS_CUH

#include "formula.cuh"
#include "pointwise.cuh"

#define POINTWISE(form, name, types, ...)                                                                              \
    FORMULA_OF_OP(form, EACH_##types, name)                                                                            \
    extern "C" void cuda_##name(const trama_call *call, const gpu *g)                                                  \
    {                                                                                                                  \
        const trama_view *in[] = {&call->in[0], &call->in[call->n_in - 1]};                                            \
        switch (call->out[0].dtype) {                                                                                  \
            EACH_##types(POINTWISE_CASE, name) default : kernel_impossible(call, "no kernel for this element type");   \
        }                                                                                                              \
    }
#define POINTWISE_CASE(dtype, type, name)                                                                              \
    case dtype:                                                                                                        \
        pointwise_run<name##_formula<type>, type, type>(&call->out[0], in, call->attributes->real, g);                 \
        break;
#define UNARY(name, types, ...) POINTWISE(UNARY, name, types, )
#define BINARY(name, types, ...) POINTWISE(BINARY, name, types, )
#define COMPARISON(name, ...)                                                                                          \
    FORMULA_OF_OP(COMPARISON, EACH_DTYPE, name)                                                                        \
    extern "C" void cuda_##name(const trama_call *call, const gpu *g)                                                  \
    {                                                                                                                  \
        const trama_view *in[] = {&call->in[0], &call->in[1]};                                                         \
        if (in[0]->dtype != in[1]->dtype || call->out[0].dtype != TRAMA_U8)                                            \
            kernel_impossible(call, "the result is u8, the operands are of one element type");                         \
        with_dtype(in[0]->dtype, [&](auto x) {                                                                         \
            typedef decltype(x) type;                                                                                  \
            pointwise_run<name##_formula<type>, uint8_t, type>(&call->out[0], in, call->attributes->real, g);          \
        });                                                                                                            \
    }

#endif
