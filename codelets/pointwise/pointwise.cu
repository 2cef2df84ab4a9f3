/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic element by element with broadcasting, on a GPU. */
#include "pointwise.cuh"

#include "formula.cuh"

POINTWISE_OPS(POINTWISE_CUDA)

/* ---- Two element types ----------------------------------------------------------------------- */

template <typename T> struct equal_formula;
#define EQUAL_FORMULA(dtype, type, unused)                                                                             \
    template <> struct equal_formula<type> {                                                                           \
        static constexpr int operands = 2;                                                                             \
        static __device__ inline uint8_t of(const type *x, const double *)                                             \
        {                                                                                                              \
            return EQUAL(dtype, x[0], x[1]);                                                                           \
        }                                                                                                              \
    };
EACH_DTYPE(EQUAL_FORMULA, )

extern "C" void cuda_equal(const trama_call *call, const gpu *g)
{
    const trama_view *in[] = {&call->in[0], &call->in[1]};

    if (in[0]->dtype != in[1]->dtype || call->out[0].dtype != TRAMA_U8)
        kernel_impossible(call, "the result is u8, the operands are of one element type");
    with_dtype(in[0]->dtype, [&](auto x) {
        pointwise_run<equal_formula<decltype(x)>, uint8_t, decltype(x)>(&call->out[0], in, call->attributes->real, g);
    });
}

template <typename O, typename T> struct cast_formula;
#define CAST_FORMULA(out_dtype, out_type, dtype, type)                                                                 \
    template <> struct cast_formula<out_type, type> {                                                                  \
        static constexpr int operands = 1;                                                                             \
        static __device__ inline out_type of(const type *x, const double *)                                            \
        {                                                                                                              \
            return CAST(out_dtype, out_type, dtype, x[0]);                                                             \
        }                                                                                                              \
    };
#define CAST_FORMULAS(dtype, text, type) EACH_DTYPE(CAST_FORMULA, dtype, type)
TRAMA_DTYPE_LIST(CAST_FORMULAS)

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
