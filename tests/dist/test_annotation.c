/* SPDX-License-Identifier: Apache-2.0 */
/* Annotations read back as the user wrote them, beside those that completion found, and taken back. */
#include <check.h>
#include <string.h>

#include "layout.h"
#include "suite.h"
#include "trama_complete.h"
#include "trama_ops.h"

static trama_program *p;
static trama_mesh *mesh;

static void set_up(void)
{
    p = trama_program_create();
    mesh = trama_mesh_create("dp=2,mp=3");
}

static void tear_down(void)
{
    trama_program_destroy(&p);
    trama_mesh_destroy(&mesh);
}

static trama_value *input(const char *name, int64_t rows, int64_t columns)
{
    return trama_input(p, name, TRAMA_F64, TRAMA_SHAPE(rows, columns));
}

static void expect_layout(const trama_mesh *on, const trama_layout *layout, const char *words)
{
    char *said = trama_layout_text(on, layout);
    ck_assert_str_eq(said, words);
    free(said);
}

START_TEST(what_was_said_of_a_value_is_read_back)
{
    trama_value *x = trama_shard(input("x", 4, 6), mesh, "dp,? mask{1,1,0,1,0,1}");
    ck_assert(!x); /* a list of dims cannot leave an axis open */
    trama_program_clear_error(p);
    x = trama_shard(input("y", 4, 6), mesh, "S(0),? mask{1,1,0,1,0,1}");
    trama_layout said;
    ck_assert(trama_mesh_equal(trama_annotation_mesh(x), mesh));
    ck_assert(trama_annotation_layout(x, &said));
    expect_layout(trama_annotation_mesh(x), &said, "S(0),? mask{1,1,0,1,0,1}");
    ck_assert(said.axis[1].kind == TRAMA_OPEN && !said.mask[2] && said.mask[3]);
    ck_assert_ptr_null(trama_annotation_device(x));
    ck_assert(trama_offload(x, "cpu"));
    ck_assert_str_eq(trama_annotation_device(x), "cpu");
}
END_TEST

START_TEST(of_what_nothing_was_said_nothing_is_read)
{
    trama_value *x = input("x", 4, 6), *z = trama_neg(x);
    trama_layout said = {.naxes = 7};
    for (int i = 0; i < 2; i++) {
        const trama_value *v = i ? z : x;
        ck_assert(!trama_annotation_mesh(v) && !trama_annotation_device(v) && !trama_annotation_op_mesh(v));
        ck_assert(!trama_annotation_layout(v, &said) && !trama_annotation_operand(v, 0, &said) &&
                  !trama_annotation_result(v, 0, &said));
        ck_assert_int_eq(trama_annotation_stage(v), TRAMA_NO_STAGE);
    }
    ck_assert_int_eq(said.naxes, 7);
}
END_TEST

START_TEST(a_mesh_is_read_back_with_its_parent_and_its_own_names)
{
    trama_mesh *child = trama_mesh_child(mesh, 1, (int[]){2}, (const char *const[]){"x"}, (int[]){4, 1});
    trama_mesh *equal = trama_mesh_create("y=2:4,1");
    ck_assert(child && trama_mesh_equal(child, equal));
    trama_value *v = trama_shard(input("v", 4, 6), equal, "y,-"), *w = trama_shard(input("w", 4, 6), child, "-,x");
    trama_mesh_destroy(&child);
    trama_mesh_destroy(&equal);
    ck_assert(v && w);
    ck_assert_str_eq(trama_mesh_axis_name(trama_annotation_mesh(v), 0), "y");
    ck_assert_ptr_null(trama_mesh_parent(trama_annotation_mesh(v)));
    ck_assert_str_eq(trama_mesh_axis_name(trama_annotation_mesh(w), 0), "x");
    const trama_mesh *parent = trama_mesh_parent(trama_annotation_mesh(w));
    ck_assert(trama_mesh_equal(parent, mesh));
    ck_assert_str_eq(trama_mesh_axis_name(parent, 1), "mp");
    ck_assert_ptr_null(trama_mesh_parent(parent));
    ck_assert(trama_add(v, w) && !trama_program_status(p)); /* to ops they are one mesh */
    char *words = NULL;
    ck_assert(!trama_complete_text(p, 1, &words));
    free(words);
}
END_TEST

START_TEST(the_layouts_of_an_op_are_read_back)
{
    trama_value *x = input("x", 4, 6), *y = input("y", 6, 8), *z = trama_matmul(x, y);
    ck_assert(trama_shard_op(z, mesh, "dp,-", NULL, "S(0),?"));
    trama_layout said;
    const trama_mesh *on = trama_annotation_op_mesh(z);
    ck_assert(trama_annotation_operand(z, 0, &said));
    expect_layout(on, &said, "S(0),R");
    ck_assert(trama_annotation_operand(z, 1, &said));
    expect_layout(on, &said, "?,?");
    ck_assert(trama_annotation_result(z, 0, &said));
    expect_layout(on, &said, "S(0),?");
    ck_assert(!trama_annotation_operand(z, 2, &said) && !trama_annotation_operand(z, -1, &said));
    ck_assert(!trama_annotation_result(z, 1, &said) && !trama_annotation_result(z, -1, &said));
    ck_assert_str_eq(trama_mesh_axis_name(on, 0), "dp");
}
END_TEST

START_TEST(a_stage_is_read_back_from_the_results_of_its_ops)
{
    trama_value *x = input("x", 4, 6);
    ck_assert(!trama_stage(p, 3));
    trama_value *h = trama_neg(x);
    ck_assert_int_eq(trama_annotation_stage(h), 3);
    ck_assert_int_eq(trama_annotation_stage(x), TRAMA_NO_STAGE);
}
END_TEST

/* ---- As completion found it ---- */

START_TEST(completion_answers_apart_from_annotations)
{
    trama_value *x = trama_shard(input("x", 4, 6), mesh, "S(0),?"), *y = input("y", 6, 8);
    trama_value *z = trama_matmul(x, y), *late;
    trama_completion *c = NULL;
    trama_layout said, found;
    ck_assert_msg(!trama_completion_create(p, 1, &c), "%s", trama_error());
    ck_assert(trama_annotation_layout(x, &said) && trama_completion_layout(c, x, &found));
    expect_layout(mesh, &said, "S(0),?");
    expect_layout(mesh, &found, "S(0),R");
    ck_assert(!trama_annotation_layout(z, &said) && trama_completion_layout(c, z, &found));
    expect_layout(trama_completion_mesh(c, z), &found, "S(0),R");
    ck_assert(trama_completion_operand(c, z, 1, &found));
    expect_layout(trama_completion_op_mesh(c, z), &found, "R,R");
    ck_assert(trama_completion_result(c, z, 0, &found) && !trama_completion_result(c, z, 1, &found));
    ck_assert(!trama_completion_operand(c, z, 2, &found) && !trama_completion_operand(c, x, 0, &found));
    ck_assert(!trama_completion_op_mesh(c, x) && !trama_completion_device(c, x));
    ck_assert_int_eq(trama_completion_stage(c, z), TRAMA_NO_STAGE);
    late = trama_neg(z);
    ck_assert(!trama_completion_mesh(c, late) && !trama_completion_layout(c, late, &found));
    trama_completion_destroy(&c);
    ck_assert_ptr_null(c);
}
END_TEST

START_TEST(completion_finds_stages_and_where_values_rest)
{
    trama_value *x = input("x", 4, 6), *h = trama_neg(x);
    trama_stage(p, 2);
    ck_assert(trama_offload(h, "cpu") && trama_neg(h));
    trama_value *seen = trama_stop_gradient(h);
    trama_completion *c;
    ck_assert_msg(!trama_completion_create(p, 1, &c), "%s", trama_error());
    ck_assert_int_eq(trama_completion_stage(c, h), 2);
    ck_assert_int_eq(trama_annotation_stage(h), TRAMA_NO_STAGE);
    ck_assert_str_eq(trama_completion_device(c, seen), "cpu");
    ck_assert_ptr_null(trama_annotation_device(seen));
    trama_completion_destroy(&c);
}
END_TEST

START_TEST(what_cannot_be_completed_says_why)
{
    trama_completion *c = NULL;
    ck_assert_int_eq(trama_completion_create(p, 0, &c), TRAMA_E_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(trama_error(), "trama_completion_create: the nominal extent is below 1"));
    trama_mesh *other = trama_mesh_create("2");
    trama_add(trama_shard(input("x", 4, 6), mesh, "R,R"), trama_shard(input("y", 4, 6), other, "R"));
    ck_assert_int_eq(trama_completion_create(p, 1, &c), TRAMA_E_LAYOUT);
    ck_assert_ptr_nonnull(strstr(trama_error(), "different meshes"));
    ck_assert_ptr_null(c);
    trama_mesh_destroy(&other);
}
END_TEST

/* ---- Taken back ---- */

START_TEST(what_was_taken_back_can_be_said_anew)
{
    trama_value *x = trama_offload(trama_shard(input("x", 4, 6), mesh, "dp,-"), "cpu");
    ck_assert_ptr_eq(trama_annotation_clear(x), x);
    ck_assert(!trama_annotation_mesh(x) && !trama_annotation_device(x));
    char *words = trama_program_text(p);
    ck_assert_msg(strstr(words, "x f64[4,6] = input  #") != NULL, "%s", words);
    free(words);
    trama_mesh *other = trama_mesh_create("4");
    ck_assert(trama_shard(x, other, "S(1)"));
    trama_mesh_destroy(&other);
}
END_TEST

START_TEST(clearing_reaches_the_op_that_made_the_value)
{
    trama_value *x = input("x", 4, 6);
    trama_stage(p, 1);
    trama_value *z = trama_neg(x);
    ck_assert(trama_shard_op(z, mesh, "dp,-", "dp,-"));
    ck_assert(trama_annotation_clear(z));
    ck_assert(!trama_annotation_op_mesh(z) && !trama_annotation_mesh(z));
    ck_assert_int_eq(trama_annotation_stage(z), TRAMA_NO_STAGE);
    ck_assert(trama_shard_op(z, mesh, "-,mp", "-,mp"));
    ck_assert(!trama_program_status(p));
}
END_TEST

START_TEST(a_cleared_program_is_as_one_without_annotations)
{
    char *words[2];
    for (int i = 0; i < 2; i++) {
        trama_value *x = input("x", 4, 6), *z = trama_exp(x);
        if (i) {
            trama_shard(x, mesh, "dp,mp");
            trama_shard_op(z, mesh, "-,mp", NULL);
            trama_annotation_clear(x);
            trama_annotation_clear(z);
        }
        ck_assert_msg(!trama_complete_text(p, 1, &words[i]), "%s", trama_error());
        trama_program_destroy(&p);
        p = trama_program_create();
    }
    ck_assert_str_eq(words[0], words[1]);
    free(words[0]);
    free(words[1]);
}
END_TEST

START_TEST(the_layout_of_a_reshard_is_not_taken_back)
{
    trama_value *moved = trama_reshard(input("x", 4, 6), mesh, "dp,-");
    ck_assert_ptr_null(trama_annotation_clear(moved));
    ck_assert_int_eq(trama_program_status(p), TRAMA_E_LAYOUT);
    ck_assert_ptr_nonnull(strstr(trama_program_error(p), "trama_reshard ("));
}
END_TEST

int main(void)
{
    const TTest *tests[] = {
        what_was_said_of_a_value_is_read_back,
        of_what_nothing_was_said_nothing_is_read,
        a_mesh_is_read_back_with_its_parent_and_its_own_names,
        the_layouts_of_an_op_are_read_back,
        a_stage_is_read_back_from_the_results_of_its_ops,
        completion_answers_apart_from_annotations,
        completion_finds_stages_and_where_values_rest,
        what_cannot_be_completed_says_why,
        what_was_taken_back_can_be_said_anew,
        clearing_reaches_the_op_that_made_the_value,
        a_cleared_program_is_as_one_without_annotations,
        the_layout_of_a_reshard_is_not_taken_back,
    };
    return suite_run("annotation", set_up, tear_down, tests, sizeof tests / sizeof *tests);
}
