/* SPDX-License-Identifier: Apache-2.0 */
/* Files of rows that tell their numbers, written without the library, and a program that takes them. */
#ifndef FEEDER_FILES_H
#define FEEDER_FILES_H

#include <hdf5.h>

#include "saved.h"

enum { ROWS = 23, COLUMNS = 3 };

static inline float x_at(int row, int column)
{
    return (float)(row * 10 + column) + 0.5f;
}

/* ---- Files ---- */

static inline void write_array(const char *name, const char *descr, const char *shape, const void *data, size_t bytes)
{
    char header[128];
    FILE *f = fopen(in_folder(name), "wb");
    demand(f, "%s", name);
    memset(header, ' ', sizeof header);
    memcpy(header, "\x93NUMPY\x01\x00\x76\x00", 10);
    int n = snprintf(header + 10, sizeof header - 10, "{'descr': '%s', 'fortran_order': False, 'shape': %s, }", descr,
                     shape);
    header[10 + n] = ' ';
    header[127] = '\n';
    fwrite(header, 1, sizeof header, f);
    fwrite(data, 1, bytes, f);
    fclose(f);
}

/* x.npy f32 [rows, 3] and y.npy i64 [rows], 1000 + the row; by rank 0, when all come here. */
static inline void write_rows(int rows)
{
    float x[(ROWS + 1) * COLUMNS];
    int64_t y[ROWS + 1];
    char shape[40];
    for (int i = 0; i < rows; i++) {
        y[i] = 1000 + i;
        for (int k = 0; k < COLUMNS; k++)
            x[i * COLUMNS + k] = x_at(i, k);
    }
    if (my_rank == 0) {
        mkdir(folder, 0755);
        remove(in_folder("x.npy"));
        remove(in_folder("y.npy"));
        snprintf(shape, sizeof shape, "(%d, 3)", rows);
        write_array("x.npy", "<f4", shape, x, (size_t)rows * COLUMNS * sizeof *x);
        snprintf(shape, sizeof shape, "(%d,)", rows);
        write_array("y.npy", "<i8", shape, y, (size_t)rows * sizeof *y);
    }
    barrier();
}

static inline void write_hdf5(const char *name, const char *const *datasets, int n, bool chunks, const float *x)
{
    const hsize_t shape[2] = {ROWS, COLUMNS}, chunk[2] = {4, COLUMNS};
    hid_t file = H5Fcreate(in_folder(name), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    hid_t space = H5Screate_simple(2, shape, NULL), how = H5Pcreate(H5P_DATASET_CREATE);
    if (chunks)
        H5Pset_chunk(how, 2, chunk);
    for (int i = 0; i < n; i++) {
        hid_t d = H5Dcreate2(file, datasets[i], H5T_IEEE_F32LE, space, H5P_DEFAULT, how, H5P_DEFAULT);
        demand(H5Dwrite(d, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, x) >= 0, "%s", datasets[i]);
        H5Dclose(d);
    }
    H5Pclose(how);
    H5Sclose(space);
    H5Fclose(file);
}

/* x.raw (11 bytes before), wide.npy (f64), x.h5 (two datasets), chunks.h5, f.npy (f32 [23]), more.npy (i64 [24]). */
static inline void write_other_formats(void)
{
    float x[ROWS * COLUMNS];
    double wide[ROWS * COLUMNS];
    int64_t more[ROWS + 1] = {0};
    for (int i = 0; i < ROWS * COLUMNS; i++)
        wide[i] = x[i] = x_at(i / COLUMNS, i % COLUMNS);
    FILE *f = fopen(in_folder("x.raw"), "wb");
    demand(f, "x.raw");
    fwrite("eleven byte", 1, 11, f);
    fwrite(x, 1, sizeof x, f);
    fclose(f);
    write_array("wide.npy", "<f8", "(23, 3)", wide, sizeof wide);
    write_array("f.npy", "<f4", "(23,)", x, ROWS * sizeof *x);
    write_array("more.npy", "<i8", "(24,)", more, sizeof more);
    write_hdf5("x.h5", (const char *const[]){"other", "x"}, 2, false, x);
    write_hdf5("chunks.h5", (const char *const[]){"x"}, 1, true, x);
}

/* ---- A program that takes rows ---- */

typedef struct rows_job {
    trama_mesh *mesh;
    trama_program *p;
    trama_value *x, *y, *x_seen, *y_seen, *w; /* w [COLUMNS]: a state that depends on all batches and their order */
    trama_target *t;
    trama_executable *e;
    trama_feeder *data;
} rows_job;

static inline rows_job rows_job_without(const char *mesh, const char *layout, const trama_feeder_options *o)
{
    rows_job j = {.mesh = mesh_of(mesh), .p = trama_program_create()};
    j.x = trama_shard(trama_input(j.p, "x", TRAMA_F32, TRAMA_SHAPE(TRAMA_ANY, COLUMNS)), j.mesh, layout);
    j.y = trama_input(j.p, "y", TRAMA_I64, TRAMA_SHAPE(TRAMA_ANY));
    j.x_seen = trama_neg(trama_neg(j.x));
    j.y_seen = trama_neg(trama_neg(j.y));
    j.w = trama_state(j.p, "w", TRAMA_F32, TRAMA_SHAPE(COLUMNS), NULL);
    trama_value *mean = trama_mean_over(j.x, TRAMA_DIMS(0), false);
    j.t = trama_target_create(j.p, "t", j.x_seen, j.y_seen, trama_assign(j.w, trama_add(trama_scale(j.w, 0.7), mean)));
    j.e = compile(j.p);
    must(trama_feeder_create(j.e, "d", o, &j.data));
    return j;
}

static inline rows_job rows_job_new(const char *mesh, const char *layout, const trama_feeder_options *o)
{
    rows_job j = rows_job_without(mesh, layout, o);
    must(trama_feeder_add(j.data, j.x, in_folder("x.npy"), NULL));
    must(trama_feeder_add(j.data, j.y, in_folder("y.npy"), NULL));
    return j;
}

static inline void rows_job_free(rows_job *j)
{
    trama_feeder_destroy(&j->data);
    must(trama_executable_destroy(&j->e));
    trama_program_destroy(&j->p);
    trama_mesh_destroy(&j->mesh);
}

#endif
