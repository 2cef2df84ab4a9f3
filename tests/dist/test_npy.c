/* SPDX-License-Identifier: Apache-2.0 */
/* Files .npy: those that NumPy wrote (tests/dist/files), our own, and damaged ones. */
#define _GNU_SOURCE /* mkdtemp */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "suite.h"
#include "trama_npy.h"

static char path[100] = "/tmp/trama-npy-XXXXXX";
static trama_dtype dtype;
static trama_shape shape;
static void *data;

static void read_stored(const char *name)
{
    char file[500];
    snprintf(file, sizeof file, "%s/files/%s", TRAMA_TEST_FOLDER, name);
    ck_assert_msg(!trama_read_npy(file, &dtype, &shape, &data), "%s", trama_error());
}

START_TEST(arrays_of_numpy_are_read)
{
    read_stored("f64_2x3.npy");
    ck_assert(dtype == TRAMA_F64 && shape.ndim == 2 && shape.dim[0] == 2 && shape.dim[1] == 3);
    for (int i = 0; i < 6; i++)
        ck_assert(((double *)data)[i] == i / 2.0);
    trama_npy_free(&data);
    ck_assert_ptr_null(data);
    read_stored("c64_3.npy");
    const float numbers[] = {1, 2, 3, -4, 0, 0.5};
    ck_assert(dtype == TRAMA_C64 && shape.dim[0] == 3 && !memcmp(data, numbers, sizeof numbers));
    trama_npy_free(&data);
    read_stored("bool_2.npy");
    ck_assert(dtype == TRAMA_BOOL && ((bool *)data)[0] && !((bool *)data)[1]);
    trama_npy_free(&data);
    read_stored("scalar_i16.npy");
    ck_assert(dtype == TRAMA_I16 && shape.ndim == 0 && *(int16_t *)data == -7);
    trama_npy_free(&data);
}
END_TEST

START_TEST(every_type_comes_back)
{
    unsigned char bytes[6 * 16];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)(i * 37 % 2);
    for (int d = 0; d < TRAMA_N_DTYPES; d++) {
        ck_assert_msg(!trama_write_npy(path, (trama_dtype)d, TRAMA_SHAPE(3, 1, 2), bytes), "%s", trama_error());
        ck_assert_msg(!trama_read_npy(path, &dtype, &shape, &data), "%s", trama_error());
        ck_assert(dtype == (trama_dtype)d && trama_shape_equal(shape, TRAMA_SHAPE(3, 1, 2)));
        ck_assert_mem_eq(data, bytes, 6 * trama_dtype_size(dtype));
        trama_npy_free(&data);
    }
    ck_assert(!trama_write_npy(path, TRAMA_F32, TRAMA_SHAPE(4, 0), NULL) &&
              !trama_read_npy(path, &dtype, &shape, &data));
    ck_assert(shape.dim[0] == 4 && shape.dim[1] == 0);
    trama_npy_free(&data);
}
END_TEST

/* Writes a header with that text, and some bytes behind it. */
static trama_status read_made(const char *begin, const char *header, size_t bytes)
{
    static const char zeros[100];
    FILE *f = fopen(path, "wb");
    fwrite(begin, 1, 8, f);
    fputc((int)strlen(header), f);
    fputc(0, f);
    fputs(header, f);
    fwrite(zeros, 1, bytes, f);
    fclose(f);
    return trama_read_npy(path, &dtype, &shape, &data);
}

START_TEST(wrong_files_are_refused)
{
#define HEADER(descr, order, shape) "{'descr': '" descr "', 'fortran_order': " order ", 'shape': " shape ", }"
    const struct {
        const char *begin, *header;
        size_t bytes;
        trama_status status;
        const char *said;
    } tries[] = {
        {"\x93NUMPX\1\0", HEADER("<f4", "False", "(2,)"), 8, TRAMA_E_ARGUMENT, "no array of NumPy"},
        {"\x93NUMPY\4\0", HEADER("<f4", "False", "(2,)"), 8, TRAMA_E_ARGUMENT, "no array of NumPy"},
        {"\x93NUMPY\2\0", HEADER("<f4", "False", "(2,)"), 8, TRAMA_E_ARGUMENT, "header"},
        {"\x93NUMPY\1\0", HEADER("<f4", "False", "(2,)"), 7, TRAMA_E_ARGUMENT, "fewer elements"},
        {"\x93NUMPY\1\0", HEADER("<f4", "False", "(2,)"), 9, TRAMA_E_ARGUMENT, "more elements"},
        {"\x93NUMPY\1\0", HEADER("<f4", "False", "(99999999999,)"), 9, TRAMA_E_ARGUMENT, "fewer elements"},
        {"\x93NUMPY\1\0", HEADER("<f4", "True", "(2,)"), 8, TRAMA_E_UNSUPPORTED, "order of Fortran"},
        {"\x93NUMPY\1\0", HEADER(">f4", "False", "(2,)"), 8, TRAMA_E_DTYPE, "'>f4'"},
        {"\x93NUMPY\1\0", HEADER("<f4", "False", "(-2,)"), 8, TRAMA_E_SHAPE, "shape"},
        {"\x93NUMPY\1\0", HEADER("<f4", "False", "(2"), 8, TRAMA_E_SHAPE, "shape"},
        {"\x93NUMPY\1\0", HEADER("<f4", "False", "(9999999999, 9999999999)"), 8, TRAMA_E_SHAPE, "shape"},
        {"\x93NUMPY\1\0", HEADER("<f4", "False", "(1,1,1,1,1,1,1,1,1)"), 4, TRAMA_E_SHAPE, "8 dims"},
        {"\x93NUMPY\1\0", "{'descr': '<f4'}", 8, TRAMA_E_ARGUMENT, "fortran_order"},
        {"\x93NUMPY\1\0", "{'descr': '<f4', 'fortran_order': False}", 8, TRAMA_E_SHAPE, "shape"},
    };
    for (size_t i = 0; i < sizeof tries / sizeof *tries; i++) {
        trama_status status = read_made(tries[i].begin, tries[i].header, tries[i].bytes);
        ck_assert_msg(status == tries[i].status && strstr(trama_error(), tries[i].said) && strstr(trama_error(), path),
                      "%d: %s: %s", (int)i, trama_status_text(status), trama_error());
        ck_assert_ptr_null(data);
    }
    ck_assert_int_eq(trama_read_npy("/tmp/none/none.npy", &dtype, &shape, &data), TRAMA_E_SYSTEM);
    ck_assert_int_eq(trama_write_npy("/tmp/none/none.npy", TRAMA_F32, TRAMA_SCALAR, "abcd"), TRAMA_E_SYSTEM);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {arrays_of_numpy_are_read, every_type_comes_back, wrong_files_are_refused};
    close(mkstemp(path));
    int status = suite_run("npy", NULL, NULL, tests, sizeof tests / sizeof *tests);
    unlink(path);
    return status;
}
