/* SPDX-License-Identifier: Apache-2.0 */
/* The host's arrays as tensors, in regular distributions: rows that are read where they lie, and block-cyclic matrices.
 */
#include "resident.h"
#include "rows.h"

/* ---- Rows ---- */

START_TEST(what_lies_as_it_is_asked_for_is_read_where_it_is)
{
    trama_config config = {.map_by_order = true, .verify = true, .device = TRAMA_CPU};
    start_with(&config);
    rows r = rows_new();
    bool copied = true;
    rows_fill(&r, 0);
    must(trama_wrap(ctx, "x", TRAMA_F64, TRAMA_SHAPE(ROWS, COLUMNS), 1, &r.piece, TRAMA_READ_ONLY, &r.w));
    must(trama_feed_wrapped(r.e, r.x, r.w, &copied));
    demand(!copied, "a copy was made");
    for (int i = 0; i < 4; i++) { /* runs see the host's memory as it is, without being fed again */
        rows_fill(&r, i);
        must(trama_run(r.e, r.t));
        rows_check(&r, i);
    }
    double all[ROWS * COLUMNS] = {7};
    must(trama_feed(r.e, r.x, all, TRAMA_SHAPE(ROWS, COLUMNS)));
    must(trama_run(r.e, r.t));
    double y[ROWS * COLUMNS];
    must(trama_read(r.e, r.y, y, sizeof y));
    demand(y[0] == 14 && y[1] == 0, "fed by copy it is %g, %g", y[0], y[1]);
    must(trama_feed_wrapped(r.e, r.x, r.w, NULL));
    must(trama_run(r.e, r.t));
    rows_check(&r, 3);
    must(trama_release(&r.w));
    expect_here(trama_run(r.e, r.t), TRAMA_E_ORDER, "'x'", "released", "feed it again");
    expect_here(trama_read(r.e, r.x, y, sizeof y), TRAMA_E_ORDER, "'x'", "released");
    must(trama_feed(r.e, r.x, all, TRAMA_SHAPE(ROWS, COLUMNS)));
    must(trama_run(r.e, r.t));
    rows_free(&r);
    stop();
}
END_TEST

START_TEST(wrapping_again_and_again_does_not_grow)
{
    trama_config config = {.map_by_order = true};
    start_with(&config);
    rows r = rows_new();
    rows_fill(&r, 0);
    int64_t before = 0;
    static double memory[2][ROWS * COLUMNS];
    trama_host_box all = {.data = memory[0], .bytes = sizeof memory[0], .extent = {ROWS, COLUMNS}}, other = all;
    trama_wrapped *kept = NULL;
    other.data = memory[1];
    must(trama_wrap(ctx, "kept", TRAMA_F64, TRAMA_SHAPE(ROWS, COLUMNS), my_rank == 0, &other, TRAMA_READ_WRITE, &kept));
    for (int i = 0; i < 120; i++) {
        trama_wrapped *to = NULL;
        must(trama_wrap(ctx, "x", TRAMA_F64, TRAMA_SHAPE(ROWS, COLUMNS), 1, &r.piece, TRAMA_READ_ONLY, &r.w));
        must(trama_wrap(ctx, "to", TRAMA_F64, TRAMA_SHAPE(ROWS, COLUMNS), my_rank == 0, &all, TRAMA_READ_WRITE, &to));
        must(trama_feed_wrapped(r.e, r.x, r.w, NULL));
        must(trama_run(r.e, r.t));
        rows_check(&r, 0);
        must(trama_read_wrapped(r.e, r.y, to));
        must(trama_reshard_wrapped(r.w, kept));
        must(trama_release(&r.w));
        must(trama_release(&to));
        if (i == 60)
            before = memory_now();
    }
    int64_t grown = memory_now() - before;
    demand(suite_is_sanitized() || grown < 1 << 20, "%" PRId64 " bytes after 60 more cycles", grown);
    must(trama_release(&kept));
    rows_free(&r);
    stop();
}
END_TEST

/* ---- Block-cyclic ---- */

typedef struct grid_matrix {
    trama_block_cyclic d;
    int64_t local_rows, local_columns;
    double *data;
    trama_wrapped *w;
} grid_matrix;

/* Indices of one dim that a process has, by the definition; the number of them. */
static int64_t own_indices(int64_t extent, int64_t block, int grid, int at, int first, int64_t *list)
{
    int64_t n = 0;
    for (int64_t i = 0; i < extent; i++)
        if ((i / block + first) % grid == at)
            list[n++] = i;
    return n;
}

enum { M = 23, N = 19 };

static grid_matrix grid_new(int rows_of_grid, int64_t row_block, int64_t column_block, int first)
{
    int64_t list[M + N];
    int columns_of_grid = n_ranks / rows_of_grid;
    grid_matrix g = {.d = {M, N, row_block, column_block, first % rows_of_grid, first % columns_of_grid, 0,
                           rows_of_grid, columns_of_grid, my_rank / columns_of_grid, my_rank % columns_of_grid}};
    g.local_rows = own_indices(M, row_block, rows_of_grid, g.d.row, g.d.first_row, list);
    g.local_columns = own_indices(N, column_block, columns_of_grid, g.d.column, g.d.first_column, list);
    g.d.ld = g.local_rows + 3;
    size_t bytes = (size_t)(g.d.ld * g.local_columns + 1) * sizeof(double);
    g.data = calloc(1, bytes);
    int n = 0;
    trama_host_box *pieces = NULL;
    must(trama_host_boxes_block_cyclic(&g.d, TRAMA_F64, g.data, bytes, &n, &pieces));
    must(trama_wrap(ctx, "matrix", TRAMA_F64, TRAMA_SHAPE(M, N), n, pieces, TRAMA_READ_WRITE, &g.w));
    free(pieces);
    return g;
}

/* set: element (i, j) = 100 i + j; else they are that. */
static void grid_visit(const grid_matrix *g, bool set)
{
    int64_t is[M], js[N];
    own_indices(M, g->d.row_block, g->d.grid_rows, g->d.row, g->d.first_row, is);
    own_indices(N, g->d.column_block, g->d.grid_columns, g->d.column, g->d.first_column, js);
    for (int64_t j = 0; j < g->local_columns; j++)
        for (int64_t i = 0; i < g->local_rows; i++) {
            double *at = &g->data[i + j * g->d.ld], is_number = (double)(100 * is[i] + js[j]);
            if (set)
                *at = is_number;
            demand(*at == is_number, "element %" PRId64 ",%" PRId64 " is %g", is[i], js[j], *at);
        }
}

START_TEST(block_cyclic_matrices_go_to_and_fro)
{
    start();
    int half = n_ranks % 2 ? 1 : 2;
    grid_matrix a = grid_new(1, 2, 3, 0), b = grid_new(half, 5, 4, 1), c = grid_new(n_ranks, 64, 1, 0);
    grid_visit(&a, true);
    must(trama_reshard_wrapped(a.w, b.w));
    must(trama_reshard_wrapped(b.w, c.w)); /* in order with what is under way */
    must(trama_wait_wrapped(c.w));
    grid_visit(&c, false);
    must(trama_wait_wrapped(b.w));
    grid_visit(&b, false);
    grid_matrix *all[] = {&a, &b, &c};
    for (int i = 0; i < 3; i++) {
        must(trama_release(&all[i]->w));
        free(all[i]->data);
    }
    stop();
}
END_TEST

/* ---- Memory ---- */

/* Rows become columns. TRAMA_TEST_LONG: 1 GiB, else 128 MiB. */
START_TEST(resharding_takes_the_staging_buffer_and_no_more)
{
    int64_t n = suite_is_long() ? 11585 : 4096, window = 8 << 20;
    trama_config config = {.staging_bytes = window};
    start_with(&config);
    int64_t lo = n * my_rank / n_ranks, rows_here = n * (my_rank + 1) / n_ranks - lo;
    size_t bytes = (size_t)(n * rows_here) * sizeof(double);
    double *by_rows = malloc(bytes + 1), *by_columns = malloc(bytes + 1);
    trama_host_box from = {.data = by_rows, .bytes = bytes, .offset = {lo, 0}, .extent = {rows_here, n}};
    trama_host_box to = {.data = by_columns, .bytes = bytes, .offset = {0, lo}, .extent = {n, rows_here}};
    for (int64_t i = 0; i < n * rows_here; i++) {
        by_rows[i] = (double)(lo * n + i);
        by_columns[i] = -1; /* so that the pages are there */
    }
    trama_wrapped *a = NULL, *b = NULL;
    must(trama_wrap(ctx, "a", TRAMA_F64, TRAMA_SHAPE(n, n), 1, &from, TRAMA_READ_ONLY, &a));
    must(trama_wrap(ctx, "b", TRAMA_F64, TRAMA_SHAPE(n, n), 1, &to, TRAMA_READ_WRITE, &b));
    demand(resident_forget(), "cannot reset the peak");
    int64_t before = resident_peak();
    must(trama_reshard_wrapped(a, b));
    must(trama_wait_wrapped(b));
    int64_t grown = resident_peak() - before;
    demand(suite_is_sanitized() || grown < window + (4 << 20), "%" PRId64 " bytes beside source, target and window",
           grown - window);
    for (int64_t i = 0; i < n; i += 97)
        for (int64_t j = 0; j < rows_here; j++)
            demand(by_columns[i * rows_here + j] == (double)(i * n + lo + j), "element %" PRId64, i * n + lo + j);
    must(trama_release(&a));
    must(trama_release(&b));
    free(by_rows);
    free(by_columns);
    stop();
}
END_TEST

TESTS(what_lies_as_it_is_asked_for_is_read_where_it_is, wrapping_again_and_again_does_not_grow,
      block_cyclic_matrices_go_to_and_fro, resharding_takes_the_staging_buffer_and_no_more)
