/* SPDX-License-Identifier: Apache-2.0 */
/* Messages name the right line, the right call, and which of several arguments it was. */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "program.h"
#include "suite.h"
#include "trama_op_define.h"
#include "trama_ops.h"
#include "trama_rule.h"

static trama_program *p;
static trama_value *x;
static trama_mesh *mesh;

static void set_up(void)
{
    p = trama_program_create();
    mesh = trama_mesh_create("a=2,b=2");
    x = trama_input(p, "x", TRAMA_F64, TRAMA_SHAPE(4, 6));
}

static void tear_down(void)
{
    trama_program_destroy(&p);
    trama_mesh_destroy(&mesh);
}

/* The message has the words; with a line above 0 also "(FILE:line)". */
static void says(const char *words, int line)
{
    char place[64] = "";
    if (line)
        snprintf(place, sizeof place, "test_messages.c:%d)", line);
    ck_assert_msg(strstr(trama_error(), words) != NULL, "no '%s' in: %s", words, trama_error());
    ck_assert_msg(strstr(trama_error(), place) != NULL, "no '%s' in: %s", place, trama_error());
    trama_program_clear_error(p);
}

START_TEST(a_second_annotation_names_the_line_of_the_first)
{
    trama_shard(x, mesh, "S(0),R");
    int line = __LINE__ - 1;
    ck_assert_ptr_null(trama_shard(x, mesh, "R,S(0)"));
    says("another annotation already", line);
    trama_value *y = trama_neg(x);
    trama_shard_op(y, mesh, NULL, "R,R");
    ck_assert_ptr_null(trama_shard(y, mesh, "R,S(0)"));
    says("another annotation already", line + 5);
    ck_assert_ptr_null(trama_shard_op(y, mesh, NULL, "R,R"));
    says("fixed already", line + 5);
}
END_TEST

START_TEST(an_order_that_is_too_short_names_the_line_of_the_annotation)
{
    trama_shard(x, mesh, "S(0),R");
    int line = __LINE__ - 1;
    ck_assert_int_eq(trama_order(p, 2, ((int[]){0, 1})), TRAMA_E_ARGUMENT);
    says("order: of 2 processes", line);
}
END_TEST

START_TEST(a_name_that_is_taken_names_the_line_of_the_other)
{
    trama_input(p, "y", TRAMA_F32, TRAMA_SCALAR);
    int line = __LINE__ - 1;
    ck_assert_ptr_null(trama_state(p, "y", TRAMA_F32, TRAMA_SCALAR, NULL));
    says("'y' is taken", line);
    ck_assert_ptr_null(trama_value_rename(x, "y"));
    says("rename of x: the name 'y' is taken", line);
    ck_assert_ptr_nonnull(trama_target_create(p, "t", x));
    ck_assert_ptr_null(trama_target_create(p, "t", x));
    says("'t' is taken", line + 6);
}
END_TEST

/* A chain is checked once, at its end: what it says of a mesh is what the parser said. */
START_TEST(a_mesh_that_could_not_be_made_gives_the_reason_where_it_is_used)
{
    trama_mesh *none = trama_mesh_create("dp=2,mp");
    trama_layout layout;
    ck_assert_ptr_null(trama_shard(x, none, "S(0)"));
    says("shard of x: the mesh is NULL: mesh: 'dp=2,mp' is not understood at 'mp'", 0);
    none = trama_mesh_create_ids(1, (int[]){-3}, NULL, NULL);
    ck_assert_ptr_null(trama_shard_op(trama_neg(x), none, "S(0)", NULL));
    says("the mesh is NULL: mesh: every axis needs at least one process", 0);
    none = trama_mesh_weighted(mesh, 0, (int[]){0, 1});
    ck_assert_ptr_null(trama_reshard(x, none, "S(0)"));
    says("the mesh is NULL: mesh: weight 0 of axis 0 is 0", 0);
    none = trama_mesh_child(mesh, 1, (int[]){1}, NULL, (int[]){9});
    ck_assert_int_eq(trama_layout_parse(none, 2, "R", &layout), TRAMA_E_LAYOUT);
    says("the mesh is NULL: mesh: process id 9 of the child is not in its parent", 0);
    ck_assert_ptr_null(trama_shard(x, NULL, "S(0)"));
    ck_assert_ptr_null(strstr(trama_error(), "9 of the child"));
    says("shard of x: the mesh is NULL", 0);
}
END_TEST

START_TEST(apply_says_which_of_its_arguments_it_is)
{
    trama_value *many[9] = {x};
    ck_assert_ptr_null(trama_apply_at(TRAMA_HERE, p, NULL, 1, &x, NULL));
    says("apply: the op is NULL", 0);
    ck_assert_ptr_null(trama_apply_at(TRAMA_HERE, p, &trama_op_neg, 1, NULL, NULL));
    says("apply: the 1 operands for neg are NULL", 0);
    ck_assert_ptr_null(trama_apply(&trama_op_neg, 9, many, NULL));
    says("apply: 9 operands for neg; an op has 0 to 8", 0);
}
END_TEST

START_TEST(errors_of_one_of_several_arguments_name_it)
{
    const trama_op *op;
    trama_layout layout;
    int64_t offset[2], extent[2];
    ck_assert(!trama_layout_parse(mesh, 2, "S(0),R", &layout));
    ck_assert(trama_op_define(NULL, &op));
    says("trama_op_define: the definition is NULL", 0);
    ck_assert(trama_rule_infer(x, mesh, &layout, NULL, NULL, NULL));
    says("rule: x is not the result of an op", 0);
    ck_assert(trama_layout_box(mesh, &layout, TRAMA_SHAPE(4, 6), 4, offset, extent, NULL, NULL));
    says("4 is no position in a mesh of 4", 0);
    ck_assert(trama_layout_box(mesh, &layout, TRAMA_SHAPE(4, 6), 0, offset, NULL, NULL, NULL));
    says("the extent's address is NULL", 0);
    ck_assert_ptr_null(trama_sum_over(x, 2, ((int[]){1, -1}), false));
    says("dim -1 is named twice", 0);
    ck_assert_ptr_null(trama_sum_over(x, 1, ((int[]){2}), false));
    says("dim 2 is not there", 0);
    ck_assert_ptr_null(trama_mesh_weighted(mesh, 2, (int[]){1, 1}));
    says("weights for axis 2 of a mesh of 2 axes", 0);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        a_second_annotation_names_the_line_of_the_first,
        an_order_that_is_too_short_names_the_line_of_the_annotation,
        a_name_that_is_taken_names_the_line_of_the_other,
        a_mesh_that_could_not_be_made_gives_the_reason_where_it_is_used,
        apply_says_which_of_its_arguments_it_is,
        errors_of_one_of_several_arguments_name_it,
    };
    return suite_run("messages", set_up, tear_down, tests, sizeof tests / sizeof *tests);
}
