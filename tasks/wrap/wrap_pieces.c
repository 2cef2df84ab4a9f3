/* SPDX-License-Identifier: Apache-2.0 */
/* Boxes of common distributions, for trama_wrap. Pure data. */
#include <limits.h>
#include <string.h>

#include "base.h"
#include "layout.h"
#include "trama_wrap.h"

trama_status trama_host_box_of_layout(const trama_mesh *mesh, const trama_layout *layout, trama_dtype dtype,
                                      trama_shape shape, int position, void *data, trama_host_box *piece)
{
    bool held = false;
    trama_host_box made = {.data = data};
    if (!piece)
        return trama_fail(NOWHERE, TRAMA_E_ARGUMENT, "trama_host_box_of_layout: the piece's address is NULL");
    if ((unsigned)dtype >= TRAMA_N_DTYPES)
        return trama_fail(NOWHERE, TRAMA_E_DTYPE, "trama_host_box_of_layout: %d is no element type", (int)dtype);
    trama_status status = trama_layout_box(mesh, layout, shape, position, made.offset, made.extent, NULL, &held);
    if (!status && !held)
        status =
            trama_fail(NOWHERE, TRAMA_E_LAYOUT, "trama_host_box_of_layout: the mask takes the box of process %d away",
                       trama_mesh_id(mesh, position));
    if (status)
        return status;
    made.bytes = trama_dtype_size(dtype);
    for (int d = 0; d < shape.ndim; d++)
        made.bytes *= (size_t)made.extent[d];
    *piece = made;
    return TRAMA_OK;
}

/* ---- Block-cyclic ---- */

/* One dim of the matrix: a process has blocks first, first + every, ...: `blocks` of them. */
typedef struct dealt {
    int64_t extent, block, first, blocks, every;
} dealt;

static dealt deal(int64_t extent, int64_t block, int grid, int at, int first)
{
    dealt d = {.extent = extent, .block = block, .first = ((int64_t)at - first + grid) % grid, .every = grid};
    int64_t all = extent / block + (extent % block != 0);
    d.blocks = d.first < all ? (all - 1 - d.first) / grid + 1 : 0;
    return d;
}

/* Elements in all blocks of the process; only the last block of the matrix may be shorter. */
static int64_t local_extent(const dealt *d)
{
    if (!d->blocks)
        return 0;
    int64_t last = (d->first + (d->blocks - 1) * d->every) * d->block;
    return (d->blocks - 1) * d->block + min_i64(d->block, d->extent - last);
}

/* Number of runs of consecutive indices: with one process in the dim its blocks are one run. */
static int64_t runs(const dealt *d)
{
    return d->every == 1 ? d->blocks > 0 : d->blocks;
}

/* A run: its first index in the matrix and in the local array, and its length. */
typedef struct run {
    int64_t global, local, n;
} run;

static run run_of(const dealt *d, int64_t i)
{
    int64_t lo = (d->first + i * d->every) * d->block;
    return (run){lo, i * d->block, d->every == 1 ? d->extent : min_i64(d->block, d->extent - lo)};
}

static trama_status check(const trama_block_cyclic *b)
{
    const char *problem = NULL;
    if (b->rows < 0 || b->columns < 0)
        problem = "the matrix has a negative extent";
    else if (b->row_block < 1 || b->column_block < 1)
        problem = "blocks have at least 1 row and 1 column";
    else if (b->grid_rows < 1 || b->grid_columns < 1)
        problem = "the grid has at least 1 row and 1 column of processes";
    else if (b->row < 0 || b->row >= b->grid_rows || b->column < 0 || b->column >= b->grid_columns)
        problem = "the process is outside the grid";
    else if (b->first_row < 0 || b->first_row >= b->grid_rows || b->first_column < 0 ||
             b->first_column >= b->grid_columns)
        problem = "the process of the first block is outside the grid";
    return problem ? trama_fail(NOWHERE, TRAMA_E_ARGUMENT, "trama_host_boxes_block_cyclic: %s", problem) : TRAMA_OK;
}

/* Checks the leading dimension, and that the bytes of the local array and the number of boxes fit their types. */
static trama_status check_local(const trama_block_cyclic *b, trama_dtype dtype, const dealt *rows, const dealt *columns)
{
    int64_t local = local_extent(rows), bytes = (int64_t)trama_dtype_size(dtype), boxes = runs(rows);
    if ((unsigned)dtype >= TRAMA_N_DTYPES)
        return trama_fail(NOWHERE, TRAMA_E_DTYPE, "trama_host_boxes_block_cyclic: %d is no element type", (int)dtype);
    if (b->ld < max_i64(1, local))
        return trama_fail(NOWHERE, TRAMA_E_ARGUMENT,
                          "trama_host_boxes_block_cyclic: ld is %lld, but columns have %lld elements", (long long)b->ld,
                          (long long)local);
    if (!count_times(&bytes, b->ld, MOST_BYTES) || !count_times(&bytes, max_i64(1, local_extent(columns)), MOST_BYTES))
        return trama_fail(NOWHERE, TRAMA_E_SHAPE,
                          "trama_host_boxes_block_cyclic: %lld columns at ld %lld have more than 2^60 bytes",
                          (long long)local_extent(columns), (long long)b->ld);
    if (!count_times(&boxes, runs(columns), INT_MAX))
        return trama_fail(NOWHERE, TRAMA_E_SHAPE,
                          "trama_host_boxes_block_cyclic: %lld x %lld boxes are more than 2^31-1; take larger blocks",
                          (long long)runs(rows), (long long)runs(columns));
    return TRAMA_OK;
}

trama_status trama_host_boxes_block_cyclic(const trama_block_cyclic *b, trama_dtype dtype, void *data, size_t bytes,
                                           int *n, trama_host_box **pieces)
{
    if (!b || !n || !pieces)
        return trama_fail(NOWHERE, TRAMA_E_ARGUMENT, "trama_host_boxes_block_cyclic: the %s is NULL",
                          !b   ? "descriptor"
                          : !n ? "number's address"
                               : "pieces' address");
    trama_status status = check(b);
    if (status)
        return status;
    const dealt rows = deal(b->rows, b->row_block, b->grid_rows, b->row, b->first_row);
    const dealt columns = deal(b->columns, b->column_block, b->grid_columns, b->column, b->first_column);
    status = check_local(b, dtype, &rows, &columns);
    if (status)
        return status;
    int64_t size = (int64_t)trama_dtype_size(dtype), many = runs(&rows) * runs(&columns);
    trama_host_box *made = trama_try_alloc((size_t)many * sizeof *made), *piece = made;
    if (!made)
        return trama_fail(NOWHERE, TRAMA_E_MEMORY, "trama_host_boxes_block_cyclic: no memory for %lld boxes",
                          (long long)many);
    for (int64_t j = 0; j < runs(&columns); j++)
        for (int64_t i = 0; i < runs(&rows); i++, piece++) {
            run of_rows = run_of(&rows, i), of_columns = run_of(&columns, j);
            int64_t at = (of_rows.local + of_columns.local * b->ld) * size;
            *piece = (trama_host_box){.data = data ? (char *)data + at : NULL,
                                      .bytes = (uint64_t)at < bytes ? bytes - (size_t)at : 0,
                                      .offset = {of_rows.global, of_columns.global},
                                      .extent = {of_rows.n, of_columns.n},
                                      .stride = {1, b->ld}};
        }
    *n = (int)many;
    *pieces = made;
    return TRAMA_OK;
}
