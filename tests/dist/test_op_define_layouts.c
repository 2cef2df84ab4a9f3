/* SPDX-License-Identifier: Apache-2.0 */
/* Layouts of ops of one's own, inferred from their rules. Kernels never run here. */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "change.h"
#include "defining.h"
#include "infer.h"
#include "suite.h"
#include "trama_op_define.h"
#include "trama_ops.h"
#include "trama_optimizer.h"
#include "trama_rule.h"

START_TEST(layouts_are_inferred_as_for_a_built_in_op_of_that_rule)
{
    trama_program *p = trama_program_create();
    trama_mesh *mesh = trama_mesh_create("2,3");
    const trama_op *product = defined((trama_op_definition){
        .name = "product", .n_in = 2, .n_out = 1, .rule = "...mk,...kn->...mn", .partial = "linear,linear"});
    trama_value *x = input(p, "x", TRAMA_SHAPE(7, 5)), *y = input(p, "y", TRAMA_SHAPE(5, 9));
    trama_value *pair[] = {trama_apply(product, 2, ((trama_value *[]){x, y}), NULL), trama_matmul(x, y)};
    layout_list list = {0};
    every_layout(mesh, 2, true, &list);
    for (int a = 0; a < list.n; a++)
        for (int b = 0; b < list.n; b++) {
            trama_layout in[2] = {list.at[a], list.at[b]}, got[2][3];
            for (int i = 0; i < 2; i++)
                ck_assert_int_eq(trama_rule_infer(pair[i], mesh, in, NULL, got[i], &got[i][2]), TRAMA_OK);
            for (int t = 0; t < 3; t++)
                ck_assert(trama_layout_equal(&got[0][t], &got[1][t]));
        }
    ARRAY_FREE(&list);
    trama_mesh_destroy(&mesh);
    trama_program_destroy(&p);
    trama_op_destroy(&product);
}
END_TEST

static void check_layout(const trama_value *v, const trama_mesh *mesh, const char *in, const char *out)
{
    trama_layout given, got;
    ck_assert_int_eq(trama_layout_parse(mesh, v->node->in[0]->shape.ndim, in, &given), TRAMA_OK);
    ck_assert_int_eq(trama_rule_infer(v, mesh, &given, NULL, NULL, &got), TRAMA_OK);
    char *words = trama_layout_text(mesh, &got);
    ck_assert_msg(!strcmp(words, out), "%s of %s gives %s, not %s", v->node->op->name, in, words, out);
    free(words);
}

START_TEST(a_rule_says_what_is_whole_and_how_terms_combine)
{
    trama_program *p = trama_program_create();
    trama_mesh *mesh = trama_mesh_create("2");
    const trama_op
        *rows = defined((trama_op_definition){.name = "rows", .n_in = 1, .n_out = 1, .rule = "b[n]->b[n]"}),
        *largest = defined((trama_op_definition){
            .name = "largest", .n_in = 1, .n_out = 1, .rule = "bn->b", .reduce = TRAMA_MAX, .partial = "max"}),
        *none = defined((trama_op_definition){.name = "none", .n_in = 1, .n_out = 1});
    trama_value *x = input(p, "x", TRAMA_SHAPE(7, 5));
    trama_value *r = trama_apply(rows, 1, &x, NULL), *l = trama_apply(largest, 1, &x, NULL),
                *n = trama_apply(none, 1, &x, NULL);
    check_layout(r, mesh, "S(0)", "S(0)");
    check_layout(r, mesh, "S(1)", "R");
    check_layout(r, mesh, "P", "R");
    check_layout(l, mesh, "S(0)", "S(0)");
    check_layout(l, mesh, "S(1)", "P(max)");
    check_layout(l, mesh, "P(max)", "P(max)");
    check_layout(l, mesh, "P(min)", "R");
    check_layout(n, mesh, "S(0)", "R");
    trama_mesh_destroy(&mesh);
    trama_program_destroy(&p);
    trama_op_destroy(&rows);
    trama_op_destroy(&largest);
    trama_op_destroy(&none);
}
END_TEST

int main(void)
{
    const TTest *tests[] = {
        layouts_are_inferred_as_for_a_built_in_op_of_that_rule,
        a_rule_says_what_is_whole_and_how_terms_combine,
    };
    return suite_run("op_define_layouts", NULL, NULL, tests, sizeof tests / sizeof *tests);
}
