/* SPDX-License-Identifier: Apache-2.0 */
/* Feeders: rows in order and shuffled, short batches, boxes, file formats, and errors. */
#define _GNU_SOURCE /* nftw */
#include "feeder_files.h"

/* ---- Rows ---- */

/* Takes a batch; *n rows, the numbers of which go to row[]. x and y tell the same. */
static void take(rows_job *j, int64_t *n, int *row)
{
    float x[ROWS * COLUMNS];
    int64_t y[ROWS];
    must(trama_feeder_next(j->data, n));
    must(trama_run(j->e, j->t));
    must(trama_read(j->e, j->x_seen, x, (size_t)*n * COLUMNS * sizeof *x));
    must(trama_read(j->e, j->y_seen, y, (size_t)*n * sizeof *y));
    for (int64_t i = 0; i < *n; i++) {
        row[i] = (int)y[i] - 1000;
        for (int k = 0; k < COLUMNS; k++)
            demand(x[i * COLUMNS + k] == x_at(row[i], k), "row %d, column %d is %g", row[i], k, x[i * COLUMNS + k]);
    }
}

static const char *const meshes[][2] = {
    {"1", "R"}, {"2", "S(0)"}, {"4", "S(0)"}, {"2,2", "S(0),R"}, {"2,2", "S(0),S(1)"}};
enum { N_MESHES = sizeof meshes / sizeof *meshes };

START_TEST(rows_come_in_the_order_of_the_file)
{
    start();
    folder_new();
    write_rows(ROWS);
    for (int m = 0; m < N_MESHES; m++)
        for (int drop = 0; drop < 2; drop++) {
            rows_job j =
                rows_job_new(meshes[m][0], meshes[m][1], &(trama_feeder_options){.batch = 5, .drop_last = drop});
            demand(trama_feeder_rows(j.data) == ROWS, "rows");
            int row[ROWS], wanted = 0, epoch = 0;
            for (int batch = 0; batch < 13; batch++) {
                int64_t n, left = ROWS - wanted;
                demand(trama_feeder_row(j.data) == wanted && trama_feeder_epoch(j.data) == epoch, "%d: the place",
                       batch);
                take(&j, &n, row);
                demand(n == (left < 5 ? left : 5), "batch %d has %d rows", batch, (int)n);
                for (int i = 0; i < n; i++)
                    demand(row[i] == wanted++, "row %d", row[i]);
                if (ROWS - wanted < (drop ? 5 : 1)) {
                    wanted = 0;
                    epoch++;
                }
            }
            rows_job_free(&j);
        }
    folder_remove();
    stop();
}
END_TEST

START_TEST(shuffled_rows_come_once_an_epoch_and_alike_on_all_meshes)
{
    static int first[3][ROWS];
    start();
    folder_new();
    write_rows(ROWS);
    for (int m = 0; m < N_MESHES; m++) {
        rows_job j =
            rows_job_new(meshes[m][0], meshes[m][1],
                         &(trama_feeder_options){.batch = 4 + m, .shuffle = true, .seed = 3, .prefetch = 1 + m});
        for (int epoch = 0; epoch < 3; epoch++) {
            int row[ROWS], seen[ROWS] = {0};
            int64_t n;
            for (int at = 0; at < ROWS; at += (int)n) {
                take(&j, &n, row + at);
                demand(at + n <= ROWS, "the epoch is too long");
            }
            for (int i = 0; i < ROWS; i++)
                demand(!seen[row[i]]++, "row %d comes twice", row[i]);
            if (!m)
                memcpy(first[epoch], row, sizeof row);
            demand(!memcmp(first[epoch], row, sizeof row), "mesh %s has another order", meshes[m][0]);
        }
        rows_job_free(&j);
    }
    demand(memcmp(first[0], first[1], sizeof first[0]) && memcmp(first[1], first[2], sizeof first[0]), "equal epochs");
    folder_remove();
    stop();
}
END_TEST

START_TEST(there_may_be_fewer_rows_than_processes)
{
    start();
    folder_new();
    for (int rows = 1; rows < 4; rows++) {
        write_rows(rows);
        rows_job j = rows_job_new("5", "S(0)", &(trama_feeder_options){.batch = 9, .shuffle = true});
        for (int epoch = 0; epoch < 3; epoch++) {
            int64_t n;
            int row[ROWS];
            take(&j, &n, row);
            demand(n == rows && trama_feeder_epoch(j.data) == epoch + 1, "%d rows", (int)n);
        }
        rows_job_free(&j);
    }
    folder_remove();
    stop();
}
END_TEST

START_TEST(a_place_is_sought)
{
    start();
    folder_new();
    write_rows(ROWS);
    rows_job j = rows_job_new("2", "S(0)", &(trama_feeder_options){.batch = 5, .shuffle = true, .seed = 8});
    int row[6][ROWS], again[ROWS];
    int64_t n;
    for (int i = 0; i < 6; i++)
        take(&j, &n, row[i]);
    must(trama_feeder_seek(j.data, 0, 10));
    take(&j, &n, again);
    demand(n == 5 && !memcmp(again, row[2], 5 * sizeof *again), "batch 2");
    must(trama_feeder_seek(j.data, 1, 0));
    take(&j, &n, again);
    demand(!memcmp(again, row[5], 5 * sizeof *again), "epoch 1");
    expect_here(trama_feeder_seek(j.data, 0, ROWS), TRAMA_E_ARGUMENT, "trama_feeder_seek", "23 rows");
    expect_here(trama_feeder_seek(j.data, -1, 0), TRAMA_E_ARGUMENT, "epoch -1");
    rows_job_free(&j);
    folder_remove();
    stop();
}
END_TEST

/* ---- Checkpoints ---- */

enum { BATCHES = 14 };

static void run_batches(rows_job *j, int n)
{
    for (int i = 0; i < n; i++) {
        must(trama_feeder_next(j->data, NULL));
        must(trama_run(j->e, j->t));
    }
}

/* A run that ends after so many batches and goes on in another context, against one without an end. */
static void go_on_after(int batches, int from, int to, bool asynchronous, const float *wanted)
{
    const trama_feeder_options o = {.batch = 5, .shuffle = true, .seed = 4};
    float w[COLUMNS];
    start();
    folder_new();
    write_rows(ROWS);
    rows_job j = rows_job_new(meshes[from][0], meshes[from][1], &o);
    run_batches(&j, batches);
    must(trama_save(j.e, in_folder("saved"), &(trama_save_options){.step = batches, .asynchronous = asynchronous}));
    run_batches(&j, 2); /* are lost */
    rows_job_free(&j);
    stop();
    start();
    j = rows_job_new(meshes[to][0], meshes[to][1], &o);
    run_batches(&j, 3);
    must(trama_load(j.e, in_folder("saved"), NULL, NULL));
    demand(trama_feeder_epoch(j.data) == batches / 5 && trama_feeder_row(j.data) == batches % 5 * 5, "the place");
    run_batches(&j, BATCHES - batches);
    must(trama_read(j.e, j.w, w, sizeof w));
    for (int i = 0; i < COLUMNS; i++)
        demand(from == to ? w[i] == wanted[i] : fabsf(w[i] - wanted[i]) < 1e-4f * fabsf(wanted[i]),
               "%d batches, %s to %s: %.9g instead of %.9g", batches, meshes[from][0], meshes[to][0], (double)w[i],
               (double)wanted[i]);
    rows_job_free(&j);
    folder_remove();
    stop();
}

START_TEST(a_run_that_goes_on_takes_the_rows_of_one_without_an_end)
{
    for (int m = 0; m < N_MESHES; m++) {
        float wanted[COLUMNS];
        start();
        folder_new();
        write_rows(ROWS);
        rows_job j = rows_job_new(meshes[m][0], meshes[m][1],
                                  &(trama_feeder_options){.batch = 5, .shuffle = true, .seed = 4, .prefetch = 3});
        run_batches(&j, BATCHES);
        must(trama_read(j.e, j.w, wanted, sizeof wanted));
        rows_job_free(&j);
        folder_remove();
        stop();
        for (int batches = 0; batches < BATCHES; batches += 3)
            go_on_after(batches, m, m, batches % 2, wanted);
        go_on_after(7, m, (m + 1) % N_MESHES, true, wanted);
    }
}
END_TEST

START_TEST(a_checkpoint_of_other_data_is_refused)
{
    trama_feeder_options o = {.batch = 5, .shuffle = true, .seed = 4};
    float w[COLUMNS];
    start();
    folder_new();
    write_rows(ROWS);
    rows_job j = rows_job_new("2", "S(0)", &o);
    run_batches(&j, 2);
    must(trama_save(j.e, in_folder("saved"), NULL));
    rows_job_free(&j);
    o.seed = 5;
    j = rows_job_new("2", "S(0)", &o);
    expect_here(trama_load(j.e, in_folder("saved"), NULL, NULL), TRAMA_E_ARGUMENT, "feeder d", "seed 4");
    rows_job_free(&j);
    write_rows(ROWS - 1);
    o.seed = 4;
    j = rows_job_new("2", "S(0)", &o);
    expect_here(trama_load(j.e, in_folder("saved"), NULL, NULL), TRAMA_E_ARGUMENT, "feeder d", "23 rows", "22 now");
    must(trama_read(j.e, j.w, w, sizeof w));
    demand(w[0] == 0 && !trama_feeder_row(j.data), "a refused checkpoint changes something");
    run_batches(&j, 1);
    rows_job_free(&j);
    folder_remove();
    stop();
}
END_TEST

/* ---- Formats ---- */

static void start_with_formats(void)
{
    start();
    folder_new();
    write_rows(ROWS);
    if (my_rank == 0)
        write_other_formats();
    barrier();
}

/* Another file for x gives the same rows. */
static void expect_rows_of(const char *name, const trama_feeder_column *o)
{
    rows_job j = rows_job_without("2", "S(0)", &(trama_feeder_options){.batch = 5, .shuffle = true});
    must(trama_feeder_add(j.data, j.x, in_folder(name), o));
    must(trama_feeder_add(j.data, j.y, in_folder("y.npy"), NULL));
    for (int i = 0; i < 6; i++) {
        int64_t n;
        int row[ROWS];
        take(&j, &n, row);
    }
    rows_job_free(&j);
}

START_TEST(files_of_all_formats_are_read)
{
    start_with_formats();
    expect_rows_of("x.raw", &(trama_feeder_column){.raw = "f32", .offset = 11});
    expect_rows_of("wide.npy", NULL); /* f64 */
    expect_rows_of("x.h5", &(trama_feeder_column){.tensor = "x"});
    folder_remove();
    stop();
}
END_TEST

/* ---- Errors ---- */

START_TEST(wrong_columns_are_refused)
{
    start_with_formats();
    rows_job j = rows_job_without("2", "S(0)", &(trama_feeder_options){.batch = 5});
    int64_t n;
    expect_here(trama_feeder_next(j.data, &n), TRAMA_E_ORDER, "trama_feeder_next", "no columns");
    expect_here(trama_feeder_add(j.data, j.x, in_folder("none.npy"), NULL), TRAMA_E_SYSTEM, "none.npy");
    expect_here(trama_feeder_add(j.data, j.x, in_folder("y.npy"), NULL), TRAMA_E_SHAPE, "y.npy", "[23]", "x");
    expect_here(trama_feeder_add(j.data, j.y, in_folder("f.npy"), NULL), TRAMA_E_DTYPE, "f.npy", "f32", "i64");
    expect_here(trama_feeder_add(j.data, j.x_seen, in_folder("x.npy"), NULL), TRAMA_E_ARGUMENT, "no input");
    expect_here(trama_feeder_add(j.data, j.x, in_folder("x.h5"), NULL), TRAMA_E_ARGUMENT, "x.h5", "options.tensor",
                "other");
    expect_here(trama_feeder_add(j.data, j.x, in_folder("x.h5"), &(trama_feeder_column){.tensor = "z"}),
                TRAMA_E_ARGUMENT, "no tensor z");
    expect_here(trama_feeder_add(j.data, j.x, in_folder("chunks.h5"), NULL), TRAMA_E_ARGUMENT, "chunks.h5", "h5repack");
    expect_here(trama_feeder_add(j.data, j.x, in_folder("x.raw"), &(trama_feeder_column){.raw = "f32", .offset = 10}),
                TRAMA_E_SHAPE, "x.raw", "whole number of rows");
    expect_here(trama_feeder_add(j.data, j.x, in_folder("x.raw"), &(trama_feeder_column){.raw = "f31"}), TRAMA_E_DTYPE,
                "f31");
    expect_here(trama_feeder_add(j.data, j.x, in_folder("x.npy"), &(trama_feeder_column){.offset = 4}),
                TRAMA_E_ARGUMENT, "offset");
    must(trama_feeder_add(j.data, j.x, in_folder("x.npy"), NULL));
    expect_here(trama_feeder_add(j.data, j.x, in_folder("x.npy"), NULL), TRAMA_E_ARGUMENT, "has a column");
    expect_here(trama_feeder_add(j.data, j.y, in_folder("more.npy"), NULL), TRAMA_E_SHAPE, "more.npy", "24 rows", "23");
    must(trama_feeder_add(j.data, j.y, in_folder("y.npy"), NULL));
    int row[ROWS];
    take(&j, &n, row);
    trama_feeder *other = NULL;
    expect_here(trama_feeder_create(j.e, "d", &(trama_feeder_options){.batch = 5}, &other), TRAMA_E_ARGUMENT,
                "there is a feeder d");
    expect_here(trama_feeder_create(j.e, "e", &(trama_feeder_options){.batch = 0}, &other), TRAMA_E_ARGUMENT, "1 row");
    expect_here(trama_feeder_create(j.e, "", &(trama_feeder_options){.batch = 1}, &other), TRAMA_E_ARGUMENT, "name");
    must(trama_feeder_create(j.e, "e", &(trama_feeder_options){.batch = 24, .drop_last = true}, &other));
    expect_here(trama_feeder_add(other, j.x, in_folder("x.npy"), NULL), TRAMA_E_ARGUMENT, "fill no batch");
    must(trama_executable_destroy(&j.e));
    expect_here(trama_feeder_next(j.data, &n), TRAMA_E_ORDER, "was destroyed");
    trama_feeder_destroy(&other);
    rows_job_free(&j);
    folder_remove();
    stop();
}
END_TEST

START_TEST(a_file_that_becomes_shorter_is_told_on_all_ranks)
{
    start();
    folder_new();
    write_rows(ROWS);
    rows_job j = rows_job_new("4", "S(0)", &(trama_feeder_options){.batch = 4, .prefetch = 1});
    int64_t n;
    int row[ROWS], before;
    take(&j, &n, row);
    barrier();
    struct stat s;
    demand(!stat(in_folder("x.npy"), &s), "stat");
    barrier();
    demand(my_rank || !truncate(in_folder("x.npy"), s.st_size - 3 * COLUMNS * 4), "truncate");
    barrier();
    trama_status status = TRAMA_OK;
    for (before = 0; before < 6 && !status; before++)
        status = trama_feeder_next(j.data, &n);
    demand(before == 5 && status == TRAMA_E_SYSTEM, "%d batches came", before); /* rows 20 to 22 are gone */
    demand(strstr(trama_error(), "x.npy") && strstr(trama_error(), "shorter") && strstr(trama_error(), "of 23"), "%s",
           trama_error());
    demand(trama_feeder_row(j.data) == 20, "the place moves");
    expect_here(trama_feeder_next(j.data, &n), TRAMA_E_SYSTEM, "shorter");
    barrier();
    write_rows(ROWS); /* new files of the same names: the old ones are open */
    must(trama_feeder_seek(j.data, 0, 0));
    take(&j, &n, row);
    demand(row[3] == 3, "row 3");
    rows_job_free(&j);
    folder_remove();
    stop();
}
END_TEST

TESTS(rows_come_in_the_order_of_the_file, shuffled_rows_come_once_an_epoch_and_alike_on_all_meshes,
      there_may_be_fewer_rows_than_processes, a_place_is_sought,
      a_run_that_goes_on_takes_the_rows_of_one_without_an_end, a_checkpoint_of_other_data_is_refused,
      files_of_all_formats_are_read, wrong_columns_are_refused, a_file_that_becomes_shorter_is_told_on_all_ranks)
