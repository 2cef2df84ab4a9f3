/* SPDX-License-Identifier: Apache-2.0 */
/* The forms of ops.def as kernels for GPUs: a file that includes this and then a part of the list defines cuda_NAME for
 * all pointwise ops of that part. */
#ifndef CODELETS_POINTWISE_OPS_CUH
#define CODELETS_POINTWISE_OPS_CUH

#include "formula.cuh"
#include "pointwise_forms.h"
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
#define COMPARISON(name, ...) TO_BOOL(COMPARISON, name)
#define EQUALITY(...) COMPARISON(__VA_ARGS__)
#define PREDICATE(name, ...) TO_BOOL(PREDICATE, name)
#define TO_BOOL(form, name)                                                                                            \
    FORMULA_OF_OP(form, EACH_DTYPE, name)                                                                              \
    extern "C" void cuda_##name(const trama_call *call, const gpu *g)                                                  \
    {                                                                                                                  \
        const trama_view *in[] = {&call->in[0], &call->in[call->n_in - 1]};                                            \
        if (in[0]->dtype != in[1]->dtype || call->out[0].dtype != TRAMA_BOOL)                                          \
            kernel_impossible(call, "the result is bool, the operands are of one element type");                       \
        with_dtype(in[0]->dtype, [&](auto x) {                                                                         \
            typedef decltype(x) type;                                                                                  \
            pointwise_run<name##_formula<type>, bool, type>(&call->out[0], in, call->attributes->real, g);             \
        });                                                                                                            \
    }

#endif
