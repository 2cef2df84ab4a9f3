/* SPDX-License-Identifier: Apache-2.0 */
/* The search for layouts with fewer bytes: on small programs against all layouts that there are. */
#include "searched_program.h"
#include "trama_convolution.h"
#include "trama_op_define.h"

static const trama_op *own; /* an op of a test; NULL */

static void tear_down_own(void)
{
    tear_down();
    trama_op_destroy(&own);
}

/* ---- Small programs ---- */

static trama_value *product(void)
{
    return trama_matmul(input("x", TRAMA_SHAPE(6, 4), "S(0)"), input("w", TRAMA_SHAPE(4, 10), NULL));
}

static trama_value *product_on_two_axes(void)
{
    trama_value *x = input("x", TRAMA_SHAPE(8, 4), "S(0),R");
    return trama_relu(trama_matmul(x, input("w", TRAMA_SHAPE(4, 8), "S(1),?")));
}

static trama_value *two_products(void)
{
    trama_value *x = input("x", TRAMA_SHAPE(3, 8), "S(0)");
    trama_value *h = trama_relu(trama_matmul(x, input("w0", TRAMA_SHAPE(8, 20), NULL)));
    return trama_shard(trama_matmul(h, input("w1", TRAMA_SHAPE(20, 8), NULL)), mesh, "R");
}

/* Three ops read one value, two of them alike. */
static trama_value *shared(void)
{
    trama_value *x = trama_exp(input("x", TRAMA_SHAPE(6, 6), "S(0)"));
    trama_value *a = trama_matmul(x, input("w", TRAMA_SHAPE(6, 9), "S(1)")),
                *b = trama_matmul(x, input("v", TRAMA_SHAPE(6, 9), "S(0)"));
    static const int columns[] = {1};
    return trama_add(trama_sum_over(trama_relu(trama_mul(a, b)), 1, columns, false),
                     trama_sum_over(x, 1, columns, false));
}

/* Five readers in three layouts: one is whole, one has columns. */
static trama_value *many_readers(void)
{
    trama_value *x = trama_exp(input("x", TRAMA_SHAPE(6, 6), "S(0)"));
    trama_value *sum = trama_add(trama_relu(x), trama_add(trama_sin(x), trama_cos(x)));
    trama_shard(trama_matmul(x, input("w", TRAMA_SHAPE(6, 40), "S(1)")), mesh, "S(1)");
    trama_shard(trama_sum_over(x, TRAMA_DIMS(0), false), mesh, "S(0)");
    return trama_shard(sum, mesh, "S(0)");
}

static trama_value *terms(void)
{
    trama_value *y = trama_matmul(input("x", TRAMA_SHAPE(4, 6), "S(1)"), input("w", TRAMA_SHAPE(6, 4), "S(0)"));
    static const int turned[] = {1, 0};
    return trama_shard(trama_add(trama_mul(y, y), trama_transpose(y, turned)), mesh, "S(1)");
}

/* Windows along a split dim read neighbours. */
static trama_value *windows(void)
{
    const trama_windows same = {.before = {2}, .after = {2}};
    trama_value *x = input("x", TRAMA_SHAPE(4, 2, 9), "S(2)");
    trama_value *h = trama_relu(trama_conv(x, input("v", TRAMA_SHAPE(2, 2, 5), "R"), NULL, &same));
    return trama_conv(h, input("w", TRAMA_SHAPE(6, 2, 5), "R"), NULL, &same);
}

/* A stencil, whose operand lies as it likes, and its sums of rows. */
static trama_value *stencil(void)
{
    trama_value *x = input("x", TRAMA_SHAPE(16, 8), NULL);
    trama_value *y = trama_add(trama_shift(x, 0, 1), trama_shift(x, 1, -1));
    return trama_shard(trama_sum_over(y, TRAMA_DIMS(1), false), mesh, "S(0)");
}

/* Equal parts of operands of other lengths: those of y lie on one process. */
static trama_value *parts_of_two(void)
{
    trama_value *x = input("x", TRAMA_SHAPE(10, 4), "S(0)"), *y = input("y", TRAMA_SHAPE(20, 4), "S(0)");
    return trama_add(trama_exp(trama_slice(x, 0, 1, 8)), trama_exp(trama_slice(y, 0, 1, 8)));
}

static trama_value *step(void)
{
    const trama_optimizer sgd = trama_sgd(0.1);
    trama_value *w = parameter("w", TRAMA_SHAPE(5, 6), NULL);
    trama_value *loss = trama_sum(trama_matmul(input("x", TRAMA_SHAPE(3, 5), "S(0)"), w));
    return trama_minimize(loss, &sgd);
}

/* The norm reads the gradient beside the update. */
static trama_value *clipped_step(void)
{
    trama_optimizer sgd = trama_sgd(0.1);
    sgd.clip_norm = 1;
    trama_value *w = parameter("w", TRAMA_SHAPE(5, 6), NULL);
    trama_value *loss = trama_sum(trama_matmul(input("x", TRAMA_SHAPE(3, 5), "S(0)"), w));
    return trama_minimize(loss, &sgd);
}

static const struct {
    const char *name, *mesh;
    trama_value *(*build)(void);
} programs[] = {
    {"product", "2", product},
    {"product on two axes", "2,2", product_on_two_axes},
    {"two products", "2", two_products},
    {"shared", "3", shared},
    {"shared with weights", "[2,1]", shared},
    {"many readers", "2", many_readers},
    {"terms", "2", terms},
    {"windows", "2", windows},
    {"a stencil", "4", stencil},
    {"parts of two", "2", parts_of_two},
    {"a step", "2", step},
    {"a step on three processes", "3", step},
    {"a clipped step", "2", clipped_step},
};
enum { PROGRAMS = sizeof programs / sizeof *programs };

static trama_status never_runs(const trama_call *call)
{
    return trama_kernel_fail("%s is not run", call->op->name);
}

START_TEST(the_search_finds_the_fewest_bytes_of_small_programs)
{
    mesh = trama_mesh_create(programs[_i].mesh);
    ck_assert_ptr_nonnull(programs[_i].build());
    compared c = compare_with_all(programs[_i].name, INT64_MAX);
    ck_assert_int_ge(c.tried, 8);
    ck_assert_int_eq(c.s.found ? c.s.better_bytes : c.s.bytes, c.least);
    ck_assert_int_eq(c.s.bound, c.least);
    compared_free(&c);
}
END_TEST

/* ---- A network ---- */

static void expect_layout(const trama_completion *c, const char *name, const char *wanted)
{
    trama_layout layout;
    const trama_value *v = program_leaf_named(p, name, NULL);
    ck_assert(trama_completion_layout(c, v, &layout));
    char *found = trama_layout_text(trama_completion_mesh(c, v), &layout);
    ck_assert_str_eq(found, wanted);
    trama_text_free(&found);
}

/* From the annotation of the batch: weights are split by columns and by rows in turn where the batch is small, and are
 * whole where it is large. */
START_TEST(a_small_batch_gives_tensor_parallelism)
{
    const trama_optimizer sgd = trama_sgd(0.1);
    static const int64_t batches[] = {8, 512};
    for (int i = 0; i < 2; i++) {
        trama_completion *c;
        int64_t bytes, bound;
        mesh = trama_mesh_create("2");
        trama_value *loss = perceptron(batches[i]);
        ck_assert_ptr_nonnull(trama_target_create(p, "train", trama_minimize(loss, &sgd), loss));
        ck_assert_int_eq(trama_search_layouts(p), TRAMA_OK);
        ck_assert_int_eq(trama_completion_create(p, 64, &c), TRAMA_OK);
        ck_assert_int_eq(trama_completion_bytes(c, &bytes, &bound), TRAMA_OK);
        expect_layout(c, "x", "S(0)");
        expect_layout(c, "w0", i ? "R" : "S(1)");
        expect_layout(c, "w1", i ? "R" : "S(0)");
        /* An all-gather of x, a reduce-scatter of the result, an all-gather of its gradient; or all-reduces. */
        ck_assert_int_eq(bytes, i ? (12 * 16 + 16 * 8) * 4 : (8 * 12 + 2 * 8 * 8) * 4 / 2);
        ck_assert_int_eq(bound, bytes);
        trama_completion_destroy(&c);
        tear_down();
        set_up();
    }
}
END_TEST

START_TEST(annotations_stay)
{
    mesh = trama_mesh_create("2");
    trama_value *w = parameter("w0", TRAMA_SHAPE(12, 16), "R");
    trama_value *y = trama_shard(trama_matmul(input("x", TRAMA_SHAPE(8, 12), "S(0)"), w), mesh, "S(0)");
    trama_value *z = trama_matmul(y, parameter("w1", TRAMA_SHAPE(16, 8), NULL));
    const trama_optimizer sgd = trama_sgd(0.1);
    trama_value *loss = trama_mean(trama_square(z));
    ck_assert_ptr_nonnull(trama_target_create(p, "train", trama_minimize(loss, &sgd), loss));
    ck_assert_int_eq(trama_search_layouts(p), TRAMA_OK);
    trama_completion *c;
    trama_layout layout;
    ck_assert_int_eq(trama_completion_create(p, 64, &c), TRAMA_OK);
    expect_layout(c, "w0", "R");
    expect_layout(c, "x", "S(0)");
    ck_assert(trama_completion_layout(c, y, &layout));
    ck_assert_int_eq(layout.axis[0].kind, TRAMA_SPLIT);
    ck_assert_int_eq(layout.axis[0].dim, 0);
    trama_completion_destroy(&c);
}
END_TEST

/* A target names the product: the user reads the sum, so its terms do not stay terms. */
START_TEST(a_value_that_the_user_reads_is_summed)
{
    mesh = trama_mesh_create("2");
    trama_value *y = trama_matmul(input("x", TRAMA_SHAPE(8, 12), "S(0)"), input("w", TRAMA_SHAPE(12, 16), "S(0)"));
    trama_completion *c;
    trama_layout layout;
    ck_assert_ptr_nonnull(trama_target_create(p, "product", y));
    ck_assert_int_eq(trama_search_layouts(p), TRAMA_OK);
    ck_assert_int_eq(trama_completion_create(p, 64, &c), TRAMA_OK);
    ck_assert(trama_completion_layout(c, y, &layout));
    ck_assert_int_ne(layout.axis[0].kind, TRAMA_PARTIAL);
    trama_completion_destroy(&c);
}
END_TEST

/* 8 images of 16 rows over 4 processes: a row of 8 f32 from the neighbour on each side. */
START_TEST(neighbours_are_told_with_their_bytes)
{
    const trama_windows same = {.before = {1, 1}, .after = {1, 1}};
    mesh = trama_mesh_create("4");
    trama_value *x = input("x", TRAMA_SHAPE(8, 1, 16, 8), "S(2)"), *w = input("w", TRAMA_SHAPE(1, 1, 3, 3), "R");
    ck_assert_ptr_nonnull(trama_shard(trama_conv(x, w, NULL, &same), mesh, "S(2)"));
    char *said;
    ck_assert_int_eq(trama_complete_text(p, 64, &said), TRAMA_OK);
    ck_assert_msg(strstr(said, "neighbours of x, as S(2): 512 B, since the op reads them; with x as S(0)"), "%s", said);
    ck_assert_msg(strstr(said, "a process receives 512 B, the fewest"), "%s", said);
    trama_text_free(&said);
}
END_TEST

/* "?" leaves w0 and w1 open, as no annotation does. */
START_TEST(open_annotations_are_searched)
{
    const trama_optimizer sgd = trama_sgd(0.1);
    int64_t bytes;
    mesh = trama_mesh_create("2");
    trama_value *loss = perceptron(8);
    for (int i = 0; i < 2; i++)
        ck_assert_ptr_nonnull(trama_shard(program_leaf_named(p, i ? "w1" : "w0", NULL), mesh, "?"));
    ck_assert_ptr_nonnull(trama_target_create(p, "train", trama_minimize(loss, &sgd), loss));
    ck_assert_int_eq(trama_search_layouts(p), TRAMA_OK);
    trama_completion *c;
    ck_assert_int_eq(trama_completion_create(p, 64, &c), TRAMA_OK);
    ck_assert_int_eq(trama_completion_bytes(c, &bytes, NULL), TRAMA_OK);
    ck_assert_int_eq(bytes, (8 * 12 + 2 * 8 * 8) * 4 / 2);
    trama_completion_destroy(&c);
}
END_TEST

/* Where two layouts take as many bytes, a weight does not become whole on each process. */
START_TEST(ties_keep_splits)
{
    mesh = trama_mesh_create("2");
    trama_value *x = input("x", TRAMA_SHAPE(8, 12), "R");
    trama_value *w0 = trama_state(p, "w0", TRAMA_F32, TRAMA_SHAPE(12, 16), &init),
                *w1 = trama_state(p, "w1", TRAMA_F32, TRAMA_SHAPE(16, 8), &init);
    trama_shard(w0, mesh, "S(1)");
    trama_shard(trama_matmul(trama_relu(trama_matmul(x, w0)), w1), mesh, "R");
    ck_assert_int_eq(trama_search_layouts(p), TRAMA_OK);
    trama_completion *c;
    trama_layout layout;
    ck_assert_int_eq(trama_completion_create(p, 64, &c), TRAMA_OK);
    ck_assert(trama_completion_layout(c, w1, &layout));
    ck_assert_int_eq(layout.axis[0].kind, TRAMA_SPLIT);
    trama_completion_destroy(&c);
}
END_TEST

/* An op of one's own that updates a vector by the sum over a batch: its state is no sum of terms. */
START_TEST(updates_write_what_they_read)
{
    static const trama_op_definition add_up = {
        .name = "add_up", .n_in = 2, .n_out = 1, .rule = "i,bi->i", .updates = 1, .cpu = never_runs};
    ck_assert_int_eq(trama_op_define(&add_up, &own), TRAMA_OK);
    mesh = trama_mesh_create("2");
    trama_value *m = trama_state(p, "m", TRAMA_F32, TRAMA_SHAPE(8), &init);
    trama_value *made = trama_apply(own, 2, ((trama_value *[]){m, input("x", TRAMA_SHAPE(64, 8), "S(0)")}), NULL);
    ck_assert_msg(made != NULL, "%s", trama_program_error(p));
    ck_assert_ptr_nonnull(trama_target_create(p, "add_up", made));
    ck_assert_int_eq(trama_search_layouts(p), TRAMA_OK);
    trama_completion *c;
    trama_layout in, out;
    ck_assert_int_eq(trama_completion_create(p, 64, &c), TRAMA_OK);
    ck_assert(trama_completion_operand(c, made, 0, &in));
    ck_assert(trama_completion_result(c, made, 0, &out));
    ck_assert(trama_layout_equal(&in, &out));
    ck_assert_int_ne(out.axis[0].kind, TRAMA_PARTIAL);
    trama_completion_destroy(&c);
}
END_TEST

/* ---- Words ---- */

START_TEST(each_change_of_layout_is_explained)
{
    mesh = trama_mesh_create("2");
    trama_value *x = trama_shard(input("x", TRAMA_SHAPE(64, 12), NULL), mesh, "S(0)");
    trama_value *w = parameter("w", TRAMA_SHAPE(12, 16), "S(0)");
    trama_softmax(trama_matmul(x, w), 1);
    char *told;
    ck_assert_int_eq(trama_complete_text(p, 64, &told), TRAMA_OK);
    static const char *const parts[] = {
        "matmul: w, from S(0) to R: 384 B, since x lies as S(0) (",
        "test_layout_search.c:", "; with x as R, w as S(1) it would exchange 2752 B, not 384",
        "a process receives 384 B, the fewest that layouts with as little work can take"};
    const char *at = told;
    for (size_t i = 0; i < sizeof parts / sizeof *parts && at; i++) {
        const char *found = strstr(at, parts[i]);
        ck_assert_msg(found != NULL, "\"%s\" is not in: %s", parts[i], told);
        at = found;
    }
    trama_text_free(&told);
}
END_TEST

START_TEST(calls_on_nothing_are_refused)
{
    int64_t bytes = 7;
    ck_assert_int_eq(trama_search_layouts_within(NULL, 5), TRAMA_E_ARGUMENT);
    ck_assert_int_eq(trama_completion_state_bytes(NULL, &bytes), TRAMA_E_ARGUMENT);
    ck_assert_int_eq(trama_search_layouts(NULL), TRAMA_E_ARGUMENT);
    ck_assert_int_eq(trama_completion_bytes(NULL, &bytes, NULL), TRAMA_E_ARGUMENT);
    ck_assert_int_eq(bytes, 7);
    trama_completion *c;
    ck_assert_int_eq(trama_search_layouts(p), TRAMA_OK);
    ck_assert_int_eq(trama_completion_create(p, 64, &c), TRAMA_OK); /* of no op */
    ck_assert_int_eq(trama_completion_bytes(c, &bytes, NULL), TRAMA_OK);
    ck_assert_int_eq(bytes, 0);
    trama_completion_destroy(&c);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("layout_search");
    TCase *c = tcase_create("layout_search");
    tcase_add_checked_fixture(c, set_up, tear_down_own);
    tcase_add_loop_test(c, the_search_finds_the_fewest_bytes_of_small_programs, 0, PROGRAMS);
    tcase_add_test(c, a_small_batch_gives_tensor_parallelism);
    tcase_add_test(c, annotations_stay);
    tcase_add_test(c, a_value_that_the_user_reads_is_summed);
    tcase_add_test(c, open_annotations_are_searched);
    tcase_add_test(c, neighbours_are_told_with_their_bytes);
    tcase_add_test(c, ties_keep_splits);
    tcase_add_test(c, updates_write_what_they_read);
    tcase_add_test(c, each_change_of_layout_is_explained);
    tcase_add_test(c, calls_on_nothing_are_refused);
    suite_add_tcase(s, c);
    SRunner *runner = srunner_create(s);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed > 0;
}
