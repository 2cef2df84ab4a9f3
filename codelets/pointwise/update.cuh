/* SPDX-License-Identifier: Apache-2.0 */
/* One update on a GPU, pack by pack. Each block computes the constants once, from scalars on the device, so that a
 * launch need not wait for them. */
#ifndef CODELETS_UPDATE_CUH
#define CODELETS_UPDATE_CUH

#include "formula.cuh"
#include "pack.cuh"

enum { UPDATE_THREADS = 256, UPDATE_MOST_SCALARS = 3 };

/* Blocks that a multiprocessor runs at once: enough to read fast, but with registers for all that each reads. */
template <typename F> constexpr int update_blocks = 6 - F::tensors;

/* accumulate: m | m, d; keep, weight; m counts only where it is kept. assign_if: s | s, value; apply. */
#define ACCUMULATE(dtype, type, AT)                                                                                    \
    AT(0) = c[TAKE1] * AT(2);                                                                                          \
    if (c[KEEP1] != 0)                                                                                                 \
        AT(0) = AT(1) + AT(0);
#define ASSIGN_IF(dtype, type, AT) AT(0) = AT(2);
UPDATE_CONSTANTS(assign_if)
{
    (void)a;
    (void)c;
    return scalar[0] != 0 ? UPDATE_COMPUTES : UPDATE_STAYS;
}
#define GPU_UPDATE_OPS(X)                                                                                              \
    UPDATE_OPS(X)                                                                                                      \
    X(EACH_FLOAT, accumulate, 1, 2, 2, ACCUMULATE)                                                                     \
    X(EACH_DTYPE, assign_if, 1, 2, 1, ASSIGN_IF)
GPU_UPDATE_OPS(FORMULA_OF_UPDATE)

/* Of two operands, assign reads the last one only, as it is. */
template <typename T> struct assign_formula {
    static constexpr int operands = 1;
    static __device__ inline T element_of(T x)
    {
        return x;
    }
};

/* The inputs of the constants. */
struct update_inputs {
    trama_attributes attributes;
    const void *scalar[UPDATE_MOST_SCALARS];
    trama_dtype dtype[UPDATE_MOST_SCALARS];
};

static inline update_inputs update_inputs_of(const trama_call *call, int n_tensors, int n_scalars)
{
    update_inputs inputs;
    inputs.attributes = *call->attributes;
    for (int i = 0; i < n_scalars; i++) {
        inputs.scalar[i] = call->in[n_tensors + i].data;
        inputs.dtype[i] = call->in[n_tensors + i].dtype;
    }
    return inputs;
}

static __device__ inline double real_at(trama_dtype dtype, const void *at)
{
    switch (dtype) {
#define REAL_CASE(name, type, unused)                                                                                  \
    case name:                                                                                                         \
        return (double)LOAD(name, *(const type *)at);
        EACH_DTYPE(REAL_CASE, )
#undef REAL_CASE
    default:
        return NAN;
    }
}

/* Called by one thread of a block; c is shared. */
template <typename F, typename number>
static __device__ inline update_kind update_constants(const update_inputs &inputs, number *c)
{
    static_assert(F::scalars <= UPDATE_MOST_SCALARS, "room for the scalars");
    double scalar[UPDATE_MOST_SCALARS], constants[N_CONSTANTS];

    for (int i = 0; i < F::scalars; i++)
        scalar[i] = real_at(inputs.dtype[i], inputs.scalar[i]);
    for (int k = 0; k < N_CONSTANTS; k++)
        constants[k] = 0;
    const update_kind kind = F::constants(scalar, &inputs.attributes, constants);
    for (int k = 0; k < N_CONSTANTS; k++)
        c[k] = (number)constants[k];
    return kind;
}

/* Computes all results of a pack, or sets them to 0. */
template <typename F, typename T, int E, typename number>
static __device__ inline void update_pack(update_kind kind, const number *c, const pack<T, E> (&in)[F::tensors],
                                          pack<T, E> (&out)[F::results])
{
#pragma unroll
    for (int e = 0; e < E; e++) {
        number element[F::results + F::tensors];
#pragma unroll
        for (int a = 0; a < F::tensors; a++)
            element[F::results + a] = of<T>::load(in[a].at[e]);
        F::of(element, c);
#pragma unroll
        for (int a = 0; a < F::results; a++)
            out[a].at[e] = of<T>::store(kind == UPDATE_COMPUTES ? element[a] : number(0));
    }
}

/* Whether result a is written. */
template <typename F> static __device__ inline bool update_writes(update_kind kind, int a)
{
    return kind == UPDATE_COMPUTES || (kind == UPDATE_CLEARS && a == F::results - 1);
}

#endif
