/* SPDX-License-Identifier: Apache-2.0 */
/* Convolution and its gradients. The sums over channels and places of the kernel are products of packed weights and of
 * columns of elements, which are packed a block at a time, so that memory does not grow with the images. */
#include "conv.h"

#include <string.h>

#include "loop.h"
#include "ops.h"

/* ---- y of x and w, and x of y and w ---- */

/* One group: rows of `w`, each the sum over columns and places of w times the elements of `from`, at positions of the
 * grid of `to`. */
typedef struct group {
    conv_array from, to;
    int64_t from_channel, to_channel; /* the first */
    conv_weights w;
    conv_grid grid;
} group;

/* Packs rows k, k + 1, .. of the columns that the positions of the runs read. */
static void pack_columns(const conv *v, const group *g, int64_t k, int64_t rows, int64_t runs)
{
    conv_at at = conv_from(v, k);
    for (int64_t i = 0; i < rows; i++, conv_next(v, &at))
        v->type->read((char *)v->b + (size_t)(i * v->most_columns) * v->type->size, &g->from,
                      g->from_channel + at.channel, v->taps, at.t, v->runs, runs);
}

static void run_rows(conv *v, const group *g, int64_t first)
{
    const int64_t summed = g->w.columns * conv_places(v), positions = conv_positions(&g->grid), rows = g->w.rows;
    v->type->pack(v->a, &g->w, v->taps);
    for (int64_t p = 0; p < positions; p += v->most_columns) {
        const int64_t n = least(v->most_columns, positions - p), runs = conv_runs(v, &g->grid, p, n);
        conv_clear(v, rows);
        for (int64_t k = 0; k < summed; k += v->most_summed) {
            const int64_t part = least(v->most_summed, summed - k);
            pack_columns(v, g, k, part, runs);
            conv_multiply(v, rows, n, part, (char *)v->a + (size_t)(k * BLOCK_ROWS) * v->type->size,
                          summed * BLOCK_ROWS);
        }
        for (int64_t row = 0; row < rows; row++)
            v->type->store((char *)v->c + (size_t)(row * v->most_columns) * v->type->size, &g->to,
                           g->to_channel + first + row, &g->grid, v->runs, runs);
    }
}

/* Memory for the packed weights of as many rows as are taken at a time. */
static bool take_weights(conv *v, bool out)
{
    const int64_t rows = out ? v->call.out : v->call.in, columns = out ? v->call.in : v->call.out;
    return conv_take(v, rounded_up(least(CONV_ROWS, rows), BLOCK_ROWS) * columns * conv_elements(&v->call.w));
}

/* All groups, for the taps and the grid that are set; out: rows of the product are out channels. */
static void run_groups(conv *v, conv_grid grid, bool out)
{
    const int64_t rows = out ? v->call.out : v->call.in, columns = out ? v->call.in : v->call.out;
    for (int64_t i = 0; i < v->call.groups; i++)
        for (int64_t first = 0; first < rows; first += CONV_ROWS) {
            group g = {.from = out ? v->call.x : v->call.y,
                       .to = out ? v->call.y : v->call.x,
                       .from_channel = i * columns,
                       .to_channel = i * rows,
                       .grid = grid};
            const int64_t at = i * v->call.out * v->call.w.step[0] + first * v->call.w.step[out ? 0 : 1];
            g.w = (conv_weights){.data = v->call.w.data + at * (int64_t)trama_dtype_size(v->call.dtype),
                                 .rows = least(CONV_ROWS, rows - first),
                                 .columns = columns,
                                 .row_step = v->call.w.step[out ? 0 : 1],
                                 .column_step = v->call.w.step[out ? 1 : 0]};
            for (int d = 0; d < CONV_SPACE; d++)
                g.w.place_step[d] = v->call.w.space_step[d];
            run_rows(v, &g, first);
        }
}

/* All places of the kernel, as positions of y read x. */
static void tap_all(conv *v)
{
    for (int d = 0; d < CONV_SPACE; d++) {
        conv_taps *taps = &v->taps[d];
        taps->n = v->call.w.space[d];
        taps->step = v->call.stride[d];
        for (int64_t k = 0; k < taps->n; k++) {
            taps->at[k] = k;
            taps->offset[k] = v->call.y.offset[d] * v->call.stride[d] - v->call.before[d] + k * v->call.dilation[d] -
                              v->call.x.offset[d];
        }
    }
}

static conv_grid grid_of(const conv_array *y)
{
    conv_grid grid = {.images = y->n[0]};
    for (int d = 0; d < CONV_SPACE; d++) {
        grid.n[d] = y->space[d];
        grid.by[d] = 1;
    }
    return grid;
}

void cpu_conv(const trama_call *call)
{
    conv v;
    if (conv_start(&v, call, 0, 1, 2) && take_weights(&v, true)) {
        tap_all(&v);
        run_groups(&v, grid_of(&v.call.y), true);
    }
    conv_end(&v);
}

/* Elements phase, phase + stride, .. of x along dim d are read by those places of the kernel, stride apart, that lead
 * to a whole position of y. */
static void tap_phase(conv *v, int d, int64_t phase, conv_grid *grid)
{
    conv_taps *taps = &v->taps[d];
    grid->n[d] = (v->call.x.space[d] - phase + v->call.stride[d] - 1) / v->call.stride[d];
    grid->first[d] = phase;
    grid->by[d] = v->call.stride[d];
    taps->n = 0;
    taps->step = 1;
    for (int64_t k = 0; k < v->call.w.space[d]; k++) {
        const int64_t at = v->call.x.offset[d] + phase + v->call.before[d] - k * v->call.dilation[d];
        if (at % v->call.stride[d])
            continue;
        taps->at[taps->n] = k;
        taps->offset[taps->n++] = at / v->call.stride[d] - v->call.y.offset[d];
    }
}

void cpu_conv_transposed(const trama_call *call)
{
    conv v;
    int64_t phases[CONV_SPACE], phase[CONV_SPACE];
    if (conv_start(&v, call, 2, 1, 0) && take_weights(&v, false)) {
        conv_grid grid = {.images = v.call.x.n[0]};
        for (int d = 0; d < CONV_SPACE; d++)
            phases[d] = least(v.call.stride[d], v.call.x.space[d]);
        for (phase[0] = 0; phase[0] < phases[0]; phase[0]++)
            for (phase[1] = 0; phase[1] < phases[1]; phase[1]++)
                for (phase[2] = 0; phase[2] < phases[2]; phase[2]++) {
                    for (int d = 0; d < CONV_SPACE; d++)
                        tap_phase(&v, d, phase[d], &grid);
                    run_groups(&v, grid, false);
                }
    }
    conv_end(&v);
}

/* ---- w of x and y ---- */

/* Columns [from, from + n) of places and, for each, of channels, whose first is `in`; part by part of one place. */
typedef void column_part(conv *v, int64_t column, int64_t channel, const int64_t *t, int64_t n, const void *with);

static void each_column_part(conv *v, int64_t from, int64_t n, column_part *part, const void *with)
{
    for (int64_t i = 0, m; i < n; i += m) {
        const int64_t channel = (from + i) % v->call.in;
        const conv_at at = conv_from(v, (from + i) / v->call.in);
        m = least(v->call.in - channel, n - i);
        part(v, i, channel, at.t, m, with);
    }
}

/* The positions of x that a product takes. */
typedef struct positions {
    int64_t in; /* the first channel */
    int64_t runs;
} positions;

static void pack_part(conv *v, int64_t column, int64_t channel, const int64_t *t, int64_t n, const void *with)
{
    const positions *p = with;
    v->type->read_across((char *)v->b + (size_t)column * v->type->size, v->most_columns, &v->call.x, p->in + channel, n,
                         v->taps, t, v->runs, p->runs);
}

static void place_part(conv *v, int64_t column, int64_t channel, const int64_t *t, int64_t n, const void *with)
{
    const conv_weights *w = with;
    for (int64_t i = 0; i < n; i++) {
        v->place[column + i] = (channel + i) * w->column_step;
        for (int d = 0; d < CONV_SPACE; d++)
            v->place[column + i] += t[d] * v->call.w.space_step[d];
    }
}

/* Columns [from, from + n) of one group; rows are its out channels, whose first is `out`. */
static void sum_columns(conv *v, const conv_weights *w, int64_t out, int64_t in, int64_t from, int64_t n)
{
    const conv_grid grid = grid_of(&v->call.y);
    const int64_t all = conv_positions(&grid), block = v->most_summed * BLOCK_ROWS;
    conv_clear(v, w->rows);
    for (int64_t p = 0; p < all; p += v->most_summed) {
        const int64_t part = least(v->most_summed, all - p);
        const positions at = {in, conv_runs(v, &grid, p, part)};
        for (int64_t row = 0; row < w->rows; row += BLOCK_ROWS)
            v->type->load_across((char *)v->a + (size_t)(row / BLOCK_ROWS * block) * v->type->size, BLOCK_ROWS,
                                 &v->call.y, out + row, least(BLOCK_ROWS, w->rows - row), &grid, v->runs, at.runs);
        each_column_part(v, from, n, pack_part, &at);
        conv_multiply(v, w->rows, n, part, v->a, block);
    }
    each_column_part(v, from, n, place_part, w);
    v->type->unpack(v->c, v->most_columns, w, v->place, n);
}

void cpu_conv_weights(const trama_call *call)
{
    conv v;
    if (conv_start(&v, call, 0, 2, 1) && conv_take(&v, CONV_ROWS * v.most_summed)) {
        tap_all(&v);
        const int64_t columns = v.call.in * conv_places(&v);
        memset(v.a, 0, (size_t)(CONV_ROWS * v.most_summed) * v.type->size);
        for (int64_t g = 0; g < v.call.groups; g++)
            for (int64_t row = 0; row < v.call.out; row += CONV_ROWS) {
                const int64_t out = g * v.call.out + row;
                const conv_weights w = {.data = v.call.w.data +
                                                out * v.call.w.step[0] * (int64_t)trama_dtype_size(v.call.dtype),
                                        .rows = least(CONV_ROWS, v.call.out - row),
                                        .columns = v.call.in,
                                        .row_step = v.call.w.step[0],
                                        .column_step = v.call.w.step[1]};
                for (int64_t from = 0; from < columns; from += v.most_columns)
                    sum_columns(&v, &w, out, g * v.call.in, from, least(v.most_columns, columns - from));
            }
    }
    conv_end(&v);
}
