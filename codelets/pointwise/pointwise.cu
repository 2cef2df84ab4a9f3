/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic element by element with broadcasting, and casts, on a GPU. */
#include "pointwise_ops.cuh"

#include "pointwise.def"

template <typename O, typename T> struct cast_formula;
#define CAST_FORMULA(out_dtype, out_type, dtype, type)                                                                 \
    template <> struct cast_formula<out_type, type> {                                                                  \
        static constexpr int operands = 1;                                                                             \
        static __device__ inline out_type of(const type *x, const double *)                                            \
        {                                                                                                              \
            return CAST(out_dtype, dtype, x[0]);                                                             \
        }                                                                                                              \
    };
#define CAST_FORMULAS(dtype, text, type) EACH_DTYPE(CAST_FORMULA, dtype, type)
TRAMA_REAL_DTYPE_LIST(CAST_FORMULAS)

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
