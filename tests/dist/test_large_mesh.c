/* SPDX-License-Identifier: Apache-2.0 */
/* Meshes of up to 2^24 processes: the walk over their boxes against each box by itself, and what summaries take. */
#include <check.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "layout_walk.h"
#include "suite.h"
#include "trama_reshard_plan.h"

/* ---- The walk ---- */

static void expect_same_boxes(const char *mesh_text, const char *layout_text, trama_shape shape)
{
    trama_mesh *mesh = trama_mesh_create(mesh_text);
    trama_layout layout;
    box whole = box_whole(shape), b;
    layout_walk w;
    ck_assert_msg(mesh != NULL, "%s", trama_error());
    ck_assert_int_eq(trama_layout_parse(mesh, shape.ndim, layout_text, &layout), TRAMA_OK);
    layout_walk_begin(&w, mesh, &layout, &whole);
    for (int i = 0; i < 3 * mesh->size; i++) { /* in turn, then to and fro */
        int position = i < mesh->size ? i : (int)((int64_t)i * 7919 % mesh->size);
        int coordinate[TRAMA_MAX_AXES];
        layout_walk_to(&w, position);
        layout_box(mesh, &layout, &whole, position, &b);
        mesh_coordinate(mesh, position, coordinate);
        ck_assert_msg(box_equal(&b, &w.box), "%s, %s: the box of position %d", mesh_text, layout_text, position);
        ck_assert_int_eq(memcmp(coordinate, w.coordinate, (size_t)mesh->ndim * sizeof *coordinate), 0);
    }
    layout_walk_end(&w);
    trama_mesh_destroy(&mesh);
}

START_TEST(a_walk_comes_by_the_box_of_each_process)
{
    expect_same_boxes("1", "R", TRAMA_SCALAR);
    expect_same_boxes("7", "S(0)", TRAMA_SHAPE(3));
    expect_same_boxes("7", "S(0)", TRAMA_SHAPE(100));
    expect_same_boxes("3,5,2", "S(1),S(0),R", TRAMA_SHAPE(11, 13));
    expect_same_boxes("3,5,2", "S(0)[2],S(0)[0],S(0)[1]", TRAMA_SHAPE(101));
    expect_same_boxes("3,5,2", "S(0)[1],P,S(0)[0]", TRAMA_SHAPE(4, 0));
    expect_same_boxes("a=[3,1,4],b=2,c=[1,5]", "S(0)[1],S(1),S(0)[0]", TRAMA_SHAPE(97, 5));
    expect_same_boxes("a=[3,1,4],b=2,c=[1,5]", "S(0)[0],S(0)[2],S(0)[1]", TRAMA_SHAPE(1000));
    expect_same_boxes("2,1,3,1,2,2,1,2", "S(0),S(1),S(2),S(0),S(1),S(2),R,S(0)", TRAMA_SHAPE(17, 1, 9));
}
END_TEST

/* ---- Cost of summaries ---- */

static int64_t address_space(void)
{
    long long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    ck_assert(file && fscanf(file, "%lld", &pages) == 1);
    fclose(file);
    return pages * sysconf(_SC_PAGESIZE);
}

static void summarize(const char *mesh_text, const char *from_text, const char *to_text, trama_shape shape)
{
    trama_mesh *mesh = trama_mesh_create(mesh_text);
    trama_layout from, to;
    trama_reshard_lack lack;
    char *summary, *lines;
    ck_assert_msg(mesh != NULL, "%s", trama_error());
    ck_assert_int_eq(trama_layout_parse(mesh, shape.ndim, from_text, &from), TRAMA_OK);
    ck_assert_int_eq(trama_layout_parse(mesh, shape.ndim, to_text, &to), TRAMA_OK);
    ck_assert_int_eq(trama_layout_summary(mesh, &from, shape, &summary), TRAMA_OK);
    ck_assert_int_eq(trama_layout_describe_some(mesh, &from, shape, mesh->size - 8, 8, &lines), TRAMA_OK);
    ck_assert_int_eq(trama_reshard_lacking(mesh, &from, mesh, &to, TRAMA_F64, shape, &lack), TRAMA_OK);
    free(summary);
    free(lines);
    trama_mesh_destroy(&mesh);
}

/* In a process of its own: the limit stays. */
START_TEST(summaries_of_the_largest_meshes_take_less_than_100_megabytes)
{
    if (suite_is_sanitized()) {
        printf("skipped: memory with a sanitizer, which takes terabytes of addresses\n");
        return;
    }
    const rlim_t most = (rlim_t)address_space() + 100 * 1000 * 1000;
    ck_assert_int_eq(setrlimit(RLIMIT_AS, &(struct rlimit){most, most}), 0);
    summarize("16777216", "S(0)", "R", TRAMA_SHAPE(16777216));
    summarize("4096,4096", "S(0),S(1)", "S(1),S(0)", TRAMA_SHAPE(100000, 100000));
    summarize("8,8,8,8,8,8,8,8", "S(0),S(1),S(2),S(3),S(0),S(1),S(2),S(3)", "S(3),S(2),S(1),S(0),R,R,R,R",
              TRAMA_SHAPE(16, 777, 216, 5));
}
END_TEST

START_TEST(lines_outside_the_mesh_are_an_error)
{
    trama_mesh *mesh = trama_mesh_create("6");
    trama_layout layout;
    char *lines = NULL;
    ck_assert_int_eq(trama_layout_parse(mesh, 1, "S(0)", &layout), TRAMA_OK);
    static const int wrong[][2] = {{-1, 1}, {0, 7}, {6, 1}, {0, -1}, {7, 0}, {2147483647, 2147483647}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        ck_assert_int_eq(trama_layout_describe_some(mesh, &layout, TRAMA_SHAPE(6), wrong[i][0], wrong[i][1], &lines),
                         TRAMA_E_ARGUMENT);
    ck_assert_ptr_null(lines);
    ck_assert_int_eq(trama_layout_describe_some(mesh, &layout, TRAMA_SHAPE(6), 6, 0, &lines), TRAMA_OK);
    ck_assert_str_eq(lines, "");
    free(lines);
    ck_assert_int_eq(trama_layout_summary(NULL, &layout, TRAMA_SHAPE(6), &lines), TRAMA_E_ARGUMENT);
    ck_assert_int_eq(trama_layout_summary(mesh, NULL, TRAMA_SHAPE(6), &lines), TRAMA_E_ARGUMENT);
    ck_assert_int_eq(trama_layout_summary(mesh, &layout, TRAMA_SHAPE(6), NULL), TRAMA_E_ARGUMENT);
    ck_assert_int_eq(trama_layout_describe(NULL, &layout, TRAMA_SHAPE(6), &lines), TRAMA_E_ARGUMENT);
    ck_assert_int_eq(trama_reshard_lacking(mesh, &layout, mesh, &layout, TRAMA_F32, TRAMA_SHAPE(6), NULL),
                     TRAMA_E_ARGUMENT);
    trama_mesh_destroy(&mesh);
}
END_TEST

int main(void)
{
    const TTest *tests[] = {
        a_walk_comes_by_the_box_of_each_process,
        summaries_of_the_largest_meshes_take_less_than_100_megabytes,
        lines_outside_the_mesh_are_an_error,
    };
    return suite_run("large meshes", NULL, NULL, tests, sizeof tests / sizeof *tests);
}
