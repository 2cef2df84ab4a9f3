/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints written again in other formats, from arrays of NumPy, which tests/dist/files has, and files made here. */
#define _GNU_SOURCE /* mkdtemp */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "checkpoint.h"
#include "own_folder.h"
#include "trama_checkpoint.h"
#include "trama_half.h"
#include "trama_npy.h"


static trama_checkpoint *open_one(const char *path)
{
    trama_checkpoint *c = NULL;
    ck_assert_msg(!trama_checkpoint_open(path, &c), "%s", trama_error());
    return c;
}

START_TEST(arrays_of_numpy_are_states)
{
    double data[6];
    char file[500];
    snprintf(file, sizeof file, "%s/files", TRAMA_TEST_FOLDER);
    trama_checkpoint *c = open_one(file);
    ck_assert_int_eq(trama_checkpoint_count(c), 4);
    const int i = trama_checkpoint_find(c, "f64_2x3"), scalar = trama_checkpoint_find(c, "scalar_i16");
    ck_assert(trama_checkpoint_dtype(c, i) == TRAMA_F64 && trama_checkpoint_shape(c, i).dim[1] == 3);
    ck_assert(!trama_checkpoint_read(c, i, data, sizeof data) && data[5] == 2.5);
    int16_t number;
    ck_assert(trama_checkpoint_shape(c, scalar).ndim == 0);
    ck_assert(!trama_checkpoint_read(c, scalar, &number, sizeof number) && number == -7);
    ck_assert(!trama_checkpoint_is_summed(c));
    trama_checkpoint_destroy(&c);
    strcat(file, "/f64_2x3.npy");
    c = open_one(file);
    ck_assert(trama_checkpoint_count(c) == 1 && !strcmp(trama_checkpoint_name(c, 0), "f64_2x3"));
    ck_assert(!trama_checkpoint_read_box(c, 0, (const int64_t[]){1, 1}, (const int64_t[]){1, 2}, data, 16));
    ck_assert(data[0] == 2 && data[1] == 2.5);
    trama_checkpoint_destroy(&c);
}
END_TEST

/* An array of 3x2 floats, a scalar, one without elements. */
static void write_arrays(void)
{
    const float a[] = {1, 2.5f, -3, 65504, 1e-3f, 0};
    mkdir(in_folder("in"), 0777);
    ck_assert(!trama_write_npy(in_folder("in/a.npy"), TRAMA_F32, TRAMA_SHAPE(3, 2), a));
    ck_assert(!trama_write_npy(in_folder("in/n.npy"), TRAMA_I64, TRAMA_SCALAR, (const int64_t[]){-9}));
    ck_assert(!trama_write_npy(in_folder("in/none.npy"), TRAMA_F64, TRAMA_SHAPE(0, 3), NULL));
}

static void expect_arrays(const char *path)
{
    trama_checkpoint *c = open_one(path);
    float a[6];
    int64_t n;
    ck_assert_int_eq(trama_checkpoint_count(c), 3);
    for (int i = 0; i < 3; i++)
        ck_assert_msg(!trama_checkpoint_verify(c, i), "%s", trama_error());
    ck_assert(!trama_checkpoint_read(c, trama_checkpoint_find(c, "a"), a, sizeof a) && a[3] == 65504 && a[2] == -3);
    ck_assert(!trama_checkpoint_read(c, trama_checkpoint_find(c, "n"), &n, sizeof n) && n == -9);
    const int none = trama_checkpoint_find(c, "none");
    ck_assert(trama_checkpoint_shape(c, none).dim[0] == 0 && trama_checkpoint_shape(c, none).dim[1] == 3);
    trama_checkpoint_destroy(&c);
}

static void convert(const char *from, const char *to, const trama_checkpoint_write_options *o)
{
    trama_checkpoint *c = open_one(from);
    ck_assert_msg(!trama_checkpoint_write(c, to, o), "%s", trama_error());
    trama_checkpoint_destroy(&c);
}

static bool is_without(const char *path, const char *what)
{
    trama_checkpoint *c = open_one(in_folder("in"));
    const bool without = trama_checkpoint_write(c, path, NULL) == TRAMA_E_UNSUPPORTED;
    trama_checkpoint_destroy(&c);
    return suite_skips(without, what);
}

START_TEST(every_format_becomes_every_other)
{
    write_arrays();
    if (is_without(in_folder("a.h5"), "HDF5") || is_without(in_folder("a.safetensors"), "safetensors"))
        return;
    expect_arrays(in_folder("a.h5"));
    expect_arrays(in_folder("a.safetensors"));
    convert(in_folder("a.h5"), in_folder("b.safetensors"), &(trama_checkpoint_write_options){.shard_bytes = 10});
    expect_arrays(in_folder("b.safetensors.index.json"));
    convert(in_folder("b.safetensors.index.json"), in_folder("b.h5"), NULL);
    expect_arrays(in_folder("b.h5"));
    convert(in_folder("b.h5"), in_folder("b.h5"), NULL); /* over itself */
    expect_arrays(in_folder("b.h5"));
    char command[300];
    snprintf(command, sizeof command, "ls %s | grep part", folder);
    ck_assert_int_ne(system(command), 0);
}
END_TEST

START_TEST(states_are_chosen_renamed_and_converted)
{
    trama_f16 half[6];
    write_arrays();
    if (is_without(in_folder("a.safetensors"), "safetensors"))
        return;
    convert(in_folder("in"), in_folder("c.safetensors"),
            &(trama_checkpoint_write_options){.states = "a,none", .names = "a=w,n=b", .dtype = "f16"});
    trama_checkpoint *c = open_one(in_folder("c.safetensors"));
    ck_assert(trama_checkpoint_count(c) == 2 && !strcmp(trama_checkpoint_name(c, 1), "w"));
    ck_assert(trama_checkpoint_dtype(c, 0) == TRAMA_F16);
    ck_assert(!trama_checkpoint_read(c, 1, half, sizeof half));
    ck_assert(half[0].bits == 0x3c00 && half[3].bits == 0x7bff && half[2].bits == 0xc200); /* 1, 65504, -3 */
    trama_checkpoint_destroy(&c);
}
END_TEST

/* All 2^16 halves, to f32 and f64 and back: as the element by element functions of dist/base, which test_half proves.
 */
START_TEST(all_halves_convert)
{
    static uint16_t from[1 << 16], back[1 << 16];
    static double wide[1 << 16];
    static float single[1 << 16];
    const trama_dtype types[] = {TRAMA_BF16, TRAMA_F16};
    for (int i = 0; i < 1 << 16; i++)
        from[i] = (uint16_t)i;
    for (int t = 0; t < 2; t++) {
        elements_convert(types[t], from, TRAMA_F32, single, 1 << 16);
        elements_convert(types[t], from, TRAMA_F64, wide, 1 << 16);
        for (int i = 0; i < 1 << 16; i++)
            ck_assert_msg((double)single[i] == wide[i] || (single[i] != single[i] && wide[i] != wide[i]), "%d", i);
        elements_convert(TRAMA_F32, single, types[t], back, 1 << 16);
        for (int i = 0; i < 1 << 16; i++)
            ck_assert_msg(back[i] == i || wide[i] != wide[i], "%d becomes %d", i, back[i]);
    }
    for (int i = 0; i < 1 << 16; i++)
        wide[i] = (i - 30000) * 1.0000001;
    elements_convert(TRAMA_F64, wide, TRAMA_F32, single, 1 << 16);
    for (int i = 0; i < 1 << 16; i++)
        ck_assert_msg(single[i] == (float)wide[i], "%d", i);
}
END_TEST

START_TEST(wrong_uses_are_refused)
{
    static const struct {
        const char *path;
        trama_checkpoint_write_options o;
        trama_status status;
        const char *said;
    } tries[] = {{"x.txt", {.states = NULL}, TRAMA_E_ARGUMENT, "give .h5, .safetensors or .npz"},
                 {"x.npy", {.states = NULL}, TRAMA_E_ARGUMENT, "names no format"},
                 {"x.safetensors.index.json", {.states = NULL}, TRAMA_E_ARGUMENT, "names no format"},
                 {"x.h5", {.shard_bytes = 3}, TRAMA_E_ARGUMENT, "shard_bytes"},
                 {"x.safetensors", {.shard_bytes = -3}, TRAMA_E_ARGUMENT, "shard_bytes"},
                 {"x.safetensors", {.dtype = "i8"}, TRAMA_E_DTYPE, "i8"},
                 {"x.safetensors", {.names = "a=n"}, TRAMA_E_ARGUMENT, "two states have the name n"},
                 {"none/x.safetensors", {.states = NULL}, TRAMA_E_SYSTEM, "none/x.safetensors"}};
    write_arrays();
    trama_checkpoint *c = open_one(in_folder("in"));
    for (size_t i = 0; i < sizeof tries / sizeof *tries; i++) {
        trama_status status = trama_checkpoint_write(c, in_folder(tries[i].path), &tries[i].o);
        ck_assert_msg(status == tries[i].status && strstr(trama_error(), tries[i].said), "%d: %s: %s", (int)i,
                      trama_status_text(status), trama_error());
    }
    trama_checkpoint_destroy(&c);
    ck_assert(!truncate(in_folder("in/a.npy"), 150));
    ck_assert_int_eq(trama_checkpoint_open(in_folder("in"), &c), TRAMA_E_ARGUMENT);
    ck_assert_msg(strstr(trama_error(), "in/a.npy") && strstr(trama_error(), "22 bytes"), "%s", trama_error());
    mkdir(in_folder("empty"), 0777);
    ck_assert_int_eq(trama_checkpoint_open(in_folder("empty"), &c), TRAMA_E_ARGUMENT);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {arrays_of_numpy_are_states, every_format_becomes_every_other,
                                  states_are_chosen_renamed_and_converted, all_halves_convert, wrong_uses_are_refused};
    return folder_run("convert", tests, sizeof tests / sizeof *tests);
}
