/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel of chain.cu and the program that it runs, pack by pack of up to 16 bytes. */
#ifndef CODELETS_CHAIN_CUH
#define CODELETS_CHAIN_CUH

#include "fused.h"
#include "kernel.h"
#include "pointwise.cuh"
#include "update.cuh"

enum {
    CHAIN_THREADS = 128,
    CHAIN_NDIM = 2,
    CHAIN_ARRAYS = 24,
    CHAIN_STEPS = FUSED_MOST_CHAINED,
    CHAIN_SLOTS = 8,
    CHAIN_TERMS = 16,
    CHAIN_NOW = -1, /* as an operand: the result of the step before */
};

/* Blocks that a multiprocessor runs at once, with registers enough for a pack of E. */
template <int E> constexpr int chain_blocks = E == 8 ? 5 : E == 2 ? 6 : 8;

/* ---- Ops ------------------------------------------------------------------------------------------ */

/* A code for each op that a chain can hold: the pointwise ones of ops.def but for functions that need many registers,
 * assign, and updates with scalars. */
#define CHAIN_UPDATE_CODE(EACH, name, n_results, n_tensors, n_scalars, ELEMENT) CHAIN_##name,
enum chain_code {
#define POINTWISE(form, name, ...) CHAIN_##name,
#define WITHOUT_MATH
#include "ops.def"
    CHAIN_assign,
    CHAIN_cast,
    GPU_UPDATE_OPS(CHAIN_UPDATE_CODE)
};

#define POINTWISE(form, name, types, ...) FORMULA_OF_OP(form, EACH_##types, name)
#define WITHOUT_MATH
#include "ops.def"

/* By code. */
struct chain_op {
    const trama_op *op;
    int operands; /* the last ones; of updates the tensors, which are the first */
    bool updates;
};
#define CHAIN_UPDATE_ROW(EACH, name, n_results, n_tensors, n_scalars, ELEMENT) {&trama_op_##name, n_tensors, true},
static const chain_op chain_ops[] = {
#define POINTWISE(form, name, ...) {&trama_op_##name, name##_formula<float>::operands, false},
#define WITHOUT_MATH
#include "ops.def"
    {&trama_op_assign, 1, false}, {&trama_op_cast, 1, false}, GPU_UPDATE_OPS(CHAIN_UPDATE_ROW)};

/* -1: it has none */
static inline int chain_code_of(const trama_op *op)
{
    int code = (int)(sizeof chain_ops / sizeof chain_ops[0]) - 1;
    while (code >= 0 && chain_ops[code].op != op)
        code--;
    return code;
}

/* ---- Programs --------------------------------------------------------------------------------------- */

/* All values of a chain are of one type. A cast from another type reads an array of that type, a cast to another type
 * writes one. */
enum chain_cast { CAST_NOTHING, CAST_IN, CAST_OUT };

/* An operand is CHAIN_NOW, or a slot, or CHAIN_SLOTS + an array. */
struct chain_step {
    int8_t op, from[2];
    int8_t kept, to;   /* slot and array of the result, or -1 */
    int8_t cast, type; /* chain_cast, and the other type */
    pointwise_reals with;
};

struct chain_program {
    int8_t n_loads, n_terms, n_steps;
    struct {
        int8_t array, slot;
    } load[CHAIN_SLOTS];
    int8_t term[CHAIN_TERMS], sum_kept; /* arrays; slot, or -1 */
    kernel_combine combine;
    double scale;
    chain_step step[CHAIN_STEPS];
    int8_t update, tensor[4], result[3]; /* code, or -1; operands; arrays, or -1 */
};

/* A pack_walk of at most two dims over many arrays. */
struct chain_walk {
    divisor columns;
    uint32_t packs;
    int64_t elements;
    void *data[CHAIN_ARRAYS];
    int64_t step[CHAIN_NDIM][CHAIN_ARRAYS]; /* down, right */
    bool repeated[CHAIN_ARRAYS];
};

static inline chain_walk chain_walk_of(const pack_walk<CHAIN_ARRAYS> &w)
{
    const int last = w.packs.ndim - 1;
    chain_walk c;
    c.columns = w.packs.extent[last];
    c.packs = (uint32_t)w.packs.count;
    c.elements = w.elements;
    for (int a = 0; a < CHAIN_ARRAYS; a++) {
        c.data[a] = w.packs.data[a];
        c.step[0][a] = last ? w.packs.step[0][a] : 0;
        c.step[1][a] = w.packs.step[last][a];
        c.repeated[a] = w.repeated[a];
    }
    return c;
}

/* A chain as kernels take it, and its walk over arrays with elements of so many bytes. */
struct chain_draft {
    chain_program program;
    update_inputs inputs;
    grid_walk<CHAIN_ARRAYS> walk;
    size_t size[CHAIN_ARRAYS];
    trama_dtype dtype;
    bool casts, empty; /* empty: there is no element */
};

/* Returns false where the chain has more operands, slots or dims than kernels take. */
bool chain_draft_of(chain_draft *d, const kernel_chain *chain);

/* ---- The kernel --------------------------------------------------------------------------------------- */

/* A pack of the walk: its place, and how many elements it has. */
struct chain_place {
    uint32_t row, column;
    int n;
};

template <typename T> static __device__ inline T *chain_at(const chain_walk &w, int a, const chain_place &at)
{
    return (T *)w.data[a] + at.row * w.step[0][a] + at.column * w.step[1][a];
}

template <typename T, int E>
static __device__ inline pack<T, E> chain_read(const chain_walk &w, int a, const chain_place &at)
{
    return pack_read<T, E>(chain_at<const T>(w, a, at), w.repeated[a], at.n);
}

/* The values of a thread that are not in registers: slots[slot][thread]. */
template <typename T, int E, int THREADS> using chain_slots = pack<T, E>[CHAIN_SLOTS][THREADS];

template <typename T, int E, int THREADS>
static __device__ inline pack<T, E> chain_operand(const chain_walk &w, int from, const chain_place &at,
                                                  const chain_slots<T, E, THREADS> &slots, const pack<T, E> &now)
{
    if (from == CHAIN_NOW)
        return now;
    return from < CHAIN_SLOTS ? slots[from][threadIdx.x] : chain_read<T, E>(w, from - CHAIN_SLOTS, at);
}

template <typename T, int E>
static __device__ inline pack<T, E> chain_result(int op, const pack<T, E> (&x)[2], const double *with)
{
    switch (op) {
#define CHAIN_CASE(name)                                                                                               \
    case CHAIN_##name:                                                                                                 \
        return pack_made<name##_formula<T>, T>(x, with);
#define POINTWISE(form, name, ...) CHAIN_CASE(name)
#define WITHOUT_MATH
#include "ops.def"
        CHAIN_CASE(assign)
#undef CHAIN_CASE
    default:
        return x[0];
    }
}

/* The pack of array a, of another type. */
template <typename T, int E>
static __device__ inline pack<T, E> chain_cast_in(const chain_walk &w, int a, int type, const chain_place &at)
{
    pack<T, E> out;
    switch (type) {
#define CHAIN_CAST(dtype, type, unused)                                                                                \
    case dtype: {                                                                                                      \
        const pack<type, E> x = chain_read<type, E>(w, a, at);                                                         \
        out = pack_made<cast_formula<T, type>, T>(&x, nullptr);                                                        \
        break;                                                                                                         \
    }
        EACH_FLOAT(CHAIN_CAST, )
#undef CHAIN_CAST
    }
    return out;
}

template <typename T, int E>
static __device__ inline void chain_cast_out(const chain_walk &w, int a, int type, const chain_place &at,
                                             const pack<T, E> &x)
{
    switch (type) {
#define CHAIN_CAST(dtype, type, unused)                                                                                \
    case dtype:                                                                                                        \
        pack_write(chain_at<type>(w, a, at), pack_made<cast_formula<type, T>, type>(&x, nullptr), at.n);               \
        break;
        EACH_FLOAT(CHAIN_CAST, )
#undef CHAIN_CAST
    }
}

/* In the order of the terms, as kernel_reduce. */
template <typename T, int E>
static __device__ inline pack<T, E> chain_sum(const chain_walk &w, const chain_program &p, const chain_place &at)
{
    pack<T, E> x = chain_read<T, E>(w, p.term[0], at), out;
    double sum[E];
    typename of<T>::number extreme[E];
    for (int e = 0; e < E; e++) {
        extreme[e] = of<T>::load(x.at[e]);
        sum[e] = (double)extreme[e];
    }
    for (int t = 1; t < p.n_terms; t++) {
        x = chain_read<T, E>(w, p.term[t], at);
        for (int e = 0; e < E; e++) {
            const auto term = of<T>::load(x.at[e]);
            sum[e] += (double)term;
            extreme[e] = p.combine == COMBINE_MAX ? of<T>::larger(extreme[e], term) : of<T>::smaller(extreme[e], term);
        }
    }
    for (int e = 0; e < E; e++)
        out.at[e] = p.combine == COMBINE_SUM ? of<T>::scaled(sum[e], p.scale) : of<T>::scaled(extreme[e], p.scale);
    return out;
}

template <typename F, typename T, int E, int THREADS, typename number>
static __device__ inline void chain_update(const chain_walk &w, const chain_program &p, const chain_place &at,
                                           const chain_slots<T, E, THREADS> &slots, const pack<T, E> &now,
                                           update_kind kind, const number *c)
{
    pack<T, E> in[F::tensors], out[F::results];
    if (kind == UPDATE_STAYS)
        return;
#pragma unroll
    for (int a = 0; a < F::tensors; a++)
        in[a] = chain_operand<T, E, THREADS>(w, p.tensor[a], at, slots, now);
    update_pack<F>(kind, c, in, out);
#pragma unroll
    for (int a = 0; a < F::results; a++)
        if (p.result[a] >= 0 && update_writes<F>(kind, a))
            pack_write(chain_at<T>(w, p.result[a], at), out[a], at.n);
}

/* Reads the arrays that have slots, so that all are on their way at once. */
template <typename T, int E, int THREADS>
static __device__ inline void chain_loads(const chain_walk &w, const chain_program &p, const chain_place &at,
                                          chain_slots<T, E, THREADS> &slots)
{
    for (int k = 0; k < p.n_loads; k++)
        slots[p.load[k].slot][threadIdx.x] = chain_read<T, E>(w, p.load[k].array, at);
}

/* Runs the steps of a pack, of which `now` is the sum, if the chain has one. Returns the last one's result. */
template <typename T, int E, bool CASTS, int THREADS>
static __device__ inline pack<T, E> chain_steps(const chain_walk &w, const chain_program &p, const chain_place &at,
                                                chain_slots<T, E, THREADS> &slots, pack<T, E> now)
{
    pack<T, E> x[2];
    if (p.sum_kept >= 0)
        slots[p.sum_kept][threadIdx.x] = now;
    for (int k = 0; k < p.n_steps; k++) {
        const chain_step &step = p.step[k];
        if (CASTS && step.cast == CAST_IN) {
            now = chain_cast_in<T, E>(w, step.from[0] - CHAIN_SLOTS, step.type, at);
        } else {
            x[0] = chain_operand<T, E, THREADS>(w, step.from[0], at, slots, now);
            x[1] = chain_operand<T, E, THREADS>(w, step.from[1], at, slots, now);
            now = chain_result<T, E>(step.op, x, step.with.at);
        }
        if (step.kept >= 0)
            slots[step.kept][threadIdx.x] = now;
        if (CASTS && step.cast == CAST_OUT)
            chain_cast_out<T, E>(w, step.to, step.type, at, now);
        else if (step.to >= 0)
            pack_write(chain_at<T>(w, step.to, at), now, at.n);
    }
    return now;
}

template <typename T, int E, bool CASTS>
static __global__ void __launch_bounds__(CHAIN_THREADS, chain_blocks<E>)
    chain_kernel(const chain_walk w, const chain_program p, const update_inputs inputs)
{
    __shared__ chain_slots<T, E, CHAIN_THREADS> slots;
    __shared__ typename of<T>::number c[N_CONSTANTS];
    __shared__ update_kind kind;

    if (threadIdx.x == 0)
        switch (p.update) {
#define CHAIN_CONSTANTS(EACH, name, n_results, n_tensors, n_scalars, ELEMENT)                                          \
    case CHAIN_##name:                                                                                                 \
        kind = update_constants<name##_formula<T>>(inputs, c);                                                         \
        break;
            GPU_UPDATE_OPS(CHAIN_CONSTANTS)
        }
    __syncthreads();
    for (uint32_t i = blockIdx.x * CHAIN_THREADS + threadIdx.x; i < w.packs; i += gridDim.x * CHAIN_THREADS) {
        const uint32_t row = quotient32(w.columns, i);
        const int64_t rest = w.elements - (int64_t)i * E;
        const chain_place at = {row, i - row * (uint32_t)w.columns.by, rest < E ? (int)rest : E};
        pack<T, E> now;
        chain_loads<T, E, CHAIN_THREADS>(w, p, at, slots);
        if (p.n_terms)
            now = chain_sum<T, E>(w, p, at);
        now = chain_steps<T, E, CASTS, CHAIN_THREADS>(w, p, at, slots, now);
        switch (p.update) {
#define CHAIN_UPDATE(EACH, name, n_results, n_tensors, n_scalars, ELEMENT)                                             \
    case CHAIN_##name:                                                                                                 \
        chain_update<name##_formula<T>, T, E, CHAIN_THREADS>(w, p, at, slots, now, kind, c);                           \
        break;
            GPU_UPDATE_OPS(CHAIN_UPDATE)
        }
    }
}

#endif
