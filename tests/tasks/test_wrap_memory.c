/* SPDX-License-Identifier: Apache-2.0 */
/* Boxes of the host that share memory: against a table of all elements. */
#include <check.h>
#include <string.h>

#include "suite.h"
#include "wrap.h"

enum { ELEMENTS = 4096 };
static double memory[ELEMENTS];

static trama_host_box box_at(int64_t first, int64_t rows, int64_t columns, int64_t row_stride, int64_t column_stride)
{
    return (trama_host_box){.data = memory + first,
                            .extent = {rows, columns},
                            .stride = {row_stride, column_stride},
                            .bytes = sizeof memory};
}

/* Element by element. */
static bool share_by_table(int n, const trama_host_box *boxes)
{
    static int owner[ELEMENTS];
    memset(owner, -1, sizeof owner);
    for (int b = 0; b < n; b++)
        for (int64_t i = 0; i < boxes[b].extent[0]; i++)
            for (int64_t j = 0; j < boxes[b].extent[1]; j++) {
                int *at = &owner[(double *)boxes[b].data - memory + i * boxes[b].stride[0] + j * boxes[b].stride[1]];
                if (*at >= 0)
                    return true;
                *at = b;
            }
    return false;
}

static bool share(int n, const trama_host_box *boxes)
{
    int one = -1, other = -1;
    const bool found = boxes_share_memory(n, boxes, 2, sizeof *memory, &one, &other);
    if (found) {
        ck_assert(0 <= one && one < other && other < n);
        ck_assert(share_by_table(2, (trama_host_box[]){boxes[one], boxes[other]}));
    }
    return found;
}

START_TEST(blocks_of_columns_of_one_array_interleave_without_sharing)
{
    trama_host_box boxes[] = {box_at(0, 20, 5, 10, 1), box_at(5, 20, 5, 10, 1)};
    ck_assert(!share(2, boxes));
    boxes[1] = box_at(4, 20, 5, 10, 1);
    ck_assert(share(2, boxes));
    boxes[1] = box_at(15, 20, 5, 10, 1); /* one row later */
    ck_assert(!share(2, boxes));
    boxes[1] = box_at(197, 3, 4, 10, 1); /* its columns 7 to 10 go on in the next row; the last row has no more */
    ck_assert(!share(2, boxes));
    boxes[1] = box_at(187, 3, 4, 10, 1); /* element 190 is in both */
    ck_assert(share(2, boxes));
}
END_TEST

START_TEST(boxes_of_different_strides_share_what_they_share)
{
    trama_host_box boxes[] = {box_at(0, 20, 1, 4, 1), box_at(2, 10, 1, 8, 1)};
    ck_assert(!share(2, boxes));
    boxes[1] = box_at(4, 10, 1, 8, 1);
    ck_assert(share(2, boxes));
    boxes[1] = box_at(1, 10, 3, 8, 1);
    ck_assert(!share(2, boxes));
    boxes[1] = box_at(1, 10, 4, 8, 1);
    ck_assert(share(2, boxes));
}
END_TEST

START_TEST(an_empty_box_shares_nothing)
{
    trama_host_box boxes[] = {box_at(0, 4, 4, 4, 1), box_at(0, 0, 4, 4, 1), box_at(0, 4, 0, 4, 1)};
    ck_assert(!share(3, boxes));
    ck_assert(!share(0, boxes));
}
END_TEST

static uint64_t state;

static int64_t pick(int64_t n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)(state >> 33) % n;
}

/* Of one array with rows of `ld` elements, or each with strides of its own. */
static trama_host_box random_box(int64_t ld)
{
    const int64_t stride = ld ? ld : 1 + pick(12), inner = ld ? 1 : 1 + pick(3);
    const int64_t most = (stride - 1) / inner + 1;
    trama_host_box b = box_at(pick(200), 1 + pick(6), 1 + pick(most), stride, inner);
    if (pick(4) == 0) { /* stored column by column */
        const int64_t n = b.extent[0];
        b.extent[0] = b.extent[1];
        b.extent[1] = n;
        b.stride[0] = inner;
        b.stride[1] = stride;
    }
    return b;
}

START_TEST(random_boxes_agree_with_the_table)
{
    int sharing = 0;
    for (int round = 0; round < 20000; round++) {
        trama_host_box boxes[4];
        const int n = 2 + (int)pick(3);
        const int64_t ld = pick(2) ? 3 + pick(20) : 0;
        for (int i = 0; i < n; i++)
            boxes[i] = random_box(ld);
        const bool expected = share_by_table(n, boxes);
        sharing += expected;
        ck_assert_msg(share(n, boxes) == expected, "round %d: %s", round, expected ? "a pair is missed" : "no pair");
    }
    ck_assert_msg(sharing > 2000 && sharing < 18000, "%d rounds with a pair", sharing);
}
END_TEST

/* Rows of one element: all boxes interleave, and a comparison of each with each takes 10^10 steps. */
START_TEST(many_boxes_of_one_array_are_compared_with_their_neighbours_alone)
{
    enum { MANY = 100000 };
    trama_host_box *boxes = trama_alloc(MANY * sizeof *boxes);
    int one, other;
    for (int i = 0; i < MANY; i++)
        boxes[i] = (trama_host_box){
            .data = (void *)(uintptr_t)(4096 + 8 * (uintptr_t)i), .extent = {1000, 1}, .stride = {MANY, 1}};
    ck_assert(!boxes_share_memory(MANY, boxes, 2, 8, &one, &other));
    boxes[MANY - 1].data = (void *)(uintptr_t)(4096 + 8 * (uintptr_t)77);
    ck_assert(boxes_share_memory(MANY, boxes, 2, 8, &one, &other));
    ck_assert_int_eq(one, 77);
    ck_assert_int_eq(other, MANY - 1);
    free(boxes);
}
END_TEST

int main(void)
{
    const TTest *tests[] = {
        blocks_of_columns_of_one_array_interleave_without_sharing,
        boxes_of_different_strides_share_what_they_share,
        an_empty_box_shares_nothing,
        random_boxes_agree_with_the_table,
        many_boxes_of_one_array_are_compared_with_their_neighbours_alone,
    };
    return suite_run("wrap_memory", NULL, NULL, tests, sizeof tests / sizeof *tests);
}
