/* SPDX-License-Identifier: Apache-2.0 */
/* Wrong uses of the builders: each gives NULL and a message that names the caller's line and what was wrong there. */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "program.h"
#include "suite.h"
#include "trama_network.h"
#include "trama_ops.h"
#include "trama_optimizer.h"

/* Two programs with some values each, made anew after each error. */
static trama_program *p, *other;
static trama_value *x, *vector, *any, *w, *labels, *loss, *foreign;
static trama_mesh *mesh, *pair;
static trama_optimizer sgd_of, *sgd = &sgd_of;

static void set_up(void)
{
    p = trama_program_create();
    other = trama_program_create();
    mesh = trama_mesh_create("a=2,b=2");
    pair = trama_mesh_create("2");
    x = trama_input(p, "x", TRAMA_F64, TRAMA_SHAPE(4, 6));
    any = trama_input(p, "any", TRAMA_F64, TRAMA_SHAPE(TRAMA_ANY, 6));
    labels = trama_input(p, "labels", TRAMA_I32, TRAMA_SHAPE(4));
    w = trama_parameter(p, "w", TRAMA_F64, TRAMA_SHAPE(6, 3), NULL);
    vector = trama_input(p, "v", TRAMA_F64, TRAMA_SHAPE(5));
    loss = trama_mean(trama_matmul(x, w));
    foreign = trama_input(other, "foreign", TRAMA_F64, TRAMA_SHAPE(4, 6));
    sgd_of = trama_sgd(0.1);
    ck_assert(!trama_program_status(p));
}

static void tear_down(void)
{
    trama_program_destroy(&p);
    trama_program_destroy(&other);
    trama_mesh_destroy(&mesh);
    trama_mesh_destroy(&pair);
}

static void check_message(const char *message, const char *words, int line)
{
    char place[64];
    snprintf(place, sizeof place, "test_program.c:%d: ", line);
    ck_assert_msg(strstr(message, place) != NULL, "line %d: the message names another place: %s", line, message);
    ck_assert_msg(strstr(message, words) != NULL, "line %d: no '%s' in: %s", line, words, message);
}

static void check_wrong(bool made, trama_status expected, const char *words, int line)
{
    ck_assert_msg(!made, "line %d: it was accepted", line);
    ck_assert_msg(trama_program_status(p) == expected, "line %d: the status is '%s'", line,
                  trama_status_text(trama_program_status(p)));
    check_message(trama_program_error(p), words, line);
    tear_down();
    set_up();
}

/* The expression is one call on one line. */
#define WRONG(status, words, expression) check_wrong((expression) != NULL, status, words, __LINE__)

/* ---- Inputs, state, constants ---- */

START_TEST(shapes_of_leaves_are_checked)
{
    int64_t nine[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
    WRONG(TRAMA_E_SHAPE, "at most 8 dims", trama_input(p, "y", TRAMA_F64, trama_shape_of(9, nine)));
    WRONG(TRAMA_E_SHAPE, "'y': dim 1 has extent -2", trama_input(p, "y", TRAMA_F64, TRAMA_SHAPE(3, -2)));
    WRONG(TRAMA_E_SHAPE, "only inputs may", trama_parameter(p, "y", TRAMA_F64, TRAMA_SHAPE(TRAMA_ANY), NULL));
    WRONG(TRAMA_E_SHAPE, "only inputs may", trama_state(p, "y", TRAMA_F64, TRAMA_SHAPE(2, TRAMA_ANY), NULL));
    WRONG(TRAMA_E_SHAPE, "only inputs may", trama_constant(p, TRAMA_F64, TRAMA_SHAPE(TRAMA_ANY), nine));
    WRONG(TRAMA_E_SHAPE, "it must be known", trama_fill(p, TRAMA_F64, TRAMA_SHAPE(TRAMA_ANY), 0));
    WRONG(TRAMA_E_SHAPE, "it must be known", trama_uniform(p, TRAMA_F64, TRAMA_SHAPE(TRAMA_ANY), 0, 1, 0, 0));
    WRONG(TRAMA_E_SHAPE, "at most 8 dims", trama_uniform(p, TRAMA_F64, trama_shape_of(9, nine), 0, 1, 0, 0));
}
END_TEST

START_TEST(names_types_and_data_of_leaves_are_checked)
{
    trama_init far = {0, 1, 0, (uint64_t)1 << 32};
    WRONG(TRAMA_E_ARGUMENT, "needs a name", trama_input(p, NULL, TRAMA_F64, TRAMA_SCALAR));
    WRONG(TRAMA_E_ARGUMENT, "needs a name", trama_parameter(p, "", TRAMA_F64, TRAMA_SCALAR, NULL));
    WRONG(TRAMA_E_ARGUMENT, "'x' is taken", trama_input(p, "x", TRAMA_F64, TRAMA_SCALAR));
    WRONG(TRAMA_E_ARGUMENT, "'x' is taken", trama_parameter(p, "x", TRAMA_F64, TRAMA_SCALAR, NULL));
    WRONG(TRAMA_E_ARGUMENT, "the name 'w' is taken (", trama_value_rename(x, "w"));
    WRONG(TRAMA_E_ARGUMENT, "the new name is empty", trama_value_rename(x, ""));
    WRONG(TRAMA_E_DTYPE, "99 is no element type", trama_input(p, "y", (trama_dtype)99, TRAMA_SCALAR));
    WRONG(TRAMA_E_DTYPE, "draw", trama_uniform(p, TRAMA_I32, TRAMA_SCALAR, 0, 1, 0, 0));
    WRONG(TRAMA_E_DTYPE, "uniform", trama_uniform_fixed(p, TRAMA_I32, TRAMA_SCALAR, 0, 1, 0, 0, 0));
    WRONG(TRAMA_E_ARGUMENT, "the data is NULL", trama_constant(p, TRAMA_F64, TRAMA_SHAPE(2), NULL));
    WRONG(TRAMA_E_ARGUMENT, "stream 4294967296", trama_parameter(p, "y", TRAMA_F64, TRAMA_SCALAR, &far));
}
END_TEST

START_TEST(without_a_program_there_is_a_message_and_no_value)
{
    ck_assert_ptr_null(trama_input(NULL, "y", TRAMA_F64, TRAMA_SCALAR));
    check_message(trama_error(), "the program is NULL", __LINE__ - 1);
    ck_assert_ptr_null(trama_constant(NULL, TRAMA_F64, TRAMA_SCALAR, &(double){1}));
    check_message(trama_error(), "the program is NULL", __LINE__ - 1);
    ck_assert_ptr_null(trama_fill(NULL, TRAMA_F64, TRAMA_SCALAR, 1));
    check_message(trama_error(), "the program is NULL", __LINE__ - 1);
    ck_assert_ptr_null(trama_uniform(NULL, TRAMA_F64, TRAMA_SCALAR, 0, 1, 0, 0));
    check_message(trama_error(), "the program is NULL", __LINE__ - 1);
    ck_assert_ptr_null(trama_run_counter(NULL));
    check_message(trama_error(), "the program is NULL", __LINE__ - 1);
    ck_assert_ptr_null(trama_target_create(NULL, "t", x));
    check_message(trama_error(), "the program is NULL", __LINE__ - 1);
    ck_assert_int_eq(trama_program_status(NULL), TRAMA_E_ARGUMENT);
}
END_TEST

/* ---- Ops ---- */

START_TEST(a_name_that_a_leaf_gave_up_is_free)
{
    trama_program *q = trama_program_create();
    trama_value *v = trama_input(q, "x", TRAMA_F32, TRAMA_SHAPE(2));
    for (int i = 0; i < 200; i++) /* more names than values */
        ck_assert_ptr_eq(trama_value_rename(v, i % 2 ? "x" : "z"), v);
    ck_assert_ptr_nonnull(trama_value_rename(v, "y"));
    ck_assert_ptr_nonnull(trama_input(q, "x", TRAMA_F32, TRAMA_SHAPE(2)));
    ck_assert_ptr_nonnull(trama_input(q, "z", TRAMA_F32, TRAMA_SHAPE(2)));
    ck_assert_ptr_null(trama_input(q, "y", TRAMA_F32, TRAMA_SHAPE(2)));
    trama_program_destroy(&q);
}
END_TEST

START_TEST(operands_that_do_not_fit_are_named_with_their_shapes)
{
    WRONG(TRAMA_E_SHAPE, "x f64[4,6]", trama_matmul(x, x));
    WRONG(TRAMA_E_SHAPE, "w f64[6,3]", trama_add(x, w));
    WRONG(TRAMA_E_SHAPE, "number of dims", trama_matmul(x, loss));
    WRONG(TRAMA_E_SHAPE, "v f64[5]", trama_matmul(x, vector));
    WRONG(TRAMA_E_SHAPE, "v f64[5]", trama_matmul(vector, x));
    WRONG(TRAMA_E_SHAPE, "v is a vector, which has no dims", trama_matmul_trans(vector, x, true, false));
    WRONG(TRAMA_E_SHAPE, "to transpose: leave trans_y away", trama_matmul_trans(x, vector, false, true));
    WRONG(TRAMA_E_DTYPE, "1 times it plus 0.5 is not of its type, i32", trama_add_scalar(labels, 0.5));
    WRONG(TRAMA_E_DTYPE, "no integers below 2^53", trama_scalar_sub(1e300, labels));
    WRONG(TRAMA_E_DTYPE, "cast it", trama_div_scalar(labels, 2));
    WRONG(TRAMA_E_DTYPE, "cast it", trama_scalar_div(1, labels));
    WRONG(TRAMA_E_SHAPE, "number of dims", trama_cross_entropy(x, trama_reshape(labels, TRAMA_SHAPE(2, 2))));
    WRONG(TRAMA_E_DTYPE, "labels (i32)", trama_add(x, labels));
    WRONG(TRAMA_E_DTYPE, "labels (i32)", trama_equal(x, labels));
    WRONG(TRAMA_E_DTYPE, "cast it", trama_exp(labels));
    WRONG(TRAMA_E_DTYPE, "cast it", trama_mean(labels));
    WRONG(TRAMA_E_DTYPE, "integer labels", trama_cross_entropy(x, loss));
    WRONG(TRAMA_E_DTYPE, "no element type", trama_cast(x, (trama_dtype)77));
}
END_TEST

START_TEST(dims_and_permutations_are_checked)
{
    WRONG(TRAMA_E_SHAPE, "no permutation of 2 dims", trama_transpose(x, ((int[]){0, 0})));
    WRONG(TRAMA_E_SHAPE, "no permutation of 2 dims", trama_transpose(x, ((int[]){0, 2})));
    WRONG(TRAMA_E_SHAPE, "changes the number of elements", trama_reshape(x, TRAMA_SHAPE(5, 5)));
    WRONG(TRAMA_E_SHAPE, "mixes a fed dim", trama_reshape(any, TRAMA_SHAPE(4, TRAMA_ANY)));
    WRONG(TRAMA_E_SHAPE, "is not worked out", trama_reshape(x, TRAMA_SHAPE(TRAMA_ANY)));
    WRONG(TRAMA_E_SHAPE, "dim 2 is not there", trama_sum_over(x, 1, ((int[]){2}), false));
    WRONG(TRAMA_E_SHAPE, "dim -2 is named twice", trama_max_over(x, 2, ((int[]){0, -2}), false));
    WRONG(TRAMA_E_SHAPE, "argmax of x: dim -3", trama_argmax(x, -3));
    WRONG(TRAMA_E_SHAPE, "softmax of x: dim 2", trama_softmax(x, 2));
    WRONG(TRAMA_E_ARGUMENT, "clamp of x: 2 to 1 is no range", trama_clamp(x, 2, 1));
}
END_TEST

START_TEST(ops_are_found_by_number_and_by_name)
{
    int n = 0;
    for (const trama_op *op; (op = trama_op_number(n)); n++)
        ck_assert_ptr_eq(trama_op_find(op->name), op);
    ck_assert_int_eq(n, trama_n_ops);
    ck_assert(!trama_op_number(-1) && !trama_op_number(n + 1) && !trama_op_find("matmull") && !trama_op_find(NULL));
}
END_TEST

START_TEST(operands_of_other_kinds_and_programs_are_refused)
{
    trama_value *two[] = {x, x};
    const trama_op *step = trama_op_find("sgd");
    WRONG(TRAMA_E_ARGUMENT, "foreign) belongs to another program", trama_add(x, foreign));
    two[0] = two[1] = x; /* made anew */
    WRONG(TRAMA_E_ARGUMENT, "x is no state", trama_apply_at(TRAMA_HERE, p, step, 2, two, NULL));
    two[0] = two[1] = x;
    WRONG(TRAMA_E_ARGUMENT, "takes 2 operands, not 1", trama_apply_at(TRAMA_HERE, p, step, 1, two, NULL));
    WRONG(TRAMA_E_ARGUMENT, "the op is NULL", trama_apply_at(TRAMA_HERE, p, NULL, 1, two, NULL));
    trama_value *effect = trama_minimize(loss, sgd);
    WRONG(TRAMA_E_ARGUMENT, "only stands in a target", trama_scale(effect, 2));
    WRONG(TRAMA_E_ARGUMENT, "x is no state", trama_assign(x, x));
    WRONG(TRAMA_E_ARGUMENT, "x is no state", trama_assign_if(x, x, loss));
    WRONG(TRAMA_E_SHAPE, "number of dims", trama_assign_if(w, w, x));
    WRONG(TRAMA_E_SHAPE, "w f64[6,3]", trama_assign(w, x));
    trama_value *big = trama_fill(p, TRAMA_F64, TRAMA_SHAPE(2, 6, 3), 0);
    WRONG(TRAMA_E_SHAPE, "another shape than the result", trama_assign(w, big));
}
END_TEST

/* ---- Annotations ---- */

START_TEST(layouts_that_do_not_fit_are_refused)
{
    WRONG(TRAMA_E_LAYOUT, "the mesh is NULL", trama_shard(x, NULL, "R,R"));
    WRONG(TRAMA_E_LAYOUT, "the layout is NULL", trama_shard(x, mesh, NULL));
    WRONG(TRAMA_E_LAYOUT, "it has 1 placements, the mesh 2 axes", trama_shard(x, mesh, "R"));
    WRONG(TRAMA_E_LAYOUT, "it has 3 placements, the mesh 2 axes", trama_shard(x, mesh, "R,R,R"));
    WRONG(TRAMA_E_LAYOUT, "axis 0 splits dim 2 of a tensor of 2", trama_shard(x, mesh, "S(2),R"));
    WRONG(TRAMA_E_LAYOUT, "the mapping has 1 entries", trama_shard(x, mesh, "[0]"));
    WRONG(TRAMA_E_LAYOUT, "there is no axis 2", trama_shard(x, mesh, "[0,2]"));
    WRONG(TRAMA_E_LAYOUT, "axis 0 is used twice", trama_shard(x, mesh, "[0,0]"));
    WRONG(TRAMA_E_LAYOUT, "letter 1 of 'sideways': not understood", trama_shard(x, mesh, "sideways"));
    WRONG(TRAMA_E_LAYOUT, "splits dim 9 of a tensor of 2", trama_reshard(x, mesh, "S(9),R"));
}
END_TEST

START_TEST(masks_that_do_not_fit_are_refused)
{
    WRONG(TRAMA_E_LAYOUT, "the mask has 1 entries", trama_shard(x, pair, "R mask{1}"));
    WRONG(TRAMA_E_LAYOUT, "the mask has 3 entries", trama_shard(x, pair, "R mask{1,0,1}"));
    WRONG(TRAMA_E_LAYOUT, "letter 10 of 'R mask{1,2}': not understood at '2}'", trama_shard(x, pair, "R mask{1,2}"));
    WRONG(TRAMA_E_LAYOUT, "without a holder", trama_shard(x, pair, "S(0) mask{1,0}"));
    WRONG(TRAMA_E_LAYOUT, "without a holder", trama_shard(x, pair, "R mask{0,0}"));
}
END_TEST

START_TEST(what_was_annotated_stays)
{
    trama_shard(x, pair, "S(0)");
    ck_assert_ptr_eq(trama_shard(x, pair, "S(0)"), x);
    WRONG(TRAMA_E_LAYOUT, "has another annotation already", trama_shard(x, pair, "S(1)"));
    trama_value *updated = trama_apply_at(TRAMA_HERE, p, trama_op_find("increment"), 1, &w, NULL);
    WRONG(TRAMA_E_LAYOUT, "shard the state", trama_shard(updated, pair, "S(0)"));
}
END_TEST

/* ---- Gradients and targets ---- */

START_TEST(losses_and_what_they_are_derived_by_are_checked)
{
    WRONG(TRAMA_E_SHAPE, "x is not", trama_gradient(x, w));
    WRONG(TRAMA_E_SHAPE, "float scalar", trama_gradient(trama_sum(labels), w));
    WRONG(TRAMA_E_DTYPE, "labels is i32", trama_gradient(loss, labels));
    WRONG(TRAMA_E_ARGUMENT, "foreign is no value", trama_gradient(loss, foreign));
    WRONG(TRAMA_E_SHAPE, "minimize: the loss", trama_minimize(x, sgd));
    WRONG(TRAMA_E_ARGUMENT, "the optimizer is NULL", trama_minimize(loss, NULL));
    WRONG(TRAMA_E_ARGUMENT, "depends on no parameter", trama_minimize(trama_mean(x), sgd));
}
END_TEST

START_TEST(targets_are_checked)
{
    WRONG(TRAMA_E_ARGUMENT, "a name", trama_target_create(p, NULL, loss));
    trama_target_create(p, "train", loss);
    WRONG(TRAMA_E_ARGUMENT, "'train' is taken", trama_target_create(p, "train", loss));
    WRONG(TRAMA_E_ARGUMENT, "value 1 is NULL", trama_target_create(p, "t", loss, NULL));
    WRONG(TRAMA_E_ARGUMENT, "foreign belongs to another", trama_target_create(p, "t", loss, foreign));
    trama_value *one = trama_minimize(loss, sgd), *two = trama_minimize(loss, sgd);
    WRONG(TRAMA_E_ARGUMENT, "update the same state", trama_target_create(p, "t", one, two));
}
END_TEST

/* ---- Errors that go on ---- */

START_TEST(null_passes_through_without_another_message)
{
    ck_assert_ptr_null(trama_add(x, w));
    char *before = trama_text_copy(trama_program_error(p));
    ck_assert_ptr_null(trama_relu(NULL));
    ck_assert_ptr_null(trama_add(x, NULL));
    ck_assert_ptr_null(trama_matmul(NULL, w));
    ck_assert_ptr_null(trama_sum(NULL));
    ck_assert_ptr_null(trama_softmax(NULL, 7));
    ck_assert_ptr_null(trama_transpose(NULL, NULL));
    ck_assert_ptr_null(trama_reshape(NULL, TRAMA_SCALAR));
    ck_assert_ptr_null(trama_cast(NULL, TRAMA_F32));
    ck_assert_ptr_null(trama_shard(NULL, mesh, "R,R"));
    ck_assert_ptr_null(trama_reshard(NULL, mesh, "R,R"));
    ck_assert_ptr_null(trama_value_rename(NULL, "y"));
    ck_assert_ptr_null(trama_gradient(NULL, x));
    ck_assert_ptr_null(trama_gradient(loss, NULL));
    ck_assert_ptr_null(trama_minimize(NULL, sgd));
    ck_assert_ptr_null(trama_target_create(p, "t", (trama_value *)NULL));
    ck_assert_str_eq(trama_program_error(p), before);
    free(before);
}
END_TEST

START_TEST(the_first_error_stays)
{
    ck_assert_ptr_null(trama_sum_over(x, 1, ((int[]){5}), false));
    int line = __LINE__ - 1;
    ck_assert_ptr_null(trama_exp(labels));
    ck_assert_ptr_null(trama_input(p, "x", TRAMA_F64, TRAMA_SCALAR));
    ck_assert_ptr_null(trama_shard(x, NULL, "R"));
    ck_assert_int_eq(trama_program_status(p), TRAMA_E_SHAPE);
    check_message(trama_program_error(p), "dim 5", line);
}
END_TEST

START_TEST(a_program_without_errors_says_so)
{
    ck_assert_int_eq(trama_program_status(p), TRAMA_OK);
    ck_assert_str_eq(trama_program_error(p), "");
    ck_assert_ptr_nonnull(trama_target_create(p, "train", trama_minimize(loss, sgd), loss));
    ck_assert_int_eq(trama_program_status(p), TRAMA_OK);
}
END_TEST

int main(void)
{
    const TTest *tests[] = {
        shapes_of_leaves_are_checked,
        names_types_and_data_of_leaves_are_checked,
        a_name_that_a_leaf_gave_up_is_free,
        without_a_program_there_is_a_message_and_no_value,
        operands_that_do_not_fit_are_named_with_their_shapes,
        dims_and_permutations_are_checked,
        ops_are_found_by_number_and_by_name,
        operands_of_other_kinds_and_programs_are_refused,
        layouts_that_do_not_fit_are_refused,
        masks_that_do_not_fit_are_refused,
        what_was_annotated_stays,
        losses_and_what_they_are_derived_by_are_checked,
        targets_are_checked,
        null_passes_through_without_another_message,
        the_first_error_stays,
        a_program_without_errors_says_so,
    };
    return suite_run("program", set_up, tear_down, tests, sizeof tests / sizeof *tests);
}
