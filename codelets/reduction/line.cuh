/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of softmax and cross entropy along lines, on a GPU. The threads of a team hold a line in registers, so that
 * it is read once; a line that is too long they hold part after part. The elements that a thread takes, and so the
 * order of sums, depend only on the line's extent and on whether it is the last dim. */
#ifndef CODELETS_LINE_CUH
#define CODELETS_LINE_CUH

#include "exponential.h"
#include "line_part.cuh"
#include "team.cuh"
#include "view.h"
#include "walk.cuh"

/* Lines of n elements, `step` from one to the next, in N arrays, of which the last ones may have a number a line. */
template <int N> struct line_walk {
    grid_walk<N> starts; /* of the lines */
    int whole;           /* arrays that have lines */
    int64_t n, step[N];
    int team;
    int neighbours; /* log2 of the number of neighbours that a thread takes */
};

/* The registers in which a thread holds elements, of f32 one each: of short lines, of lines that a team can hold whole,
 * and of longer ones, part after part. */
enum { SHORT = 8, WHOLE = 16, PART = 8, SHORT_TEAM = 8, MOST_THREADS = 512, FEW_THREADS = 256 };
template <typename T> constexpr int held_of(int registers)
{
    return (int)(registers * sizeof(float) / sizeof(typename of<T>::number));
}

/* How many blocks of rows a multiprocessor is to have room for, so that some of them read while others compute. */
template <typename T> constexpr int line_blocks(int elements)
{
    return elements > held_of<T>(WHOLE) ? 2 : 1;
}
#define LINE_BOUNDS(T, elements) __launch_bounds__(MOST_THREADS, line_blocks<T>(elements))

/* Lines along the last dim: neighbouring threads. */
struct row_team {
    int rank, size, neighbours;
    template <int N>
    __device__ inline row_team(const line_walk<N> &l)
        : rank((int)threadIdx.x % l.team), size(l.team), neighbours(l.neighbours)
    {
    }
    static __device__ inline int64_t line(int team, int64_t block)
    {
        return block * (blockDim.x / team) + threadIdx.x / team;
    }
    template <typename A, typename JOIN> __device__ inline A join(A value, JOIN with) const
    {
        return team_join(value, size, with);
    }
};

/* Lines along another dim: neighbouring threads have neighbouring lines. */
struct column_team {
    enum { ACROSS = 32, LANES = 8 };
    int rank, size, neighbours;
    template <int N>
    __device__ inline column_team(const line_walk<N> &l) : rank((int)threadIdx.y), size(l.team), neighbours(0)
    {
    }
    static __device__ inline int64_t line(int, int64_t block)
    {
        return block * ACROSS + threadIdx.x;
    }
    template <typename A, typename JOIN> __device__ inline A join(A value, JOIN with) const
    {
        __shared__ A room[LANES][ACROSS];
        __syncthreads(); /* all threads have read the room of the join before */
        room[rank][threadIdx.x] = value;
        __syncthreads();
        value = room[0][threadIdx.x];
        for (int lane = 1; lane < LANES; lane++)
            value = with(value, room[lane][threadIdx.x]);
        return value;
    }
};

/* The larger, or NaN; +0 or -0 where both are there. */
static __device__ inline double top_of(double a, double b)
{
    return of<double>::larger(a, b);
}
static __device__ inline float top_of(float a, float b)
{
#if defined __CUDA_ARCH__ && __CUDA_ARCH__ >= 800
    float top;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(top) : "f"(a), "f"(b));
    return top;
#else
    return of<float>::larger(a, b);
#endif
}
/* Of halves with the digits of one. */
template <typename T> static __device__ inline typename of<T>::number exp_of(typename of<T>::number x)
{
    if constexpr (is_half<T>)
        return exp_of_TRAMA_HALF(x);
    else if constexpr (is_same<T, float>)
        return exp_of_TRAMA_F32(x);
    else
        return exp(x);
}

/* Four at a time in their own type, and these sums in double. */
template <typename number, int E> static __device__ inline double sum_of(const number (&x)[E])
{
    static_assert(E % 4 == 0, "fours");
    double sum = 0;
#pragma unroll
    for (int e = 0; e < E; e += 4)
        sum += (double)((x[e] + x[e + 1]) + (x[e + 2] + x[e + 3]));
    return sum;
}

/* The same of products. */
template <typename number, int E>
static __device__ inline double product_sum_of(const number (&x)[E], const number (&y)[E])
{
    number product[E];
#pragma unroll
    for (int e = 0; e < E; e++)
        product[e] = x[e] * y[e];
    return sum_of(product);
}

/* The maximum of a line, and the sum of exp(x - maximum). */
template <typename T> struct exp_sum {
    typename of<T>::number top;
    double sum;
};

/* The maximum and the sum of the team's line, of which each thread has read its part; part becomes exp(x - maximum). */
template <typename T, int E, int V, typename TEAM>
static __device__ inline exp_sum<T> held_exp_sum(const TEAM &team, held_part<T, E, V> *part)
{
    typedef typename of<T>::number number;
    exp_sum<T> all = {of<T>::lowest(), 0};
#pragma unroll
    for (int e = 0; e < E; e++)
        all.top = top_of(all.top, part->at[e]);
    all.top = team.join(all.top, [](number a, number b) { return top_of(a, b); });
#pragma unroll
    for (int e = 0; e < E; e++)
        part->at[e] = exp_of<T>(part->at[e] - all.top); /* of elements beyond the line 0 */
    all.sum = team.join(sum_of(part->at), [](double a, double b) { return a + b; });
    return all;
}

/* The same of a line x [n] that is read part by part: a thread scales its sum when a larger maximum comes. */
template <typename T, int E, int V, typename TEAM>
static __device__ inline exp_sum<T> long_exp_sum(const TEAM &team, held_part<T, E, V> *part, const T *x, int64_t step,
                                                 int64_t n)
{
    typedef typename of<T>::number number;
    const number none = of<T>::lowest();
    number top = none;
    exp_sum<T> all = {none, 0};

    for (int64_t from = 0; from < n; from += (int64_t)E * team.size) {
        const number before = top;
        part->read(team, x + from * step, step, n - from, none);
#pragma unroll
        for (int e = 0; e < E; e++)
            top = top_of(top, part->at[e]);
        const number base = top == none ? 0 : top;
        all.sum *= exp_of<T>(before - base);
#pragma unroll
        for (int e = 0; e < E; e++)
            part->at[e] = exp_of<T>(part->at[e] - base);
        all.sum += sum_of(part->at);
    }
    all.top = team.join(top, [](number a, number b) { return top_of(a, b); });
    all.sum =
        team.join(all.sum * exp_of<T>((top == none ? 0 : top) - all.top), [](double a, double b) { return a + b; });
    return all;
}

/* ---- Launching ----------------------------------------------------------------------------------- */

/* Whether all dims behind d have extent 1 in the whole tensor. */
static inline bool is_last(const trama_view *view, int d)
{
    for (d++; d < view->ndim && view->global[d] == 1;)
        d++;
    return d >= view->ndim;
}

/* Whether every line of every array begins at a multiple of so many bytes, and has no gap. */
template <int N> static bool has_packs(const line_walk<N> &l, size_t size, int neighbours)
{
    int64_t all = l.n;
    for (int a = 0; a < l.whole; a++) {
        if (l.step[a] != 1 || (uintptr_t)l.starts.data[a] % (neighbours * size))
            return false;
        for (int d = 0; d < l.starts.ndim; d++)
            all |= l.starts.extent[d].by > 1 ? l.starts.step[d][a] : 0;
    }
    return all % neighbours == 0;
}

/* Calls launch(lines, E, V, HELD, threads): elements that a thread holds, neighbours in a pack, and whether a team
 * holds a line, as constants. */
template <int N> struct constant {
    enum { value = N };
};
template <typename T, int E, bool HELD, int N, typename F> static void with_rows_of(line_walk<N> l, F launch)
{
    constexpr int most = pack_of<T>, V = most < E ? most : E;
    l.team = team_size(l.n, E, MOST_THREADS);
    l.neighbours = 0;
    const int threads = l.team > FEW_THREADS ? l.team : FEW_THREADS;
    if (l.n % V == 0)
        while (1 << l.neighbours < V)
            l.neighbours++;
    if (has_packs(l, sizeof(T), V))
        launch(l, constant<E>(), constant<V>(), constant<HELD>(), threads);
    else
        launch(l, constant<E>(), constant<1>(), constant<HELD>(), threads);
}
template <typename T, int REGISTERS = WHOLE, int N, typename F> static void with_rows(const line_walk<N> &l, F launch)
{
    constexpr int few = held_of<T>(SHORT), whole = held_of<T>(REGISTERS);
    if (l.n <= SHORT_TEAM * few)
        with_rows_of<T, few, true>(l, launch);
    else if (l.n <= MOST_THREADS * whole)
        with_rows_of<T, whole, true>(l, launch);
    else
        with_rows_of<T, held_of<T>(PART), false>(l, launch);
}

/* The same for lines along another dim: launch(lines, E, HELD). */
template <typename T, int N, typename F> static void with_columns(line_walk<N> l, F launch)
{
    constexpr int whole = held_of<T>(WHOLE);
    l.team = column_team::LANES;
    l.neighbours = 0;
    if (l.n <= column_team::LANES * whole)
        launch(l, constant<whole>(), constant<true>());
    else
        launch(l, constant<held_of<T>(PART)>(), constant<false>());
}

/* The lines of views along an axis, walked over all other dims; their extent is that of view 0. The first `whole`
 * views have lines, the others a number for each. False where there are none. */
template <int N> static bool line_walk_of(line_walk<N> *l, const trama_view *const (&view)[N], int axis, int whole = N)
{
    const trama_view *views[N];
    trama_view starts[N];
    *l = {};
    l->whole = whole;
    l->n = view[0]->extent[axis];
    for (int a = 0; a < N; a++) {
        starts[a] = view_without(view[a], axis);
        views[a] = &starts[a];
        l->step[a] = view[a]->stride[axis];
    }
    return l->n > 0 && grid_walk_of(&l->starts, views);
}

/* Launches a kernel <T, E, V, HELD, TEAM>, whose threads hold a row in so many registers each, on a line_walk<N> and
 * further arguments. last: the axis is the last dim. */
#define LAUNCH_LINES(kernel, T, N, REGISTERS, lines, last, ...)                                                        \
    do {                                                                                                               \
        if (last)                                                                                                      \
            with_rows<T, REGISTERS>(lines, [&](const line_walk<N> &l, auto held, auto pack, auto whole, int threads) { \
                const int64_t teams = threads / l.team, blocks = (l.starts.count + teams - 1) / teams;                 \
                LAUNCH_OF_LINES(                                                                                       \
                    (kernel<T, decltype(held)::value, decltype(pack)::value, decltype(whole)::value, row_team>),       \
                    (unsigned)blocks, threads, l, __VA_ARGS__);                                                        \
            });                                                                                                        \
        else                                                                                                           \
            with_columns<T>(lines, [&](const line_walk<N> &l, auto held, auto whole) {                                 \
                const int64_t blocks = (l.starts.count + column_team::ACROSS - 1) / column_team::ACROSS;               \
                LAUNCH_OF_LINES((kernel<T, decltype(held)::value, 1, decltype(whole)::value, column_team>),            \
                                (unsigned)blocks, dim3(column_team::ACROSS, column_team::LANES), l, __VA_ARGS__);      \
            });                                                                                                        \
    } while (0)
#define LAUNCH_OF_LINES(kernel, blocks, threads, l, g, ...) GPU_LAUNCH(kernel, blocks, threads, g, l, ##__VA_ARGS__)

#endif
