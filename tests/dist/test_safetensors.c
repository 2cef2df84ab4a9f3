/* SPDX-License-Identifier: Apache-2.0 */
/* Files of safetensors that are written here byte by byte, and hostile ones. */
#define _GNU_SOURCE /* mkdtemp */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "own_folder.h"
#include "trama_checkpoint.h"


/* A file: a length, a header, and bytes behind it. */
static void write_file(const char *name, uint64_t length, const char *header, size_t n, const void *data, size_t bytes)
{
    FILE *f = fopen(in_folder(name), "wb");
    ck_assert_ptr_nonnull(f);
    for (int i = 0; i < 8; i++)
        fputc((int)(length >> 8 * i & 255), f);
    fwrite(header, 1, n, f);
    fwrite(data, 1, bytes, f);
    fclose(f);
}

static void write_made(const char *name, const char *header, const void *data, size_t bytes)
{
    write_file(name, strlen(header), header, strlen(header), data, bytes);
}

static trama_checkpoint *open_made(const char *name)
{
    trama_checkpoint *c = NULL;
    ck_assert_msg(!trama_checkpoint_open(in_folder(name), &c), "%s", trama_error());
    return c;
}

static void expect_tensor(const trama_checkpoint *c, const char *name, trama_dtype dtype, trama_shape shape,
                          const void *content)
{
    char read[64];
    const int i = trama_checkpoint_find(c, name);
    const size_t bytes = (size_t)trama_shape_count(shape) * trama_dtype_size(dtype);
    ck_assert_msg(i >= 0, "%s", name);
    ck_assert(trama_checkpoint_dtype(c, i) == dtype && trama_shape_equal(trama_checkpoint_shape(c, i), shape));
    ck_assert_msg(!trama_checkpoint_read(c, i, read, bytes), "%s", trama_error());
    ck_assert(!memcmp(read, content, bytes));
    ck_assert(!trama_checkpoint_verify(c, i));
}

START_TEST(a_file_written_byte_by_byte_is_read)
{
    static const unsigned char data[] = {0,   0,   128, 63,  0,   0,   0,   64, 0, 0,   64, 64,  0,
                                         0,   128, 64,  0,   0,   160, 64,  0,  0, 192, 64, 254, 255,
                                         255, 255, 255, 255, 255, 255, 128, 63, 0, 192, 0,  60,  1};
    const float w[] = {1, 2, 3, 4, 5, 6};
    const int64_t n = -2;
    write_made("a.safetensors",
               "{\"__metadata__\":{\"format\":\"pt\",\"trama.step\":\"41\"},"
               "\"w.\\u00e9\\\"\xf0\x9f\x8c\x8a\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]},"
               "\"n\":{\"shape\":[],\"data_offsets\":[24,32],\"dtype\":\"I64\"},"
               "\"none\":{\"dtype\":\"F64\",\"shape\":[0,4],\"data_offsets\":[24,24]},"
               "\"a/b\":{\"dtype\":\"BF16\",\"shape\":[2],\"data_offsets\":[32,36]},"
               "\"\":{\"dtype\":\"F16\",\"shape\":[1,1],\"data_offsets\":[36,38]},"
               "\"yes\":{\"dtype\":\"BOOL\",\"shape\":[1],\"data_offsets\":[38,39]}}   ",
               data, sizeof data);
    trama_checkpoint *c = open_made("a.safetensors");
    ck_assert_int_eq(trama_checkpoint_count(c), 6);
    ck_assert_int_eq(trama_checkpoint_step(c), 41);
    ck_assert_str_eq(trama_checkpoint_get(c, "format"), "pt");
    expect_tensor(c, "w.\xc3\xa9\"\xf0\x9f\x8c\x8a", TRAMA_F32, TRAMA_SHAPE(2, 3), w);
    expect_tensor(c, "n", TRAMA_I64, TRAMA_SCALAR, &n);
    expect_tensor(c, "none", TRAMA_F64, TRAMA_SHAPE(0, 4), "");
    expect_tensor(c, "a/b", TRAMA_BF16, TRAMA_SHAPE(2), (const uint16_t[]){0x3f80, 0xc000}); /* 1, -2 */
    expect_tensor(c, "", TRAMA_F16, TRAMA_SHAPE(1, 1), (const uint16_t[]){0x3c00});          /* 1 */
    expect_tensor(c, "yes", TRAMA_BOOL, TRAMA_SHAPE(1), "\1");
    float part[2];
    ck_assert(!trama_checkpoint_read_box(c, trama_checkpoint_find(c, "w.\xc3\xa9\"\xf0\x9f\x8c\x8a"),
                                         (const int64_t[]){0, 1}, (const int64_t[]){2, 1}, part, sizeof part));
    ck_assert(part[0] == 2 && part[1] == 5);
    trama_checkpoint_destroy(&c);
    write_made("empty.safetensors", "{}", "", 0);
    c = open_made("empty.safetensors");
    ck_assert_int_eq(trama_checkpoint_count(c), 0);
    trama_checkpoint_destroy(&c);
}
END_TEST

static void expect_refused(const char *name, trama_status status, const char *said, const char *header)
{
    trama_checkpoint *c = NULL;
    const trama_status got = trama_checkpoint_open(in_folder(name), &c);
    ck_assert_msg(got == status && strstr(trama_error(), said) && strstr(trama_error(), folder) && !c, "%s: %s: %s",
                  header, trama_status_text(got), trama_error());
}

#define T(dtype, shape, from, to) "{\"dtype\":\"" dtype "\",\"shape\":[" shape "],\"data_offsets\":[" from "," to "]}"
#define HUGE_SHAPE "4294967296,4294967296"

START_TEST(hostile_headers_are_refused)
{
    static const struct {
        const char *header;
        size_t bytes;
        trama_status status;
        const char *said;
    } tries[] = {
        {"{\"a\":" T("F32", "2", "0", "8") "}", 7, TRAMA_E_SYSTEM, "tensor a: its bytes 0 to 8 lie outside the 7"},
        {"{\"a\":" T("F32", "2", "0", "8") "}", 9, TRAMA_E_SYSTEM, "1 bytes at its end belong to no tensor"},
        {"{\"a\":" T("F32", "2", "4", "12") "}", 12, TRAMA_E_SYSTEM, "tensor a: there is a gap"},
        {"{\"a\":" T("F32", "2", "0", "8") ",\"b\":" T("F32", "2", "4", "12") "}", 12, TRAMA_E_SYSTEM,
         "tensor b: its bytes overlap"},
        {"{\"a\":" T("F32", "2", "0", "8") ",\"b\":" T("F32", "2", "0", "8") "}", 8, TRAMA_E_SYSTEM, "overlap"},
        {"{\"a\":" T("F32", "2", "0", "8") ",\"b\":" T("F32", "1", "12", "16") "}", 16, TRAMA_E_SYSTEM, "gap"},
        {"{\"a\":" T("F32", "2", "0", "8") ",\"z\":" T("F32", "0", "4", "4") "}", 8, TRAMA_E_SYSTEM, "overlap"},
        {"{\"a\":" T("F32", "2", "0", "4") "}", 4, TRAMA_E_SYSTEM, "need 8 bytes, and it has 4"},
        {"{\"a\":" T("F32", "1", "8", "4") "}", 8, TRAMA_E_SYSTEM, "outside"},
        {"{\"a\":" T("F32", "1", "-4", "0") "}", 8, TRAMA_E_SYSTEM, "data_offsets"},
        {"{\"a\":" T("F32", "1", "0.5", "4.5") "}", 8, TRAMA_E_SYSTEM, "data_offsets"},
        {"{\"a\":" T("F32", "1", "0", "1e300") "}", 8, TRAMA_E_SYSTEM, "data_offsets"},
        {"{\"a\":" T("F32", "1", "0", "18446744073709551620") "}", 4, TRAMA_E_SYSTEM, "data_offsets"},
        {"{\"a\":" T("F32", HUGE_SHAPE, "0", "0") "}", 0, TRAMA_E_SHAPE, "tensor a"},
        {"{\"a\":" T("F32", HUGE_SHAPE ",0", "0", "0") "}", 0, TRAMA_E_SHAPE, "tensor a"},
        {"{\"a\":" T("F32", "-1", "0", "4") "}", 4, TRAMA_E_SYSTEM, "extents"},
        {"{\"a\":" T("F32", "\"1\"", "0", "4") "}", 4, TRAMA_E_SYSTEM, "extents"},
        {"{\"a\":" T("F32", "1,1,1,1,1,1,1,1,1", "0", "4") "}", 4, TRAMA_E_SHAPE, "8 dims"},
        {"{\"a\":" T("F8_E4M3", "4", "0", "4") "}", 4, TRAMA_E_DTYPE, "F8_E4M3; store it as BF16"},
        {"{\"a\":" T(">f4", "1", "0", "4") "}", 4, TRAMA_E_DTYPE, ">f4"},
        {"{\"a\":" T("F32", "1", "0", "4") ",\"a\":" T("F32", "1", "4", "8") "}", 8, TRAMA_E_SYSTEM,
         "tensor a: there are two"},
        {"{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F64\",\"shape\":[1],\"data_offsets\":[0,8]}}", 8, TRAMA_E_SYSTEM,
         "dtype"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1]}}", 4, TRAMA_E_SYSTEM, "data_offsets"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4,4]}}", 4, TRAMA_E_SYSTEM, "data_offsets"},
        {"{\"a\":{\"dtype\":\"F32\",\"data_offsets\":[0,4]}}", 4, TRAMA_E_SYSTEM, "shape"},
        {"{\"a\":[]}", 0, TRAMA_E_SYSTEM, "no JSON object"},
        {"{\"__metadata__\":[]}", 0, TRAMA_E_SYSTEM, "__metadata__"},
        {"{\"__metadata__\":{\"a\":1}}", 0, TRAMA_E_SYSTEM, "__metadata__"},
        {"[]", 0, TRAMA_E_SYSTEM, "no JSON object"},
        {"", 0, TRAMA_E_SYSTEM, "no JSON object"},
        {" {}", 0, TRAMA_E_SYSTEM, "no JSON object"},
        {"{}x", 0, TRAMA_E_SYSTEM, "no JSON"},
        {"{", 0, TRAMA_E_SYSTEM, "no JSON"},
        {"{\"a\\u0000b\":" T("F32", "1", "0", "4") "}", 4, TRAMA_E_SYSTEM, "zero byte"},
        {"{\"a\xff\":" T("F32", "1", "0", "4") "}", 4, TRAMA_E_SYSTEM, "UTF-8"},
        {"{\"a\xc0\x80\":" T("F32", "1", "0", "4") "}", 4, TRAMA_E_SYSTEM, "UTF-8"},
        {"{\"a\xed\xa0\x80\":" T("F32", "1", "0", "4") "}", 4, TRAMA_E_SYSTEM, "UTF-8"},
        {"{\"a\\ud800\":" T("F32", "1", "0", "4") "}", 4, TRAMA_E_SYSTEM, "no JSON"},
        {"{\"a\\u001b[2J\":[]}", 0, TRAMA_E_SYSTEM, "tensor a?[2J"},
    };
    static const char data[64];
    for (size_t i = 0; i < sizeof tries / sizeof *tries; i++) {
        write_made("b.safetensors", tries[i].header, data, tries[i].bytes);
        expect_refused("b.safetensors", tries[i].status, tries[i].said, tries[i].header);
    }
}
END_TEST

START_TEST(wrong_lengths_and_files_are_refused)
{
    static char zeros[1000], many[4001];
    write_file("b.safetensors", 3, "{}", 2, "", 0);
    expect_refused("b.safetensors", TRAMA_E_SYSTEM, "ends within its header of 3 bytes", "length");
    write_file("b.safetensors", UINT64_MAX, "{}", 2, "", 0);
    expect_refused("b.safetensors", TRAMA_E_ARGUMENT, "18446744073709551615 bytes", "length");
    write_file("b.safetensors", 2, "{\0", 2, "", 0);
    expect_refused("b.safetensors", TRAMA_E_SYSTEM, "zero byte", "zero");
    for (int i = 0; i < 2000; i++)
        memcpy(many + (size_t)i * 2, i ? "0," : "{\"", 2);
    write_made("b.safetensors", many, "", 0);
    expect_refused("b.safetensors", TRAMA_E_SYSTEM, "more elements", "crowded");
    memset(many, '[', 3000);
    memcpy(many, "{\"a\":", 5);
    many[3000] = 0;
    write_made("b.safetensors", many, "", 0);
    expect_refused("b.safetensors", TRAMA_E_SYSTEM, "no JSON", "nested");
    FILE *f = fopen(in_folder("b.safetensors"), "wb");
    fwrite(zeros, 1, 7, f);
    fclose(f);
    expect_refused("b.safetensors", TRAMA_E_ARGUMENT, "shorter than 8 bytes", "short");
    expect_refused("none.safetensors", TRAMA_E_SYSTEM, "No such file", "none");
    mkdir(in_folder("d.safetensors"), 0777);
    expect_refused("d.safetensors", TRAMA_E_ARGUMENT, "no regular file", "folder");
    write_made("c.safetensors", "{}", "", 0);
    chmod(in_folder("c.safetensors"), 0);
    if (!suite_skips(geteuid() == 0, "a file without rights, since root may read all"))
        expect_refused("c.safetensors", TRAMA_E_SYSTEM, "Permission denied", "rights");
}
END_TEST

static void write_text(const char *name, const char *words)
{
    FILE *f = fopen(in_folder(name), "wb");
    fputs(words, f);
    fclose(f);
}

START_TEST(shards_are_read_by_their_index)
{
    const int32_t one = 1, two[] = {2, 3};
    write_made("m-1.safetensors", "{\"__metadata__\":{\"k\":\"v\"},\"b\":" T("I32", "", "0", "4") "}", &one, 4);
    write_made("m-2.safetensors", "{\"__metadata__\":{\"k\":\"v\"},\"a\":" T("I32", "2", "0", "8") "}", two, 8);
    write_text(
        "m.safetensors.index.json",
        "{\"metadata\":{\"total_size\":12},\"weight_map\":{\"a\":\"m-2.safetensors\",\"b\":\"m-1.safetensors\"}}");
    trama_checkpoint *c = open_made("m.safetensors.index.json");
    ck_assert_int_eq(trama_checkpoint_count(c), 2);
    ck_assert_int_eq(trama_checkpoint_key_count(c), 1);
    expect_tensor(c, "b", TRAMA_I32, TRAMA_SCALAR, &one);
    expect_tensor(c, "a", TRAMA_I32, TRAMA_SHAPE(2), two);
    trama_checkpoint_destroy(&c);
    static const struct {
        const char *map;
        trama_status status;
        const char *said;
    } tries[] = {
        {"{\"a\":\"m-2.safetensors\",\"b\":\"m-2.safetensors\"}", TRAMA_E_SYSTEM, "tensor b: the file m-2"},
        {"{\"a\":\"m-2.safetensors\",\"a\":\"m-2.safetensors\"}", TRAMA_E_SYSTEM, "lists 2 tensors"},
        {"{\"a\":\"m-2.safetensors\",\"c\":\"m-1.safetensors\"}", TRAMA_E_SYSTEM, "tensor c: the file m-1"},
        {"{\"a\":\"../m-2.safetensors\"}", TRAMA_E_SYSTEM, "same folder"},
        {"{\"a\":\"/etc/passwd\"}", TRAMA_E_SYSTEM, "same folder"},
        {"{\"a\":7}", TRAMA_E_SYSTEM, "same folder"},
        {"{\"a\":\"m-3.safetensors\"}", TRAMA_E_SYSTEM, "m-3.safetensors: cannot be opened"},
        {"[]", TRAMA_E_SYSTEM, "weight_map"},
    };
    for (size_t i = 0; i < sizeof tries / sizeof *tries; i++) {
        char words[300];
        snprintf(words, sizeof words, "{\"weight_map\":%s}", tries[i].map);
        write_text("w.safetensors.index.json", words);
        expect_refused("w.safetensors.index.json", tries[i].status, tries[i].said, words);
    }
    write_made("m-1.safetensors", "{\"a\":" T("I32", "", "0", "4") "}", &one, 4);
    write_text("w.safetensors.index.json", "{\"weight_map\":{\"a\":\"m-2.safetensors\",\"b\":\"m-1.safetensors\"}}");
    expect_refused("w.safetensors.index.json", TRAMA_E_SYSTEM, "", "the same name in two shards");
    write_text("w.safetensors.index.json", "");
    expect_refused("w.safetensors.index.json", TRAMA_E_ARGUMENT, "empty", "empty");
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {a_file_written_byte_by_byte_is_read, hostile_headers_are_refused,
                                  wrong_lengths_and_files_are_refused, shards_are_read_by_their_index};
    return folder_run("safetensors", tests, sizeof tests / sizeof *tests);
}
