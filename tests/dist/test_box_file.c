/* SPDX-License-Identifier: Apache-2.0 */
/* Boxes in files and their check sums, against naive loops; the choice of states by patterns. */
#define _GNU_SOURCE
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "box_file.h"
#include "checkpoint.h"
#include "content_sum.h"
#include "suite.h"

static int random_below(int n)
{
    static uint64_t state = 1;
    state = state * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (int)((state >> 33) % (uint64_t)n);
}

static trama_shape random_shape(void)
{
    trama_shape s = {.ndim = random_below(5)};
    for (int d = 0; d < s.ndim; d++)
        s.dim[d] = 1 + random_below(7);
    return s;
}

static box random_box(trama_shape s)
{
    box b = {.ndim = s.ndim};
    for (int d = 0; d < s.ndim; d++) {
        b.lo[d] = random_below((int)s.dim[d]);
        b.n[d] = random_below(9) ? 1 + random_below((int)(s.dim[d] - b.lo[d])) : 0;
    }
    return b;
}

/* The place in the tensor of element i of a box, in row-major order. */
static int64_t place_of(trama_shape s, const box *b, int64_t i)
{
    int64_t at = 0, stride = 1;
    for (int d = s.ndim - 1; d >= 0; d--) {
        at += (b->lo[d] + i % b->n[d]) * stride;
        i /= b->n[d];
        stride *= s.dim[d];
    }
    return at;
}

START_TEST(boxes_are_written_and_read_where_they_lie)
{
    FILE *f = tmpfile();
    for (int round = 0; round < 2000; round++) {
        uint32_t file[2401] = {0}, given[2401], got[2401];
        const trama_shape s = random_shape();
        const box b = random_box(s);
        const int64_t n = trama_shape_count(s), m = box_count(&b);
        for (int i = 0; i < n; i++)
            file[i] = (uint32_t)i;
        for (int i = 0; i < m; i++)
            given[i] = (uint32_t)(5000 + i);
        ck_assert(file_write_at(fileno(f), file, 4 * n, 12) && box_write(fileno(f), 12, s, 4, &b, given));
        for (int i = 0; i < m; i++)
            file[place_of(s, &b, i)] = given[i];
        ck_assert(file_read_at(fileno(f), got, 4 * n, 12));
        ck_assert_mem_eq(got, file, (size_t)(4 * n));
        ck_assert(box_read(fileno(f), 12, s, 4, &b, got));
        ck_assert_mem_eq(got, given, (size_t)(4 * m));
    }
    ck_assert(!ftruncate(fileno(f), 3));
    ck_assert(!file_read_at(fileno(f), (char[4]){0}, 4, 0));
    fclose(f);
}
END_TEST

START_TEST(slabs_are_the_box_in_parts)
{
    for (int round = 0; round < 2000; round++) {
        unsigned char times[2401] = {0};
        const trama_shape s = random_shape();
        const box b = random_box(s);
        const int64_t most = 1 + random_below(300);
        const box_slabs slabs = box_slabs_of(&b, 4, most);
        int64_t before = -1;
        for (int64_t i = 0; i < slabs.n; i++) {
            const box slab = box_slab(&slabs, i);
            ck_assert(box_contains(&b, &slab) && box_count(&slab) > 0);
            ck_assert(4 * box_count(&slab) <= most || box_count(&slab) == 1);
            for (int64_t j = 0; j < box_count(&slab); j++) {
                const int64_t at = place_of(s, &slab, j);
                ck_assert(at > before);
                before = at;
                times[at]++;
            }
        }
        for (int64_t i = 0; i < box_count(&b); i++)
            ck_assert_int_eq(times[place_of(s, &b, i)], 1);
    }
}
END_TEST

START_TEST(sums_add_up_however_a_tensor_is_cut)
{
    static const size_t sizes[] = {1, 2, 4, 8, 16};
    for (int round = 0; round < 1000; round++) {
        const size_t size = sizes[round % 5];
        unsigned char data[2401 * 16], part[2401 * 16];
        const trama_shape s = random_shape();
        const box whole = box_whole(s);
        const int64_t n = trama_shape_count(s);
        for (size_t i = 0; i < (size_t)n * size; i++)
            data[i] = (unsigned char)random_below(256);
        const uint64_t sum = content_sum(data, 0, n * (int64_t)size, size);
        const box_slabs slabs = box_slabs_of(&whole, size, 1 + random_below(200));
        uint64_t parts = 0;
        for (int64_t i = slabs.n - 1; i >= 0; i--) {
            const box b = box_slab(&slabs, i);
            for (int64_t j = 0; j < box_count(&b); j++)
                memcpy(part + (size_t)j * size, data + (size_t)place_of(s, &b, j) * size, size);
            parts += content_sum_box(s, size, &b, part);
        }
        ck_assert(parts == sum);
        data[random_below((int)(n * (int64_t)size))] ^= (unsigned char)(1 << random_below(8));
        ck_assert(content_sum(data, 0, n * (int64_t)size, size) != sum);
    }
}
END_TEST

START_TEST(patterns_choose_names)
{
    const struct {
        const char *patterns, *name;
        bool chosen;
    } tries[] = {{NULL, "w", true},        {"", "w", false},          {"", "", true},
                 {"w", "w", true},         {"w", "ww", false},        {"w*", "w", true},
                 {"w*", "w.m", true},      {"*m", "w.m", true},       {"a,b?,w.*", "b", false},
                 {"a,b?,w.*", "b1", true}, {"a,b?,w.*", "w.m", true}, {"*a*b", "xaxbxb", true},
                 {"*a*b", "xaxbx", false}, {"**", "", true}};
    for (size_t i = 0; i < sizeof tries / sizeof *tries; i++)
        ck_assert_msg(name_is_chosen(tries[i].patterns, tries[i].name) == tries[i].chosen, "'%s' and '%s'",
                      tries[i].patterns, tries[i].name);
    const char *const map = "w=weight,b=w,long.name=x";
    const char *const pairs[][2] = {{"w", "weight"}, {"b", "w"}, {"long.name", "x"}, {"long", "long"}, {"x", "x"}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        char *name = name_in_file(map, pairs[i][0]);
        ck_assert_str_eq(name, pairs[i][1]);
        free(name);
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {boxes_are_written_and_read_where_they_lie, slabs_are_the_box_in_parts,
                                  sums_add_up_however_a_tensor_is_cut, patterns_choose_names};
    return suite_run("box_file", NULL, NULL, tests, sizeof tests / sizeof *tests);
}
