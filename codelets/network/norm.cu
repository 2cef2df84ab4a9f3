/* SPDX-License-Identifier: Apache-2.0 */
/* Lines with the mean 0 and the mean square 1, and the gradient, on a GPU. Means are sums in double. */
#include "kernel.h"
#include "line.cuh"
#include "ops.h"

/* The type of the scales of lines: f64 of f64, else f32. */
template <typename T> struct scale_of {
    typedef float type;
};
template <> struct scale_of<double> {
    typedef double type;
};

/* The sum of term(element, its place in the part) over the team's line x [n]. HELD: part has the line already; else it
 * is read part after part. */
template <bool HELD, typename T, int E, int V, typename TEAM, typename F>
static __device__ inline double sum_of(const TEAM &team, held_part<T, E, V> *part, const T *x, int64_t step, int64_t n,
                                       F term)
{
    const int64_t held = (int64_t)E * team.size;
    double sum = 0;
    for (int64_t from = 0; from < (HELD ? 1 : n); from += held) {
        if (!HELD)
            part->read(team, x + from * step, step, n - from, 0);
#pragma unroll
        for (int e = 0; e < E; e++)
            if (part->place(team, e) < n - from)
                sum += term((double)part->at[e]);
    }
    return team.join(sum, [](double a, double b) { return a + b; });
}

/* Arrays: y, x, r. */
template <typename T, int E, int V, bool HELD, typename TEAM>
__global__ void LINE_BOUNDS(T, E) norm_lines(line_walk<3> l, double eps, bool centred)
{
    typedef held_part<T, E, V> part_of;
    const TEAM team(l);
    const int64_t line = TEAM::line(l.team, blockIdx.x), held = (int64_t)E * team.size;
    const int64_t n = line < l.starts.count ? l.n : 0;
    int64_t at[3] = {0, 0, 0};
    part_of part;

    if (n > 0)
        grid_walk_at(l.starts, line, at);
    T *y = (T *)l.starts.data[0] + at[0];
    const T *x = (const T *)l.starts.data[1] + at[1];
    if (HELD)
        part.read(team, x, l.step[1], n, 0);
    double mean = 0;
    if (centred)
        mean = sum_of<HELD>(team, &part, x, l.step[1], n, [](double v) { return v; }) / (double)l.n;
    const double squares =
        sum_of<HELD>(team, &part, x, l.step[1], n, [=](double v) { return (v - mean) * (v - mean); });
    const double r = 1 / sqrt(squares / (double)l.n + eps);
    for (int64_t from = 0; from < (HELD ? 1 : n); from += held) {
        if (!HELD)
            part.read(team, x + from * l.step[1], l.step[1], n - from, 0);
        part_of::write(team, y + from * l.step[0], l.step[0], n - from,
                       [&](int e) { return (typename of<T>::number)(((double)part.at[e] - mean) * r); });
    }
    if (n > 0 && team.rank == 0)
        ((typename scale_of<T>::type *)l.starts.data[2])[at[2]] = (typename scale_of<T>::type)r;
}

/* r (g - mean of g - y mean of g y). Arrays: the result, g, y, r. */
template <typename T, int E, int V, bool HELD, typename TEAM>
__global__ void LINE_BOUNDS(T, E) norm_grad_lines(line_walk<4> l, bool centred)
{
    typedef held_part<T, E, V> part_of;
    const TEAM team(l);
    const int64_t line = TEAM::line(l.team, blockIdx.x), held = (int64_t)E * team.size;
    const int64_t n = line < l.starts.count ? l.n : 0;
    int64_t at[4] = {0, 0, 0, 0};
    double sum = 0, product = 0, r = 0;
    part_of g, y;

    if (n > 0) {
        grid_walk_at(l.starts, line, at);
        r = (double)((const typename scale_of<T>::type *)l.starts.data[3])[at[3]];
    }
    T *out = (T *)l.starts.data[0] + at[0];
    const T *gs = (const T *)l.starts.data[1] + at[1], *ys = (const T *)l.starts.data[2] + at[2];
    for (int64_t from = 0; from < (HELD ? 1 : n); from += held) {
        g.read(team, gs + from * l.step[1], l.step[1], n - from, 0);
        y.read(team, ys + from * l.step[2], l.step[2], n - from, 0);
#pragma unroll
        for (int e = 0; e < E; e++) {
            sum += (double)g.at[e];
            product += (double)g.at[e] * (double)y.at[e];
        }
    }
    sum = team.join(sum, [](double a, double b) { return a + b; });
    product = team.join(product, [](double a, double b) { return a + b; });
    const double mean = centred ? sum / (double)l.n : 0, along = product / (double)l.n;
    for (int64_t from = 0; from < (HELD ? 1 : n); from += held) {
        if (!HELD) {
            g.read(team, gs + from * l.step[1], l.step[1], n - from, 0);
            y.read(team, ys + from * l.step[2], l.step[2], n - from, 0);
        }
        part_of::write(team, out + from * l.step[0], l.step[0], n - from, [&](int e) {
            return (typename of<T>::number)(r * ((double)g.at[e] - mean - (double)y.at[e] * along));
        });
    }
}

/* Where lines have no element, the scales are those of the mean square 0. */
template <typename T> static void norm(const trama_call *call, const gpu *g)
{
    const trama_attributes *a = call->attributes;
    const int axis = (int)a->integer[NORM_AXIS];
    const trama_view *const views[3] = {&call->out[0], &call->in[0], &call->out[1]};
    line_walk<3> lines;
    if (call->out[0].extent[axis] == 0)
        gpu_fill(&call->out[1], 1 / sqrt(a->real[NORM_EPS]), g);
    else if (line_walk_of(&lines, views, axis, 2))
        LAUNCH_LINES(norm_lines, T, 3, WHOLE, lines, is_last(views[0], axis), g, a->real[NORM_EPS],
                     a->integer[NORM_CENTRED] != 0);
}

template <typename T> static void norm_grad(const trama_call *call, const gpu *g)
{
    const trama_attributes *a = call->attributes;
    const int axis = (int)a->integer[NORM_AXIS];
    const trama_view *const views[4] = {&call->out[0], &call->in[0], &call->in[1], &call->in[2]};
    line_walk<4> lines;
    if (line_walk_of(&lines, views, axis, 3))
        LAUNCH_LINES(norm_grad_lines, T, 4, WHOLE, lines, is_last(views[0], axis), g, a->integer[NORM_CENTRED] != 0);
}

#define NORM_OP(name)                                                                                                  \
    extern "C" void cuda_##name(const trama_call *call, const gpu *g)                                                  \
    {                                                                                                                  \
        if (!with_float(call->out[0].dtype, [&](auto zero) { name<decltype(zero)>(call, g); }))                        \
            kernel_impossible(call, "norms are of real numbers");                                                      \
    }
NORM_OP(norm)
NORM_OP(norm_grad)
