/* SPDX-License-Identifier: Apache-2.0 */
/* Completion of one op after another: the reference cases of dist/README.md, layouts of the user, which are final,
 * conflicts, which are reported, and two meshes in one op, which are an error. */
#include "completing.h"

/* ---- Reference cases; -1 on an operand is open, on what the user did not annotate ---- */

START_TEST(matmul_of_a_split_contraction_is_partial)
{
    trama_value *x = tensor("x", TRAMA_SHAPE(64, 32), "[1,0]"), *y = tensor("y", TRAMA_SHAPE(32, 48), "S(0),?");
    trama_value *z = trama_matmul(x, y);
    complete();
    expect_operand(z, 0, "[1,0]");
    expect_operand(z, 1, "[0,-1]");
    expect_value(z, "[1,-1] P{0:sum}");
}
END_TEST

START_TEST(matmul_gives_its_second_operand_the_split_of_the_first)
{
    trama_value *x = tensor("x", TRAMA_SHAPE(64, 32), "[1,0]"), *y = tensor("y", TRAMA_SHAPE(32, 48), NULL);
    trama_value *z = trama_matmul(x, y);
    complete();
    expect_value(y, "[0,-1]");
    expect_value(z, "[1,-1] P{0:sum}");
}
END_TEST

START_TEST(matmul_gives_its_first_operand_the_split_of_the_second)
{
    trama_value *x = tensor("x", TRAMA_SHAPE(64, 32), "?,?"), *y = tensor("y", TRAMA_SHAPE(32, 48), "[1,0]");
    trama_value *z = trama_matmul(x, y);
    complete();
    expect_value(x, "[-1,1]");
    expect_value(z, "[-1,0] P{1:sum}");
}
END_TEST

START_TEST(batched_transposed_matmul_has_no_partial)
{
    trama_value *x = tensor("x", TRAMA_SHAPE(512, 48, 64, 32), "[1,-1,-1,0]");
    trama_value *y = tensor("y", TRAMA_SHAPE(512, 48, 64, 16), NULL), *z = trama_matmul_trans(x, y, true, false);
    complete();
    expect_value(y, "[1,-1,-1,-1]");
    expect_value(z, "[1,-1,0,-1]");
}
END_TEST

START_TEST(add_joins_the_splits_of_its_operands)
{
    trama_value *x = tensor("x", TRAMA_SHAPE(96, 24, 48), "S(0),?"),
                *y = tensor("y", TRAMA_SHAPE(96, 24, 48), "?,S(1)");
    trama_value *z = trama_add(x, y);
    complete();
    expect_value(x, "[0,1,-1]");
    expect_value(y, "[0,1,-1]");
    expect_value(z, "[0,1,-1]");
}
END_TEST

START_TEST(sum_over_split_dims_is_partial_on_their_axes)
{
    trama_value *x = tensor("x", TRAMA_SHAPE(96, 24, 48), "[-1,0,1]");
    trama_value *z = trama_sum_over(x, 2, ((int[]){1, 2}), false);
    complete();
    expect_operand(z, 0, "[-1,0,1]");
    expect_value(z, "[-1] P{0:sum,1:sum}");
}
END_TEST

START_TEST(reshape_carries_splits_of_leading_factors)
{
    trama_value *x = tensor("x", TRAMA_SHAPE(6, 12, 48, 24), "[0,-1,1,-1]");
    trama_value *z = trama_reshape(x, TRAMA_SHAPE(72, 3, 16, 24));
    complete();
    expect_operand(z, 0, "[0,-1,1,-1]");
    expect_value(z, "[0,1,-1,-1]");
}
END_TEST

START_TEST(softmax_wants_its_dim_whole)
{
    trama_mesh_destroy(&mesh);
    mesh = trama_mesh_create("2,4");
    trama_value *x = tensor("x", TRAMA_SHAPE(8, 16, 32), "[1,-1,0]"), *z = trama_softmax(x, -1);
    complete();
    expect_value(x, "[1,-1,0]");
    expect_operand(z, 0, "[1,-1,-1]");
    expect_value(z, "[1,-1,-1]");
}
END_TEST

START_TEST(without_a_rule_for_the_splits_everything_is_replicated)
{
    trama_value *x = tensor("x", TRAMA_SHAPE(9, 4), "[0,1]"), *z = trama_reshape(x, TRAMA_SHAPE(4, 9));
    complete();
    expect_operand(z, 0, "[-1,-1]");
    expect_value(z, "[-1,-1]");
}
END_TEST

/* A relu after a partial product must have it reduced first. */
START_TEST(a_nonlinear_op_has_its_operand_reduced)
{
    trama_value *x = tensor("x", TRAMA_SHAPE(2, 2), NULL), *y = tensor("y", TRAMA_SHAPE(2, 2), "S(0),R");
    trama_value *z = trama_matmul(x, y), *r = trama_relu(z);
    complete();
    expect_value(z, "P,R");
    expect_operand(r, 0, "R,R");
}
END_TEST

/* ---- The user's layouts ---- */

START_TEST(what_the_user_wrote_is_final_whole_included)
{
    trama_value *x = tensor("x", TRAMA_SHAPE(8, 6), "S(0),R"), *y = tensor("y", TRAMA_SHAPE(8, 6), "R,R");
    trama_value *z = trama_shard(trama_add(x, y), mesh, "R,S(1)");
    complete();
    expect_value(x, "S(0),R");
    expect_value(y, "R,R");
    expect_value(z, "R,S(1)");
}
END_TEST

START_TEST(open_axes_are_completed_and_written_ones_are_not)
{
    trama_value *x = tensor("x", TRAMA_SHAPE(8, 6), "S(0),S(1)"), *y = tensor("y", TRAMA_SHAPE(8, 6), "?,R");
    trama_value *z = trama_add(x, y);
    complete();
    expect_value(y, "S(0),R");
    expect_value(z, "S(0),S(1)");
}
END_TEST

START_TEST(splits_spread_backward_too)
{
    trama_value *x = tensor("x", TRAMA_SHAPE(8, 6), NULL), *h = trama_relu(trama_scale(x, 2)), *z = trama_exp(h);
    trama_shard(z, mesh, "S(0),S(1)");
    complete();
    expect_value(x, "S(0),S(1)");
    expect_value(h, "S(0),S(1)");
}
END_TEST

/* ---- Conflicts and errors ---- */

/* 96 rows of 48 against 96 rows: to move the small operand costs less. */
/* Though the product stands first in the program, it is asked in the second pass only. */
START_TEST(pointwise_ops_speak_before_products)
{
    trama_value *x = tensor("x", TRAMA_SHAPE(6, 8), NULL), *w = tensor("w", TRAMA_SHAPE(8, 9), "S(0),R");
    trama_value *z = trama_matmul(x, w), *y = tensor("y", TRAMA_SHAPE(6, 8), "S(0),R"), *sum = trama_add(x, y);
    complete();
    expect_value(x, "S(0),R");
    expect_value(sum, "S(0),R");
    expect_operand(z, 0, "S(0),R");
}
END_TEST

START_TEST(a_conflict_is_reported_with_both_sources_and_the_cheaper_keeps_its_split)
{
    trama_value *x = tensor("small", TRAMA_SHAPE(96, 1), "S(0),R"), *y = tensor("large", TRAMA_SHAPE(96, 48), "R,S(0)");
    int lines[] = {x->where.line, y->where.line};
    trama_value *z = trama_add(x, y);
    complete();
    ck_assert_ptr_nonnull(l.report);
    char place[64];
    for (int i = 0; i < 2; i++) {
        snprintf(place, sizeof place, "completing.h:%d", lines[i]);
        ck_assert_msg(strstr(l.report, place) != NULL, "no %s in: %s", place, l.report);
    }
    ck_assert_msg(strstr(l.report, "small") && strstr(l.report, "large"), "%s", l.report);
    expect_value(x, "S(0),R");
    expect_value(y, "R,S(0)");
    expect_operand(z, 0, "R,S(0)");
    expect_operand(z, 1, "R,S(0)");
}
END_TEST

START_TEST(a_tie_goes_to_the_first_operand)
{
    trama_mesh_destroy(&mesh);
    mesh = trama_mesh_create("2,2");
    trama_value *x = tensor("x", TRAMA_SHAPE(8, 4), "S(0),R"), *y = tensor("y", TRAMA_SHAPE(8, 4), "R,S(0)");
    trama_value *z = trama_mul(x, y);
    complete();
    expect_operand(z, 0, "S(0),R");
    expect_operand(z, 1, "S(0),R");
    ck_assert_msg(l.report && *l.report, "the conflict is not reported");
}
END_TEST

START_TEST(programs_without_conflicts_report_nothing)
{
    trama_add(tensor("x", TRAMA_SHAPE(8, 6), "S(0),?"), tensor("y", TRAMA_SHAPE(8, 6), "?,S(1)"));
    complete();
    ck_assert_str_eq(l.report, "");
}
END_TEST

START_TEST(one_axis_wanted_by_two_dims_goes_to_the_first_factor)
{
    trama_value *x = tensor("x", TRAMA_SHAPE(8, 6), "S(0),R"), *y = tensor("y", TRAMA_SHAPE(8, 6), "S(1),R");
    trama_value *z = trama_add(x, y);
    complete();
    bool first = l.op[z->node->id]->in[0].axis[0].dim == l.op[z->node->id]->in[1].axis[0].dim;
    ck_assert(first && l.op[z->node->id]->in[0].axis[0].kind == TRAMA_SPLIT);
}
END_TEST

START_TEST(two_meshes_in_one_op_are_an_error_that_names_both)
{
    trama_mesh *far = trama_mesh_create("2:6,7");
    trama_value *x = tensor("near", TRAMA_SHAPE(8, 6), "S(0),R"), *y = tensor("far", TRAMA_SHAPE(8, 6), NULL);
    trama_shard(y, far, "S(0)");
    int line = __LINE__ + 1;
    trama_value *z = trama_add(x, y);
    ck_assert_ptr_nonnull(z);
    ck_assert_int_eq(complete_program(p, 64, single, &l), TRAMA_E_LAYOUT);
    char place[64];
    snprintf(place, sizeof place, "test_complete.c:%d", line);
    const char *words[] = {place, "near", "far", "2,3", "2:6,7", "trama_reshard"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        ck_assert_msg(strstr(trama_error(), words[i]) != NULL, "no %s in: %s", words[i], trama_error());
    trama_mesh_destroy(&far);
}
END_TEST

START_TEST(a_reshard_brings_values_of_two_meshes_together)
{
    trama_mesh *far = trama_mesh_create("2:6,7");
    trama_value *x = tensor("near", TRAMA_SHAPE(8, 6), "S(0),R"), *y = tensor("far", TRAMA_SHAPE(8, 6), NULL);
    trama_shard(y, far, "S(1)");
    trama_value *moved = trama_reshard(y, mesh, "S(0),R"), *z = trama_add(x, moved);
    complete();
    ck_assert(trama_mesh_equal(l.mesh[y->id], far) && trama_mesh_equal(l.mesh[moved->id], mesh));
    expect_value(z, "S(0),R");
    trama_mesh_destroy(&far);
}
END_TEST

/* Process 1 holds no piece, so the open axes cannot split y as x is split. */
START_TEST(a_mask_keeps_open_axes_whole)
{
    trama_value *y = trama_shard(trama_relu(tensor("x", TRAMA_SHAPE(6, 6), "S(0),R")), mesh, "?,? mask{1,0,1,0,0,0}");
    ck_assert_msg(y != NULL, "%s", trama_program_error(p));
    complete();
    expect_value(y, "R,R mask{1,0,1,0,0,0}");
}
END_TEST

int main(void)
{
    const TTest *tests[] = {
        matmul_of_a_split_contraction_is_partial,
        matmul_gives_its_second_operand_the_split_of_the_first,
        matmul_gives_its_first_operand_the_split_of_the_second,
        batched_transposed_matmul_has_no_partial,
        add_joins_the_splits_of_its_operands,
        sum_over_split_dims_is_partial_on_their_axes,
        reshape_carries_splits_of_leading_factors,
        softmax_wants_its_dim_whole,
        without_a_rule_for_the_splits_everything_is_replicated,
        a_nonlinear_op_has_its_operand_reduced,
        what_the_user_wrote_is_final_whole_included,
        open_axes_are_completed_and_written_ones_are_not,
        splits_spread_backward_too,
        pointwise_ops_speak_before_products,
        a_conflict_is_reported_with_both_sources_and_the_cheaper_keeps_its_split,
        a_tie_goes_to_the_first_operand,
        programs_without_conflicts_report_nothing,
        one_axis_wanted_by_two_dims_goes_to_the_first_factor,
        two_meshes_in_one_op_are_an_error_that_names_both,
        a_reshard_brings_values_of_two_meshes_together,
        a_mask_keeps_open_axes_whole,
    };
    return suite_run("complete", set_up, tear_down, tests, sizeof tests / sizeof *tests);
}
