/* SPDX-License-Identifier: Apache-2.0 */
/* Boxes of block-cyclic distributions: against a loop over all elements, and with numbers that cannot be. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "suite.h"
#include "trama.h"

/* The local index of index i of a dim, or -1: element by element, as the definition says. */
static int64_t local_of(int64_t i, int64_t block, int grid, int at, int first)
{
    int64_t local = 0;
    if ((i / block + first) % grid != at)
        return -1;
    for (int64_t k = 0; k < i; k++)
        local += (k / block + first) % grid == at;
    return local;
}

/* The local place of every element by the pieces, and by the loop. */
static void check_against_loop(const trama_block_cyclic *b)
{
    enum { MOST = 64 };
    static unsigned char memory[MOST * MOST * 4];
    int64_t place[MOST][MOST];
    trama_host_box *pieces = NULL;
    int n = -1;
    memset(place, -1, sizeof place);
    ck_assert_msg(!trama_host_boxes_block_cyclic(b, TRAMA_F32, memory, sizeof memory, &n, &pieces), "%s",
                  trama_error());
    for (int p = 0; p < n; p++)
        for (int64_t i = 0; i < pieces[p].extent[0]; i++)
            for (int64_t j = 0; j < pieces[p].extent[1]; j++) {
                int64_t *at = &place[pieces[p].offset[0] + i][pieces[p].offset[1] + j];
                ck_assert_int_eq(*at, -1);
                *at =
                    ((unsigned char *)pieces[p].data - memory) / 4 + i * pieces[p].stride[0] + j * pieces[p].stride[1];
            }
    for (int64_t i = 0; i < b->rows; i++)
        for (int64_t j = 0; j < b->columns; j++) {
            int64_t row = local_of(i, b->row_block, b->grid_rows, b->row, b->first_row);
            int64_t column = local_of(j, b->column_block, b->grid_columns, b->column, b->first_column);
            ck_assert_int_eq(place[i][j], row < 0 || column < 0 ? -1 : row + column * b->ld);
        }
    free(pieces);
}

START_TEST(pieces_are_where_the_definition_says)
{
    for (int rows = 0; rows < 12; rows++)
        for (int block = 1; block < 6; block++)
            for (int grid = 1; grid < 4; grid++)
                for (int at = 0; at < grid; at++)
                    for (int first = 0; first < grid; first++)
                        check_against_loop(&(trama_block_cyclic){.rows = rows,
                                                                 .columns = 7,
                                                                 .row_block = block,
                                                                 .column_block = 2,
                                                                 .first_row = first,
                                                                 .first_column = 1,
                                                                 .ld = 13,
                                                                 .grid_rows = grid,
                                                                 .grid_columns = 2,
                                                                 .row = at,
                                                                 .column = 0});
}
END_TEST

static trama_status pieces_of(trama_block_cyclic b)
{
    int n = -7;
    trama_host_box *pieces = NULL;
    trama_status status = trama_host_boxes_block_cyclic(&b, TRAMA_F64, &b, sizeof b, &n, &pieces);
    ck_assert(status ? n == -7 && !pieces : n >= 0 && pieces != NULL);
    free(pieces);
    return status;
}

/* All of these answer at once: nothing is walked or allocated before the numbers are known to fit. */
START_TEST(numbers_that_cannot_be_are_refused_at_once)
{
    trama_block_cyclic b = {.rows = INT64_MAX,
                            .columns = INT64_MAX,
                            .row_block = 1,
                            .column_block = 1,
                            .ld = 1,
                            .grid_rows = 2,
                            .grid_columns = 2};
    ck_assert_int_eq(pieces_of(b), TRAMA_E_ARGUMENT); /* ld is too small */
    b.ld = INT64_MAX;
    ck_assert_int_eq(pieces_of(b), TRAMA_E_SHAPE); /* bytes */
    b.columns = 1;
    b.ld = b.rows = INT64_C(1) << 57;
    ck_assert_int_eq(pieces_of(b), TRAMA_E_SHAPE); /* 2^56 boxes */
    b.row_block = b.rows;
    ck_assert_int_eq(pieces_of(b), TRAMA_OK);
    b.row_block = INT64_MAX;
    b.grid_rows = INT32_MAX;
    b.row = INT32_MAX - 1;
    ck_assert_int_eq(pieces_of(b), TRAMA_OK);
    b.first_row = INT32_MAX - 1;
    ck_assert_int_eq(pieces_of(b), TRAMA_OK);
    b.columns = 0;
    ck_assert_int_eq(pieces_of(b), TRAMA_OK);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {pieces_are_where_the_definition_says, numbers_that_cannot_be_are_refused_at_once};
    return suite_run("wrap_pieces", NULL, NULL, tests, sizeof tests / sizeof *tests);
}
