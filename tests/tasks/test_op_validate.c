/* SPDX-License-Identifier: Apache-2.0 */
/* trama_op_validate on right and wrong rules, and on kernels that do not do what their op promises. No context lives.
 */
#include "harness.h"
#include "own_ops.h"

static trama_program *p;

static void set_up(void)
{
    p = trama_program_create();
}

static void tear_down(void)
{
    trama_program_destroy(&p);
}

static trama_value *tensor(const char *name, trama_dtype dtype, trama_shape shape)
{
    return trama_state(p, name, dtype, shape, NULL);
}

static trama_validation validated(const trama_value *value, const trama_value_range *ranges, trama_status wanted)
{
    trama_validation found = {0};
    demand(value, "%s", trama_program_error(p));
    trama_status status = trama_op_validate(value, ranges, &found);
    demand(status == wanted, "%s: %s\n%s", trama_status_text(status), trama_error(), found.text ? found.text : "");
    return found;
}

static const trama_op *defined(trama_op_definition d)
{
    const trama_op *op = NULL;
    must(trama_op_define(&d, &op));
    return op;
}

/* ---- Right rules ---- */

START_TEST(the_rules_of_the_tests_own_ops_are_right)
{
    set_up();
    define_own();
    trama_value *x = tensor("x", TRAMA_F64, TRAMA_SHAPE(7, 5)), *w = tensor("w", TRAMA_F64, TRAMA_SHAPE(5)),
                *s = tensor("s", TRAMA_F64, TRAMA_SHAPE(7, 5)), *one = tensor("one", TRAMA_F64, TRAMA_SHAPE(1, 5));
    trama_value *const tried[] = {
        trama_apply(own[GATE], 2, (trama_value *[]){x, w}, NULL),
        trama_apply(own[GATE], 2, (trama_value *[]){x, s}, NULL),
        trama_apply(own[GATE], 2, (trama_value *[]){one, x}, NULL),
        trama_apply(own[ROWS], 1, &x, NULL),
        trama_apply(own[DOT], 2, (trama_value *[]){x, w}, NULL),
        trama_apply(own[POSITIVE], 1, &x, NULL),
        trama_apply(own[POWERS], 1, &w, &(trama_attributes){.integer = {7}}),
        trama_apply(own[BLEND], 2, (trama_value *[]){s, x}, NULL),
    };
    for (size_t i = 0; i < sizeof tried / sizeof *tried; i++) {
        const trama_value_range positive[] = {{0.5, 2}, {0.5, 2}};
        trama_validation a = validated(tried[i], i == 3 ? positive : NULL, TRAMA_OK);
        demand(a.tried >= 150 && !a.wrong && !a.missing, "%s: tried %d, wrong %d, missing %d\n%s",
               trama_value_name(tried[i]), a.tried, a.wrong, a.missing, a.text);
        if (i == 4) {
            trama_validation b = validated(tried[i], NULL, TRAMA_OK);
            demand(a.tried == b.tried && !strcmp(a.text, b.text), "it is not the same each time");
            free(b.text);
            must(trama_op_validate(tried[i], NULL, NULL));
        }
        free(a.text);
    }
    tear_down();
    destroy_own();
}
END_TEST

/* ---- Wrong and missing ones ---- */

static void refuted(trama_op_definition d, trama_dtype dtype, const char *words)
{
    set_up();
    const trama_op *op = defined(d);
    trama_value *x = tensor("x", dtype, TRAMA_SHAPE(7, 5)), *w = tensor("w", dtype, TRAMA_SHAPE(5));
    trama_value *operands[] = {x, w}, *y = trama_apply(op, d.n_in, operands, NULL);
    const trama_value_range positive[] = {{0.5, 2}, {0.5, 2}};
    trama_validation found = validated(y, positive, TRAMA_E_LAYOUT);
    demand(found.wrong > 0 && strstr(found.text, words) && strstr(found.text, "wrong: f"), "no \"%s\" in\n%s", words,
           found.text);
    demand(strstr(trama_error(), __FILE__) && strstr(trama_error(), "are wrong: "), "%s", trama_error());
    free(found.text);
    tear_down();
    trama_op_destroy(&op);
}

static trama_status largest_cpu(const trama_call *call)
{
    for (int64_t b = 0; b < call->out->extent[0]; b++) {
        double most = -INFINITY;
        for (int64_t k = 0; k < call->in->extent[1]; k++)
            most = fmax(most, *number(call->in, 2, (int64_t[]){b, k}));
        *number(call->out, 1, &b) = most;
    }
    return TRAMA_OK;
}

/* As if all were contiguous. */
static trama_status flat_cpu(const trama_call *call)
{
    int64_t n = call->out->extent[0] * call->out->extent[1];
    for (int64_t i = 0; i < n; i++)
        ((double *)call->out->data)[i] = -((double *)call->in->data)[i];
    return TRAMA_OK;
}

/* Looks at its neighbour, which another process may have. */
static trama_status beside_cpu(const trama_call *call)
{
    int64_t i[TRAMA_MAX_NDIM];
    for (bool more = trama_first(call->out, i); more; more = trama_next(call->out, i)) {
        bool last = call->out->offset[1] + i[1] + 1 == call->out->global[1];
        *number(call->out, 2, i) =
            *number(call->in, 2, i) + (last ? 0 : *number(call->in, 2, (int64_t[]){i[0], i[1] + 1}));
    }
    return TRAMA_OK;
}

static trama_status place_cpu(const trama_call *call)
{
    int64_t i[TRAMA_MAX_NDIM];
    for (bool more = trama_first(call->out, i); more; more = trama_next(call->out, i))
        *number(call->out, call->out->ndim, i) =
            *number(call->in, call->out->ndim, i) + (double)(call->out->offset[0] + i[0]);
    return TRAMA_OK;
}

START_TEST(wrong_rules_are_refuted_with_shapes_placements_and_difference)
{
    refuted((trama_op_definition){.name = "f", .n_in = 1, .n_out = 2, .rule = "bk->bk,b", .cpu = rows_cpu}, TRAMA_F64,
            "a row of 5 elements comes in pieces");
    refuted((trama_op_definition){.name = "f", .n_in = 1, .n_out = 1, .rule = "bk->b", .cpu = largest_cpu}, TRAMA_F64,
            "f ([7,5] S(1)) on 2 becomes f ([7,5] S(1)) -> P(sum), which differs by");
    refuted(
        (trama_op_definition){
            .name = "f", .n_in = 2, .n_out = 1, .rule = "...,...->...", .cpu = gate_cpu, .partial = "linear,linear"},
        TRAMA_F64, "f ([7,5] P(sum), [5] R) on 2 becomes f ([7,5] P(sum), [5] R) -> P(sum), which differs by");
    refuted(
        (trama_op_definition){
            .name = "f", .n_in = 2, .n_out = 1, .rule = "bk,k->b", .cpu = dot_cpu, .partial = "rising,-"},
        TRAMA_F64, "P(max)");
    refuted(
        (trama_op_definition){
            .name = "f", .n_in = 2, .n_out = 1, .rule = "bk,k->b", .cpu = dot_cpu, .reduce = TRAMA_MAX},
        TRAMA_F64, "P(max)");
    refuted((trama_op_definition){.name = "f", .n_in = 1, .n_out = 1, .rule = "bk->bk", .cpu = beside_cpu}, TRAMA_F64,
            "[7,5] S(1)");
    refuted(
        (trama_op_definition){
            .name = "f", .n_in = 1, .n_out = 1, .rule = "...->...", .cpu = place_cpu, .pointwise = true},
        TRAMA_F64, "f is not pointwise");
}
END_TEST

START_TEST(a_kernel_that_ignores_strides_is_refuted)
{
    set_up();
    const trama_op *op =
        defined((trama_op_definition){.name = "f", .n_in = 1, .n_out = 1, .rule = "bk->bk", .cpu = flat_cpu});
    trama_value *x = tensor("x", TRAMA_F64, TRAMA_SHAPE(7, 5));
    trama_validation found = {0};
    trama_status status = trama_op_validate(trama_apply(op, 1, &x, NULL), NULL, &found);
    demand(status == TRAMA_E_LAYOUT && found.wrong > 0, "%s", trama_status_text(status));
    free(found.text);
    tear_down();
    trama_op_destroy(&op);
}
END_TEST

static trama_status negative_cpu(const trama_call *call)
{
    int64_t i[TRAMA_MAX_NDIM];
    for (bool more = trama_first(call->out, i); more; more = trama_next(call->out, i)) {
        if (call->in->dtype == TRAMA_BF16) /* the sign bit */
            ((trama_bf16 *)trama_element(call->out, call->out->ndim, i))->bits =
                ((trama_bf16 *)trama_element(call->in, call->out->ndim, i))->bits ^ 0x8000;
        else if (call->in->dtype == TRAMA_F32)
            *(float *)trama_element(call->out, call->out->ndim, i) =
                -*(float *)trama_element(call->in, call->out->ndim, i);
        else
            *number(call->out, call->out->ndim, i) = -*number(call->in, call->out->ndim, i);
    }
    return TRAMA_OK;
}

static void misses(trama_op_definition d, trama_dtype dtype, int missing, const char *const *lines)
{
    set_up();
    const trama_op *op = defined(d);
    trama_value *x = tensor("x", dtype, TRAMA_SHAPE(7, 5)), *w = tensor("w", dtype, TRAMA_SHAPE(5));
    trama_validation found = validated(trama_apply(op, d.n_in, (trama_value *[]){x, w}, NULL), NULL, TRAMA_OK);
    demand(found.missing == missing && !found.wrong, "missing %d, not %d:\n%s", found.missing, missing, found.text);
    for (; *lines; lines++)
        demand(strstr(found.text, *lines), "no \"%s\" in\n%s", *lines, found.text);
    free(found.text);
    tear_down();
    trama_op_destroy(&op);
}

START_TEST(placements_that_a_rule_could_give_are_named)
{
    static const char *const all[] = {
        "missing: f ([7,5] S(0)) -> S(0) on 2; a rule with a letter for dim 0 of operand 0 would allow it\n",
        "missing: f ([7,5] S(1)) -> S(1) on 2; a rule with a letter for dim 1 of operand 0 would allow it\n",
        "missing: f ([7,5] P(sum)) -> P(sum) on 2; a rule and \"linear\" in .partial for operand 0 would allow it\n",
        "missing: f ([7,5] P(max)) -> P(min) on 2; a rule and \"falling\" in .partial for operand 0 would allow it\n",
        "missing: f ([7,5] P(min)) -> P(max) on 2; a rule and \"falling\" in .partial for operand 0 would allow it\n",
        NULL};
    static const char *const
        none[] = {NULL},
        *const rows[] = {
            "missing: f ([7,5] S(0)) -> S(0) on 2; a rule without brackets around dim 0 of operand 0 would allow it\n",
            NULL};
    static const char *const linear[] = {
        "missing: f ([7,5] P(sum), [5] R) -> P(sum) on 2; \"linear\" in .partial for operand 0 would allow it\n",
        "missing: f ([7,5] R, [5] P(sum)) -> P(sum) on 2; \"linear\" in .partial for operand 1 would allow it\n", NULL};
    for (int i = 0; i < 3; i++) {
        static const trama_dtype dtypes[] = {TRAMA_F64, TRAMA_F32, TRAMA_BF16};
        const trama_dtype dtype = dtypes[i];
        misses((trama_op_definition){.name = "f", .n_in = 1, .n_out = 1, .cpu = negative_cpu}, dtype, 5, all);
        misses((trama_op_definition){.name = "f",
                                     .n_in = 1,
                                     .n_out = 1,
                                     .rule = "[b]k->[b]k",
                                     .cpu = negative_cpu,
                                     .partial = "linear+falling"},
               dtype, 1, rows);
        misses((trama_op_definition){.name = "f",
                                     .n_in = 1,
                                     .n_out = 1,
                                     .rule = "...->...",
                                     .cpu = negative_cpu,
                                     .partial = "linear+falling",
                                     .pointwise = true},
               dtype, 0, none);
    }
    misses((trama_op_definition){.name = "f", .n_in = 2, .n_out = 1, .rule = "bk,k->b", .cpu = dot_cpu}, TRAMA_F64, 2,
           linear);
}
END_TEST

/* ---- Impossible trials ---- */

static trama_status always_nan_cpu(const trama_call *call)
{
    int64_t i[TRAMA_MAX_NDIM];
    for (bool more = trama_first(call->out, i); more; more = trama_next(call->out, i))
        *number(call->out, call->out->ndim, i) = sqrt(*number(call->in, call->out->ndim, i));
    return TRAMA_OK;
}

START_TEST(what_cannot_be_tried_is_refused)
{
    set_up();
    trama_validation found = {.tried = -1};
    const trama_op *fails = defined((trama_op_definition){.name = "fails", .n_in = 1, .n_out = 1, .cpu = picky_cpu});
    const trama_op *root = defined(
        (trama_op_definition){.name = "root", .n_in = 1, .n_out = 1, .rule = "...->...", .cpu = always_nan_cpu});
    trama_value *x = tensor("x", TRAMA_F64, TRAMA_SHAPE(5)), *big = tensor("big", TRAMA_F64, TRAMA_SHAPE(1000, 1000));
    trama_value *any = trama_input(p, "any", TRAMA_F64, TRAMA_SHAPE(TRAMA_ANY));
    const trama_value_range thirteen = {13, 13}, negative = {-3, -1}, positive = {1, 3};
    expect_here(trama_op_validate(trama_neg(x), NULL, &found), TRAMA_E_ARGUMENT, "op of one's own");
    expect_here(trama_op_validate(x, NULL, &found), TRAMA_E_ARGUMENT, "x is not the result");
    expect_here(trama_op_validate(NULL, NULL, &found), TRAMA_E_ARGUMENT, "the value is NULL");
    expect_here(trama_op_validate(trama_apply(root, 1, &any, NULL), NULL, &found), TRAMA_E_SHAPE,
                "only known when fed");
    expect_here(trama_op_validate(trama_apply(root, 1, &big, NULL), NULL, &found), TRAMA_E_SHAPE, "too many elements");
    expect_here(trama_op_validate(trama_apply(fails, 1, &x, NULL), &thirteen, &found), TRAMA_E_KERNEL,
                "fails on whole operands: 13 is no number");
    expect_here(trama_op_validate(trama_apply(root, 1, &x, NULL), &negative, &found), TRAMA_E_ARGUMENT, "NaN",
                "ranges");
    demand(found.tried == -1 && !found.text, "an error that gives something");
    must(trama_op_validate(trama_apply(root, 1, &x, NULL), &positive, NULL));
    tear_down();
    trama_op_destroy(&fails);
    trama_op_destroy(&root);
}
END_TEST

TESTS(the_rules_of_the_tests_own_ops_are_right, wrong_rules_are_refuted_with_shapes_placements_and_difference,
      a_kernel_that_ignores_strides_is_refuted, placements_that_a_rule_could_give_are_named,
      what_cannot_be_tried_is_refused)
