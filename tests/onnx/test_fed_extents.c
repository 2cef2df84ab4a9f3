/* SPDX-License-Identifier: Apache-2.0 */
/* Extents that are only known when fed: reshapes of them, and ops that repeat, count and index by them. */
#include "loaded_model.h"

#include "program.h"

/* ---- Reshapes ---- */

/* x [N, 6] as list, whose extent -1 takes the batch with it, and as [N of the shape, 3], which is too small. */
START_TEST(a_fed_extent_is_merged_and_divided)
{
    static const struct {
        const char *dims;
        int64_t list[3];
        trama_shape shape;
    } cases[] = {{"N,6", {-1, 3, 1}, {3, {TRAMA_ANY, 3, 1}}},
                 {"N,6", {-1, 4, 3}, {3, {TRAMA_ANY, 4, 3}}},
                 {"N,6", {2, -1, 3}, {3, {2, TRAMA_ANY, 3}}},
                 {"5,6", {-1, 3, 1}, {3, {10, 3, 1}}}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        maker m;
        make_begin(&m, 13);
        make_input(&m, "x", ONNX_FLOAT, cases[i].dims);
        make_list(&m, "target", 3, cases[i].list);
        make_node(&m, "Reshape", "x,target", "y");
        make_output(&m, "y");
        loads_as(&m, cases[i].shape);
    }
    maker m;
    make_begin(&m, 13);
    make_input(&m, "x", ONNX_FLOAT, "N,6");
    make_list(&m, "target", 2, (const int64_t[]){0, 3});
    make_node(&m, "Reshape", "x,target", "y");
    make_output(&m, "y");
    REFUSES(&m, NULL, TRAMA_E_SHAPE, "node of 'y' (Reshape)", "another number of elements");
    make_begin(&m, 13);
    make_input(&m, "x", ONNX_FLOAT, "N,6,2");
    make_int(make_node(&m, "Flatten", "x", "y"), "axis", 2);
    make_output(&m, "y");
    loads_as(&m, TRAMA_SHAPE(TRAMA_ANY, 2));
}
END_TEST

/* [a, b] to [b, a] would silently be [a, b]. */
START_TEST(a_reshape_that_swaps_fed_extents_is_refused)
{
    maker m;
    make_begin(&m, 13);
    make_input(&m, "x", ONNX_FLOAT, "A,B");
    make_node(&m, "Shape", "x", "shape");
    make_list(&m, "swap", 2, (const int64_t[]){1, 0});
    make_node(&m, "Gather", "shape,swap", "target");
    make_node(&m, "Reshape", "x,target", "y");
    make_output(&m, "y");
    REFUSES(&m, NULL, TRAMA_E_UNSUPPORTED, "node of 'y' (Reshape)", "another extent", "options");
    m.nodes[3]->input[1] = made_text("shape");
    loads_as(&m, TRAMA_SHAPE(TRAMA_ANY, TRAMA_ANY));
}
END_TEST

/* h [A, B, 6] of x, reshaped to the first two extents of `of` and [3, 2] */
static void make_heads(maker *m, const char *dims_of_ids, const char *of)
{
    make_begin(m, 13);
    make_input(m, "x", ONNX_FLOAT, "A,B,6");
    make_input(m, "ids", ONNX_INT64, dims_of_ids);
    make_node(m, "Relu", "x", "h");
    make_node(m, "Shape", of, "shape");
    make_list(m, "which", 2, (const int64_t[]){0, 1});
    make_node(m, "Gather", "shape,which", "first");
    make_list(m, "heads", 2, (const int64_t[]){3, 2});
    make_int(make_node(m, "Concat", "first,heads", "target"), "axis", 0);
    make_node(m, "Reshape", "h,target", "y");
    make_output(m, "y");
}

START_TEST(fed_extents_are_known_by_their_origin)
{
    static const char *const good[][2] = {{"?,?", "h"}, {"?,?", "x"}, {"A,B", "ids"}};
    static const char *const bad[][2] = {{"B,A", "ids"}, {"?,?", "ids"}, {"A,?", "ids"}, {"A,A", "ids"}};
    trama_shape shape = TRAMA_SHAPE(TRAMA_ANY, TRAMA_ANY, 3, 2);
    maker m;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        make_heads(&m, good[i][0], good[i][1]);
        loads_as(&m, shape);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        make_heads(&m, bad[i][0], bad[i][1]);
        REFUSES(&m, NULL, TRAMA_E_UNSUPPORTED, "node of 'y' (Reshape)", "another extent");
    }
}
END_TEST

/* y, reshaped from x [dims] to a target: a letter takes the extent of that dim of ids [A, B], 2A twice as much, * the
 * product of both, and numbers are themselves. */
static void make_target(maker *m, const char *dims, const char *target)
{
    char list[80] = "";
    make_begin(m, 13);
    make_input(m, "x", ONNX_FLOAT, dims);
    make_input(m, "ids", ONNX_INT64, "A,B");
    make_node(m, "Shape", "ids", "shape");
    make_list(m, "at0", 1, (const int64_t[]){0});
    make_list(m, "at1", 1, (const int64_t[]){1});
    make_node(m, "Gather", "shape,at0", "A");
    make_node(m, "Gather", "shape,at1", "B");
    make_node(m, "Mul", "A,B", "product");
    for (const char *at = target; *at; at += *at == ',') {
        const size_t n = strcspn(at, ",");
        char word[16], name[16];
        snprintf(word, sizeof word, "%.*s", (int)n, at);
        snprintf(name, sizeof name, "n%zu", (size_t)(at - target));
        if (n > 1 && strchr("AB", word[n - 1])) {
            char operands[24];
            snprintf(operands, sizeof operands, "%c,k%s", word[n - 1], name);
            make_list(m, operands + 2, 1, (const int64_t[]){atol(word)});
            make_node(m, "Mul", operands, name);
        } else if (strchr("-0123456789", *word)) {
            make_list(m, name, 1, (const int64_t[]){atol(word)});
        } else {
            snprintf(name, sizeof name, "%s", *word == '*' ? "product" : word);
        }
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s", *list ? "," : "", name);
        at += n;
    }
    make_int(make_node(m, "Concat", list, "target"), "axis", 0);
    make_node(m, "Reshape", "x,target", "y");
    make_output(m, "y");
}

/* As exporters write them: rows of all tokens for a linear layer and back, and heads that join the batch and leave it.
 */
START_TEST(several_fed_extents_are_merged_and_divided)
{
    enum { ANY = TRAMA_ANY };
    static const struct {
        const char *dims, *target;
        trama_shape shape;
    } good[] = {{"A,B,6", "-1,6", {2, {ANY, 6}}},
                {"A,B,6", "*,6", {2, {ANY, 6}}},
                {"A,B,6", "-1,3,2", {3, {ANY, 3, 2}}},
                {"A,B,6", "-1", {1, {ANY}}},
                {"?,6", "A,B,6", {3, {ANY, ANY, 6}}},
                {"?,6", "B,A,6", {3, {ANY, ANY, 6}}},
                {"?,6", "A,B,3,2", {4, {ANY, ANY, 3, 2}}},
                {"A,2,B,3", "-1,B,3", {3, {ANY, ANY, 3}}},
                {"A,2,B,3", "A,-1,3", {3, {ANY, ANY, 3}}},
                {"?,B,3", "A,2,B,3", {4, {ANY, 2, ANY, 3}}},
                {"A,?,3", "A,2,B,3", {4, {ANY, 2, ANY, 3}}},
                {"A,B,6", "A,B,-1,2", {4, {ANY, ANY, 3, 2}}},
                {"A,B", "A,1,B", {3, {ANY, 1, ANY}}},
                {"A,2,B,3", "2A,-1,3", {3, {ANY, ANY, 3}}},
                {"A,2,B,3", "2A,B,3", {3, {ANY, ANY, 3}}},
                {"A,2,B,3", "2A,3B", {2, {ANY, ANY}}},
                {"2,A,B,6", "2A,1,B,-1,2", {5, {ANY, 1, ANY, 3, 2}}},
                {"A,6", "2A,3", {2, {ANY, 3}}},
                {"A,6", "2A,-1", {2, {ANY, 3}}},
                {"A,6,5", "2A,-1", {2, {ANY, 15}}},
                {"A,2", "2A,1", {2, {ANY, 1}}},
                {"A,2", "2A,-1", {2, {ANY, 1}}},
                {"A,2,1,1", "2A", {1, {ANY}}},
                {"A,B,2", "A,2B,1", {3, {ANY, ANY, 1}}},
                {"A,2,B,3,1", "2A,3B", {2, {ANY, ANY}}}};
    static const char *const bad[][3] = {
        {"A,B,6", "B,A,6", "another extent"},       {"A,B,6", "A,A,6", "another extent"},
        {"A,B,6", "A,B,5", "number of elements"},   {"?,6", "*,A,6", "computed of some"},
        {"?,6", "A,-1,B", "cannot be worked out"},  {"A,6", "A,3", "number of elements"},
        {"A,B,6", "6", "would become known"},       {"A,B,6", "A,6", "would become known"},
        {"A,6", "*,-1", "which is computed"},       {"A,5", "2A,-1", "which is computed"},
        {"A,2,B", "2B,-1", "which is computed"},    {"?,6", "2A,6", "another extent"},
        {"A,2,3,4", "*,-1,4", "which is computed"}, {"?,6", "*,-1", "which is computed"}};
    maker m;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        make_target(&m, good[i].dims, good[i].target);
        loaded l = load_with(&m, NULL, NULL, NULL);
        ck_assert_msg(l.model != NULL, "%s to %s: %s", good[i].dims, good[i].target, trama_error());
        ck_assert_msg(trama_shape_equal(trama_value_shape(trama_onnx_find(l.model, "y")), good[i].shape), "%s to %s",
                      good[i].dims, good[i].target);
        unload(&l);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        make_target(&m, bad[i][0], bad[i][1]);
        loaded l = load_with(&m, NULL, NULL, NULL);
        ck_assert_msg(!l.model && strstr(trama_error(), bad[i][2]), "%s to %s: %s", bad[i][0], bad[i][1],
                      l.model ? "taken" : trama_error());
        unload(&l);
    }
}
END_TEST

/* ---- Values of extents ---- */

/* x [A, B]: y[i][j] = 2 j + table[j] c + A, where j is a Range up to B that is expanded to [A, B] and tiled A times,
 * table is cut to B elements, and c is a constant of shape [A, B]. */
static void make_counting(maker *m)
{
    static const float table[8] = {0, 10, 20, 30, 40, 50, 60, 70}, c = 2.5f;
    make_begin(m, 13);
    make_input(m, "x", ONNX_FLOAT, "A,B");
    make_initializer(m, "table", ONNX_FLOAT, "8", table, sizeof table);
    make_initializer(m, "c", ONNX_FLOAT, "", &c, sizeof c);
    make_node(m, "Shape", "x", "shape");
    make_list(m, "at0", 1, (const int64_t[]){0});
    make_list(m, "at1", 1, (const int64_t[]){1});
    make_list(m, "none", 1, (const int64_t[]){0});
    make_list(m, "step", 1, (const int64_t[]){1});
    make_node(m, "Gather", "shape,at0", "A");
    make_node(m, "Gather", "shape,at1", "B");
    make_node(m, "Slice", "table,none,B", "cut");
    make_node(m, "Range", "none,B,step", "numbers");
    make_int(make_node(m, "Cast", "numbers", "j"), "to", ONNX_FLOAT);
    make_node(m, "Unsqueeze", "j,none", "row");
    make_int(make_node(m, "Concat", "A,step", "times"), "axis", 0);
    make_node(m, "Tile", "row,times", "tiled");
    make_node(m, "Expand", "j,shape", "wide");
    make_node(m, "ConstantOfShape", "shape", "zeros");
    make_node(m, "Add", "zeros,c", "constant");
    make_node(m, "Mul", "cut,constant", "product");
    make_int(make_node(m, "Cast", "A", "rows"), "to", ONNX_FLOAT);
    make_node(m, "Add", "wide,product", "sum");
    make_node(m, "Add", "sum,tiled", "more");
    make_node(m, "Add", "more,rows", "y");
    make_output(m, "y");
}

START_TEST(ops_count_and_repeat_by_extents)
{
    static const int64_t fed[][2] = {{3, 5}, {1, 1}, {2, 8}, {0, 4}, {4, 0}};
    static const char *const layouts[] = {NULL, "S(0)", "S(1)"};
    float x[64] = {0}, y[64];
    maker m;
    make_counting(&m);
    start();
    for (size_t i = 0; i < 3 * sizeof fed / sizeof *fed; i++) {
        const int64_t a = fed[i / 3][0], b = fed[i / 3][1];
        trama_mesh *mesh = mesh_of("2");
        loaded l = load(&m);
        trama_value *in = trama_onnx_find(l.model, "x"), *out = trama_onnx_find(l.model, "y");
        if (layouts[i % 3])
            demand(trama_shard(in, mesh, layouts[i % 3]), "%s", trama_program_error(l.p));
        demand(trama_shape_equal(trama_value_shape(out), TRAMA_SHAPE(TRAMA_ANY, TRAMA_ANY)), "the shape of y");
        trama_target *t = trama_target_create(l.p, "t", out);
        trama_executable *e = compile(l.p);
        must(trama_feed(e, in, x, TRAMA_SHAPE(a, b)));
        must(trama_run(e, t));
        must(trama_read(e, out, y, sizeof *y * (size_t)(a * b)));
        for (int64_t k = 0; k < a * b; k++)
            demand(y[k] == 2 * (float)(k % b) + 2.5f * 10 * (float)(k % b) + (float)a, "%lld x %lld: y %lld is %g",
                   (long long)a, (long long)b, (long long)k, (double)y[k]);
        must(trama_executable_destroy(&e));
        unload(&l);
        trama_mesh_destroy(&mesh);
    }
    stop();
}
END_TEST

/* x [A, B]: its elements at [1, 2] and [-1, -1], its first column and its last two rows, which are [A, 1] and [2, B].
 */
START_TEST(ops_pick_elements_of_fed_dims)
{
    enum { A = 3, B = 4 };
    static const int64_t at[4] = {1, 2, -1, -1};
    float x[A * B], picked[2], column[A], row[B];
    maker m;
    make_begin(&m, 13);
    make_input(&m, "x", ONNX_FLOAT, "A,B");
    make_initializer(&m, "at", ONNX_INT64, "2,2", at, sizeof at);
    make_list(&m, "first", 1, (const int64_t[]){0});
    make_list(&m, "one", 1, (const int64_t[]){1});
    make_list(&m, "behind", 1, (const int64_t[]){-1});
    make_list(&m, "end", 1, (const int64_t[]){INT64_MAX});
    make_node(&m, "GatherND", "x,at", "picked");
    make_node(&m, "Slice", "x,first,one,one", "column");
    make_node(&m, "Slice", "x,behind,end,first", "row");
    make_output(&m, "picked");
    make_output(&m, "column");
    make_output(&m, "row");
    for (int i = 0; i < A * B; i++)
        x[i] = (float)i;
    start();
    loaded l = load(&m);
    compute(&l, "picked", x, TRAMA_SHAPE(A, B), picked, sizeof picked);
    demand(picked[0] == 6 && picked[1] == 11, "picked %g and %g", (double)picked[0], (double)picked[1]);
    unload(&l);
    l = load(&m);
    compute(&l, "column", x, TRAMA_SHAPE(A, B), column, sizeof column);
    for (int i = 0; i < A; i++)
        demand(column[i] == (float)(i * B), "column %d is %g", i, (double)column[i]);
    unload(&l);
    l = load(&m);
    compute(&l, "row", x, TRAMA_SHAPE(A, B), row, sizeof row);
    for (int i = 0; i < B; i++)
        demand(row[i] == (float)((A - 1) * B + i), "row element %d is %g", i, (double)row[i]);
    unload(&l);
    stop();
}
END_TEST

/* Of x [A, B] and its shape; an extent that is computed is none that an input has. */
START_TEST(computed_extents_are_refused)
{
    static const struct {
        const char *op, *operands, *node, *words;
    } cases[] = {{"ConstantOfShape", "squares", "(ConstantOfShape)", "is computed of some"},
                 {"Expand", "one,squares", "(Expand)", "is computed of some"},
                 {"Range", "one,A,one", "(Range)", "is computed of some"},
                 {"Range", "zero,A,four", "(Range)", "go on by 1"},
                 {"Range", "zero,square,one", "(Range)", "is computed of some"},
                 {"Slice", "x,one,A", "(Slice)", "is computed of some"},
                 {"Slice", "x,A,one", "(Slice)", "bounds of dim 0"},
                 {"Tile", "x,shape", "(Tile)", "would be repeated"},
                 {"Pad", "x,fours", "(Pad)", "operand 1 (pads)"},
                 {"Unsqueeze", "x,A", "(Unsqueeze)", "operand 1 (axes)"},
                 {"Slice", "x,zero,minus", "(Slice)", "only known when fed"},
                 {"Slice", "x,zero,A,one", "(Slice)", "to another extent"},
                 {"Slice", "x,zero,four", "(Slice)", "only known when fed"},
                 {"Slice", "x,minus,least,zero,minus", "(Slice)", "only known when fed"},
                 {"Range", "zero,number,one", "(Range)", "are parameters"},
                 {"Equal", "less,minus", "'y'", "is computed of extents"},
                 {"Not", "truth", "'y'", "is computed of extents"},
                 {"Exp", "floats", "(Exp)", "is computed of extents"}};
    static const float three = 3;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        maker m;
        make_begin(&m, 13);
        make_input(&m, "x", ONNX_FLOAT, "A,B");
        make_node(&m, "Shape", "x", "shape");
        make_node(&m, "Mul", "shape,shape", "squares");
        make_int(make_node(&m, "Cast", "squares", "floats"), "to", ONNX_FLOAT);
        make_list(&m, "zero", 1, (const int64_t[]){0});
        make_list(&m, "one", 1, (const int64_t[]){1});
        make_list(&m, "minus", 1, (const int64_t[]){-1});
        make_list(&m, "four", 1, (const int64_t[]){4});
        make_list(&m, "least", 1, (const int64_t[]){INT64_MIN});
        make_initializer(&m, "number", ONNX_FLOAT, "1", &three, sizeof three);
        make_node(&m, "Gather", "shape,zero", "A");
        make_node(&m, "Mul", "A,A", "square");
        make_node(&m, "Sub", "A,four", "less");
        make_int(make_node(&m, "Cast", "A", "truth"), "to", ONNX_BOOL);
        make_int(make_node(&m, "Concat", "shape,shape", "fours"), "axis", 0);
        make_node(&m, cases[i].op, cases[i].operands, "y");
        make_output(&m, "y");
        REFUSES(&m, NULL, TRAMA_E_UNSUPPORTED, cases[i].node, cases[i].words);
    }
}
END_TEST

/* x [A, 4]: y [3 A], where y[i] is i plus the elements of x. */
START_TEST(multiples_of_an_extent_are_counted)
{
    enum { A = 3, B = 4 };
    float x[A * B] = {0}, y[3 * A];
    maker m;
    make_begin(&m, 13);
    make_input(&m, "x", ONNX_FLOAT, "A,4");
    make_node(&m, "Shape", "x", "shape");
    make_list(&m, "zero", 1, (const int64_t[]){0});
    make_list(&m, "one", 1, (const int64_t[]){1});
    make_list(&m, "three", 1, (const int64_t[]){3});
    make_list(&m, "left", 1, (const int64_t[]){-1});
    make_node(&m, "Gather", "shape,zero", "A");
    make_node(&m, "Mul", "A,three", "many");
    make_node(&m, "Range", "zero,many,one", "numbers");
    make_int(make_node(&m, "Cast", "numbers", "i"), "to", ONNX_FLOAT);
    make_node(&m, "Reshape", "x,left", "flat");
    make_node(&m, "Shape", "flat", "size");
    make_int(make_node(&m, "Cast", "size", "elements"), "to", ONNX_FLOAT);
    make_node(&m, "ConstantOfShape", "many", "zeros");
    make_node(&m, "Add", "i,elements", "sum");
    make_node(&m, "Add", "sum,zeros", "y");
    make_output(&m, "y");
    start();
    loaded l = load(&m);
    compute(&l, "y", x, TRAMA_SHAPE(A, B), y, sizeof y);
    for (int i = 0; i < 3 * A; i++)
        demand(y[i] == (float)(i + A * B), "y %d is %g", i, (double)y[i]);
    unload(&l);
    stop();
}
END_TEST

/* Many multiples of two extents in a tensor, and a number that a narrow type does not keep. */
START_TEST(numbers_of_extents_are_computed_once)
{
    enum { A = 130, B = 2, N = 600 };
    static float x[A * B], y[2 * N];
    static const float ones[N] = {1};
    int64_t factors[N];
    for (int i = 0; i < N; i++)
        factors[i] = i + 1;
    maker m;
    make_begin(&m, 13);
    make_input(&m, "x", ONNX_FLOAT, "A,B");
    make_initializer(&m, "column", ONNX_FLOAT, "600,1", ones, sizeof ones);
    make_node(&m, "Shape", "x", "shape");
    make_list(&m, "many", 2, (const int64_t[]){N, 2});
    make_node(&m, "Expand", "column,many", "wide");
    make_initializer(&m, "factors", ONNX_INT64, "600,1", factors, sizeof factors);
    make_node(&m, "Mul", "shape,factors", "multiples");
    make_int(make_node(&m, "Cast", "multiples", "extents"), "to", ONNX_FLOAT);
    make_node(&m, "Add", "wide,extents", "y");
    make_output(&m, "y");
    start();
    loaded l = load(&m);
    ck_assert_int_lt(l.p->nodes.n, 40); /* although there are many multiples */
    compute(&l, "y", x, TRAMA_SHAPE(A, B), y, sizeof y);
    for (int i = 0; i < 2 * N; i++)
        demand(y[i] == (float)(i < 2) + (float)((i % 2 ? B : A) * (i / 2 + 1)), "y %d is %g", i, (double)y[i]);
    unload(&l);
    make_node(&m, "Cast", "shape", "narrow");
    make_int(m.nodes[m.graph.n_node - 1], "to", ONNX_INT8);
    make_int(make_node(&m, "Cast", "narrow", "z"), "to", ONNX_FLOAT);
    make_output(&m, "z");
    REFUSES(&m, NULL, TRAMA_E_UNSUPPORTED, "'z'", "is computed of extents");
    stop();
}
END_TEST

TESTS(a_fed_extent_is_merged_and_divided, a_reshape_that_swaps_fed_extents_is_refused,
      fed_extents_are_known_by_their_origin, several_fed_extents_are_merged_and_divided,
      ops_count_and_repeat_by_extents, ops_pick_elements_of_fed_dims, computed_extents_are_refused,
      multiples_of_an_extent_are_counted, numbers_of_extents_are_computed_once)
