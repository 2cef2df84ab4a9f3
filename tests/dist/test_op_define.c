/* SPDX-License-Identifier: Apache-2.0 */
/* Ops of one's own as programs see them: what a definition may say, shapes, rules, gradients, text. Kernels never run
 * here. */
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

/* ---- Definitions that are refused ---- */

#define TEXT_(x) #x
#define LINE_TEXT_(x) TEXT_(x)
#define refused(words, ...)                                                                                            \
    do {                                                                                                               \
        const trama_op *op_ = NULL;                                                                                    \
        ck_assert_int_eq(trama_op_define(&(trama_op_definition){__VA_ARGS__}, &op_), TRAMA_E_ARGUMENT);                \
        ck_assert_ptr_null(op_);                                                                                       \
        ck_assert_msg(strstr(trama_error(), words) != NULL, "\"%s\" does not say \"%s\"", trama_error(), words);       \
        ck_assert_msg(strstr(trama_error(), __FILE__ ":" LINE_TEXT_(__LINE__) ": ") != NULL, "%s", trama_error());     \
    } while (0)
#define ONE .n_in = 1, .n_out = 1, .cpu = nothing
#define TWO .n_in = 2, .n_out = 1, .cpu = nothing

START_TEST(names_and_numbers_that_cannot_be_are_refused)
{
    refused("no C identifier", .rule = "...->...", ONE);
    refused("no C identifier", .name = "", ONE);
    refused("no C identifier", .name = "2x", ONE);
    refused("no C identifier", .name = "my op", ONE);
    refused("no C identifier", .name = "a_name_that_is_longer_than_any_table_has_room_for", ONE);
    refused("built-in", .name = "matmul", ONE);
    refused("each may be 1 to 8", .name = "f", .n_in = 0, .n_out = 1, .cpu = nothing);
    refused("each may be 1 to 8", .name = "f", .n_in = 1, .n_out = 0, .cpu = nothing);
    refused("each may be 1 to 8", .name = "f", .n_in = 9, .n_out = 1, .cpu = nothing);
    refused("together at most 10", .name = "f", .n_in = 6, .n_out = 5, .cpu = nothing);
    refused("updates is 0x2", .name = "f", TWO, .updates = 2);
    refused("no cpu kernel", .name = "f", .n_in = 1, .n_out = 1);
    refused("flops is -1", .name = "f", ONE, .flops = -1);
    refused("reduce is 4", .name = "f", ONE, .rule = "n->", .reduce = (trama_reduce)4);
    refused("the attributes", .name = "f", ONE, .attributes = "a | b | c");
    refused("the attributes", .name = "f", ONE, .attributes = "a,b");
    refused("the attributes", .name = "f", ONE, .attributes = "a b c d e f g h i j k l m n o p q");
    ck_assert_int_eq(trama_op_define(NULL, NULL), TRAMA_E_ARGUMENT);
}
END_TEST

static trama_status any_rule(const trama_op_use *use, char *rule, size_t room)
{
    (void)use;
    return rule[room - 1] = 0, TRAMA_OK;
}

START_TEST(rules_that_are_none_are_refused)
{
    static const char *const wrong[][2] = {
        {"", "\"\" has 1 operands"},
        {"mk,kn", "at the end \"->\""},
        {"mk->mk", "has 1 operands, the op has 2"},
        {"mk,kn,n->mn", "has 3 operands, the op has 2"},
        {"mk,kn->mn,m", "has 2 results, the op has 1"},
        {"mk,kn->mn->m", "nothing more"},
        {"mk,kn-mn", "\"->\""},
        {"mk,kn>mn", "a letter"},
        {"m[k,kn->mn", "a bracket is not closed"},
        {"mk],kn->mn", "brackets do not pair"},
        {"m[[k]],kn->mn", "brackets do not pair"},
        {"m...,kn->mn", "\"...\" only stands first"},
        {"m..,kn->mn", "\"...\" only stands first"},
        {"..m,kn->mn", "\"...\" only stands first"},
        {"mm,kn->mn", "stands twice"},
        {"mk,kn->nn", "stands twice"},
        {"mk,kn->...mn", "in no operand"},
        {"mk,kn->mq", "\"q\" a letter that no operand has"},
        {"mk=,kn->mn", "wants an extent"},
        {"mk=x,kn->mn", "wants an extent"},
        {"mk=99999999999999999999,kn->mn", "wants an extent"},
        {"m2,kn->mn", "a letter"},
        {"mk;kn->mn", "a letter"},
        {"abcdefghi,k->k", "more than 8 dims"},
        {"\xc3\xa4,kn->n", "a letter"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        refused(wrong[i][1], .name = "f", TWO, .rule = wrong[i][0]);
    refused("more than 24 letters", .name = "f", .n_in = 4, .n_out = 1, .cpu = nothing,
            .rule = "abcdefgh,ijklmnop,qrstuvwx,y->a");
    refused("both a rule and rule_of", .name = "f", ONE, .rule = "n->n", .rule_of = any_rule);
    refused("it is pointwise", .name = "f", ONE, .rule = "n->n", .pointwise = true);
    refused("it is pointwise", .name = "f", ONE, .rule = "...->", .pointwise = true);
    refused("it is pointwise", .name = "f", ONE, .rule = "...n->...n", .pointwise = true);
    refused("it is pointwise", .name = "f", ONE, .pointwise = true);
    refused("none of linear", .name = "f", TWO, .rule = "n,n->n", .partial = "lineal,-");
    refused("none of linear", .name = "f", TWO, .rule = "n,n->n", .partial = "linear,");
    refused("none of linear", .name = "f", TWO, .rule = "n,n->n", .partial = "linear+,-");
    refused("are for 1 operands", .name = "f", TWO, .rule = "n,n->n", .partial = "linear");
    refused("are for 3 operands", .name = "f", TWO, .rule = "n,n->n", .partial = "linear,-,-");
    refused("no rule", .name = "f", TWO, .partial = "linear,-");
}
END_TEST

/* ---- Uses ---- */

static void check_shape(const trama_value *v, trama_shape shape)
{
    ck_assert_ptr_nonnull(v);
    ck_assert_msg(trama_shape_equal(trama_value_shape(v), shape), "%s has another shape", trama_value_name(v));
}

START_TEST(results_have_the_shapes_of_the_rule)
{
    trama_program *p = trama_program_create();
    trama_value *x = input(p, "x", TRAMA_SHAPE(TRAMA_ANY, 5)), *y = input(p, "y", TRAMA_SHAPE(5, 3));
    const trama_op *product = defined(
                       (trama_op_definition){.name = "f", .n_in = 2, .n_out = 3, .rule = "mk, kn -> mn, [j=4]m, "}),
                   *broadcast = defined((trama_op_definition){
                       .name = "g", .n_in = 2, .n_out = 1, .rule = "...,...->...", .pointwise = true});
    trama_value *r = trama_apply(product, 2, ((trama_value *[]){x, y}), NULL);
    check_shape(r, TRAMA_SHAPE(TRAMA_ANY, 3));
    check_shape(trama_result(r, 1), TRAMA_SHAPE(4, TRAMA_ANY));
    check_shape(trama_result(r, 2), TRAMA_SCALAR);
    ck_assert_ptr_null(trama_result(r, 3));
    trama_value *row = input(p, "row", TRAMA_SHAPE(3));
    check_shape(trama_apply(broadcast, 2, ((trama_value *[]){y, row}), NULL), TRAMA_SHAPE(5, 3));
    ck_assert_ptr_null(trama_apply(product, 2, ((trama_value *[]){x, NULL}), NULL)); /* passes through */
    ck_assert_int_eq(trama_program_status(p), TRAMA_OK);
    trama_program_destroy(&p);
    trama_op_destroy(&product);
    trama_op_destroy(&broadcast);
    ck_assert_ptr_null(product);
}
END_TEST

static void check_error(trama_program **p, const trama_value *made, trama_status status, int line, const char *words)
{
    char place[200];
    snprintf(place, sizeof place, __FILE__ ":%d: ", line);
    ck_assert_ptr_null(made);
    ck_assert_msg(trama_program_status(*p) == status, "%s", trama_program_error(*p));
    ck_assert_msg(strstr(trama_program_error(*p), place) != NULL, "%s", trama_program_error(*p));
    ck_assert_msg(strstr(trama_program_error(*p), words) != NULL, "%s", trama_program_error(*p));
    trama_program_clear_error(*p);
}
#define wrong_use(status, words, ...) check_error(&p, trama_apply(__VA_ARGS__), status, __LINE__, words)

static trama_status rule_by_axis(const trama_op_use *use, char *rule, size_t room)
{
    if (use->attributes->integer[0] > 1)
        return trama_op_refuse(use, TRAMA_E_SHAPE, "there is no axis %d", (int)use->attributes->integer[0]);
    if (use->attributes->integer[0] < 0)
        return snprintf(rule, room, "ab->ac"), TRAMA_OK;
    snprintf(rule, room, use->attributes->integer[0] ? "a[b]->a[c=%d]" : "[a]b->[c=%d]b",
             2 * (int)use->shape[0].dim[use->attributes->integer[0]]);
    return TRAMA_OK;
}

static trama_status only_f64(const trama_op_use *use, trama_dtype *result)
{
    if (use->dtype[0] != TRAMA_F64)
        return trama_op_refuse(use, TRAMA_E_DTYPE, "it takes f64");
    *result = use->attributes->integer[0] == 1 ? (trama_dtype)77 : TRAMA_I64;
    return TRAMA_OK;
}

START_TEST(wrong_uses_are_refused_with_file_line_and_op)
{
    trama_program *p = trama_program_create();
    trama_value *x = input(p, "x", TRAMA_SHAPE(7, 5)), *y = input(p, "y", TRAMA_SHAPE(4, 3));
    trama_value *f = trama_input(p, "f", TRAMA_F32, TRAMA_SHAPE(7, 5)), *v = input(p, "v", TRAMA_SHAPE(5));
    trama_value *big = input(p, "big", TRAMA_SHAPE(1, 1, 1, 1, 1, 1, 1, 1));
    trama_value *many[2] = {input(p, "m0", TRAMA_SHAPE(2, 3, 4, 5, 6, 7, 8, 9)),
                            input(p, "m1", TRAMA_SHAPE(12, 13, 14, 15, 16, 17, 18, 19))};
    trama_value *most[4] = {many[0], many[1], input(p, "m2", TRAMA_SHAPE(22, 23, 24, 25, 26, 27, 28, 29)),
                            input(p, "m3", TRAMA_SHAPE(30, 31))};
    const trama_op *
        product = defined((trama_op_definition){.name = "product", .n_in = 2, .n_out = 1, .rule = "mk,kn->mn"}),
       *fixed = defined((trama_op_definition){.name = "fixed", .n_in = 1, .n_out = 1, .rule = "ab=4->ab"}),
       *longer = defined((trama_op_definition){.name = "longer", .n_in = 1, .n_out = 1, .rule = "...->...k=2"}),
       *update =
           defined((trama_op_definition){.name = "update", .n_in = 2, .n_out = 1, .rule = "n,n->n", .updates = 1}),
       *axis = defined((trama_op_definition){.name = "axis", .n_in = 1, .n_out = 1, .rule_of = rule_by_axis}),
       *typed =
           defined((trama_op_definition){.name = "typed", .n_in = 1, .n_out = 1, .rule = "ab->", .dtype = only_f64}),
       *whole = defined((trama_op_definition){.name = "whole", .n_in = 4, .n_out = 1}),
       *dots =
           defined((trama_op_definition){.name = "dots", .n_in = 4, .n_out = 1, .rule = "...,abcdefgh,ijklmnop,qr->a"});
    wrong_use(TRAMA_E_SHAPE, "product of x f64[7,5], y f64[4,3]", product, 2, ((trama_value *[]){x, y}), NULL);
    wrong_use(TRAMA_E_SHAPE, "product of x f64[7,5], v f64[5]", product, 2, ((trama_value *[]){x, v}), NULL);
    wrong_use(TRAMA_E_DTYPE, "cast one of them", product, 2, ((trama_value *[]){f, x}), NULL);
    wrong_use(TRAMA_E_ARGUMENT, "product takes 2 operands, not 1", product, 1, &x, NULL);
    wrong_use(TRAMA_E_ARGUMENT, "the op is NULL", NULL, 1, &x, NULL);
    wrong_use(TRAMA_E_SHAPE, "the dims do not agree", fixed, 1, &x, NULL);
    wrong_use(TRAMA_E_SHAPE, "too many dims", longer, 1, &big, NULL);
    wrong_use(TRAMA_E_ARGUMENT, "v is no state", update, 2, ((trama_value *[]){v, v}), NULL);
    wrong_use(TRAMA_E_SHAPE, "axis: there is no axis 2", axis, 1, &x, &(trama_attributes){.integer = {2}});
    wrong_use(TRAMA_E_ARGUMENT, "that rule_of of the op", axis, 1, &x, &(trama_attributes){.integer = {-1}});
    wrong_use(TRAMA_E_DTYPE, "typed: it takes f64", typed, 1, &f, NULL);
    wrong_use(TRAMA_E_DTYPE, "77 is no element type", typed, 1, &x, &(trama_attributes){.integer = {1}});
    wrong_use(TRAMA_E_SHAPE, "more different dims", whole, 4, most, NULL);
    wrong_use(TRAMA_E_SHAPE, "more different dims", dots, 4, most, NULL);
    check_shape(trama_apply(axis, 1, &x, &(trama_attributes){.integer = {1}}), TRAMA_SHAPE(7, 10));
    check_shape(trama_apply(axis, 1, &x, NULL), TRAMA_SHAPE(14, 5));
    trama_value *count = trama_apply(typed, 1, &x, NULL);
    ck_assert_int_eq(trama_value_dtype(count), TRAMA_I64);
    check_shape(trama_apply(whole, 4, ((trama_value *[]){x, y, v, x}), NULL), TRAMA_SHAPE(7, 5));
    trama_program_destroy(&p);
    const trama_op **const all[] = {&product, &fixed, &longer, &update, &axis, &typed, &whole, &dots};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        trama_op_destroy(all[i]);
}
END_TEST

/* Of three results it says two, the second as the attribute has it. */
static trama_status two_types(const trama_op_use *use, trama_dtype *result)
{
    result[0] = use->dtype[0];
    result[1] = (trama_dtype)use->attributes->integer[0];
    return TRAMA_OK;
}

START_TEST(each_result_has_the_element_type_that_the_op_gives_it)
{
    trama_program *p = trama_program_create();
    trama_value *x = input(p, "x", TRAMA_SHAPE(7, 5)), *s = trama_state(p, "s", TRAMA_F32, TRAMA_SHAPE(7), NULL);
    const trama_op
        *top = defined(
            (trama_op_definition){.name = "top", .n_in = 1, .n_out = 3, .rule = "b[n]->b,b,b", .dtype = two_types}),
        *keeps = defined((trama_op_definition){
            .name = "keeps", .n_in = 2, .n_out = 2, .rule = "b,b[n]->b,b", .updates = 1, .dtype = two_types});
    wrong_use(TRAMA_E_DTYPE, "top: result 1: 77 is no element type", top, 1, &x, &(trama_attributes){.integer = {77}});
    trama_value *y = trama_apply(top, 1, &x, &(trama_attributes){.integer = {TRAMA_I32}});
    ck_assert_int_eq(trama_value_dtype(y), TRAMA_F64);
    ck_assert_int_eq(trama_value_dtype(trama_result(y, 1)), TRAMA_I32);
    ck_assert_int_eq(trama_value_dtype(trama_result(y, 2)), TRAMA_F64);
    trama_value *kept = trama_apply(keeps, 2, ((trama_value *[]){s, x}), &(trama_attributes){.integer = {TRAMA_BF16}});
    ck_assert_int_eq(trama_value_dtype(kept), TRAMA_F32);
    ck_assert_int_eq(trama_value_dtype(trama_result(kept, 1)), TRAMA_BF16);
    trama_program_destroy(&p);
    trama_op_destroy(&top);
    trama_op_destroy(&keeps);
}
END_TEST

/* Letters of rules at random: what is accepted can be used on any shapes, with a result or an error. */
START_TEST(whatever_a_rule_says_it_is_refused_or_can_be_used)
{
    static const char letters[] = "abc...,,->[]=2k ";
    uint64_t seed = 1;
    int accepted = 0, used = 0;
    trama_mesh *mesh = trama_mesh_create("2,3");
    for (int i = 0; i < 200000; i++) {
        char rule[32] = "";
        for (int n = random_below(&seed, 12); n > 0; n--) {
            const char letter[] = {letters[random_below(&seed, 16)], 0};
            strcat(rule, random_below(&seed, 4) ? letter : "->");
        }
        const trama_op *op = NULL;
        int n_in = 1 + random_below(&seed, 2), n_out = 1 + random_below(&seed, 2);
        trama_op_definition d = {.name = "f", .n_in = n_in, .n_out = n_out, .rule = rule, .cpu = nothing};
        if (trama_op_define(&d, &op))
            continue;
        trama_program *p = trama_program_create();
        trama_value *in[2];
        trama_layout given[2], computed[2], results[2];
        accepted++;
        for (int t = 0; t < 2; t++) {
            trama_shape shape = {.ndim = random_below(&seed, 4)};
            for (int k = 0; k < shape.ndim; k++)
                shape.dim[k] = random_below(&seed, 4);
            in[t] = input(p, t ? "y" : "x", shape);
            layout_list list = {0};
            every_layout(mesh, shape.ndim, true, &list);
            given[t] = list.at[random_below(&seed, list.n)];
            ARRAY_FREE(&list);
        }
        trama_value *made = trama_apply(op, n_in, in, NULL);
        ck_assert((made != NULL) == !trama_program_status(p));
        ck_assert(!made || trama_rule_infer(made, mesh, given, NULL, computed, results) == TRAMA_OK);
        used += made != NULL;
        trama_program_destroy(&p);
        trama_op_destroy(&op);
    }
    ck_assert_msg(accepted > 1000 && used > 100, "%d rules, %d used", accepted, used);
    trama_mesh_destroy(&mesh);
}
END_TEST

/* ---- Gradients ---- */

static void wrong_gradient(const trama_op_gradient *g)
{
    trama_op_set_gradient(g, 0, trama_transpose(trama_op_result_gradient(g, 0), NULL));
}

static void no_second_gradient(const trama_op_gradient *g)
{
    ck_assert_ptr_null(trama_op_operand(g, 2));
    ck_assert_ptr_null(trama_op_result(g, 1));
    ck_assert_ptr_null(trama_op_result_gradient(g, -1));
    ck_assert(trama_op_wants(g, 0) && !trama_op_wants(g, 1) && !trama_op_wants(g, 9));
    trama_op_set_gradient(g, 0, trama_mul(trama_op_result_gradient(g, 0), trama_op_operand(g, 1)));
    trama_op_set_gradient(g, 1, trama_op_result(g, 0)); /* nobody asked */
}

START_TEST(a_gradient_goes_through_an_op_that_has_one_and_else_is_an_error)
{
    trama_program *p = trama_program_create();
    trama_op_definition d = {.name = "f", .n_in = 2, .n_out = 1, .rule = "...,...->..."};
    const trama_op *none = defined(d);
    d.gradient = wrong_gradient;
    const trama_op *wrong = defined(d);
    d.gradient = no_second_gradient;
    const trama_op *right = defined(d);
    trama_value *x = trama_parameter(p, "x", TRAMA_F64, TRAMA_SHAPE(1, 5), NULL);
    trama_value *y = input(p, "y", TRAMA_SHAPE(7, 5)), *operands[] = {x, y};
    trama_value *loss = trama_sum(trama_apply(none, 2, operands, NULL));
    check_error(&p, trama_gradient(loss, x), TRAMA_E_UNSUPPORTED, __LINE__, "through f (" __FILE__);
    trama_optimizer sgd = trama_sgd(1);
    check_error(&p, trama_minimize(loss, &sgd), TRAMA_E_UNSUPPORTED, __LINE__, "through f (" __FILE__);
    trama_value *distinct[] = {trama_stop_gradient(x), y};
    trama_value *other = trama_sum(trama_add(x, trama_apply(none, 2, distinct, NULL)));
    check_shape(trama_gradient(other, x), TRAMA_SHAPE(1, 5));
    int line = __LINE__ + 1;
    trama_value *turned = trama_apply(wrong, 2, operands, NULL);
    check_error(&p, trama_gradient(trama_sum(turned), x), TRAMA_E_SHAPE, line, "gradient of f: transpose");
    trama_value *through = trama_apply(right, 2, operands, NULL);
    check_shape(trama_gradient(trama_sum(through), x), TRAMA_SHAPE(1, 5)); /* repeated rows are added up */
    ck_assert_msg(!trama_program_status(p), "%s", trama_program_error(p));
    trama_program_destroy(&p);
    trama_op_destroy(&none);
    trama_op_destroy(&wrong);
    trama_op_destroy(&right);
}
END_TEST

START_TEST(a_program_prints_an_op_with_its_attributes)
{
    trama_program *p = trama_program_create();
    char names[] = "power | low high", name[] = "powers";
    const trama_op *op = defined((trama_op_definition){.name = name, .n_in = 1, .n_out = 1, .attributes = names});
    memset(names, 'x', sizeof names - 1); /* all of the definition is copied */
    memset(name, 'y', sizeof name - 1);
    trama_value *x = input(p, "x", TRAMA_SHAPE(7, 5));
    trama_apply(op, 1, &x, &(trama_attributes){.integer = {3}, .real = {0, 0.5}});
    char *words = trama_program_text(p);
    ck_assert_msg(strstr(words, "powers(x, power=3, high=0.5)") != NULL, "%s", words);
    free(words);
    trama_program_destroy(&p);
    trama_op_destroy(&op);
    const trama_op *built_in = trama_op_find("matmul");
    trama_op_destroy(&built_in);
    ck_assert_ptr_nonnull(built_in);
    trama_op_destroy(NULL);
}
END_TEST

int main(void)
{
    const TTest *tests[] = {
        names_and_numbers_that_cannot_be_are_refused,
        rules_that_are_none_are_refused,
        results_have_the_shapes_of_the_rule,
        wrong_uses_are_refused_with_file_line_and_op,
        each_result_has_the_element_type_that_the_op_gives_it,
        whatever_a_rule_says_it_is_refused_or_can_be_used,
        a_gradient_goes_through_an_op_that_has_one_and_else_is_an_error,
        a_program_prints_an_op_with_its_attributes,
    };
    return suite_run("op_define", NULL, NULL, tests, sizeof tests / sizeof *tests);
}
