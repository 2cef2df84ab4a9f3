/* SPDX-License-Identifier: Apache-2.0 */
/* Annotations of ops, stages, resting places and orders of processes: what they mean after completion, how they print,
 * what is refused. */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "complete.h"
#include "completed.h"
#include "marks.h"
#include "suite.h"
#include "trama_complete.h"
#include "trama_ops.h"
#include "trama_optimizer.h"

static trama_program *p;
static trama_mesh *mesh;

static void set_up(void)
{
    p = trama_program_create();
    mesh = trama_mesh_create("2,3");
}

static void tear_down(void)
{
    trama_program_destroy(&p);
    trama_mesh_destroy(&mesh);
}

static trama_value *tensor(const char *name, trama_shape shape, const char *layout)
{
    trama_value *v = trama_input(p, name, TRAMA_F64, shape);
    return layout ? trama_shard(v, mesh, layout) : v;
}

static void expect_refused(trama_status status, int n, const char *const *words)
{
    char *text_ = NULL;
    ck_assert_int_eq(trama_complete_text(p, 64, &text_), status);
    ck_assert_ptr_null(text_);
    for (int i = 0; i < n; i++)
        ck_assert_msg(strstr(trama_error(), words[i]) != NULL, "no '%s' in: %s", words[i], trama_error());
}
#define EXPECT_REFUSED(status, ...)                                                                                    \
    expect_refused(status, (int)(sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *)),                              \
                   (const char *const[]){__VA_ARGS__})

/* ---- One op ---- */

START_TEST(shard_op_decides_what_the_op_computes_on)
{
    trama_value *x = tensor("x", TRAMA_SHAPE(64, 32), "S(0),R"), *y = tensor("y", TRAMA_SHAPE(32, 48), "R,R");
    trama_value *z = trama_value_rename(trama_matmul(x, y), "z");
    ck_assert_ptr_eq(trama_shard_op(z, mesh, "R,S(1)", "R,S(0)", "R,P"), z);
    layouts l;
    trama_mesh *single = trama_mesh_create("1");
    ck_assert_msg(!complete_program(p, 64, single, &l), "%s", trama_error());
    trama_layout split;
    ck_assert(!trama_layout_parse(mesh, 2, "R,S(1)", &split));
    ck_assert(trama_layout_equal(&l.op[z->node->id]->in[0], &split));
    layouts_free(&l);
    trama_mesh_destroy(&single);
    EXPECT_COMPLETED(p, "x f64[64,32] on 2,3 as S(0),R\n", "y f64[32,48] on 2,3 as R,R\n",
                     "z f64[64,48] on 2,3 as R,P(sum)\n");
}
END_TEST

START_TEST(what_shard_op_leaves_open_is_completed)
{
    trama_value *x = tensor("x", TRAMA_SHAPE(64, 32), NULL), *y = tensor("y", TRAMA_SHAPE(32, 48), NULL);
    trama_value *z = trama_value_rename(trama_matmul(x, y), "z");
    ck_assert(trama_shard_op(z, mesh, "S(0),?", NULL, NULL));
    EXPECT_COMPLETED(p, "x f64[64,32] on 2,3 as S(0),R\n", "y f64[32,48] on 2,3 as R,R\n",
                     "z f64[64,48] on 2,3 as S(0),R\n");
}
END_TEST

START_TEST(shard_op_keeps_a_mask)
{
    trama_value *x = tensor("x", TRAMA_SHAPE(8, 6), "S(0),R"), *z = trama_value_rename(trama_neg(x), "z");
    ck_assert(trama_shard_op(z, mesh, "S(0),R mask{1,0,1,1,0,0}", "S(0),R mask{1,0,0,1,0,0}"));
    EXPECT_COMPLETED(p, "z f64[8,6] on 2,3 as S(0),R mask{1,0,0,1,0,0}\n");
}
END_TEST

START_TEST(layouts_that_the_rule_cannot_compute_on_are_refused_with_what_it_wants)
{
    trama_value *x = tensor("x", TRAMA_SHAPE(64, 32), "R,R"), *z = trama_softmax(x, 1);
    ck_assert(trama_shard_op(z, mesh, "R,S(1)", NULL));
    int line = __LINE__ - 1;
    char place[64];
    snprintf(place, sizeof place, "test_annotate.c:%d", line);
    EXPECT_REFUSED(TRAMA_E_LAYOUT, place, "softmax", "operand 0 (x)", "R,S(1)", "R,R");
}
END_TEST

START_TEST(a_result_where_an_operand_is_not_is_refused)
{
    trama_value *x = tensor("x", TRAMA_SHAPE(8, 6), "S(0),R"), *z = trama_neg(x);
    ck_assert(trama_shard_op(z, mesh, "S(0),R mask{1,0,0,1,0,0}", "S(0),R"));
    EXPECT_REFUSED(TRAMA_E_LAYOUT, "neg", "mask");
}
END_TEST

static void refuse(int which, const char *word)
{
    trama_value *x = tensor("x", TRAMA_SHAPE(8, 6), "S(0),R"),
                *w = trama_state(p, "w", TRAMA_F64, TRAMA_SHAPE(8, 6), NULL);
    trama_value *z = trama_add(x, w), *moved = trama_reshard(x, mesh, "R,R"), *wrong = z;
    switch (which) {
    case 0:
        wrong = trama_shard_op(z, mesh, "R,R", "R,R");
        break;
    case 1:
        wrong = trama_shard_op(z, NULL, "R,R", "R,R", "R,R");
        break;
    case 2:
        wrong = trama_shard_op(z, mesh, "R,R", "S(2),R", "R,R");
        break;
    case 3:
        wrong = trama_shard_op(z, mesh, "R,R", "R,R", "R");
        break;
    case 4:
        wrong = trama_shard_op(x, mesh, "R,R");
        break;
    case 5:
        wrong = trama_shard_op(moved, mesh, "R,R", "R,R");
        break;
    case 6:
        trama_shard_op(z, mesh, "R,R", NULL, NULL);
        wrong = trama_shard_op(z, mesh, "R,R", NULL, NULL);
        break;
    case 7:
        wrong = trama_offload(z, "gpu");
        break;
    case 8:
        wrong = trama_offload(z, NULL);
        break;
    case 9:
        wrong = trama_stage(p, -2) ? NULL : z;
        break;
    case 10:
        wrong = trama_offload(trama_assign(w, z), "cpu");
        break;
    }
    ck_assert_msg(!wrong, "case %d", which);
    ck_assert(trama_program_status(p));
    ck_assert_msg(strstr(trama_program_error(p), "test_annotate.c:") && strstr(trama_program_error(p), word),
                  "case %d: no '%s' in: %s", which, word, trama_program_error(p));
}

START_TEST(wrong_annotations_name_line_and_reason)
{
    static const char *const words[] = {"2 layouts for 2 operands and 1 results",
                                        "mesh is NULL",
                                        "dim 2",
                                        "1 placements",
                                        "x is not the result",
                                        "nothing computes it",
                                        "fixed already",
                                        "'gpu'",
                                        "(null)",
                                        "-2",
                                        "update"};
    for (int i = 0; i < 11; i++) {
        refuse(i, words[i]);
        trama_program_destroy(&p);
        p = trama_program_create();
    }
}
END_TEST

/* ---- Stages ---- */

START_TEST(stages_reach_operands_gradients_and_updates)
{
    trama_value *x = tensor("x", TRAMA_SHAPE(4, 3), NULL), *scaled = trama_value_rename(trama_scale(x, 2), "scaled");
    trama_value *w[2];
    w[0] = trama_parameter(p, "w0", TRAMA_F64, TRAMA_SHAPE(3, 5), NULL);
    w[1] = trama_parameter(p, "w1", TRAMA_F64, TRAMA_SHAPE(5, 2), NULL);
    ck_assert(!trama_stage(p, 0));
    trama_value *h = trama_value_rename(trama_relu(trama_matmul(scaled, w[0])), "h");
    ck_assert(!trama_stage(p, 1));
    trama_value *loss = trama_value_rename(trama_mean(trama_square(trama_matmul(h, w[1]))), "loss");
    ck_assert(!trama_stage(p, TRAMA_NO_STAGE));
    trama_value *d = trama_value_rename(trama_gradient(loss, w[0]), "d"),
                *late = trama_value_rename(trama_neg(loss), "late");
    trama_optimizer sgd = trama_sgd(0.1);
    ck_assert(trama_minimize(loss, &sgd) && d && late);
    EXPECT_COMPLETED(p, "x f64[4,3] on 1 as R, stage 0\n", "scaled f64[4,3] on 1 as R, stage 0\n",
                     "w0 f64[3,5] on 1 as R, stage 0\n", "w1 f64[5,2] on 1 as R, stage 1\n",
                     "h f64[4,5] on 1 as R, stage 0\n", "loss f64[] on 1 as R, stage 1\n",
                     "d f64[3,5] on 1 as R, stage 0\n", "late f64[] on 1 as R, stage 1\n");
    char *words = trama_program_text(p);
    ck_assert_ptr_nonnull(strstr(words, "loss f64[] = mean("));
    ck_assert_ptr_nonnull(strstr(words, ") stage 1"));
    free(words);
}
END_TEST

START_TEST(values_do_not_go_back_to_an_earlier_stage)
{
    trama_value *x = tensor("x", TRAMA_SHAPE(4, 3), NULL);
    trama_stage(p, 1);
    trama_value *h = trama_value_rename(trama_neg(x), "h");
    trama_stage(p, 0);
    trama_neg(h);
    EXPECT_REFUSED(TRAMA_E_ARGUMENT, "neg of stage 0 reads h, which stage 1 makes", "test_annotate.c");
}
END_TEST

/* ---- Offload ---- */

START_TEST(what_rests_elsewhere_takes_aliases_and_the_optimizers_state_along)
{
    trama_value *x = tensor("x", TRAMA_SHAPE(4, 3), NULL);
    trama_value *w = trama_offload(trama_parameter(p, "w", TRAMA_F64, TRAMA_SHAPE(3, 5), NULL), "cpu");
    trama_value *v = trama_parameter(p, "v", TRAMA_F64, TRAMA_SHAPE(5), NULL);
    trama_value *seen = trama_value_rename(trama_stop_gradient(w), "seen");
    trama_value *loss = trama_mean(trama_square(trama_add(trama_matmul(x, w), v)));
    trama_optimizer adamw = trama_adamw(0.1);
    ck_assert(trama_minimize(loss, &adamw) && seen);
    EXPECT_COMPLETED(p, "w f64[3,5] on 1 as R, rests in host memory\n",
                     "w.m f64[3,5] on 1 as R, rests in host memory\n", "w.v f64[3,5] on 1 as R, rests in host memory\n",
                     "seen f64[3,5] on 1 as R, rests in host memory\n", "v f64[5] on 1 as R\n",
                     "v.m f64[5] on 1 as R\n", "x f64[4,3] on 1 as R\n");
}
END_TEST

/* ---- Order ---- */

START_TEST(an_order_is_kept_and_printed)
{
    int order[6] = {5, 4, 3, 2, 1, 0};
    ck_assert(!trama_order(p, 6, order));
    order[0] = 7; /* it was copied */
    ck_assert(tensor("x", TRAMA_SHAPE(4, 3), "S(0),S(1)"));
    ck_assert(!trama_order(p, 6, ((int[]){5, 4, 3, 2, 1, 0}))); /* says it once more */
    char *words = trama_program_text(p);
    ck_assert_msg(!strncmp(words, "order 5,4,3,2,1,0  # ", 21), "%s", words);
    free(words);
    EXPECT_COMPLETED(p, "order 5,4,3,2,1,0  # ", "x f64[4,3] on 2,3 as S(0),S(1)\n");
}
END_TEST

START_TEST(an_order_may_have_more_than_the_processes)
{
    ck_assert(tensor("x", TRAMA_SHAPE(4, 3), "S(0),S(1)"));
    ck_assert(!trama_order(p, 8, ((int[]){7, 6, 5, 4, 3, 2, 1, 0})));
}
END_TEST

static void refuse_order(int n, const int *order, const char *word)
{
    ck_assert_int_eq(trama_order(p, n, order), TRAMA_E_ARGUMENT);
    ck_assert_int_eq(trama_program_status(p), TRAMA_E_ARGUMENT);
    ck_assert_msg(strstr(trama_program_error(p), "test_annotate.c:") && strstr(trama_program_error(p), word),
                  "no '%s' in: %s", word, trama_program_error(p));
    trama_program_clear_error(p);
    char *words = trama_program_text(p);
    ck_assert(!strstr(words, "order"));
    free(words);
}

START_TEST(what_is_no_order_of_the_processes_is_refused)
{
    refuse_order(3, (int[]){0, 2, 0}, "processes 0 and 2 both to place 0");
    refuse_order(3, (int[]){0, 3, 1}, "process 1 to place 3: the places of 3 processes are 0 to 2");
    refuse_order(2, (int[]){0, -1}, "process 1 to place -1");
    refuse_order(0, (int[]){0}, "1 to 2^24");
    refuse_order(-1, (int[]){0}, "1 to 2^24");
    refuse_order((1 << 24) + 1, (int[]){0}, "1 to 2^24");
    refuse_order(2, NULL, "it is NULL");
    ck_assert_int_eq(trama_order(NULL, 1, (int[]){0}), TRAMA_E_ARGUMENT);
    ck_assert(tensor("x", TRAMA_SHAPE(4, 3), "S(0),R"));
    refuse_order(4, (int[]){0, 1, 2, 3}, "order: of 4 processes, and x (");
}
END_TEST

START_TEST(ops_are_in_the_order_too)
{
    trama_value *z = trama_neg(tensor("x", TRAMA_SHAPE(4, 3), NULL));
    ck_assert(trama_shard_op(z, mesh, "S(0),R", NULL));
    refuse_order(5, (int[]){0, 1, 2, 3, 4}, "is on process 5");
}
END_TEST

START_TEST(another_order_is_refused_with_the_line_of_the_first)
{
    ck_assert(!trama_order(p, 2, ((int[]){1, 0})));
    ck_assert_int_eq(trama_order(p, 2, ((int[]){0, 1})), TRAMA_E_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(trama_error(), "in another order already (" __FILE__));
    ck_assert_int_eq(trama_order(p, 3, ((int[]){1, 0, 2})), TRAMA_E_ARGUMENT);
}
END_TEST

START_TEST(a_mesh_beyond_the_order_is_refused_where_it_comes_in)
{
    ck_assert(!trama_order(p, 5, ((int[]){4, 3, 2, 1, 0})));
    trama_value *x = tensor("x", TRAMA_SHAPE(4, 3), NULL), *z = trama_neg(x);
    for (int i = 0; i < 3; i++) {
        const void *wrong = i == 0   ? trama_shard(x, mesh, "S(0),R")
                            : i == 1 ? trama_shard_op(z, mesh, "S(0),R", NULL)
                                     : trama_reshard(z, mesh, "R,R");
        ck_assert(!wrong && trama_program_status(p) == TRAMA_E_LAYOUT);
        ck_assert_msg(strstr(trama_error(), "has 5, and none for process 5"), "%s", trama_error());
        trama_program_clear_error(p);
    }
    trama_mesh *small = trama_mesh_create("2:4,0");
    ck_assert(trama_shard(x, small, "S(0)"));
    trama_mesh_destroy(&small);
}
END_TEST

/* ---- Text ---- */

START_TEST(a_program_prints_all_that_was_said)
{
    trama_value *x = tensor("x", TRAMA_SHAPE(64, 32), "S(0),R"),
                *y = trama_offload(tensor("y", TRAMA_SHAPE(48, 32), NULL), "cpu");
    trama_value *z = trama_matmul_trans(x, y, false, true);
    ck_assert_msg(trama_shard_op(z, mesh, "S(0),R", "R,R", NULL) != NULL, "%s", trama_error());
    ck_assert(trama_scale(z, 0.5) && trama_sum_over(z, 1, (int[]){1}, true));
    char *words = trama_program_text(p);
    static const char *const parts[] = {"x f64[64,32] = input on 2,3 as S(0),R", "y f64[48,32] = input offloaded",
                                        "matmul(x, y, trans_y=1) fixed on 2,3 as S(0),R; R,R", ", factor=0.5)",
                                        ", axes=2, keep_dim=1)"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        ck_assert_msg(strstr(words, parts[i]) != NULL, "no '%s' in\n%s", parts[i], words);
    free(words);
}
END_TEST

START_TEST(wrong_questions_are_refused)
{
    char *words = NULL;
    ck_assert_int_eq(trama_complete_text(NULL, 1, &words), TRAMA_E_ARGUMENT);
    ck_assert_int_eq(trama_complete_text(p, 1, NULL), TRAMA_E_ARGUMENT);
    ck_assert_int_eq(trama_complete_text(p, 0, &words), TRAMA_E_ARGUMENT);
    trama_matmul(tensor("x", TRAMA_SHAPE(2), NULL), tensor("y", TRAMA_SHAPE(3), NULL));
    EXPECT_REFUSED(TRAMA_E_SHAPE, "matmul", "test_annotate.c");
}
END_TEST

int main(void)
{
    const TTest *tests[] = {
        shard_op_decides_what_the_op_computes_on,
        what_shard_op_leaves_open_is_completed,
        shard_op_keeps_a_mask,
        layouts_that_the_rule_cannot_compute_on_are_refused_with_what_it_wants,
        a_result_where_an_operand_is_not_is_refused,
        wrong_annotations_name_line_and_reason,
        stages_reach_operands_gradients_and_updates,
        values_do_not_go_back_to_an_earlier_stage,
        what_rests_elsewhere_takes_aliases_and_the_optimizers_state_along,
        an_order_is_kept_and_printed,
        an_order_may_have_more_than_the_processes,
        what_is_no_order_of_the_processes_is_refused,
        ops_are_in_the_order_too,
        another_order_is_refused_with_the_line_of_the_first,
        a_mesh_beyond_the_order_is_refused_where_it_comes_in,
        a_program_prints_all_that_was_said,
        wrong_questions_are_refused,
    };
    return suite_run("annotate", set_up, tear_down, tests, sizeof tests / sizeof *tests);
}
