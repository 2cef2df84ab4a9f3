/* SPDX-License-Identifier: Apache-2.0 */
/* Cross entropy of logits z [batch, n] and labels [batch], and its gradient, on a GPU. The losses of rows are summed
 * block by block and then over blocks, whose number depends on the shape alone. */
#include "kernel.h"
#include "line.cuh"
#include "view.h"

static const int64_t MOST_BLOCKS = 2048;

struct label_row {
    const void *data;
    trama_dtype dtype;
    int64_t step;
};

static __device__ inline int64_t label_at(const label_row &labels, int64_t i)
{
    const int64_t at = i * labels.step;
    return labels.dtype == TRAMA_I64   ? ((const int64_t *)labels.data)[at]
           : labels.dtype == TRAMA_I32 ? ((const int32_t *)labels.data)[at]
           : labels.dtype == TRAMA_U8  ? ((const uint8_t *)labels.data)[at]
                                       : -1;
}

static __device__ inline double add(double a, double b)
{
    return a + b;
}

/* HELD: a team holds a whole row; else it is read part by part. */
template <bool HELD, typename T, int E, int V>
static __device__ inline exp_sum<T> row_exp_sum(const row_team &team, held_part<T, E, V> *part, const T *z,
                                                int64_t step, int64_t n)
{
    if constexpr (!HELD)
        return long_exp_sum(team, part, z, step, n);
    part->read(team, z, step, n, of<T>::lowest());
    return held_exp_sum(team, part);
}

/* parts[block]: the losses of the block's rows, each of which is log(sum) + top - z[label]. */
template <typename T, int E, int V, bool HELD>
__global__ void LINE_BOUNDS(T, E) cross_entropy_rows(line_walk<1> l, label_row labels, double *parts)
{
    const row_team team(l);
    const int64_t teams = blockDim.x / l.team, rows = l.starts.count;
    held_part<T, E, V> part;
    double loss = 0;

    for (int64_t block = blockIdx.x; block * teams < rows; block += gridDim.x) {
        const int64_t row = row_team::line(l.team, block);
        int64_t at[1] = {0};
        if (row < rows)
            grid_walk_at(l.starts, row, at);
        const T *z = (const T *)l.starts.data[0] + at[0];
        const exp_sum<T> all = row_exp_sum<HELD>(team, &part, z, l.step[0], row < rows ? l.n : 0);
        if (row >= rows || team.rank != 0)
            continue;
        const int64_t label = label_at(labels, row);
        const bool known = label >= 0 && label < l.n;
        loss += known ? log(all.sum) + ((double)all.top - of<T>::load(z[label * l.step[0]])) : NAN;
    }
    loss = team_join(loss, (int)blockDim.x, add);
    if (threadIdx.x == 0)
        parts[blockIdx.x] = loss;
}

template <typename T> __global__ void cross_entropy_total(T *out, const double *parts, int n, double batch)
{
    double loss = 0;
    for (int i = (int)threadIdx.x; i < n; i += FEW_THREADS)
        loss += parts[i];
    loss = team_join(loss, FEW_THREADS, add);
    if (threadIdx.x == 0)
        *out = of<T>::real(loss / batch);
}

/* out = factor exp(z - top), less g at the label */
template <typename T, int E, int V, bool HELD>
__global__ void LINE_BOUNDS(T, E)
    cross_entropy_grad_rows(line_walk<2> l, label_row labels, const T *g_of_loss, double batch)
{
    typedef held_part<T, E, V> part_of;
    typedef typename of<T>::number number;
    const row_team team(l);
    const int64_t row = row_team::line(l.team, blockIdx.x), held = (int64_t)E * team.size;
    const int64_t n = row < l.starts.count ? l.n : 0, label = n > 0 ? label_at(labels, row) : -1;
    const double g = of<T>::load(*g_of_loss) / batch;
    int64_t at[2] = {0, 0};
    part_of part;

    if (n > 0)
        grid_walk_at(l.starts, row, at);
    T *out = (T *)l.starts.data[0] + at[0];
    const T *z = (const T *)l.starts.data[1] + at[1];
    const exp_sum<T> all = row_exp_sum<HELD>(team, &part, z, l.step[1], n);
    const double factor = label >= 0 && label < n ? g / all.sum : NAN;
    const auto factor_of_others = (number)factor;
    for (int64_t from = 0; from < (HELD ? 1 : n); from += held) {
        if (!HELD) {
            part.read(team, z + from * l.step[1], l.step[1], n - from, 0);
#pragma unroll
            for (int e = 0; e < E; e++)
                part.at[e] = exp_of<T>(part.at[e] - all.top);
        }
        part_of::write(team, out + from * l.step[0], l.step[0], n - from, [&](int e) {
            const bool at_label = from + part_of::place(team, e) == label;
            return at_label ? (number)(factor * part.at[e] - g) : factor_of_others * part.at[e];
        });
    }
}

static label_row labels_of(const trama_view *labels)
{
    return {labels->data, labels->dtype, labels->stride[0]};
}

template <typename T> static void cross_entropy(const trama_call *call, const gpu *g)
{
    const trama_view *z = &call->in[0];
    T *out = (T *)call->out[0].data;
    double *parts = (double *)g->workspace;
    line_walk<1> lines;
    unsigned blocks = 0;

    if (line_walk_of(&lines, {z}, 1))
        with_rows<T>(lines, [&](const line_walk<1> &l, auto held, auto pack, auto whole, int threads) {
            const int64_t teams = threads / l.team, wanted = (l.starts.count + teams - 1) / teams;
            blocks = (unsigned)(wanted < MOST_BLOCKS ? wanted : MOST_BLOCKS);
            GPU_LAUNCH((cross_entropy_rows<T, decltype(held)::value, decltype(pack)::value, decltype(whole)::value>),
                       blocks, threads, g, l, labels_of(&call->in[1]), parts);
        });
    GPU_LAUNCH(cross_entropy_total<T>, 1, FEW_THREADS, g, out, parts, (int)blocks, (double)z->global[0]);
}

extern "C" void cuda_cross_entropy(const trama_call *call, const gpu *g)
{
    if (g->workspace_bytes < MOST_BLOCKS * sizeof(double))
        kernel_impossible(call, "the workspace is too small");
    if (!with_float(call->in[0].dtype, [&](auto zero) { cross_entropy<decltype(zero)>(call, g); }))
        kernel_impossible(call, "logits are real numbers");
}

template <typename T> static void cross_entropy_grad(const trama_call *call, const gpu *g)
{
    const double batch = (double)call->in[0].global[0];
    const T *g_of_loss = (const T *)call->in[2].data;
    line_walk<2> lines;

    if (!line_walk_of(&lines, {&call->out[0], &call->in[0]}, 1))
        return;
    with_rows<T>(lines, [&](const line_walk<2> &l, auto held, auto pack, auto whole, int threads) {
        const int64_t teams = threads / l.team, blocks = (l.starts.count + teams - 1) / teams;
        GPU_LAUNCH((cross_entropy_grad_rows<T, decltype(held)::value, decltype(pack)::value, decltype(whole)::value>),
                   (unsigned)blocks, threads, g, l, labels_of(&call->in[1]), g_of_loss, batch);
    });
}

extern "C" void cuda_cross_entropy_grad(const trama_call *call, const gpu *g)
{
    if (!with_float(call->out[0].dtype, [&](auto zero) { cross_entropy_grad<decltype(zero)>(call, g); }))
        kernel_impossible(call, "logits are real numbers");
}
