/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions as products of packed matrices: what the kernels share. */
#ifndef CODELETS_CONV_H
#define CODELETS_CONV_H

#include "block.h"
#include "conv_array.h"
#include "scratch.h"
#include "view.h"

/* The most numbers that are summed in one product, its rows, and its blocks of columns. */
enum { CONV_SUMMED = 192, CONV_ROWS = 128, CONV_BLOCKS = 6 /* of columns */ };

/* distance / step, rounded up */
static inline int64_t conv_steps(int64_t distance, int64_t step)
{
    return step == 1 ? distance : (distance + step - 1) / step;
}

/* The positions [*lo, *hi) of [0, n) whose index first + step i is in [0, extent). */
static inline void conv_inside(int64_t first, int64_t step, int64_t n, int64_t extent, int64_t *lo, int64_t *hi)
{
    *lo = first < 0 ? least(n, conv_steps(-first, step)) : 0;
    *hi = first + step * (n - 1) < extent ? n : first < extent ? conv_steps(extent - first, step) : 0;
    *hi = most(*lo, *hi);
}

/* The places of the kernel along one spatial dim that are used: place at[k] reads index offset[k] + step i of the array
 * for position i. */
typedef struct conv_taps {
    int64_t n, step;
    int64_t *at, *offset; /* [n] */
} conv_taps;

/* Positions of windows: images and spatial dims, where position i of a dim is index first + by i of an array. */
typedef struct conv_grid {
    int64_t images, n[CONV_SPACE], first[CONV_SPACE], by[CONV_SPACE];
} conv_grid;

/* Positions in a row, from i on along the last dim: columns `at` and on. */
typedef struct conv_run {
    int64_t image, i[CONV_SPACE], count, at;
} conv_run;

/* Rows of weights that are packed: row r and column c, a channel, are element row_step r + column_step c of data. */
typedef struct conv_weights {
    char *data;
    int64_t rows, columns, row_step, column_step;
    int64_t place_step[CONV_SPACE];
} conv_weights;

/* Functions of an element type. Packed numbers are f32, of f64 elements f64. */
typedef struct conv_type {
    size_t size; /* of a packed number */
    int columns; /* of a block of them */
    block_add *(*add)(void);
    /* to[p] = the element that places t [CONV_SPACE] of the taps read at position p of the runs; 0 beyond the ends */
    void (*read)(void *to, const conv_array *x, int64_t channel, const conv_taps *taps, const int64_t *t,
                 const conv_run *runs, int64_t n_runs);
    /* to[p ld + c] = the same for channels c, .. c + n */
    void (*read_across)(void *to, int64_t ld, const conv_array *x, int64_t channel, int64_t n, const conv_taps *taps,
                        const int64_t *t, const conv_run *runs, int64_t n_runs);
    /* to[p ld + c] = the element of the grid's position p, for n channels; and of one channel back from from[p] */
    void (*load_across)(void *to, int64_t ld, const conv_array *y, int64_t channel, int64_t n, const conv_grid *grid,
                        const conv_run *runs, int64_t n_runs);
    void (*store)(const void *from, const conv_array *y, int64_t channel, const conv_grid *grid, const conv_run *runs,
                  int64_t n_runs);
    /* Packs weights as [rows / BLOCK_ROWS][columns, places][BLOCK_ROWS], with zeros behind the last row. */
    void (*pack)(void *to, const conv_weights *w, const conv_taps *taps);
    /* Element place[i] of each row of w, from number i of as many rows, `ld` from row to row. */
    void (*unpack)(const void *from, int64_t ld, const conv_weights *w, const int64_t *place, int64_t n);
} conv_type;

/* A call, and the memory that its products share. */
typedef struct conv {
    conv_call call;
    const conv_type *type; /* of its dtype */
    conv_taps taps[CONV_SPACE];
    conv_run *runs; /* [most of both] */
    int64_t *place; /* [most_columns] */
    int64_t most_columns, most_summed;
    void *a, *b, *c; /* packed operands, and sums [CONV_ROWS][most of both] */
    scratch memory;
} conv;

/* Reads the call, in which tensors x, w and y, operands and then results, have these numbers. False: there is no
 * memory, or nothing to do. */
bool conv_start(conv *v, const trama_call *call, int x, int w, int y);
void conv_end(conv *v);

/* Memory for the packed operand a. */
bool conv_take(conv *v, int64_t numbers);

int64_t conv_positions(const conv_grid *grid);
/* The positions [from, from + n) of a grid as v->runs; returns their number. n <= most_columns. */
int64_t conv_runs(const conv *v, const conv_grid *grid, int64_t from, int64_t n);
int64_t conv_places(const conv *v); /* places of the taps, over all dims */

/* A channel, and a place of the taps in each dim: number i in row-major order, and the next one. The channel counts
 * from 0. There is a place. */
typedef struct conv_at {
    int64_t channel, t[CONV_SPACE];
} conv_at;
conv_at conv_from(const conv *v, int64_t i);
void conv_next(const conv *v, conv_at *at);

/* c += a' b for `rows` rows and `columns` columns, rounded up to blocks, of v->b and v->c. Block i of the rows of a
 * begins at a + i a_step. */
void conv_multiply(const conv *v, int64_t rows, int64_t columns, int64_t k, const void *a, int64_t a_step);
void conv_clear(const conv *v, int64_t rows); /* c = 0 */

#endif
