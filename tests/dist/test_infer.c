/* SPDX-License-Identifier: Apache-2.0 */
/* Layout inference of single ops: the published cases of dist/README.md, partial values, gradients, the fallback.
 * Mappings are written as there; -1 on an operand is open. */
#include <check.h>
#include <string.h>

#include "infer.h"
#include "suite.h"
#include "trama_array.h"
#include "trama_ops.h"

static trama_program *p;

static void set_up(void)
{
    p = trama_program_create();
}

static void tear_down(void)
{
    trama_program_destroy(&p);
}

static trama_value *input(const char *name, trama_shape shape)
{
    return trama_input(p, name, TRAMA_F64, shape);
}

/* A layout by its text; unsplit axes are open. */
static trama_layout open_layout(const trama_mesh *mesh, int ndim, const char *written)
{
    trama_layout l;
    ck_assert_msg(!trama_layout_parse(mesh, ndim, written, &l), "%s", trama_error());
    for (int a = 0; a < l.naxes; a++)
        if (l.axis[a].kind == TRAMA_REPLICATE)
            l.axis[a].kind = TRAMA_OPEN;
    return l;
}

static void expect(const trama_mesh *mesh, int ndim, const trama_layout *l, const char *expected, const char *what)
{
    char *got = trama_layout_mapping(mesh, ndim, l);
    ck_assert_msg(!strcmp(got, expected), "%s is %s, not %s", what, got, expected);
    free(got);
}

/* Infers the op of `result`; given[] and in[] per operand, NULL: unknown, not looked at. */
static void check_inferred(bool moves, const char *mesh_text_, trama_value *result, const char *const *given,
                           const char *const *in, const char *out)
{
    ck_assert_msg(result != NULL, "%s", trama_program_error(p));
    const trama_node *node = result->node;
    trama_mesh *mesh = trama_mesh_create(mesh_text_);
    trama_layout layouts[TRAMA_MAX_OPERANDS];
    const trama_layout *known[TRAMA_MAX_OPERANDS] = {0};
    op_layouts inferred;
    for (int t = 0; t < node->op->n_in; t++)
        if (given[t]) {
            layouts[t] = open_layout(mesh, node->in[t]->shape.ndim, given[t]);
            known[t] = &layouts[t];
        }
    infer_op(&(infer_question){.node = node, .rule = node->rule, .mesh = mesh, .in = known, .moves = moves}, &inferred,
             NULL);
    for (int t = 0; t < node->op->n_in; t++)
        if (in[t])
            expect(mesh, node->in[t]->shape.ndim, &inferred.in[t], in[t], node->in[t]->name);
    expect(mesh, result->shape.ndim, &inferred.out[0], out, "the result");
    trama_mesh_destroy(&mesh);
}

#define GIVEN (const char *const[])
static const char *const mesh_23 = "2,3:0,1,2,3,4,5";

static void check_op(const char *mesh_text_, trama_value *result, const char *const *given, const char *const *in,
                     const char *out)
{
    check_inferred(false, mesh_text_, result, given, in, out);
}

/* As plans have it. */
static void check_planned(const char *mesh_text_, trama_value *result, const char *const *given, const char *const *in,
                          const char *out)
{
    check_inferred(true, mesh_text_, result, given, in, out);
}

START_TEST(the_published_matmul_table)
{
    trama_value *z = trama_matmul(input("x", TRAMA_SHAPE(64, 32)), input("y", TRAMA_SHAPE(32, 48)));
    check_op(mesh_23, z, GIVEN{"[1,0]", "[0,-1]"}, GIVEN{"[1,0]", "[0,-1]"}, "[1,-1] P{0:sum}");
    check_op(mesh_23, z, GIVEN{"[1,0]", "[-1,-1]"}, GIVEN{"[1,0]", "[0,-1]"}, "[1,-1] P{0:sum}");
    check_op(mesh_23, z, GIVEN{"[-1,-1]", "[1,0]"}, GIVEN{"[-1,1]", "[1,0]"}, "[-1,0] P{1:sum}");
    check_op(mesh_23, z, GIVEN{"[0,-1]", "[-1,1]"}, GIVEN{"[0,-1]", "[-1,1]"}, "[0,1]");
}
END_TEST

START_TEST(the_published_batched_transposed_matmul)
{
    trama_value *x = input("x", TRAMA_SHAPE(512, 48, 64, 32)), *y = input("y", TRAMA_SHAPE(64, 16));
    trama_value *z = trama_matmul_trans(x, y, true, false);
    ck_assert(trama_shape_equal(trama_value_shape(z), TRAMA_SHAPE(512, 48, 32, 16)));
    check_op(mesh_23, z, GIVEN{"[1,-1,-1,0]", "[-1,-1]"}, GIVEN{"[1,-1,-1,0]", "[-1,-1]"}, "[1,-1,0,-1]");
}
END_TEST

START_TEST(the_published_add)
{
    trama_value *z = trama_add(input("x", TRAMA_SHAPE(96, 24, 48)), input("y", TRAMA_SHAPE(96, 24, 48)));
    check_op(mesh_23, z, GIVEN{"[0,-1,-1]", "[-1,1,0]"}, GIVEN{"[0,1,-1]", "[0,1,-1]"}, "[0,1,-1]");
}
END_TEST

START_TEST(the_published_sum_reshape_and_softmax)
{
    trama_value *x = input("x", TRAMA_SHAPE(96, 24, 48)), *w = input("w", TRAMA_SHAPE(6, 12, 48, 24));
    check_op(mesh_23, trama_sum_over(x, 2, ((int[]){1, 2}), false), GIVEN{"[-1,0,1]"}, GIVEN{"[-1,0,1]"},
             "[-1] P{0:sum,1:sum}");
    check_op(mesh_23, trama_reshape(w, TRAMA_SHAPE(72, 3, 16, 24)), GIVEN{"[0,-1,1,-1]"}, GIVEN{"[0,-1,1,-1]"},
             "[0,1,-1,-1]");
    check_op("2,4", trama_softmax(x, -1), GIVEN{"[1,-1,0]"}, GIVEN{"[1,-1,-1]"}, "[1,-1,-1]");
}
END_TEST

/* An exchange gives a process (p - 1) / p of its part of the dim, a gather p - 1 parts. */
START_TEST(plans_move_the_split_of_a_whole_dim_to_the_largest_pieces)
{
    trama_value *x = input("x", TRAMA_SHAPE(8, 24, 6));
    check_planned("4", trama_softmax(x, 0), GIVEN{"[0,-1,-1]"}, GIVEN{"[-1,0,-1]"}, "[-1,0,-1]");
    check_planned("2,4", trama_softmax(x, 1), GIVEN{"[0,1,-1]"}, GIVEN{"[0+1,-1,-1]"}, "[0+1,-1,-1]");
    check_planned("2,2", trama_softmax(x, 1), GIVEN{"[0,1,-1]"}, GIVEN{"[0,-1,1]"}, "[0,-1,1]");
    check_planned("2,3", trama_softmax(x, 2), GIVEN{"[-1,-1,0+1]"}, GIVEN{"[-1,0+1,-1]"}, "[-1,0+1,-1]");
    check_planned("8", trama_softmax(input("row", TRAMA_SHAPE(64)), 0), GIVEN{"[0]"}, GIVEN{"[-1]"}, "[-1]");
    check_planned("8", trama_softmax(input("few", TRAMA_SHAPE(3, 64)), 1), GIVEN{"[-1,0]"}, GIVEN{"[-1,-1]"},
                  "[-1,-1]");
    check_planned("4", trama_cumsum(x, 2), GIVEN{"[-1,-1,0]"}, GIVEN{"[-1,0,-1]"}, "[-1,0,-1]");
    check_op("4", trama_cumsum(x, 2), GIVEN{"[-1,-1,0]"}, GIVEN{"[-1,-1,-1]"}, "[-1,-1,-1]");
}
END_TEST

START_TEST(several_axes_on_one_dim_stay_in_their_order)
{
    trama_value *z = trama_matmul(input("x", TRAMA_SHAPE(64, 32)), input("y", TRAMA_SHAPE(32, 48)));
    check_op(mesh_23, z, GIVEN{"[1+0,-1]", "[-1,-1]"}, GIVEN{"[1+0,-1]", "[-1,-1]"}, "[1+0,-1]");
    check_op(mesh_23, z, GIVEN{"[-1,1+0]", "[-1,-1]"}, GIVEN{"[-1,1+0]", "[1+0,-1]"}, "[-1,-1] P{0:sum,1:sum}");
    check_op(mesh_23, trama_transpose(input("w", TRAMA_SHAPE(4, 5, 6)), ((int[]){2, 0, 1})), GIVEN{"[-1,1+0,-1]"},
             GIVEN{"[-1,1+0,-1]"}, "[-1,-1,1+0]");
}
END_TEST

/* "A split survives a reshape only where balanced boxes map to boxes" (PyTorch #143372). */
START_TEST(a_reshape_keeps_only_splits_that_stay_boxes)
{
    trama_value *x = input("x", TRAMA_SHAPE(6, 4));
    trama_value *flat = trama_reshape(x, TRAMA_SHAPE(24));
    check_op("2,3", flat, GIVEN{"[0,-1]"}, GIVEN{"[0,-1]"}, "[0]");
    check_op("2,3", flat, GIVEN{"[1+0,-1]"}, GIVEN{"[1+0,-1]"}, "[1+0]");
    check_op("4", flat, GIVEN{"[0,-1]"}, GIVEN{"[-1,-1]"}, "[-1]"); /* 6 rows over 4: 2 2 1 1, but 24 gives 6 6 6 6 */
    check_op("3,4", flat, GIVEN{"[0+1,-1]"}, GIVEN{"[0,-1]"}, "[0]");
    check_op("2", flat, GIVEN{"[-1,0]"}, GIVEN{"[-1,-1]"}, "[-1]"); /* the minor dim */
    check_op("2", trama_reshape(x, TRAMA_SHAPE(6, 2, 2)), GIVEN{"[-1,0]"}, GIVEN{"[-1,0]"}, "[-1,0,-1]");
    check_op("4", trama_reshape(x, TRAMA_SHAPE(1, 6, 1, 4)), GIVEN{"[0,-1]"}, GIVEN{"[0,-1]"}, "[-1,0,-1,-1]");
    check_op("2", trama_reshape(x, TRAMA_SHAPE(4, 6)), GIVEN{"[-1,0]"}, GIVEN{"[-1,-1]"}, "[-1,-1]");
    check_op("2,3", trama_reshape(input("w", TRAMA_SHAPE(6, 4, 6, 9)), TRAMA_SHAPE(6, 6, 4, 3, 3)),
             GIVEN{"[0,-1,-1,1]"}, GIVEN{"[0,-1,-1,1]"}, "[0,-1,-1,1,-1]"); /* indivisible dims stay alone */
    trama_value *fed = trama_reshape(input("fed", TRAMA_SHAPE(TRAMA_ANY, 4, 6)), TRAMA_SHAPE(1, TRAMA_ANY, 6, 4));
    check_op("2", fed, GIVEN{"[0,-1,-1]"}, GIVEN{"[0,-1,-1]"}, "[-1,0,-1,-1]");
    trama_value *any = input("any", TRAMA_SHAPE(TRAMA_ANY, 4));
    check_op("2", trama_reshape(any, TRAMA_SHAPE(TRAMA_ANY, 2, 2)), GIVEN{"[0,-1]"}, GIVEN{"[0,-1]"}, "[0,-1,-1]");
}
END_TEST

/* The first dim of a run with a fed one stays split when the run is merged or divided; further dims of it do not. */
START_TEST(a_reshape_of_a_fed_dim_keeps_the_split_of_the_first_dims)
{
    trama_value *x = input("x", TRAMA_SHAPE(TRAMA_ANY, 4, 6)), *behind = input("b", TRAMA_SHAPE(4, TRAMA_ANY, 6));
    check_op("2,3", trama_reshape(x, TRAMA_SHAPE(TRAMA_ANY, 6)), GIVEN{"[0,-1,1]"}, GIVEN{"[0,-1,1]"}, "[0,1]");
    check_op("2,3", trama_reshape(x, TRAMA_SHAPE(1, TRAMA_ANY)), GIVEN{"[0,1,-1]"}, GIVEN{"[0,-1,-1]"}, "[-1,0]");
    check_op("2,2", trama_reshape(x, TRAMA_SHAPE(TRAMA_ANY, 8, 2, 3)), GIVEN{"[0,-1,1]"}, GIVEN{"[0,-1,1]"},
             "[0,-1,1,-1]");
    check_op("2,3", trama_reshape(behind, TRAMA_SHAPE(TRAMA_ANY, 6)), GIVEN{"[0,-1,1]"}, GIVEN{"[0,-1,1]"}, "[0,1]");
    check_op("2,3", trama_reshape(behind, TRAMA_SHAPE(2, 2, TRAMA_ANY, 3)), GIVEN{"[0,-1,-1]"}, GIVEN{"[0,-1,-1]"},
             "[0,-1,-1,-1]");
    trama_value *both = input("both", TRAMA_SHAPE(TRAMA_ANY, TRAMA_ANY, 6));
    trama_value *rows = trama_reshape(both, TRAMA_SHAPE(TRAMA_ANY, 6));
    check_op("2,3", rows, GIVEN{"[0,-1,1]"}, GIVEN{"[0,-1,1]"}, "[0,1]");
    check_op("2,3", rows, GIVEN{"[0,1,-1]"}, GIVEN{"[0,-1,-1]"}, "[0,-1]");
    trama_value *again = trama_reshape_like(rows, TRAMA_SHAPE(TRAMA_ANY, TRAMA_ANY, 3, 2), both);
    check_op("2,3", again, (GIVEN{"[0,1]", NULL}), (GIVEN{"[0,1]", NULL}), "[0,-1,1,-1]");
}
END_TEST

/* 8 rows over [3,1] are 6 and 2, and so are their elements; 6 rows are 5 and 1, but 24 elements 18 and 6. */
START_TEST(a_reshape_keeps_a_split_by_weights_where_the_weights_divide)
{
    trama_value *eight = input("eight", TRAMA_SHAPE(8, 3)), *six = input("six", TRAMA_SHAPE(6, 4));
    check_op("[3,1]", trama_reshape(eight, TRAMA_SHAPE(24)), GIVEN{"[0,-1]"}, GIVEN{"[0,-1]"}, "[0]");
    check_op("[3,1]", trama_reshape(six, TRAMA_SHAPE(24)), GIVEN{"[0,-1]"}, GIVEN{"[-1,-1]"}, "[-1]");
    check_op("[3,1],2", trama_reshape(eight, TRAMA_SHAPE(24)), GIVEN{"[0+1,-1]"}, GIVEN{"[0+1,-1]"}, "[0+1]");
    check_op("[3,1],[2,1]", trama_reshape(eight, TRAMA_SHAPE(24)), GIVEN{"[0+1,-1]"}, GIVEN{"[0,-1]"}, "[0]");
    check_op("[2,1],[2,1]", trama_reshape(input("nine", TRAMA_SHAPE(9, 2)), TRAMA_SHAPE(18)), GIVEN{"[1+0,-1]"},
             GIVEN{"[1+0,-1]"}, "[1+0]");
    check_op("[3,1]", trama_reshape(six, TRAMA_SHAPE(6, 2, 2)), GIVEN{"[0,-1]"}, GIVEN{"[0,-1]"}, "[0,-1,-1]");
    /* the product of three such sums is 2^66 */
    const int64_t many = INT64_C(1) << 44;
    check_op("[4194303,1],[4194303,1],[4194303,1]",
             trama_reshape(input("many", TRAMA_SHAPE(many, 2)), TRAMA_SHAPE(2 * many)), GIVEN{"[0+1+2,-1]"},
             GIVEN{"[0+1,-1]"}, "[0+1]");
}
END_TEST

/* x [k], a [m, k]: a contraction that is split leaves terms, on every form. */
START_TEST(products_with_vectors_follow_the_rule_of_products)
{
    trama_value *x = input("x", TRAMA_SHAPE(6)), *y = input("y", TRAMA_SHAPE(6));
    trama_value *a = input("a", TRAMA_SHAPE(4, 6)), *b = input("b", TRAMA_SHAPE(6, 8)),
                *c = input("c", TRAMA_SHAPE(3, 6, 8));
    check_op("2,3", trama_matmul(x, y), GIVEN{"[0]", "[-1]"}, GIVEN{"[0]", "[0]"}, "[] P{0:sum}");
    check_op("2,3", trama_matmul(a, x), GIVEN{"[0,1]", "[-1]"}, GIVEN{"[0,1]", "[1]"}, "[0] P{1:sum}");
    check_op("2,3", trama_matmul(x, b), GIVEN{"[-1]", "[1,0]"}, GIVEN{"[1]", "[1,0]"}, "[0] P{1:sum}");
    check_op("2,3", trama_matmul(x, c), GIVEN{"[-1]", "[1,-1,0]"}, GIVEN{"[-1]", "[1,-1,0]"}, "[1,0]");
    check_op("2,3", trama_argmax_over(b, 0, true), GIVEN{"[0,1]"}, GIVEN{"[-1,1]"}, "[-1,1]");
    ck_assert(trama_shape_equal(trama_value_shape(trama_argmax_over(c, -2, true)), TRAMA_SHAPE(3, 1, 8)));
}
END_TEST

/* DTensor #173936: argmax does not commute with P(max). */
START_TEST(partials_pass_only_where_the_op_commutes_with_them)
{
    trama_value *x = input("x", TRAMA_SHAPE(4, 6)), *y = input("y", TRAMA_SHAPE(4, 6));
    static const char *const sum = "[-1,-1] P{0:sum}", *const max = "[-1,-1] P{0:max}", *const min = "[-1,-1] P{0:min}",
                             *const avg = "[-1,-1] P{0:avg}", *const whole = "[-1,-1]";
    check_op("2", trama_relu(x), GIVEN{sum}, GIVEN{whole}, whole);
    check_op("2", trama_relu(x), GIVEN{max}, GIVEN{max}, max);
    check_op("2", trama_neg(x), GIVEN{max}, GIVEN{max}, min);
    check_op("2", trama_argmax(x, 1), GIVEN{max}, GIVEN{whole}, "[-1]");
    check_op("2", trama_add_scalar(x, 1), GIVEN{sum}, GIVEN{whole}, whole);
    check_op("2", trama_add_scalar(x, 1), GIVEN{avg}, GIVEN{avg}, avg);
    check_op("2", trama_sub_scalar(x, 1), GIVEN{max}, GIVEN{max}, max);
    check_op("2", trama_scalar_sub(1, x), GIVEN{max}, GIVEN{max}, min);
    check_op("2", trama_div_scalar(x, -2), GIVEN{sum}, GIVEN{sum}, sum);
    check_op("2", trama_div_scalar(x, -2), GIVEN{max}, GIVEN{max}, min);
    check_op("2", trama_div_scalar(x, 0), GIVEN{sum}, GIVEN{whole}, whole);
    check_op("2", trama_scalar_div(2, x), GIVEN{sum}, GIVEN{whole}, whole);
    check_op("2", trama_add(x, y), GIVEN{sum, sum}, GIVEN{sum, sum}, sum);
    check_op("2", trama_add(x, y), GIVEN{sum, whole}, GIVEN{whole, whole}, whole);
    check_op("2", trama_add(x, y), GIVEN{avg, whole}, GIVEN{avg, whole}, avg);
    check_op("2", trama_sub(x, y), GIVEN{whole, max}, GIVEN{whole, max}, min);
    check_op("2", trama_mul(x, y), GIVEN{sum, whole}, GIVEN{sum, whole}, sum);
    check_op("2", trama_mul(x, y), GIVEN{sum, sum}, GIVEN{sum, whole}, sum);
    check_op("2", trama_mul(x, y), GIVEN{max, whole}, GIVEN{whole, whole}, whole);
    check_op("2", trama_matmul_trans(x, y, false, true), GIVEN{whole, avg}, GIVEN{whole, avg}, avg);
    check_op("2", trama_sum(x), GIVEN{avg}, GIVEN{avg}, "[] P{0:avg}");
    check_op("2", trama_max(x), GIVEN{sum}, GIVEN{whole}, "[]");
    check_op("2", trama_mean(x), GIVEN{"[0,-1]"}, GIVEN{"[0,-1]"}, "[] P{0:sum}"); /* never P(avg): #162692 */
    check_op("2", trama_scale(x, -2), GIVEN{max}, GIVEN{max}, min);
    check_op("2", trama_scale(x, 0), GIVEN{max}, GIVEN{whole}, whole);
    check_op("2", trama_softmax(x, 1), GIVEN{sum}, GIVEN{whole}, whole);
}
END_TEST

/* A cast that keeps every number may go before the sum; of the others only the monotone kinds pass. */
START_TEST(sums_pass_casts_that_are_exact)
{
    static const struct {
        trama_dtype from, to;
        bool exact;
    } casts[] = {{TRAMA_BF16, TRAMA_F32, true},  {TRAMA_F16, TRAMA_F64, true},   {TRAMA_BF16, TRAMA_F64, true},
                 {TRAMA_BF16, TRAMA_F16, false}, {TRAMA_F16, TRAMA_BF16, false}, {TRAMA_F32, TRAMA_BF16, false},
                 {TRAMA_F64, TRAMA_F16, false}};
    for (size_t i = 0; i < sizeof casts / sizeof *casts; i++) {
        const char name[] = {(char)('a' + i), 0};
        trama_value *x = trama_input(p, name, casts[i].from, TRAMA_SHAPE(4, 6)), *y = trama_cast(x, casts[i].to);
        const char *sum = casts[i].exact ? "[-1,-1] P{0:sum}" : "[-1,-1]";
        check_op("2", y, GIVEN{"[-1,-1] P{0:sum}"}, GIVEN{sum}, sum);
        check_op("2", y, GIVEN{"[-1,-1] P{0:max}"}, GIVEN{"[-1,-1] P{0:max}"}, "[-1,-1] P{0:max}");
    }
}
END_TEST

START_TEST(kinds_that_do_not_mix_are_reduced_first)
{
    trama_value *x = input("x", TRAMA_SHAPE(4, 6));
    check_op("2,2", trama_max(x), GIVEN{"[0,-1] P{1:max}"}, GIVEN{"[0,-1] P{1:max}"}, "[] P{0:max,1:max}");
    check_op("2,2", trama_max(x), GIVEN{"[0,-1] P{1:min}"}, GIVEN{"[0,-1]"}, "[] P{0:max}");
    check_op("2,2", trama_sum(x), GIVEN{"[0,-1] P{1:avg}"}, GIVEN{"[0,-1] P{1:avg}"}, "[] P{0:sum,1:avg}");
    check_op("2,2", trama_sum(x), GIVEN{"[0,-1] P{1:max}"}, GIVEN{"[0,-1]"}, "[] P{0:sum}");
    static const char *const both = "[-1,-1] P{0:avg,1:sum}";
    check_op("2,2", trama_neg(x), GIVEN{both}, GIVEN{both}, both);
}
END_TEST

START_TEST(dims_of_one_are_repeated_not_split)
{
    trama_value *x = input("x", TRAMA_SHAPE(4, 6)), *row = input("row", TRAMA_SHAPE(6)),
                *column = input("column", TRAMA_SHAPE(4, 1));
    check_op("2,3", trama_add(x, row), GIVEN{"[0,1]", "[-1]"}, GIVEN{"[0,1]", "[1]"}, "[0,1]");
    check_op("2,3", trama_add(x, column), GIVEN{"[0,1]", "[-1,-1]"}, GIVEN{"[0,1]", "[0,-1]"}, "[0,1]");
    check_op("2,3", trama_add(column, row), GIVEN{"[0,-1]", "[1]"}, GIVEN{"[0,-1]", "[1]"}, "[0,1]");
    check_op("2,3", trama_add(column, row), GIVEN{"[-1,0]", "[1]"}, GIVEN{"[-1,-1]", "[1]"}, "[-1,1]");
}
END_TEST

/* An op without a rule gets whole operands (the replicated fallback). */
START_TEST(without_a_rule_everything_is_replicated)
{
    static const trama_op opaque = {.name = "opaque", .n_in = 2, .n_out = 1};
    trama_value *in[] = {input("x", TRAMA_SHAPE(4, 6)), input("y", TRAMA_SHAPE(6, 6, TRAMA_ANY))};
    trama_value *z = trama_apply_at(TRAMA_HERE, p, &opaque, 2, in, NULL);
    ck_assert(trama_shape_equal(trama_value_shape(z), TRAMA_SHAPE(4, 6)));
    check_op("2,3", z, GIVEN{"[0,1]", "[1,-1,0]"}, GIVEN{"[-1,-1]", "[-1,-1,-1]"}, "[-1,-1]");
    check_op("2,3", z, GIVEN{"[-1,-1] P{0:sum}", "[-1,-1,-1]"}, GIVEN{"[-1,-1]", "[-1,-1,-1]"}, "[-1,-1]");
}
END_TEST

/* dist/README.md: dx = G y', dy = x' G and their transposed variants, as the ops that the gradient appends. */
START_TEST(gradients_of_matmul_are_matmuls_in_the_published_order)
{
    for (int tx = 0; tx < 2; tx++)
        for (int ty = 0; ty < 2; ty++) {
            trama_value *x =
                tx ? input(ty ? "x3" : "x2", TRAMA_SHAPE(5, 4)) : input(ty ? "x1" : "x0", TRAMA_SHAPE(4, 5));
            trama_value *y =
                ty ? input(tx ? "y3" : "y2", TRAMA_SHAPE(6, 5)) : input(tx ? "y1" : "y0", TRAMA_SHAPE(5, 6));
            trama_value *z = trama_matmul_trans(x, y, tx, ty), *loss = trama_sum(trama_square(z));
            trama_value *dx = trama_gradient(loss, x), *dy = trama_gradient(loss, y), *g = trama_gradient(loss, z);
            const trama_node *nx = dx->node, *ny = dy->node;
            const int64_t *ax = nx->attributes->integer, *ay = ny->attributes->integer;
            ck_assert(nx->in[0] == (tx ? y : g) && nx->in[1] == (tx ? g : y));
            ck_assert(ny->in[0] == (ty ? g : x) && ny->in[1] == (ty ? x : g));
            ck_assert(ax[0] == (tx ? ty : 0) && ax[1] == (tx ? 1 : !ty));
            ck_assert(ay[0] == (ty ? 1 : !tx) && ay[1] == (ty ? tx : 0));
        }
}
END_TEST

START_TEST(the_gradient_of_a_repeated_dim_is_partial_along_its_split)
{
    trama_value *x = input("x", TRAMA_SHAPE(4, 6)), *b = input("b", TRAMA_SHAPE(6));
    trama_value *d = trama_gradient(trama_sum(trama_mul(trama_add(x, b), x)), b);
    while (d->node->op == &trama_op_reshape)
        d = d->node->in[0];
    ck_assert_str_eq(d->node->op->name, "sum");
    check_op("2,3", d, GIVEN{"[0,1]"}, GIVEN{"[0,1]"}, "[1] P{0:sum}");
}
END_TEST

int main(void)
{
    const TTest *tests[] = {
        the_published_matmul_table,
        the_published_batched_transposed_matmul,
        the_published_add,
        the_published_sum_reshape_and_softmax,
        plans_move_the_split_of_a_whole_dim_to_the_largest_pieces,
        several_axes_on_one_dim_stay_in_their_order,
        a_reshape_keeps_only_splits_that_stay_boxes,
        a_reshape_of_a_fed_dim_keeps_the_split_of_the_first_dims,
        a_reshape_keeps_a_split_by_weights_where_the_weights_divide,
        products_with_vectors_follow_the_rule_of_products,
        partials_pass_only_where_the_op_commutes_with_them,
        sums_pass_casts_that_are_exact,
        kinds_that_do_not_mix_are_reduced_first,
        dims_of_one_are_repeated_not_split,
        without_a_rule_everything_is_replicated,
        gradients_of_matmul_are_matmuls_in_the_published_order,
        the_gradient_of_a_repeated_dim_is_partial_along_its_split,
    };
    return suite_run("infer", set_up, tear_down, tests, sizeof tests / sizeof *tests);
}
