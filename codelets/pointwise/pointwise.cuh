/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel of all ops that make an element of one element, or of two. */
#ifndef CODELETS_POINTWISE_CUH
#define CODELETS_POINTWISE_CUH

#include "pack.cuh"
#include "view.h"

enum { POINTWISE_THREADS = 256, POINTWISE_REALS = 2 /* the most attributes that a formula reads */ };

struct pointwise_reals {
    double at[POINTWISE_REALS];
};

/* The packs that a thread reads before it computes. */
template <int E> constexpr int pointwise_ahead = E == 1 ? 4 : 2;

/* x [F::operands]. F::of makes a number of numbers, or, where it has an element_of, that makes an element of one. */
template <typename F, typename = void> constexpr bool is_elementwise = false;
template <typename F> constexpr bool is_elementwise<F, decltype((void)&F::element_of)> = true;
template <typename F, typename O, typename T, int E>
static __device__ inline pack<O, E> pack_made(const pack<T, E> *x, const double *with)
{
    if constexpr (is_elementwise<F>) {
        pack<O, E> out;
#pragma unroll
        for (int e = 0; e < E; e++)
            out.at[e] = F::element_of(x[0].at[e]);
        return out;
    } else {
        typename of<T>::number in[F::operands][E];
        decltype(F::of(in[0], with)) made[E];
#pragma unroll
        for (int a = 0; a < F::operands; a++)
            pack_numbers(in[a], x[a]);
#pragma unroll
        for (int e = 0; e < E; e++) {
            typename of<T>::number element[F::operands];
#pragma unroll
            for (int a = 0; a < F::operands; a++)
                element[a] = in[a][e];
            made[e] = F::of(element, with);
        }
        return pack_of_numbers<O>(made);
    }
}

/* F::of makes an element of type O of elements of type T. */
template <typename F, typename O, typename T, int E>
static __global__ void __launch_bounds__(POINTWISE_THREADS)
    pointwise_kernel(const pack_walk<1 + F::operands> w, const pointwise_reals with)
{
    constexpr int N = F::operands, AHEAD = pointwise_ahead<E>;
    const uint32_t first = blockIdx.x * (POINTWISE_THREADS * AHEAD) + threadIdx.x;
    const uint32_t packs = (uint32_t)w.packs.count;
    pack<T, E> x[AHEAD][N];
    int64_t at[AHEAD][1 + N];

#pragma unroll
    for (int k = 0; k < AHEAD; k++) {
        const uint32_t i = first + k * POINTWISE_THREADS;
        if (i < packs) {
            grid_walk_at32(w.packs, i, at[k]);
#pragma unroll
            for (int a = 0; a < N; a++)
                x[k][a] = pack_read<T, E>((const T *)w.packs.data[1 + a] + at[k][1 + a], w.repeated[1 + a],
                                          pack_size<E>(w, i));
        }
    }
#pragma unroll
    for (int k = 0; k < AHEAD; k++) {
        const uint32_t i = first + k * POINTWISE_THREADS;
        if (i < packs)
            pack_write((O *)w.packs.data[0] + at[k][0], pack_made<F, O, T, E>(x[k], with.at), pack_size<E>(w, i));
    }
}

/* Starts the kernel in packs of E elements, or of 1 where an array does not have these. */
template <typename F, typename O, typename T, int E>
static void pointwise_launch(const grid_walk<1 + F::operands> &part, const size_t (&size)[1 + F::operands],
                             const pointwise_reals &with, const gpu *g)
{
    constexpr int each = POINTWISE_THREADS * pointwise_ahead<E>;
    pack_walk<1 + F::operands> w;
    if (pack_walk_of(&w, part, size, E))
        GPU_LAUNCH((pointwise_kernel<F, O, T, E>), (unsigned)((w.packs.count + each - 1) / each), POINTWISE_THREADS, g,
                   w, with);
    else
        pointwise_launch<F, O, T, 1>(part, size, with, g);
}

/* Runs an op on the whole of its result and operands. */
template <typename F, typename O, typename T>
static void pointwise_run(const trama_view *out, const trama_view *const *in, const double *real, const gpu *g)
{
    constexpr int N = F::operands;
    const trama_view *view[1 + N] = {out};
    size_t size[1 + N] = {sizeof(O)};
    pointwise_reals with;
    grid_walk<1 + N> w;

    for (int a = 0; a < N; a++) {
        view[1 + a] = in[a];
        size[1 + a] = sizeof(T);
    }
    memcpy(with.at, real, sizeof with.at);
    if (grid_walk_of(&w, view))
        grid_walk_parts(w, size, PACKS_MOST, [&](const grid_walk<1 + N> &part) {
            pointwise_launch<F, O, T, (pack_of<O> < pack_of<T> ? pack_of<O> : pack_of<T>)>(part, size, with, g);
        });
}

#endif
