/* SPDX-License-Identifier: Apache-2.0 */
/* Boxes of common distributions, for trama_wrap. Pure data. */
#include <string.h>

#include "base.h"
#include "layout.h"
#include "trama_wrap.h"

trama_status trama_piece_of_layout(const trama_mesh *mesh, const trama_layout *layout, trama_dtype dtype,
                                   trama_shape shape, int position, void *data, trama_piece *piece)
{
    bool held = false;
    trama_piece made = {.data = data};
    if (!piece)
        return trama_fail(NOWHERE, TRAMA_E_ARGUMENT, "trama_piece_of_layout: the piece's address is NULL");
    trama_status status = trama_layout_box(mesh, layout, shape, position, made.offset, made.extent, NULL, &held);
    if (!status && !held)
        status = trama_fail(NOWHERE, TRAMA_E_LAYOUT, "trama_piece_of_layout: the mask takes the box of process %d away",
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

/* One dim of the matrix: runs of indices that a process has, and where they begin in its local array. */
typedef struct run {
    int64_t global, local, n;
} run;
typedef ARRAY(run) runs;

static int64_t add_runs(runs *list, int64_t extent, int64_t block, int grid, int at, int first)
{
    int64_t local = 0, number = (at - first + grid) % grid;
    for (int64_t lo = number * block; lo < extent; lo += grid * block) {
        int64_t n = min_i64(block, extent - lo);
        run *last = list->n ? &list->at[list->n - 1] : NULL;
        if (last && last->global + last->n == lo)
            last->n += n;
        else
            *ARRAY_PUSH(list) = (run){lo, local, n};
        local += n;
    }
    return local;
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
    return problem ? trama_fail(NOWHERE, TRAMA_E_ARGUMENT, "trama_pieces_block_cyclic: %s", problem) : TRAMA_OK;
}

trama_status trama_pieces_block_cyclic(const trama_block_cyclic *b, trama_dtype dtype, void *data, size_t bytes, int *n,
                                       trama_piece **pieces)
{
    if (!b || !n || !pieces)
        return trama_fail(NOWHERE, TRAMA_E_ARGUMENT, "trama_pieces_block_cyclic: an argument is NULL");
    trama_status status = check(b);
    if (status)
        return status;
    runs rows = {0}, columns = {0};
    int64_t size = (int64_t)trama_dtype_size(dtype);
    int64_t local = add_runs(&rows, b->rows, b->row_block, b->grid_rows, b->row, b->first_row);
    add_runs(&columns, b->columns, b->column_block, b->grid_columns, b->column, b->first_column);
    if (b->ld < max_i64(1, local))
        status = trama_fail(NOWHERE, TRAMA_E_ARGUMENT,
                            "trama_pieces_block_cyclic: columns stand %lld elements apart, and have %lld",
                            (long long)b->ld, (long long)local);
    trama_piece *made = trama_alloc((size_t)max_i64(1, (int64_t)rows.n * columns.n) * sizeof *made), *piece = made;
    for (int j = 0; j < columns.n; j++)
        for (int i = 0; i < rows.n; i++, piece++) {
            int64_t at = (rows.at[i].local + columns.at[j].local * b->ld) * size;
            *piece = (trama_piece){.data = (char *)data + at,
                                   .bytes = (uint64_t)at < bytes ? bytes - (size_t)at : 0,
                                   .offset = {rows.at[i].global, columns.at[j].global},
                                   .extent = {rows.at[i].n, columns.at[j].n},
                                   .stride = {1, b->ld}};
        }
    if (status) {
        free(made);
    } else {
        *n = rows.n * columns.n;
        *pieces = made;
    }
    ARRAY_FREE(&rows);
    ARRAY_FREE(&columns);
    return status;
}
