/* SPDX-License-Identifier: Apache-2.0 */
/* Updates of state in place, on a GPU. schedule has no kernel here: a function of the user's may compute its number. */
#include "update.cuh"

#include "kernel.h"
#include "pointwise.cuh"

extern "C" void cuda_assign(const trama_call *call, const gpu *g)
{
    const trama_view *in[] = {&call->in[1]};

    with_dtype(call->out[0].dtype, [&](auto x) {
        typedef decltype(x) type;
        pointwise_run<assign_formula<type>, type, type>(&call->out[0], in, call->attributes->real, g);
    });
}

/* ---- Updates with scalar operands -------------------------------------------------------------- */

/* The arrays of w are the results, then the tensors. */
template <typename F, typename T, int E>
static __global__ void __launch_bounds__(UPDATE_THREADS, update_blocks<F>)
    update_kernel(const pack_walk<F::results + F::tensors> w, const update_inputs inputs)
{
    constexpr int R = F::results, N = R + F::tensors;
    __shared__ typename of<T>::number c[N_CONSTANTS];
    __shared__ update_kind kind;

    if (threadIdx.x == 0)
        kind = update_constants<F>(inputs, c);
    __syncthreads();
    if (kind == UPDATE_STAYS)
        return;
    for (uint32_t i = blockIdx.x * UPDATE_THREADS + threadIdx.x; i < (uint32_t)w.packs.count;
         i += gridDim.x * UPDATE_THREADS) {
        const int n = pack_size<E>(w, i);
        pack<T, E> in[F::tensors], out[R];
        int64_t at[N];
        grid_walk_at32(w.packs, i, at);
#pragma unroll
        for (int a = R; a < N; a++)
            in[a - R] = pack_read<T, E>((const T *)w.packs.data[a] + at[a], w.repeated[a], n);
        update_pack<F>(kind, c, in, out);
#pragma unroll
        for (int a = 0; a < R; a++)
            if (update_writes<F>(kind, a))
                pack_write((T *)w.packs.data[a] + at[a], out[a], n);
    }
}

template <typename F, typename T, int E, int N>
static void update_launch(const grid_walk<N> &part, const size_t (&size)[N], const update_inputs &inputs, const gpu *g)
{
    pack_walk<N> w;
    if (!pack_walk_of(&w, part, size, E)) {
        update_launch<F, T, 1>(part, size, inputs, g);
        return;
    }
    const int64_t wanted = (w.packs.count + UPDATE_THREADS - 1) / UPDATE_THREADS;
    const int64_t most = (int64_t)g->multiprocessors * update_blocks<F>;
    GPU_LAUNCH((update_kernel<F, T, E>), (unsigned)(wanted < most ? wanted : most), UPDATE_THREADS, g, w, inputs);
}

template <typename F, typename T> static void update_run(const trama_call *call, const gpu *g)
{
    constexpr int N = F::results + F::tensors;
    const trama_view *view[N];
    size_t size[N];
    grid_walk<N> w;

    for (int a = 0; a < N; a++) {
        view[a] = a < F::results ? &call->out[a] : &call->in[a - F::results];
        size[a] = sizeof(T);
    }
    const update_inputs inputs = update_inputs_of(call, F::tensors, F::scalars);
    if (grid_walk_of(&w, view))
        grid_walk_parts(w, size, PACKS_MOST,
                        [&](const grid_walk<N> &part) { update_launch<F, T, pack_of<T>>(part, size, inputs, g); });
}

#define UPDATE_CUDA(EACH, name, n_results, n_tensors, n_scalars, ELEMENT)                                              \
    extern "C" void cuda_##name(const trama_call *call, const gpu *g)                                                  \
    {                                                                                                                  \
        switch (call->out[0].dtype) {                                                                                  \
            EACH(UPDATE_CASE, name)                                                                                    \
        default:                                                                                                       \
            kernel_impossible(call, "no kernel for this element type");                                                \
        }                                                                                                              \
    }
#define UPDATE_CASE(dtype, type, name)                                                                                 \
    case dtype:                                                                                                        \
        update_run<name##_formula<type>, type>(call, g);                                                               \
        break;
GPU_UPDATE_OPS(UPDATE_CUDA)
