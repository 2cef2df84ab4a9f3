/* SPDX-License-Identifier: Apache-2.0 */
/* Softmax along one whole dim, on a GPU. */
#include "kernel.h"
#include "line.cuh"
#include "ops.h"
#include "view.h"

/* HELD: a team holds a whole line; else it is read twice. */
template <typename T, int E, int V, bool HELD, typename TEAM>
__global__ void LINE_BOUNDS(T, E) softmax_lines(line_walk<2> l)
{
    typedef held_part<T, E, V> part_of;
    const TEAM team(l);
    const int64_t line = TEAM::line(l.team, blockIdx.x), held = (int64_t)E * team.size;
    const int64_t n = line < l.starts.count ? l.n : 0;
    int64_t at[2] = {0, 0};
    part_of part;

    if (n > 0)
        grid_walk_at(l.starts, line, at);
    T *y = (T *)l.starts.data[0] + at[0];
    const T *x = (const T *)l.starts.data[1] + at[1];
    if constexpr (HELD) {
        part.read(team, x, l.step[1], n, of<T>::lowest());
        const exp_sum<T> all = held_exp_sum(team, &part);
        const auto factor = (typename of<T>::number)(1 / all.sum);
        part_of::write(team, y, l.step[0], n, [&](int e) { return of<T>::store(part.at[e] * factor); });
    } else {
        const exp_sum<T> all = long_exp_sum(team, &part, x, l.step[1], n);
        const auto factor = (typename of<T>::number)(1 / all.sum);
        for (int64_t from = 0; from < n; from += held) {
            part.read(team, x + from * l.step[1], l.step[1], n - from, 0);
            part_of::write(team, y + from * l.step[0], l.step[0], n - from,
                           [&](int e) { return of<T>::store(exp_of(part.at[e] - all.top) * factor); });
        }
    }
}

/* y (g - sum of g y) */
template <typename T, int E, int V, bool HELD, typename TEAM>
__global__ void LINE_BOUNDS(T, E) softmax_grad_lines(line_walk<3> l)
{
    typedef held_part<T, E, V> part_of;
    const TEAM team(l);
    const int64_t line = TEAM::line(l.team, blockIdx.x), held = (int64_t)E * team.size;
    const int64_t n = line < l.starts.count ? l.n : 0;
    int64_t at[3] = {0, 0, 0};
    double sum = 0;
    part_of g, y;

    if (n > 0)
        grid_walk_at(l.starts, line, at);
    T *out = (T *)l.starts.data[0] + at[0];
    const T *gs = (const T *)l.starts.data[1] + at[1], *ys = (const T *)l.starts.data[2] + at[2];
    for (int64_t from = 0; from < (HELD ? 1 : n); from += held) {
        g.read(team, gs + from * l.step[1], l.step[1], n - from, 0);
        y.read(team, ys + from * l.step[2], l.step[2], n - from, 0);
#pragma unroll
        for (int e = 0; e < E; e++)
            sum += (double)g.at[e] * y.at[e];
    }
    sum = team.join(sum, [](double a, double b) { return a + b; });
    for (int64_t from = 0; from < (HELD ? 1 : n); from += held) {
        if (!HELD) {
            g.read(team, gs + from * l.step[1], l.step[1], n - from, 0);
            y.read(team, ys + from * l.step[2], l.step[2], n - from, 0);
        }
        part_of::write(team, out + from * l.step[0], l.step[0], n - from,
                       [&](int e) { return of<T>::real(y.at[e] * (g.at[e] - sum)); });
    }
}

/* The result holds one array, the gradient two. */
enum { REGISTERS_softmax = 2 * WHOLE, REGISTERS_softmax_grad = WHOLE };

#define SOFTMAX_OP(name, arrays, ...)                                                                                  \
    template <typename T> static void name(const trama_call *call, const gpu *g)                                       \
    {                                                                                                                  \
        const trama_view *const views[arrays] = {__VA_ARGS__};                                                         \
        const int axis = (int)call->attributes->integer[SOFTMAX_AXIS];                                                 \
        line_walk<arrays> lines;                                                                                       \
        if (line_walk_of(&lines, views, axis))                                                                         \
            LAUNCH_LINES(name##_lines, T, arrays, REGISTERS_##name, lines, is_last(views[0], axis), g);                \
    }                                                                                                                  \
    extern "C" void cuda_##name(const trama_call *call, const gpu *g)                                                  \
    {                                                                                                                  \
        if (!with_float(call->out[0].dtype, [&](auto zero) { name<decltype(zero)>(call, g); }))                        \
            kernel_impossible(call, "softmax is for real numbers");                                                    \
    }
SOFTMAX_OP(softmax, 2, &call->out[0], &call->in[0])
SOFTMAX_OP(softmax_grad, 3, &call->out[0], &call->in[0], &call->in[1])
