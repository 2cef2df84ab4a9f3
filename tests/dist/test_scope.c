/* SPDX-License-Identifier: Apache-2.0 */
/* A scope gives the ops recorded in it a mesh, and values their layouts by name; gradients come back from it. */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "completed.h"
#include "pair.h"
#include "suite.h"
#include "trama_complete.h"
#include "trama_ops.h"
#include "trama_optimizer.h"

static trama_program *p;
static trama_mesh *mesh, *other;

static void set_up(void)
{
    p = trama_program_create();
    mesh = trama_mesh_create("dp=2,mp=2");
    other = trama_mesh_create("q=3:5,1,4");
}

static void tear_down(void)
{
    trama_program_destroy(&p);
    trama_mesh_destroy(&mesh);
    trama_mesh_destroy(&other);
}

static trama_value *input(const char *name, int64_t rows, int64_t columns)
{
    return trama_input(p, name, TRAMA_F64, TRAMA_SHAPE(rows, columns));
}

static void expect_failure(trama_status status, const char *word)
{
    ck_assert_msg(trama_program_status(p) == status, "%s", trama_program_error(p));
    ck_assert_msg(strstr(trama_program_error(p), word) && strstr(trama_program_error(p), "test_scope.c:"),
                  "no '%s' in: %s", word, trama_program_error(p));
}

START_TEST(ops_of_a_scope_compute_on_its_mesh)
{
    trama_value *x = input("x", 6, 4), *before = trama_value_rename(trama_neg(x), "before");
    ck_assert(trama_shard(x, other, "q,-"));
    ck_assert(!trama_shard_begin(p, mesh, NULL));
    trama_value *inside = trama_value_rename(trama_exp(before), "inside");
    ck_assert(!trama_shard_end(p));
    ck_assert(trama_value_rename(trama_relu(inside), "after"));
    EXPECT_COMPLETED(p, "before f64[6,4] on q=3:5,1,4 as S(0)\n", "inside f64[6,4] on dp=2,mp=2 as R,R\n",
                     "after f64[6,4] on dp=2,mp=2 as R,R\n");
}
END_TEST

START_TEST(values_are_laid_out_by_name)
{
    trama_value *x = input("x", 6, 4), *w = trama_parameter(p, "w", TRAMA_F64, TRAMA_SHAPE(4, 8), NULL);
    ck_assert(!trama_shard_begin(p, mesh, "x", "dp,-", "w", "-,mp", "h", "dp,mp"));
    ck_assert(trama_value_rename(trama_matmul(x, w), "h"));
    ck_assert(!trama_shard_end(p));
    EXPECT_COMPLETED(p, "x f64[6,4] on dp=2,mp=2 as S(0),R\n", "w f64[4,8] on dp=2,mp=2 as R,S(1)\n",
                     "h f64[6,8] on dp=2,mp=2 as S(0),S(1)\n");
}
END_TEST

START_TEST(an_operand_is_brought_there_whatever_it_was_annotated_with)
{
    trama_value *x = trama_shard(input("x", 6, 4), other, "q,-");
    ck_assert(!trama_shard_begin(p, mesh, "x", "-,mp"));
    trama_value *h = trama_neg(x);
    ck_assert(!trama_shard_end(p));
    trama_completion *c;
    trama_layout layout;
    ck_assert_msg(!trama_completion_create(p, 1, &c), "%s", trama_error());
    ck_assert(trama_completion_operand(c, h, 0, &layout));
    char *words = trama_layout_mapping(mesh, 2, &layout);
    ck_assert_str_eq(words, "[-1,1]");
    ck_assert(trama_mesh_equal(trama_completion_mesh(c, x), other));
    free(words);
    trama_completion_destroy(&c);
    ck_assert(trama_annotation_operand(h, 0, &layout) && trama_mesh_equal(trama_annotation_op_mesh(h), mesh));
}
END_TEST

START_TEST(annotations_of_one_value_or_op_overrule_the_scope)
{
    trama_value *x = input("x", 6, 4);
    ck_assert(!trama_shard_begin(p, mesh, "x", "S(0),?", "h", "dp,-"));
    trama_value *h = trama_value_rename(trama_shard(trama_neg(x), mesh, "-,mp"), "h");
    trama_value *z = trama_value_rename(trama_exp(h), "z");
    ck_assert_msg(trama_shard_op(z, other, "q,-", "q,-") != NULL, "%s", trama_error());
    ck_assert_msg(!trama_shard_end(p), "%s", trama_error());
    EXPECT_COMPLETED(p, "h f64[6,4] on dp=2,mp=2 as R,S(1)\n", "z f64[6,4] on q=3:5,1,4 as S(0)\n");
}
END_TEST

START_TEST(of_nested_scopes_the_innermost_counts)
{
    trama_value *x = input("x", 6, 4);
    ck_assert(!trama_shard_begin(p, mesh, "a", "dp,-", "c", "dp,-"));
    trama_value *a = trama_value_rename(trama_neg(x), "a");
    ck_assert(!trama_shard_begin(p, other, "b", "q,-"));
    trama_value *b = trama_value_rename(trama_exp(a), "b");
    ck_assert(!trama_shard_end(p));
    ck_assert(trama_value_rename(trama_abs(b), "c"));
    ck_assert(!trama_shard_end(p));
    EXPECT_COMPLETED(p, "a f64[6,4] on dp=2,mp=2 as S(0),R\n", "b f64[6,4] on q=3:5,1,4 as S(0)\n",
                     "c f64[6,4] on dp=2,mp=2 as S(0),R\n");
}
END_TEST

START_TEST(sources_and_scalars_of_a_scope_are_on_its_mesh)
{
    ck_assert(!trama_shard_begin(p, other, NULL));
    ck_assert(trama_value_rename(trama_fill(p, TRAMA_F64, TRAMA_SHAPE(6, 4), 1), "ones"));
    ck_assert(!trama_shard_end(p));
    EXPECT_COMPLETED(p, "ones f64[6,4] on q=3:5,1,4 as R\n");
}
END_TEST

/* ---- Gradients ---- */

START_TEST(gradients_go_back_to_where_operands_came_from)
{
    trama_value *x = trama_shard(input("x", 6, 4), other, "q,-"),
                *w = trama_parameter(p, "w", TRAMA_F64, TRAMA_SHAPE(4, 8), NULL);
    ck_assert(trama_shard(w, other, "R"));
    ck_assert(!trama_shard_begin(p, mesh, NULL));
    trama_value *h = trama_matmul(trama_exp(x), w);
    ck_assert(!trama_shard_end(p));
    trama_value *loss = trama_add(trama_mean(h), trama_mean(trama_square(w)));
    ck_assert_msg(trama_value_rename(trama_gradient(loss, x), "dx") &&
                      trama_value_rename(trama_gradient(loss, w), "dw"),
                  "%s", trama_error());
    trama_optimizer sgd = trama_sgd(0.1);
    ck_assert(trama_minimize(loss, &sgd));
    EXPECT_COMPLETED(p, "dx f64[6,4] on q=3:5,1,4 as S(0)\n", "dw f64[4,8] on q=3:5,1,4 as ");
}
END_TEST

/* Two parts of a network on meshes of their own, parameters of one on the mesh of the other, beside one device. */
START_TEST(parts_on_meshes_of_their_own_train_as_on_one_device)
{
    static const char *const held[] = {"R,R", "R,S(1)", "R,S(1) mask{1,1,0,0}", "S(0),R mask{0,1,1,0}"};
    for (size_t i = 0; i < sizeof held / sizeof *held; i++) {
        trama_program_destroy(&p);
        p = trama_program_create();
        const trama_init init = {-1, 1, 3, 4}, other_init = {-1, 1, 5, 6};
        trama_value *x = trama_shard(input("x", 7, 4), other, "q,-");
        trama_value *w = trama_parameter(p, "w", TRAMA_F64, TRAMA_SHAPE(4, 9), &init);
        trama_value *v = trama_shard(trama_parameter(p, "v", TRAMA_F64, TRAMA_SHAPE(9, 5), &other_init), mesh, held[i]);
        ck_assert(!trama_shard_begin(p, mesh, "x", "dp,-", "w", "-,mp", "h", "dp,mp"));
        trama_value *h = trama_value_rename(trama_tanh(trama_matmul(x, w)), "h");
        ck_assert(!trama_shard_end(p) && !trama_shard_begin(p, other, "v", "-,q"));
        trama_value *z = trama_matmul(h, v);
        ck_assert(!trama_shard_end(p));
        trama_value *loss = trama_add(trama_mean(trama_square(z)), trama_mean(trama_square(trama_mul(v, v))));
        trama_optimizer adam = trama_adam(0.1);
        trama_value *dx = trama_gradient(loss, x);
        trama_target *t = trama_target_create(p, "t", trama_minimize(loss, &adam), loss, dx);
        ck_assert_msg(t != NULL, "%s", trama_program_error(p));
        dense data = dense_random(x->shape, 1, -1, 1, false);
        pair_try(p, t, 1, (trama_value *[]){x}, &data, 6, 1e-9, held[i]);
        dense_free(&data);
    }
}
END_TEST

/* ---- Wrong uses ---- */

START_TEST(an_end_without_a_begin_is_refused)
{
    ck_assert_int_eq(trama_shard_end(p), TRAMA_E_ORDER);
    expect_failure(TRAMA_E_ORDER, "call trama_shard_begin before it");
}
END_TEST

START_TEST(names_that_nothing_has_are_refused_at_the_end)
{
    trama_value *x = input("x", 6, 4), *unread = input("unread", 6, 4);
    ck_assert(!trama_shard_begin(p, mesh, "x", "dp,-", "unread", "dp,-"));
    ck_assert(trama_neg(x) && unread);
    ck_assert_int_eq(trama_shard_end(p), TRAMA_E_ARGUMENT);
    expect_failure(TRAMA_E_ARGUMENT, "reads or makes a value named 'unread'");
    trama_program_clear_error(p);
    ck_assert_int_eq(trama_shard_end(p), TRAMA_E_ORDER); /* it is closed all the same */
}
END_TEST

START_TEST(lists_that_are_no_pairs_are_refused)
{
    static const struct {
        const char *list[4];
        int n;
        const char *word;
    } wrong[] = {{{"x"}, 1, "takes pairs"},
                 {{"x", "dp,-", "y"}, 3, "takes pairs"},
                 {{"x", NULL}, 2, "the layout of pair 0 is NULL"},
                 {{"x", "R,R", NULL, "R,R"}, 4, "the name of pair 1 is NULL"},
                 {{"", "R,R"}, 2, "the name of pair 0 is empty"},
                 {{"x", "R,R", "x", "dp,-"}, 4, "'x' has two layouts, 'R,R' and 'dp,-'"}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        ck_assert_int_eq(trama_shard_begin_at(TRAMA_HERE, p, mesh, wrong[i].n, wrong[i].list), TRAMA_E_ARGUMENT);
        expect_failure(TRAMA_E_ARGUMENT, wrong[i].word);
        trama_program_clear_error(p);
    }
    ck_assert_int_eq(trama_shard_end(p), TRAMA_E_ORDER); /* none was opened */
}
END_TEST

START_TEST(a_layout_that_does_not_fit_is_refused_at_the_op)
{
    trama_value *x = input("x", 6, 4);
    ck_assert(!trama_shard_begin(p, mesh, "x", "q,-"));
    ck_assert_ptr_null(trama_neg(x));
    expect_failure(TRAMA_E_LAYOUT, "the layout of x: layout: letter 1 of 'q,-'");
    trama_program_clear_error(p);
    ck_assert(!trama_shard_end(p));
    ck_assert(!trama_shard_begin(p, mesh, "h", "dp"));
    ck_assert_ptr_null(trama_value_rename(trama_neg(x), "h"));
    expect_failure(TRAMA_E_LAYOUT, "shard of h");
}
END_TEST

START_TEST(operands_that_the_rule_cannot_compute_on_name_the_scope)
{
    trama_value *x = input("x", 6, 4);
    ck_assert(!trama_shard_begin(p, mesh, "x", "-,mp"));
    ck_assert(trama_softmax(x, 1));
    ck_assert(!trama_shard_end(p));
    char *words = NULL;
    ck_assert_int_eq(trama_complete_text(p, 1, &words), TRAMA_E_LAYOUT);
    ck_assert_msg(strstr(trama_error(), "shard_begin of softmax: with operand 0 (x) as R,S(1)"), "%s", trama_error());
}
END_TEST

START_TEST(an_open_scope_cannot_be_completed)
{
    char *words = NULL;
    ck_assert(!trama_shard_begin(p, mesh, NULL));
    ck_assert_int_eq(trama_complete_text(p, 1, &words), TRAMA_E_ORDER);
    ck_assert_msg(strstr(trama_error(), "is open; call trama_shard_end"), "%s", trama_error());
}
END_TEST

int main(void)
{
    const TTest *tests[] = {
        ops_of_a_scope_compute_on_its_mesh,
        values_are_laid_out_by_name,
        an_operand_is_brought_there_whatever_it_was_annotated_with,
        annotations_of_one_value_or_op_overrule_the_scope,
        of_nested_scopes_the_innermost_counts,
        sources_and_scalars_of_a_scope_are_on_its_mesh,
        gradients_go_back_to_where_operands_came_from,
        parts_on_meshes_of_their_own_train_as_on_one_device,
        an_end_without_a_begin_is_refused,
        names_that_nothing_has_are_refused_at_the_end,
        lists_that_are_no_pairs_are_refused,
        a_layout_that_does_not_fit_is_refused_at_the_op,
        operands_that_the_rule_cannot_compute_on_name_the_scope,
        an_open_scope_cannot_be_completed,
    };
    return suite_run("scope", set_up, tear_down, tests, sizeof tests / sizeof *tests);
}
