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
        part_of::write(team, y, l.step[0], n, [&](int e) { return part.at[e] * factor; });
    } else {
        const exp_sum<T> all = long_exp_sum(team, &part, x, l.step[1], n);
        const auto factor = (typename of<T>::number)(1 / all.sum);
        for (int64_t from = 0; from < n; from += held) {
            part.read(team, x + from * l.step[1], l.step[1], n - from, 0);
            part_of::write(team, y + from * l.step[0], l.step[0], n - from,
                           [&](int e) { return exp_of<T>(part.at[e] - all.top) * factor; });
        }
    }
}

/* Rows of halves that are long, but that a team can hold as they are, so that more of them are on their way at a time.
 * Exponentials are computed twice. */
enum { PACKED = 64 };
template <typename T> static bool takes_packed(int64_t n)
{
    return is_half<T> && n > 32 * held_of<T>(2 * WHOLE) && n <= MOST_THREADS * PACKED;
}

template <typename T, int V, int THREADS>
__global__ void __launch_bounds__(THREADS, THREADS > FEW_THREADS ? 1 : 3) softmax_packed_rows(line_walk<2> l)
{
    enum { EACH = 8 };
    const row_team team(l);
    const int64_t row = row_team::line(l.team, blockIdx.x), n = row < l.starts.count ? l.n : 0;
    int64_t at[2] = {0, 0};
    packed_part<T, PACKED, V> part;
    float top = of<T>::lowest(), x[EACH];
    double sum = 0;

    if (n > 0)
        grid_walk_at(l.starts, row, at);
    part.read(team, (const T *)l.starts.data[1] + at[1], l.step[1], n, of<T>::real(of<T>::lowest()));
#pragma unroll
    for (int p = 0; p < PACKED; p += EACH) {
        part.numbers(x, p);
#pragma unroll
        for (int e = 0; e < EACH; e++)
            top = top_of(top, x[e]);
    }
    top = team.join(top, [](float a, float b) { return top_of(a, b); });
#pragma unroll
    for (int p = 0; p < PACKED; p += EACH) {
        part.numbers(x, p);
#pragma unroll
        for (int e = 0; e < EACH; e++)
            x[e] = exp_of<T>(x[e] - top);
        sum += sum_of(x);
    }
    sum = team.join(sum, [](double a, double b) { return a + b; });
    const float factor = (float)(1 / sum);
    part.write_packs(team, (T *)l.starts.data[0] + at[0], l.step[0], n, [&](int p, float(&y)[V]) {
        part.numbers(y, p);
#pragma unroll
        for (int v = 0; v < V; v++)
            y[v] = exp_of<T>(y[v] - top) * factor;
    });
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
        sum += product_sum_of(g.at, y.at);
    }
    sum = team.join(sum, [](double a, double b) { return a + b; });
    const auto subtracted = (typename of<T>::number)sum;
    for (int64_t from = 0; from < (HELD ? 1 : n); from += held) {
        if (!HELD) {
            g.read(team, gs + from * l.step[1], l.step[1], n - from, 0);
            y.read(team, ys + from * l.step[2], l.step[2], n - from, 0);
        }
        part_of::write(team, out + from * l.step[0], l.step[0], n - from,
                       [&](int e) { return y.at[e] * (g.at[e] - subtracted); });
    }
}

/* False, without a launch, where rows are not held so. */
template <typename T> static bool softmax_packed(const line_walk<2> &lines, bool last, const gpu *g)
{
    if constexpr (is_half<T>) {
        if (!last || !takes_packed<T>(lines.n))
            return false;
        with_rows_of<T, PACKED, true>(lines, [&](const line_walk<2> &l, auto, auto pack, auto, int threads) {
            const int64_t teams = threads / l.team, blocks = (l.starts.count + teams - 1) / teams;
            if (threads > FEW_THREADS)
                GPU_LAUNCH((softmax_packed_rows<T, decltype(pack)::value, MOST_THREADS>), (unsigned)blocks, threads, g,
                           l);
            else
                GPU_LAUNCH((softmax_packed_rows<T, decltype(pack)::value, FEW_THREADS>), (unsigned)blocks, threads, g,
                           l);
        });
        return true;
    }
    return false;
}
template <typename T> static bool softmax_grad_packed(const line_walk<3> &, bool, const gpu *)
{
    return false;
}

/* The result holds one array, the gradient two. */
enum { REGISTERS_softmax = 2 * WHOLE, REGISTERS_softmax_grad = WHOLE };

#define SOFTMAX_OP(name, arrays, ...)                                                                                  \
    template <typename T> static void name(const trama_call *call, const gpu *g)                                       \
    {                                                                                                                  \
        const trama_view *const views[arrays] = {__VA_ARGS__};                                                         \
        const int axis = (int)call->attributes->integer[SOFTMAX_AXIS];                                                 \
        line_walk<arrays> lines;                                                                                       \
        if (line_walk_of(&lines, views, axis) && !name##_packed<T>(lines, is_last(views[0], axis), g))                 \
            LAUNCH_LINES(name##_lines, T, arrays, REGISTERS_##name, lines, is_last(views[0], axis), g);                \
    }                                                                                                                  \
    extern "C" void cuda_##name(const trama_call *call, const gpu *g)                                                  \
    {                                                                                                                  \
        if (!with_float(call->out[0].dtype, [&](auto zero) { name<decltype(zero)>(call, g); }))                        \
            kernel_impossible(call, "softmax is for real numbers");                                                    \
    }
SOFTMAX_OP(softmax, 2, &call->out[0], &call->in[0])
SOFTMAX_OP(softmax_grad, 3, &call->out[0], &call->in[0], &call->in[1])
