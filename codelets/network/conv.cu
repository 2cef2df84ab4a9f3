/* SPDX-License-Identifier: Apache-2.0 */
/* Convolution and its gradients on a GPU: the elements that windows read are columns of a matrix in scratch memory,
 * some positions at a time, so that the sums over channels and places of the kernel are products of cuBLASLt. Sums over
 * positions of halves are kept in f32. */
#include "conv_matrix.cuh"
#include "matrices.cuh"

/* The fewest positions for which what is summed is divided, and those for which groups are computed side by side; the
 * most rows of a matrix, and products of a batch. */
enum { FEWEST_POSITIONS = 64, MANY_POSITIONS = 1024, MOST_ROWS = 4096, MOST_GROUPS = 32768 };

/* ---- Scratch memory -------------------------------------------------------------------------------- */

/* The channels of `to` are sums over channels of `from` and places of the weights. */
struct sums_of {
    conv_array to, from, w;
    bool forward; /* `to` has out channels */
    reach along[CONV_SPACE];
};

/* A call, and its scratch memory: matrices of some groups, or of some rows of one group, and of some of the numbers
 * that are summed. */
struct conv_worker {
    product_worker of;
    trama_dtype dtype, number; /* number: of sums that are made in parts */
    int64_t groups, out, rows, columns, summed;
    int64_t most_groups, most_rows, most_summed, most_positions;
    char *of_weights, *of_columns, *of_channels;
};

static int64_t line_of(int64_t n)
{
    return rounded_up(most(n, 1), 8);
}

static conv_worker worker_of(const trama_call *call, const conv_call &c, const sums_of &s, const gpu *g)
{
    conv_worker w = {
        product_worker_of(call, g), c.dtype, number_type(c.dtype), c.groups, c.out, s.forward ? c.out : c.in,
        s.forward ? c.in : c.out};
    const int64_t size = (int64_t)trama_dtype_size(w.dtype), wide = (int64_t)trama_dtype_size(w.number);
    const int64_t bytes = w.of.bytes - 1024; /* for parts to begin at multiples of 256 */
    w.summed = w.columns * conv_elements(&s.w);
    w.most_summed = least(w.summed, bytes / 4 / (size * FEWEST_POSITIONS) / 8 * 8);
    const int64_t line = line_of(w.most_summed) * wide;
    w.most_rows = least(least(w.rows, MOST_ROWS), bytes / 2 / line);
    w.most_groups = 1;
    if (w.most_rows == w.rows && w.most_summed == w.summed)
        w.most_groups = most(1, least(least(c.groups, MOST_GROUPS),
                                      least(bytes / 2 / (w.rows * line),
                                            bytes / 2 / ((w.summed * size + w.rows * wide) * MANY_POSITIONS))));
    const int64_t taken = w.most_groups * w.most_rows * line;
    w.most_positions = (bytes - taken) / (w.most_groups * (w.most_summed * size + w.most_rows * wide)) / 8 * 8;
    w.of_weights = w.of.room;
    w.of_columns = w.of_weights + rounded_up(taken, 256);
    w.of_channels = w.of_columns + rounded_up(w.most_groups * w.most_summed * w.most_positions * size, 256);
    return w;
}

static scratch_matrix matrix_of(char *data, int64_t rows, int64_t columns)
{
    return {data, rows, line_of(columns), divisor_of(whole(columns))};
}

/* The rows and the numbers that are summed, at a time. */
struct part {
    int64_t group, groups, row, rows, summed, n;
};

/* Calls each(part) for all groups and rows, with all that is summed. */
template <typename F> static void each_rows(const conv_worker &w, F each)
{
    for (int64_t g = 0; g < w.groups; g += w.most_groups)
        for (int64_t row = 0; row < w.rows; row += w.most_rows)
            each(part{g, least(w.groups - g, w.most_groups), row, least(w.rows - row, w.most_rows), 0, w.summed});
}

/* Calls each(part) for parts of what is summed. */
template <typename F> static void each_summed(const conv_worker &w, part p, F each)
{
    for (p.summed = 0; p.summed < w.summed; p.summed += w.most_summed) {
        p.n = least(w.summed - p.summed, w.most_summed);
        each(p);
    }
}

static unsigned blocks_of(const scratch_matrix &m, const gpu *g)
{
    return gpu_blocks(m.rows * m.columns.by, CONV_THREADS, g);
}

/* The weights of a part, as [groups rows, n]. */
static weights weights_of(const conv_worker &w, const sums_of &s, const part &p)
{
    const int64_t row_step = s.w.step[s.forward ? 0 : 1];
    return {matrix_of(w.of_weights, p.groups * p.rows, p.n),
            s.w,
            divisor_of(p.rows),
            p.summed,
            p.group * w.out * s.w.step[0] + p.row * row_step,
            w.out * s.w.step[0],
            row_step,
            s.w.step[s.forward ? 1 : 0],
            space_of(s.w)};
}

/* The elements of `from` that n positions of `to` read, of all groups of the part. */
static scratch_matrix fill_columns(const conv_worker &w, const sums_of &s, const part &p, int64_t position, int64_t n)
{
    columns c = {matrix_of(w.of_columns, p.groups * p.n, n),
                 s.from,
                 p.summed,
                 p.group * w.columns,
                 position,
                 space_of(s.w),
                 space_of(s.to),
                 {s.along[0], s.along[1], s.along[2]}};
    with_float(w.dtype, [&](auto zero) {
        GPU_LAUNCH(read_columns<decltype(zero)>, blocks_of(c.to, &w.of.g), CONV_THREADS, &w.of.g, c);
    });
    return c.to;
}

/* The matrices of each group, which follow each other. */
static matrices of_groups(const scratch_matrix &m, int64_t groups, trama_dtype dtype)
{
    return {(char *)m.data, dtype, m.rows / groups * m.ld, m.ld, 1};
}

/* The channels of `to`. The arrays are not empty. */
static void run_channels(const conv_worker &w, const sums_of &s)
{
    const int64_t positions = s.to.n[0] * conv_elements(&s.to);
    const bool in_parts = w.most_summed < w.summed;
    each_rows(w, [&](const part &rows) {
        for (int64_t position = 0; position < positions; position += w.most_positions) {
            const int64_t n = least(positions - position, w.most_positions);
            const scratch_matrix sums = matrix_of(w.of_channels, rows.groups * rows.rows, n);
            each_summed(w, rows, [&](const part &p) {
                const weights packed = weights_of(w, s, p);
                if (position == 0 || in_parts)
                    with_float(w.dtype, [&](auto zero) {
                        typedef decltype(zero) T;
                        GPU_LAUNCH((move_weights<T, T, true>), blocks_of(packed.matrix, &w.of.g), CONV_THREADS, &w.of.g,
                                   packed);
                    });
                const scratch_matrix read = fill_columns(w, s, p, position, n);
                multiply(&w.of, p.groups, p.rows, n, p.n, 1, of_groups(packed.matrix, p.groups, w.dtype),
                         of_groups(read, p.groups, w.dtype), p.summed > 0,
                         of_groups(sums, p.groups, in_parts ? w.number : w.dtype));
            });
            const channels c = {sums, s.to, rows.group * w.rows + rows.row, position, space_of(s.to)};
            with_float(w.dtype, [&](auto zero) {
                typedef decltype(zero) T;
                if (in_parts)
                    GPU_LAUNCH((move_channels<T, typename of<T>::number, false>), blocks_of(sums, &w.of.g),
                               CONV_THREADS, &w.of.g, c);
                else
                    GPU_LAUNCH((move_channels<T, T, false>), blocks_of(sums, &w.of.g), CONV_THREADS, &w.of.g, c);
            });
        }
    });
}

/* y of x and w. */
static sums_of forward_of(const conv_call &c)
{
    sums_of s = {c.y, c.x, c.w, true};
    for (int d = 0; d < CONV_SPACE; d++)
        s.along[d] = {c.stride[d], c.y.offset[d] * c.stride[d] - c.before[d] - c.x.offset[d], c.dilation[d]};
    return s;
}

extern "C" void cuda_conv(const trama_call *call, const gpu *g)
{
    const conv_call c = conv_call_of(call, 0, 1, 2);
    const sums_of s = forward_of(c);
    if (view_count(&call->out[0]) == 0)
        return;
    if (c.x.n[1] == 0 || conv_elements(&c.x) == 0 || conv_elements(&c.w) == 0)
        gpu_fill(&call->out[0], 0, g);
    else
        run_channels(worker_of(call, c, s, g), s);
}

/* Elements phase, phase + stride, .. of x along dim d are read by those places of the kernel, stride apart, that lead
 * to a whole position of y. */
static void take_phase(const conv_call &c, sums_of *s, int d, int64_t phase)
{
    const int64_t stride = c.stride[d], first = c.x.offset[d] + phase + c.before[d];
    const int64_t size = (int64_t)trama_dtype_size(c.dtype);
    int64_t place = 0, apart = 1;
    while (place < c.w.space[d] && (first - place * c.dilation[d]) % stride)
        place++;
    while (apart < stride && apart * c.dilation[d] % stride)
        apart++;
    s->to.data += phase * c.x.space_step[d] * size;
    s->to.space[d] = (c.x.space[d] - phase + stride - 1) / stride;
    s->to.space_step[d] = c.x.space_step[d] * stride;
    s->w.data += place * c.w.space_step[d] * size;
    s->w.space[d] = (c.w.space[d] - place + apart - 1) / apart;
    s->w.space_step[d] = c.w.space_step[d] * apart;
    s->along[d] = {1, (first - place * c.dilation[d]) / stride - c.y.offset[d], -(apart * c.dilation[d] / stride)};
}

/* Phase i of the elements of x, row-major in the phases of its dims. */
static sums_of phase_of(const conv_call &c, const int64_t (&phases)[CONV_SPACE], int64_t i)
{
    sums_of s = {c.x, c.y, c.w, false};
    for (int d = CONV_SPACE - 1; d >= 0; i /= phases[d--])
        take_phase(c, &s, d, i % phases[d]);
    return s;
}

extern "C" void cuda_conv_transposed(const trama_call *call, const gpu *g)
{
    const conv_call c = conv_call_of(call, 2, 1, 0);
    int64_t count = 1, phases[CONV_SPACE];
    bool all_read = c.y.n[1] > 0 && conv_elements(&c.y) > 0;
    if (view_count(&call->out[0]) == 0)
        return;
    for (int d = 0; d < CONV_SPACE; d++)
        count *= phases[d] = least(c.stride[d], c.x.space[d]);
    for (int64_t i = 0; i < count && all_read; i++) {
        const sums_of s = phase_of(c, phases, i);
        all_read = conv_elements(&s.w) > 0;
    }
    if (!all_read)
        gpu_fill(&call->out[0], 0, g);
    if (c.y.n[1] == 0 || conv_elements(&c.y) == 0)
        return;
    for (int64_t i = 0; i < count; i++) {
        const sums_of s = phase_of(c, phases, i);
        if (conv_elements(&s.w) > 0)
            run_channels(worker_of(call, c, s, g), s);
    }
}

extern "C" void cuda_conv_weights(const trama_call *call, const gpu *g)
{
    const conv_call c = conv_call_of(call, 0, 2, 1);
    const sums_of s = forward_of(c);
    const int64_t positions = c.y.n[0] * conv_elements(&c.y);
    if (view_count(&call->out[0]) == 0)
        return;
    if (positions == 0 || conv_elements(&c.x) == 0) {
        gpu_fill(&call->out[0], 0, g);
        return;
    }
    const conv_worker w = worker_of(call, c, s, g);
    each_rows(w, [&](const part &rows) {
        each_summed(w, rows, [&](const part &p) {
            const weights sums = weights_of(w, s, p);
            for (int64_t position = 0; position < positions; position += w.most_positions) {
                const int64_t n = least(positions - position, w.most_positions);
                const scratch_matrix factors = matrix_of(w.of_channels, p.groups * p.rows, n);
                const scratch_matrix read = fill_columns(w, s, p, position, n);
                const channels from = {factors, c.y, p.group * w.rows + p.row, position, space_of(c.y)};
                with_float(w.dtype, [&](auto zero) {
                    typedef decltype(zero) T;
                    GPU_LAUNCH((move_channels<T, T, true>), blocks_of(factors, &w.of.g), CONV_THREADS, &w.of.g, from);
                });
                multiply(&w.of, p.groups, p.rows, p.n, n, 1, of_groups(factors, p.groups, w.dtype),
                         turned(of_groups(read, p.groups, w.dtype)), position > 0,
                         of_groups(sums.matrix, p.groups, w.number));
            }
            with_float(w.dtype, [&](auto zero) {
                typedef decltype(zero) T;
                GPU_LAUNCH((move_weights<T, typename of<T>::number, false>), blocks_of(sums.matrix, &w.of.g),
                           CONV_THREADS, &w.of.g, sums);
            });
        });
    });
}
