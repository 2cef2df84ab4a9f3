/* SPDX-License-Identifier: Apache-2.0 */
/* The boxes that a layout cuts, beside its definition, a published example and cases of PyTorch. */
#include <check.h>
#include <string.h>

#include "bound.h"
#include "change.h"
#include "suite.h"

/* Pieces by dealing the elements: the first n mod p get one more. */
START_TEST(splitting_is_balanced_and_complete)
{
    for (int64_t n = 0; n < 40; n++)
        for (int parts = 1; parts < 12; parts++) {
            int64_t next = 0;
            for (int i = 0; i < parts; i++) {
                int64_t lo, length, dealt = 0;
                piece_of(n, parts, i, &lo, &length);
                for (int64_t k = i; k < n; k += parts)
                    dealt++;
                ck_assert_int_eq(lo, next);
                ck_assert_int_eq(length, dealt);
                next += length;
                for (int64_t k = lo; k < lo + length; k++)
                    ck_assert_int_eq(piece_find(n, parts, k), i);
            }
            ck_assert_int_eq(next, n);
        }
}
END_TEST

START_TEST(boxes_follow_the_definition_for_every_layout)
{
    static const char *const meshes[] = {"3", "2,3", "2,2,2", "[1,4],[20,3,1]"};
    for (size_t i = 0; i < 4; i++) {
        trama_mesh *m = trama_mesh_create(meshes[i]);
        layout_list list = {0};
        trama_shape shape = TRAMA_SHAPE(5, 1, 7);
        box whole = box_whole(shape);
        every_layout(m, 3, true, &list);
        for (int k = 0; k < list.n; k++)
            for (int position = 0; position < m->size; position++) {
                box b, naive = naive_box(m, &list.at[k], shape, position);
                layout_box(m, &list.at[k], &whole, position, &b);
                ck_assert(box_equal(&b, &naive));
            }
        ARRAY_FREE(&list);
        trama_mesh_destroy(&m);
    }
}
END_TEST

/* Where two axes cut one dim, several processes were told the same offset. [process] offset and extent. */
START_TEST(pytorch_161368_offsets_of_uneven_shards_on_two_axes)
{
    static const struct {
        const char *mesh, *layout;
        int64_t n, lo[8], length[8];
    } cases[] = {{"2,4", "S(0),S(0)", 2, {0, 1, 1, 1, 1, 2, 2, 2}, {1, 0, 0, 0, 1, 0, 0, 0}},
                 {"4,2", "S(0),S(0)", 2, {0, 1, 1, 2, 2, 2, 2, 2}, {1, 0, 1, 0, 0, 0, 0, 0}},
                 {"2,2", "S(0),S(0)", 5, {0, 2, 3, 4}, {2, 1, 1, 1}},
                 {"2,2", "S(0)[1],S(0)[0]", 5, {0, 3, 2, 4}, {2, 1, 1, 1}},
                 {"2,4", "S(0),S(0)", 11, {0, 2, 4, 5, 6, 8, 9, 10}, {2, 2, 1, 1, 2, 1, 1, 1}},
                 {"2,4", "S(0)[1],S(0)[0]", 11, {0, 3, 6, 9, 2, 5, 8, 10}, {2, 2, 2, 1, 1, 1, 1, 1}},
                 {"[3,1],2", "S(0),S(0)", 11, {0, 5, 9, 10}, {5, 4, 1, 1}}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        trama_mesh *m = trama_mesh_create(cases[i].mesh);
        trama_layout l;
        ck_assert(!trama_layout_parse(m, 1, cases[i].layout, &l));
        for (int position = 0; position < m->size; position++) {
            int64_t lo, length;
            bool held;
            ck_assert(!trama_layout_box(m, &l, TRAMA_SHAPE(cases[i].n), position, &lo, &length, NULL, &held));
            ck_assert_int_eq(lo, cases[i].lo[position]);
            ck_assert_int_eq(length, cases[i].length[position]);
        }
        trama_mesh_destroy(&m);
    }
}
END_TEST

/* dist/README.md: mesh [[2,4,5],[0,1,3]], a 4x3 tensor of 1..12 as S(0),S(1): process 2 holds [[1],[4]], 3 [[9],[12]].
 */
START_TEST(the_published_example_of_boxes)
{
    trama_mesh *m = trama_mesh_create("2,3:2,4,5,0,1,3");
    trama_layout l;
    box b, whole = box_whole(TRAMA_SHAPE(4, 3));
    ck_assert(!trama_layout_parse(m, 2, "S(0),S(1)", &l));
    layout_box(m, &l, &whole, mesh_find(m, 2), &b);
    ck_assert(b.lo[0] == 0 && b.n[0] == 2 && b.lo[1] == 0 && b.n[1] == 1);
    layout_box(m, &l, &whole, mesh_find(m, 3), &b);
    ck_assert(b.lo[0] == 2 && b.n[0] == 2 && b.lo[1] == 2 && b.n[1] == 1);
    trama_mesh_destroy(&m);
}
END_TEST

typedef struct visited {
    const trama_mesh *mesh;
    const trama_layout *layout;
    trama_shape shape;
    box where;
    int n;
    box last;
} visited;

static void visit(void *arg, const box *piece, const int *coordinate)
{
    visited *v = arg;
    box naive = naive_box(v->mesh, v->layout, v->shape, mesh_position(v->mesh, coordinate)), common;
    ck_assert(box_equal(piece, &naive));
    ck_assert(box_intersect(piece, &v->where, &common));
    ck_assert(v->n == 0 || box_compare(&v->last, piece) < 0);
    v->last = *piece;
    v->n++;
}

/* Each distinct box that meets a window once, in ascending order: compared with all processes one by one. */
static void visit_windows(const char *mesh)
{
    trama_mesh *m = trama_mesh_create(mesh);
    layout_list list = {0};
    uint64_t seed = 1;
    every_layout(m, 2, true, &list);
    for (int k = 0; k < list.n; k++) {
        visited v = {m, &list.at[k], TRAMA_SHAPE(7, 5), {.ndim = 2}, 0, {0}};
        box whole = box_whole(v.shape), seen[12];
        int n = 0;
        for (int d = 0; d < 2; d++) {
            v.where.lo[d] = random_below(&seed, 5);
            v.where.n[d] = random_below(&seed, (int)(v.shape.dim[d] - v.where.lo[d]) + 1);
        }
        for (int position = 0; position < m->size; position++) {
            box b = naive_box(m, &list.at[k], v.shape, position), common;
            bool again = false;
            for (int i = 0; i < n; i++)
                again |= box_equal(&seen[i], &b);
            if (!again && box_intersect(&b, &v.where, &common))
                seen[n++] = b;
        }
        layout_overlaps(m, &list.at[k], &whole, &v.where, visit, &v);
        ck_assert_int_eq(v.n, n);
    }
    ARRAY_FREE(&list);
    trama_mesh_destroy(&m);
}

START_TEST(overlaps_visit_each_box_that_meets_a_window_once)
{
    visit_windows("2,3,2");
    visit_windows("[1,4],[3,1,3],[9,1]"); /* of which some pieces between others are empty */
}
END_TEST

START_TEST(boxes_hold_more_than_2_31_elements)
{
    trama_mesh *m = trama_mesh_create("3,7");
    trama_layout l, r;
    box b, whole = box_whole(TRAMA_SHAPE(5000000000, 3));
    int64_t sum = 0;
    ck_assert(!trama_layout_parse(m, 2, "S(0),S(0)", &l) && !trama_layout_parse(m, 2, "R,R", &r));
    for (int i = 0; i < 21; i++) {
        layout_box(m, &l, &whole, i, &b);
        sum += box_count(&b);
        ck_assert_int_eq(bound_lacking(m, &l, m, &r, &whole, i), 15000000000 - box_count(&b));
    }
    ck_assert_int_eq(sum, 15000000000);
    ck_assert_int_eq(b.lo[0] + b.n[0], 5000000000);
    ck_assert_int_eq(piece_find(5000000000, 7, 4999999999), 6);
    trama_mesh_destroy(&m);
}
END_TEST

int main(void)
{
    const TTest *tests[] = {
        splitting_is_balanced_and_complete,
        boxes_follow_the_definition_for_every_layout,
        pytorch_161368_offsets_of_uneven_shards_on_two_axes,
        the_published_example_of_boxes,
        overlaps_visit_each_box_that_meets_a_window_once,
        boxes_hold_more_than_2_31_elements,
    };
    return suite_run("layout_boxes", NULL, NULL, tests, sizeof tests / sizeof *tests);
}
