/* SPDX-License-Identifier: Apache-2.0 */
/* trama_feed_dataset and trama_write_dataset: HDF5 itself writes the files that are fed, and reads the ones that are
 * written. */
#define _GNU_SOURCE /* nftw */
#include <hdf5.h>

#include "resident.h"
#include "saved.h"

enum { N = 13, M = 7 };

static double number(int i)
{
    return sin(i) * 100;
}

static void make_folder(void)
{
    folder_new();
    if (my_rank == 0)
        demand(!mkdir(folder, 0777), "%s", folder);
    barrier();
}

/* On rank 0: datasets of N x M numbers, compressed and big-endian; contiguous; integers; of 9 dims; a scalar. */
static void write_file(void)
{
    double data[N * M];
    int64_t whole[N * M];
    hsize_t extents[] = {N, M, 1, 1, 1, 1, 1, 1, 1}, chunk[] = {4, 3};
    for (int i = 0; i < N * M; i++) {
        data[i] = number(i);
        whole[i] = (int64_t)1 << (i % 60);
    }
    if (my_rank == 0) {
        hid_t file = H5Fcreate(in_folder("in.h5"), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
        hid_t group = H5Gcreate2(file, "train", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
        hid_t space = H5Screate_simple(2, extents, NULL), nine = H5Screate_simple(9, extents, NULL);
        hid_t how = H5Pcreate(H5P_DATASET_CREATE), scalar = H5Screate(H5S_SCALAR);
        H5Pset_chunk(how, 2, chunk);
        H5Pset_deflate(how, 6);
        const struct {
            const char *name;
            hid_t type, space, how, memory;
            const void *data;
        } sets[] = {{"train/x", H5T_IEEE_F64BE, space, how, H5T_NATIVE_DOUBLE, data},
                    {"y", H5T_IEEE_F32LE, space, H5P_DEFAULT, H5T_NATIVE_DOUBLE, data},
                    {"n", H5T_STD_I64BE, space, how, H5T_NATIVE_INT64, whole},
                    {"nine", H5T_IEEE_F32LE, nine, H5P_DEFAULT, H5T_NATIVE_DOUBLE, data},
                    {"one", H5T_IEEE_F32LE, scalar, H5P_DEFAULT, H5T_NATIVE_DOUBLE, data + 1}};
        for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
            hid_t set =
                H5Dcreate2(file, sets[i].name, sets[i].type, sets[i].space, H5P_DEFAULT, sets[i].how, H5P_DEFAULT);
            demand(set >= 0 && H5Dwrite(set, sets[i].memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, sets[i].data) >= 0, "%s",
                   sets[i].name);
            H5Dclose(set);
        }
        H5Pclose(how);
        H5Sclose(space);
        H5Sclose(nine);
        H5Sclose(scalar);
        H5Gclose(group);
        H5Fclose(file);
    }
    barrier();
}

/* A program that doubles an input of any rows. */
typedef struct doubling {
    trama_mesh *mesh;
    trama_program *p;
    trama_value *x, *y, *s;
    trama_target *t;
    trama_executable *e;
} doubling;

static doubling doubling_new(const char *mesh, const char *layout, trama_dtype dtype, trama_shape shape)
{
    doubling d = {.mesh = mesh_of(mesh), .p = trama_program_create()};
    d.x = trama_input(d.p, "x", dtype, shape);
    if (shape.ndim)
        trama_shard(d.x, d.mesh, layout);
    d.y = trama_add(d.x, d.x);
    d.t = trama_target_create(d.p, "t", d.y);
    d.e = compile(d.p);
    return d;
}

static void doubling_free(doubling *d)
{
    must(trama_executable_destroy(&d->e));
    trama_program_destroy(&d->p);
    trama_mesh_destroy(&d->mesh);
}

static const char *const meshes[][2] = {{"1", "R"},    {"4", "S(0)"},     {"2,2", "S(0),S(1)"},
                                        {"3", "S(1)"}, {"2,2", "R,S(0)"}, {"16", "S(0)"}};
enum { N_MESHES = sizeof meshes / sizeof *meshes };

START_TEST(parts_of_datasets_are_fed)
{
    double y[N * M];
    start();
    make_folder();
    write_file();
    for (int i = 0; i < N_MESHES; i++) {
        doubling d = doubling_new(meshes[i][0], meshes[i][1], TRAMA_F64, TRAMA_SHAPE(TRAMA_ANY, TRAMA_ANY));
        for (int rows = 0; rows <= N; rows += 6) {
            const int64_t offset[] = {N - rows, 2};
            must(trama_feed_dataset(d.e, d.x, in_folder("in.h5"), "/train/x", offset, TRAMA_SHAPE(rows, M - 2)));
            must(trama_run(d.e, d.t));
            must(trama_read(d.e, d.y, y, (size_t)(rows * (M - 2)) * sizeof *y));
            for (int j = 0; j < rows * (M - 2); j++)
                demand(y[j] == 2 * number((N - rows + j / (M - 2)) * M + 2 + j % (M - 2)), "mesh %s, element %d: %g",
                       meshes[i][0], j, y[j]);
        }
        must(trama_feed_dataset(d.e, d.x, in_folder("in.h5"), "y", NULL, TRAMA_SHAPE(N, M))); /* f32 as f64 */
        must(trama_run(d.e, d.t));
        must(trama_read(d.e, d.y, y, sizeof y));
        for (int j = 0; j < N * M; j++)
            demand(y[j] == 2 * (double)(float)number(j), "element %d", j);
        doubling_free(&d);
    }
    folder_remove();
    stop();
}
END_TEST

START_TEST(scalars_and_integers_are_fed)
{
    int64_t n[N * M];
    float one;
    start();
    make_folder();
    write_file();
    doubling d = doubling_new("2", "S(0)", TRAMA_I64, TRAMA_SHAPE(N, M));
    must(trama_feed_dataset(d.e, d.x, in_folder("in.h5"), "n", NULL, TRAMA_SHAPE(N, M)));
    must(trama_run(d.e, d.t));
    must(trama_read(d.e, d.y, n, sizeof n));
    for (int i = 0; i < N * M; i++)
        demand(n[i] == (int64_t)2 << (i % 60), "element %d", i);
    doubling_free(&d);
    d = doubling_new("2", "R", TRAMA_F32, TRAMA_SCALAR);
    must(trama_feed_dataset(d.e, d.x, in_folder("in.h5"), "one", NULL, TRAMA_SCALAR));
    must(trama_run(d.e, d.t));
    must(trama_read(d.e, d.y, &one, sizeof one));
    demand(one == 2 * (float)number(1), "%g", (double)one);
    must(trama_write_dataset(d.e, d.y, in_folder("out.h5"), "one", NULL));
    must(trama_feed_dataset(d.e, d.x, in_folder("out.h5"), "one", NULL, TRAMA_SCALAR));
    doubling_free(&d);
    folder_remove();
    stop();
}
END_TEST

/* As HDF5 reads them; on all ranks. */
static void read_set(const char *file, const char *name, hsize_t rows, hsize_t columns, double *to)
{
    hsize_t extents[2] = {0, 0};
    barrier();
    hid_t f = H5Fopen(file, H5F_ACC_RDONLY, H5P_DEFAULT), set = H5Dopen2(f, name, H5P_DEFAULT);
    hid_t space = H5Dget_space(set);
    demand(H5Sget_simple_extent_dims(space, extents, NULL) == 2 && extents[0] == rows && extents[1] == columns,
           "%s: %d x %d", name, (int)extents[0], (int)extents[1]);
    demand(H5Dread(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, to) >= 0, "%s", name);
    H5Sclose(space);
    H5Dclose(set);
    H5Fclose(f);
    barrier();
}

START_TEST(values_are_written_into_datasets)
{
    double x[N * M], got[2 * N * M];
    start();
    make_folder();
    write_file();
    for (int i = 0; i < N * M; i++)
        x[i] = number(i) / 2;
    for (int i = 0; i < N_MESHES; i++) {
        char name[40];
        doubling d = doubling_new(meshes[i][0], meshes[i][1], TRAMA_F64, TRAMA_SHAPE(TRAMA_ANY, M));
        must(trama_feed(d.e, d.x, x, TRAMA_SHAPE(N, M)));
        must(trama_run(d.e, d.t));
        snprintf(name, sizeof name, "/results/of/%d", i);
        must(trama_write_dataset(d.e, d.y, in_folder("out.h5"), name, NULL));
        read_set(in_folder("out.h5"), name, N, M, got);
        for (int j = 0; j < N * M; j++)
            demand(got[j] == number(j), "mesh %s, element %d: %g", meshes[i][0], j, got[j]);
        must(trama_feed(d.e, d.x, x, TRAMA_SHAPE(2, M))); /* rows 9 and 10 of a compressed, big-endian dataset */
        must(trama_run(d.e, d.t));
        must(trama_write_dataset(d.e, d.y, in_folder("in.h5"), "train/x", (const int64_t[]){9, 0}));
        read_set(in_folder("in.h5"), "train/x", N, M, got);
        for (int j = 0; j < N * M; j++)
            demand(got[j] == number(j / M == 9 || j / M == 10 ? j - 9 * M : j), "row %d: %g", j / M, got[j]);
        doubling_free(&d);
    }
    folder_remove();
    stop();
}
END_TEST

/* The most resident bytes since the last call. */
static int64_t peak(void)
{
    const int64_t most = resident_peak();
    demand(most && resident_forget(), "the peak of memory cannot be read");
    return most;
}

/* A tensor of 64 MiB on 4 ranks: a rank's part, twice where it is resharded, and a buffer. */
START_TEST(no_rank_has_the_whole_tensor)
{
    enum { ROWS = 4096, LEAST = 40 << 20 };
    start_with(&(trama_config){.max_in_flight = 1});
    if (n_ranks < 4 || suite_is_sanitized()) {
        stop();
        return;
    }
    make_folder();
    const hsize_t extents[] = {ROWS, ROWS};
    if (my_rank == 0) { /* all zeros, without room on the disk */
        hid_t file = H5Fcreate(in_folder("in.h5"), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
        hid_t space = H5Screate_simple(2, extents, NULL);
        H5Dclose(H5Dcreate2(file, "x", H5T_IEEE_F32LE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
        H5Sclose(space);
        H5Fclose(file);
    }
    doubling d = doubling_new("4", "S(0)", TRAMA_F32, TRAMA_SHAPE(ROWS, ROWS));
    peak();
    int64_t before = memory_now();
    must(trama_feed_dataset(d.e, d.x, in_folder("in.h5"), "x", NULL, TRAMA_SHAPE(ROWS, ROWS)));
    int64_t grown = peak() - before;
    demand(grown < LEAST, "feeding takes %" PRId64 " bytes", grown);
    must(trama_run(d.e, d.t));
    must(trama_wait(d.e));
    peak();
    before = memory_now();
    must(trama_write_dataset(d.e, d.y, in_folder("out.h5"), "y", NULL));
    grown = peak() - before;
    demand(grown < LEAST, "writing takes %" PRId64 " bytes", grown);
    doubling_free(&d);
    folder_remove();
    stop();
}
END_TEST

START_TEST(wrong_uses_are_refused)
{
    double x[N * M] = {0};
    start();
    make_folder();
    write_file();
    doubling d = doubling_new("2", "S(0)", TRAMA_F64, TRAMA_SHAPE(TRAMA_ANY, M));
    const char *in = in_folder("in.h5");
    const trama_shape all = TRAMA_SHAPE(N, M);
    expect_here(trama_feed_dataset(d.e, d.x, NULL, "y", NULL, all), TRAMA_E_ARGUMENT, "path");
    expect_here(trama_feed_dataset(d.e, d.x, in, NULL, NULL, all), TRAMA_E_ARGUMENT, "dataset");
    expect_here(trama_feed_dataset(d.e, d.x, in, "none", NULL, all), TRAMA_E_ARGUMENT, "in.h5", "none", "h5ls");
    expect_here(trama_feed_dataset(d.e, d.x, in, "train", NULL, all), TRAMA_E_ARGUMENT, "in.h5", "train");
    expect_here(trama_feed_dataset(d.e, d.x, "/none/x.h5", "y", NULL, all), TRAMA_E_SYSTEM, "/none/x.h5");
    expect_here(trama_feed_dataset(d.e, d.x, in, "n", NULL, all), TRAMA_E_DTYPE, "dataset n", "f64");
    expect_here(trama_feed_dataset(d.e, d.x, in, "nine", NULL, all), TRAMA_E_SHAPE, "8 dims");
    expect_here(trama_feed_dataset(d.e, d.x, in, "one", NULL, all), TRAMA_E_SHAPE, "shape [],");
    expect_here(trama_feed_dataset(d.e, d.x, in, "y", NULL, TRAMA_SHAPE(N + 1, M)), TRAMA_E_SHAPE, "[13,7]", "[14,7]");
    expect_here(trama_feed_dataset(d.e, d.x, in, "y", ((const int64_t[]){1, 0}), all), TRAMA_E_SHAPE, "(1,0)");
    expect_here(trama_feed_dataset(d.e, d.x, in, "y", ((const int64_t[]){-1, 0}), all), TRAMA_E_SHAPE, "(-1,0)");
    expect_here(trama_feed_dataset(d.e, d.x, in, "y", ((const int64_t[]){INT64_MAX, 0}), all), TRAMA_E_SHAPE, "part");
    expect_here(trama_feed_dataset(d.e, d.y, in, "y", NULL, all), TRAMA_E_ARGUMENT, "no input");
    must(trama_feed(d.e, d.x, x, all));
    must(trama_run(d.e, d.t));
    expect_here(trama_write_dataset(d.e, d.y, "/none/x.h5", "y", NULL), TRAMA_E_SYSTEM, "/none/x.h5", "y");
    expect_here(trama_write_dataset(d.e, d.y, in, "n", NULL), TRAMA_E_DTYPE, "dataset n");
    expect_here(trama_write_dataset(d.e, d.y, in, "y", ((const int64_t[]){0, 1})), TRAMA_E_SHAPE, "part");
    expect_here(trama_write_dataset(d.e, d.y, in, NULL, NULL), TRAMA_E_ARGUMENT, "dataset");
    doubling_free(&d);
    folder_remove();
    stop();
}
END_TEST

TESTS(parts_of_datasets_are_fed, scalars_and_integers_are_fed, values_are_written_into_datasets,
      no_rank_has_the_whole_tensor, wrong_uses_are_refused)
