/* SPDX-License-Identifier: Apache-2.0 */
/* Archives .npz: those that NumPy wrote (tests/dist/files), our own, ones made here byte by byte, and hostile ones. */
#define _GNU_SOURCE /* mkdtemp */
#include <check.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "own_folder.h"
#include "trama_checkpoint.h"
#include "trama_npy.h"

static trama_dtype dtype;
static trama_shape shape;
static void *data;

static const char *stored(const char *name)
{
    static char path[600];
    snprintf(path, sizeof path, "%s/files/%s", TRAMA_TEST_FOLDER, name);
    return path;
}

static void expect_a(const char *path)
{
    ck_assert_msg(!trama_read_npy(path, &dtype, &shape, &data), "%s", trama_error());
    ck_assert(dtype == TRAMA_F64 && shape.ndim == 2 && shape.dim[0] == 2 && shape.dim[1] == 3);
    for (int i = 0; i < 6; i++)
        ck_assert(((double *)data)[i] == i / 2.0);
    trama_npy_free(&data);
}

START_TEST(archives_of_numpy_are_read)
{
    expect_a(stored("stored.npz:a"));
    expect_a(stored("deflated.npz:a"));
    ck_assert(!trama_read_npy(stored("stored.npz:n"), &dtype, &shape, &data));
    ck_assert(dtype == TRAMA_I16 && shape.ndim == 0 && *(int16_t *)data == -7);
    trama_npy_free(&data);
    ck_assert(!trama_read_npy(stored("stored.npz:e"), &dtype, &shape, &data) && shape.dim[0] == 0);
    trama_npy_free(&data);
    ck_assert(!trama_read_npy(stored("deflated.npz:z"), &dtype, &shape, &data) && shape.dim[0] == 300);
    for (int i = 0; i < 30000; i++)
        ck_assert_msg(!((float *)data)[i], "%d", i);
    trama_npy_free(&data);
    ck_assert_int_eq(trama_read_npy(stored("stored.npz"), &dtype, &shape, &data), TRAMA_E_ARGUMENT);
    ck_assert_msg(strstr(trama_error(), "a, e, n") && strstr(trama_error(), "stored.npz:NAME"), "%s", trama_error());
    ck_assert_int_eq(trama_read_npy(stored("stored.npz:x"), &dtype, &shape, &data), TRAMA_E_ARGUMENT);
    ck_assert_int_eq(trama_read_npy("/none/x.npz:a", &dtype, &shape, &data), TRAMA_E_SYSTEM);
}
END_TEST

START_TEST(archives_are_checkpoints)
{
    trama_checkpoint *c = NULL;
    double column[2];
    ck_assert_msg(!trama_checkpoint_open(stored("deflated.npz"), &c), "%s", trama_error());
    ck_assert(trama_checkpoint_count(c) == 2 && trama_checkpoint_find(c, "a") == 0);
    ck_assert(!trama_checkpoint_read_box(c, 0, (const int64_t[]){0, 2}, (const int64_t[]){2, 1}, column, 16));
    ck_assert(column[0] == 1 && column[1] == 2.5);
    ck_assert_msg(!trama_checkpoint_write(c, in_folder("again.npz"), NULL), "%s", trama_error());
    trama_checkpoint_destroy(&c);
    expect_a(in_folder("again.npz:a"));
    ck_assert(!trama_read_npy(in_folder("again.npz:z"), &dtype, &shape, &data) && shape.dim[1] == 100);
    trama_npy_free(&data);
    ck_assert(!trama_checkpoint_open(stored("stored.npz"), &c) && !trama_checkpoint_write(c, in_folder("b.npz"), NULL));
    trama_checkpoint_destroy(&c);
    expect_a(in_folder("b.npz:a"));
    ck_assert(!trama_read_npy(in_folder("b.npz:e"), &dtype, &shape, &data));
    trama_npy_free(&data);
    ck_assert(!trama_checkpoint_open(in_folder("b.npz"), &c) &&
              !trama_checkpoint_write(c, in_folder("one.npz"), &(trama_checkpoint_write_options){.states = "a"}));
    trama_checkpoint_destroy(&c);
    expect_a(in_folder("one.npz"));
}
END_TEST

/* ---- Archives made here, of classic records ---- */

typedef struct made {
    const char *name;
    unsigned flags, method;
    uint32_t sum_by, packed_by, bytes_by, local_by; /* lies, added to the truth */
} made;

static unsigned char room[1 << 16];
static size_t filled;

static void put(uint64_t x, int bytes)
{
    for (int i = 0; i < bytes; i++)
        room[filled++] = (unsigned char)(x >> 8 * i);
}

static void put_bytes(const void *bytes, size_t n)
{
    memcpy(room + filled, bytes, n);
    filled += n;
}

static void put_member(const made *m, uint32_t sum, size_t packed, size_t bytes)
{
    put(20, 2);
    put(m->flags, 2);
    put(m->method, 2);
    put(0, 4);
    put(sum + m->sum_by, 4);
    put(packed + m->packed_by, 4);
    put(bytes + m->bytes_by, 4);
    put(strlen(m->name), 2);
    put(0, 2);
}

/* An array of n zeros of u8. */
static size_t array_of(int n, unsigned char *to)
{
    const size_t bytes = (size_t)sprintf((char *)to, "%s", "\x93NUMPY\1");
    to[bytes] = 0;
    sprintf((char *)to + 10, "%-117s\n", "");
    const int length = sprintf((char *)to + 10, "{'descr': '|u1', 'fortran_order': False, 'shape': (%d,), }", n);
    to[10 + length] = ' ';
    to[8] = 118;
    to[9] = 0;
    memset(to + 128, 0, (size_t)n);
    return 128 + (size_t)n;
}

static size_t deflated(const unsigned char *from, size_t n, unsigned char *to, size_t most)
{
    z_stream z = {.next_in = (unsigned char *)from, .avail_in = (uInt)n, .next_out = to, .avail_out = (uInt)most};
    ck_assert(deflateInit2(&z, 9, Z_DEFLATED, -15, 9, Z_DEFAULT_STRATEGY) == Z_OK &&
              deflate(&z, Z_FINISH) == Z_STREAM_END);
    deflateEnd(&z);
    return most - z.avail_out;
}

/* Members of one content each; entries: as many as the end says, relative to n. */
static void write_made(const made *members, int n, int elements, int entries_by)
{
    static unsigned char content[1 << 15], packed[1 << 15];
    size_t local[4], sizes[4], begin;
    filled = 0;
    const size_t bytes = array_of(elements, content);
    const uint32_t sum = (uint32_t)crc32(0, content, (uInt)bytes);
    for (int i = 0; i < n; i++) {
        local[i] = filled;
        sizes[i] = members[i].method == 8 ? deflated(content, bytes, packed, sizeof packed) : bytes;
        put_bytes("PK\3\4", 4);
        put_member(&members[i], sum, sizes[i], bytes);
        put_bytes(members[i].name, strlen(members[i].name));
        put_bytes(members[i].method == 8 ? packed : content, sizes[i]);
    }
    begin = filled;
    for (int i = 0; i < n; i++) {
        put_bytes("PK\1\2", 4);
        put(20, 2);
        put_member(&members[i], sum, sizes[i], bytes);
        put(0, 8); /* comment, disk, attributes */
        put(0, 2);
        put((uint64_t)local[i] + members[i].local_by, 4);
        put_bytes(members[i].name, strlen(members[i].name));
    }
    const size_t directory = filled - begin;
    put_bytes("PK\5\6", 4);
    put(0, 4);
    put((uint64_t)(n + entries_by), 2);
    put((uint64_t)(n + entries_by), 2);
    put(directory, 4);
    put(begin, 4);
    put(0, 2);
    FILE *f = fopen(in_folder("made.npz"), "wb");
    fwrite(room, 1, filled, f);
    fclose(f);
}

static void expect_refused(trama_status status, const char *said, const char *what)
{
    trama_checkpoint *c = NULL;
    trama_status got = trama_read_npy(in_folder("made.npz:a"), &dtype, &shape, &data);
    ck_assert_msg(got == status && strstr(trama_error(), said) && strstr(trama_error(), "made.npz") && !data,
                  "%s: %s: %s", what, trama_status_text(got), trama_error());
    got = trama_checkpoint_open(in_folder("made.npz"), &c);
    if (!strstr(said, "check sum is wrong")) /* boxes of stored members are read without it */
        ck_assert_msg(got == status && !c, "%s: %s: %s", what, trama_status_text(got), trama_error());
    trama_checkpoint_destroy(&c);
}

START_TEST(made_archives_are_read)
{
    for (unsigned method = 0; method <= 8; method += 8) {
        write_made((const made[]){{.name = "a.npy", .method = method}, {.name = "readme"}}, 2, 20000, 0);
        ck_assert_msg(!trama_read_npy(in_folder("made.npz"), &dtype, &shape, &data), "%s", trama_error());
        ck_assert(dtype == TRAMA_U8 && shape.ndim == 1 && shape.dim[0] == 20000 && !((char *)data)[19999]);
        trama_npy_free(&data);
    }
}
END_TEST

START_TEST(hostile_archives_are_refused)
{
    static const struct {
        made members[2];
        int n, entries_by;
        trama_status status;
        const char *said;
    } tries[] = {
        {{{.name = "a.npy", .flags = 1}}, 1, 0, TRAMA_E_SYSTEM, "password"},
        {{{.name = "a.npy", .method = 12}}, 1, 0, TRAMA_E_SYSTEM, "method"},
        {{{.name = "a.npy", .sum_by = 1}}, 1, 0, TRAMA_E_SYSTEM, "check sum is wrong"},
        {{{.name = "a.npy", .method = 8, .sum_by = 1}}, 1, 0, TRAMA_E_SYSTEM, "check sum"},
        {{{.name = "a.npy", .packed_by = 1}}, 1, 0, TRAMA_E_SYSTEM, "a.npy"},
        {{{.name = "a.npy", .packed_by = 1, .bytes_by = 1}}, 1, 0, TRAMA_E_SYSTEM, "outside"},
        {{{.name = "a.npy", .packed_by = (uint32_t)-1, .bytes_by = (uint32_t)-1}}, 1, 0, TRAMA_E_ARGUMENT, "shape"},
        {{{.name = "a.npy", .method = 8, .packed_by = (uint32_t)-1}}, 1, 0, TRAMA_E_SYSTEM, "inflate"},
        {{{.name = "a.npy", .method = 8, .bytes_by = 1}}, 1, 0, TRAMA_E_SYSTEM, "inflate"},
        {{{.name = "a.npy", .method = 8, .bytes_by = (uint32_t)-1}}, 1, 0, TRAMA_E_SYSTEM, "inflate"},
        {{{.name = "a.npy", .method = 8, .bytes_by = 70000}}, 1, 0, TRAMA_E_SYSTEM, "inflate"},
        {{{.name = "a.npy", .method = 8, .bytes_by = 1u << 31}}, 1, 0, TRAMA_E_SYSTEM, "size is not possible"},
        {{{.name = "a.npy", .local_by = 1}}, 1, 0, TRAMA_E_SYSTEM, "outside"},
        {{{.name = "a.npy", .local_by = 1u << 30}}, 1, 0, TRAMA_E_SYSTEM, "outside"},
        {{{.name = "a.npy"}, {.name = "a.npy"}}, 2, 0, TRAMA_E_SYSTEM, "one name"},
        {{{.name = "a.npy"}, {.name = "b.npy", .local_by = (uint32_t)-163}}, 2, 0, TRAMA_E_SYSTEM, "overlap"},
        {{{.name = "a\xff.npy"}}, 1, 0, TRAMA_E_SYSTEM, "UTF-8"},
        {{{.name = "a.npy"}}, 1, 1, TRAMA_E_SYSTEM, "directory"},
        {{{.name = "a.npy"}}, 1, 1000, TRAMA_E_SYSTEM, "directory"},
        {{{.name = "a.npy"}}, 1, 65534, TRAMA_E_SYSTEM, "directory"},
    };
    for (size_t i = 0; i < sizeof tries / sizeof *tries; i++) {
        char what[40];
        snprintf(what, sizeof what, "archive %d", (int)i);
        write_made(tries[i].members, tries[i].n, 0, tries[i].entries_by);
        expect_refused(tries[i].status, tries[i].said, what);
    }
}
END_TEST

START_TEST(archives_that_end_early_are_refused)
{
    write_made((const made[]){{.name = "a.npy", .method = 8}}, 1, 300, 0);
    const size_t whole = filled;
    for (size_t n = 0; n < whole; n++) {
        ck_assert(!truncate(in_folder("made.npz"), (off_t)n));
        const trama_status got = trama_read_npy(in_folder("made.npz:a"), &dtype, &shape, &data);
        ck_assert_msg(got == TRAMA_E_ARGUMENT && !data, "%d bytes: %s", (int)n, trama_error());
        write_made((const made[]){{.name = "a.npy", .method = 8}}, 1, 300, 0);
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {archives_of_numpy_are_read, archives_are_checkpoints, made_archives_are_read,
                                  hostile_archives_are_refused, archives_that_end_early_are_refused};
    return folder_run("npz", tests, sizeof tests / sizeof *tests);
}
