/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of extents that are only known when fed, as models with earlier tokens have them: P earlier ones and L new ones.
 */
#include "loaded_model.h"

#include "program.h"

enum { MOST = 16 };

/* Of past [P, 2] and x [L, 2]: joined [P + L, 2], all the list of the sum's extent, and P and L as lists. */
static void make_joined(maker *m)
{
    make_begin(m, 13);
    make_input(m, "past", ONNX_FLOAT, "P,2");
    make_input(m, "x", ONNX_FLOAT, "L,2");
    make_list(m, "zero", 1, (const int64_t[]){0});
    make_list(m, "one", 1, (const int64_t[]){1});
    make_list(m, "two", 1, (const int64_t[]){2});
    make_int(make_node(m, "Concat", "past,x", "joined"), "axis", 0);
    make_node(m, "Shape", "past", "shape_past");
    make_node(m, "Shape", "x", "shape_x");
    make_node(m, "Gather", "shape_past,zero", "P");
    make_node(m, "Gather", "shape_x,zero", "L");
    make_node(m, "Add", "L,P", "all");
}

static int64_t fixed = -1; /* P by an option; -1: it is only known when fed */

static loaded load_fixed(const maker *m)
{
    const trama_onnx_dim dims[] = {{"P", fixed}};
    const trama_onnx_options options = {.dims = dims, .n_dims = fixed >= 0};
    loaded l = load_with(m, &options, NULL, NULL);
    demand(l.model, "%s", trama_program_error(l.p));
    return l;
}

/* y of P earlier rows and L new ones, all of them numbers from 1 on; returns its elements. */
static int64_t run(const maker *m, int64_t earlier, int64_t now, float *y)
{
    float data[MOST];
    for (int i = 0; i < MOST; i++)
        data[i] = (float)(1 + i);
    loaded l = load_fixed(m);
    trama_value *mask = trama_onnx_find(l.model, "mask"), *result = trama_onnx_find(l.model, "y");
    trama_target *t = trama_target_create(l.p, "t", result);
    trama_executable *e = compile(l.p);
    must(trama_feed(e, trama_onnx_find(l.model, "past"), data, TRAMA_SHAPE(earlier, 2)));
    must(trama_feed(e, trama_onnx_find(l.model, "x"), data + 2 * earlier, TRAMA_SHAPE(now, 2)));
    if (mask)
        must(trama_feed(e, mask, data, TRAMA_SHAPE(earlier + now, 1)));
    must(trama_run(e, t));
    trama_shape shape;
    must(trama_extents(e, result, &shape));
    const int64_t n = trama_shape_count(shape);
    must(trama_read(e, result, y, (size_t)n * sizeof *y));
    must(trama_executable_destroy(&e));
    unload(&l);
    return n;
}

static const int64_t fed[][2] = {{3, 2}, {0, 4}, {5, 1}, {1, 1}};
enum { FED = sizeof fed / sizeof *fed };

/* A reshape knows that the joined dim has the extent of the sum. */
START_TEST(a_joined_dim_has_the_extent_of_the_sum)
{
    maker m;
    start();
    make_joined(&m);
    make_int(make_node(&m, "Concat", "all,one,two", "target"), "axis", 0);
    make_node(&m, "Reshape", "joined,target", "y");
    make_output(&m, "y");
    loads_as(&m, TRAMA_SHAPE(TRAMA_ANY, 1, 2));
    for (int i = 0; i < FED; i++) {
        float y[2 * MOST];
        ck_assert_int_eq(run(&m, fed[i][0], fed[i][1], y), 2 * (fed[i][0] + fed[i][1]));
        for (int k = 0; k < 2 * (fed[i][0] + fed[i][1]); k++)
            ck_assert(y[k] == (float)(1 + k));
    }
    stop();
}
END_TEST

/* From `start` to `end`, as floats. */
static void expect_numbers(const char *from, const char *to, const int64_t *expected_from, const int64_t *expected_n)
{
    maker m;
    make_joined(&m);
    make_node(&m, "Add", "all,two", "more");
    make_node(&m, "Sub", "more,two", "less");
    make_node(&m, "Sub", "less,L", "P_again");
    make_node(&m, "Add", "P,P", "double");
    char operands[60];
    snprintf(operands, sizeof operands, "%s,%s,one", from, to);
    make_node(&m, "Range", operands, "range");
    make_int(make_node(&m, "Cast", "range", "y"), "to", ONNX_FLOAT);
    make_output(&m, "y");
    for (int i = 0; i < FED; i++) {
        float y[2 * MOST];
        ck_assert_msg(run(&m, fed[i][0], fed[i][1], y) == expected_n[i], "%s to %s", from, to);
        for (int64_t k = 0; k < expected_n[i]; k++)
            ck_assert_msg(y[k] == (float)(expected_from[i] + k), "%s to %s: %g", from, to, (double)y[k]);
    }
}

START_TEST(numbers_are_counted_by_sums)
{
    int64_t zeros[FED] = {0}, earlier[FED], now[FED], all[FED], more[FED], twice[FED];
    int64_t two[FED];
    start();
    for (int i = 0; i < FED; i++) {
        earlier[i] = fed[i][0];
        now[i] = fed[i][1];
        all[i] = earlier[i] + now[i];
        more[i] = all[i] + 2;
        twice[i] = 2 * earlier[i];
        two[i] = 2;
    }
    expect_numbers("zero", "all", zeros, all);
    expect_numbers("P", "all", earlier, now);
    expect_numbers("L", "all", now, earlier);
    expect_numbers("zero", "more", zeros, more);
    expect_numbers("all", "more", all, two);
    expect_numbers("zero", "less", zeros, all);
    expect_numbers("zero", "P_again", zeros, earlier);
    expect_numbers("zero", "double", zeros, twice);
    stop();
}
END_TEST

/* A target of an input's extent and a sum, which no value of the graph has. */
START_TEST(sums_are_extents_of_targets)
{
    maker m;
    start();
    make_joined(&m);
    make_int(make_node(&m, "Concat", "L,all", "target"), "axis", 0);
    make_node(&m, "Expand", "one_float,target", "y");
    static const float one = 1;
    make_initializer(&m, "one_float", ONNX_FLOAT, "1,1", &one, sizeof one);
    make_output(&m, "y");
    loads_as(&m, TRAMA_SHAPE(TRAMA_ANY, TRAMA_ANY));
    for (int i = 0; i < FED; i++) {
        float y[MOST * MOST];
        ck_assert_int_eq(run(&m, fed[i][0], fed[i][1], y), fed[i][1] * (fed[i][0] + fed[i][1]));
    }
    stop();
}
END_TEST

/* y: elements of the joined dim, or of a table with as many rows as are fed at most. */
static void expect_rows(const char *of, const char *from, const char *to, int64_t first_of_past, int64_t first_of_new,
                        bool to_end)
{
    maker m;
    float table[2 * MOST];
    make_joined(&m);
    for (int i = 0; i < 2 * MOST; i++)
        table[i] = (float)(1 + i);
    make_initializer(&m, "table", ONNX_FLOAT, "16,2", table, sizeof table);
    make_list(&m, "end", 1, (const int64_t[]){INT64_MAX});
    char operands[60];
    snprintf(operands, sizeof operands, "%s,%s,%s", of, from, to);
    make_node(&m, "Slice", operands, "y");
    make_output(&m, "y");
    for (int i = 0; i < FED; i++) {
        float y[2 * MOST];
        const int64_t start = first_of_past * fed[i][0] + first_of_new * fed[i][1],
                      end = to_end ? fed[i][0] + fed[i][1] : fed[i][0];
        ck_assert_msg(run(&m, fed[i][0], fed[i][1], y) == 2 * (end - start), "%s", operands);
        for (int64_t k = 0; k < 2 * (end - start); k++)
            ck_assert_msg(y[k] == (float)(1 + 2 * start + k), "%s: %g", operands, (double)y[k]);
    }
}

START_TEST(slices_go_from_a_term_of_the_sum_on)
{
    start();
    expect_rows("joined", "P", "end", 1, 0, true);
    expect_rows("joined", "P", "all", 1, 0, true);
    expect_rows("joined", "L", "all", 0, 1, true);
    expect_rows("joined", "zero", "P", 0, 0, false);
    expect_rows("joined", "zero", "all", 0, 0, true);
    expect_rows("table", "P", "all", 1, 0, true);
    expect_rows("table", "zero", "all", 0, 0, true);
    stop();
}
END_TEST

/* A mask whose elements from P on are read: their number is known where the name of its dim says so. */
START_TEST(names_of_dims_are_read_as_sums)
{
    static const struct {
        const char *dims;
        bool known;
    } cases[] = {{"P + L", true}, {"L+P", true},    {" P  +  L ", true}, {"P + 1", true}, {"P", true},
                 {"all", false},  {"P + M", false}, {"+", false},        {"P +", false},  {"P + L + 1", false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        maker m;
        make_joined(&m);
        make_input(&m, "mask", ONNX_FLOAT, cases[i].dims);
        make_list(&m, "end", 1, (const int64_t[]){INT64_MAX});
        make_node(&m, "Slice", "mask,P,end", "y");
        make_output(&m, "y");
        loaded l = load_with(&m, NULL, NULL, NULL);
        ck_assert_msg(!!l.model == cases[i].known, "%s: %s", cases[i].dims, trama_program_error(l.p));
        unload(&l);
    }
}
END_TEST

/* An option gives P, and a name of a dim is read with it; a sum with 0 is the other extent. */
START_TEST(options_fix_a_term)
{
    static const char *const operands[] = {"mask,P,end", "mask,L,end", "joined,P,end", "joined,zero,all",
                                           "table,P,all"};
    start();
    for (int i = 0; i < 10; i++) {
        const int64_t earlier = i % 2 ? 3 : 0;
        maker m;
        float y[2 * MOST], table[2 * MOST] = {0};
        make_joined(&m);
        make_initializer(&m, "table", ONNX_FLOAT, "16,2", table, sizeof table);
        make_input(&m, "mask", ONNX_FLOAT, "P + L,1");
        make_list(&m, "end", 1, (const int64_t[]){INT64_MAX});
        make_int(make_node(&m, "Concat", "all,one,two", "target"), "axis", 0);
        make_node(&m, "Reshape", "joined,target", "reshaped");
        make_node(&m, "Slice", operands[i / 2], "y");
        make_output(&m, "y");
        fixed = earlier;
        const int64_t rows = i / 2 == 1 ? earlier : i / 2 == 3 ? earlier + 2 : 2, columns = i / 2 < 2 ? 1 : 2;
        ck_assert_msg(run(&m, earlier, 2, y) == rows * columns, "%s with %d", operands[i / 2], (int)earlier);
    }
    fixed = -1;
    stop();
}
END_TEST

/* Positions behind P earlier ones: many sums of an extent and a number are computed as one tensor. */
START_TEST(many_sums_are_one_tensor)
{
    enum { N = 2000 };
    static float y[N];
    static int64_t positions[N];
    maker m;
    start();
    make_joined(&m);
    for (int i = 0; i < N; i++)
        positions[i] = i;
    make_initializer(&m, "positions", ONNX_INT64, "2000", positions, sizeof positions);
    make_node(&m, "Add", "positions,P", "behind");
    make_int(make_node(&m, "Cast", "behind", "y"), "to", ONNX_FLOAT);
    make_output(&m, "y");
    loaded l = load(&m);
    ck_assert_int_lt(l.p->nodes.n, 30);
    unload(&l);
    ck_assert_int_eq(run(&m, 3, 2, y), N);
    for (int i = 0; i < N; i++)
        ck_assert(y[i] == (float)(3 + i));
    stop();
}
END_TEST

START_TEST(other_differences_are_refused)
{
    maker m;
    make_joined(&m);
    make_node(&m, "Sub", "L,P", "difference");
    make_node(&m, "Range", "zero,difference,one", "range");
    make_int(make_node(&m, "Cast", "range", "y"), "to", ONNX_FLOAT);
    make_output(&m, "y");
    REFUSES(&m, NULL, TRAMA_E_UNSUPPORTED, "(Range)", "is computed of some");
    static const char *const slices[][2] = {{"table,P,L", "is computed of some"},
                                            {"table,P,two", "bounds of dim 0"},
                                            {"joined,two,P", "is computed of some"},
                                            {"x,P,all", "dim 0 is sliced to another extent"}};
    for (size_t i = 0; i < sizeof slices / sizeof *slices; i++) {
        static const float table[2 * MOST];
        make_joined(&m);
        make_initializer(&m, "table", ONNX_FLOAT, "16,2", table, sizeof table);
        make_node(&m, "Slice", slices[i][0], "y");
        make_output(&m, "y");
        REFUSES(&m, NULL, TRAMA_E_UNSUPPORTED, "(Slice)", slices[i][1]);
    }
}
END_TEST

TESTS(a_joined_dim_has_the_extent_of_the_sum, numbers_are_counted_by_sums, sums_are_extents_of_targets,
      slices_go_from_a_term_of_the_sum_on, names_of_dims_are_read_as_sums, many_sums_are_one_tensor, options_fix_a_term,
      other_differences_are_refused)
