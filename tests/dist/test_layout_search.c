/* SPDX-License-Identifier: Apache-2.0 */
/* The search for layouts with fewer bytes: on small programs against all layouts that there are. */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "layout_graph.h"
#include "layout_search.h"
#include "state_memory.h"
#include "suite.h"
#include "trama_complete.h"
#include "trama_composed.h"
#include "trama_convolution.h"
#include "trama_op_define.h"
#include "trama_ops.h"
#include "trama_optimizer.h"

static const trama_init init = {-1, 1, 9, 9};
static trama_program *p;
static trama_mesh *mesh, *alone;
static const trama_op *own; /* an op of a test; NULL */

static void set_up(void)
{
    p = trama_program_create();
    alone = trama_mesh_create("1");
}

static void tear_down(void)
{
    trama_program_destroy(&p);
    trama_op_destroy(&own);
    trama_mesh_destroy(&mesh);
    trama_mesh_destroy(&alone);
}

static trama_value *input(const char *name, trama_shape shape, const char *layout)
{
    trama_value *v = trama_input(p, name, TRAMA_F32, shape);
    if (layout)
        ck_assert_ptr_nonnull(trama_shard(v, mesh, layout));
    return v;
}

static trama_value *parameter(const char *name, trama_shape shape, const char *layout)
{
    trama_value *v = trama_parameter(p, name, TRAMA_F32, shape, &init);
    if (layout)
        ck_assert_ptr_nonnull(trama_shard(v, mesh, layout));
    return v;
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
    bool many; /* three ops read a value, so that the bound may be lower */
} programs[] = {
    {"product", "2", product, false},
    {"product on two axes", "2,2", product_on_two_axes, false},
    {"two products", "2", two_products, false},
    {"shared", "3", shared, true},
    {"shared with weights", "[2,1]", shared, true},
    {"terms", "2", terms, true},
    {"windows", "2", windows, false},
    {"a stencil", "4", stencil, false},
    {"parts of two", "2", parts_of_two, false},
    {"a step", "2", step, false},
    {"a step on three processes", "3", step, false},
    {"a clipped step", "2", clipped_step, true},
};
enum { PROGRAMS = sizeof programs / sizeof *programs };

static trama_status never_runs(const trama_call *call)
{
    return trama_kernel_fail("%s is not run", call->op->name);
}

/* ---- All layouts ---- */

static bool agrees(const layouts *l)
{
    for (int i = 0; i < p->nodes.n; i++)
        for (int t = 0; t < p->nodes.at[i]->op->n_in; t++)
            if ((p->nodes.at[i]->op->updates >> t & 1) &&
                !trama_layout_equal(&l->value[p->nodes.at[i]->in[t]->id], &l->op[i]->in[t]))
                return false;
    return true;
}

/* The fewest bytes over all states of ops and values by which a process keeps at most `limit` bytes of states. */
static int64_t fewest(const layouts *start, int64_t limit, int64_t *tried)
{
    layout_graph g;
    int64_t least = INT64_MAX;
    layout_graph_build(&g, p, start, 64, (double)layouts_bytes(p, start, 64));
    const int n = min_sum_variables(g.problem);
    int *state = trama_alloc((size_t)(n + 1) * sizeof *state), v;
    bool *counts = trama_alloc((size_t)n + 1); /* else the copies of a value */
    memset(counts, 1, (size_t)n);
    for (int i = 0; i < p->values.n; i++)
        if (g.value[i].holds >= 0)
            counts[g.value[i].holds] = false;
    do {
        layouts l;
        layout_graph_take(&g, state, &l);
        if (agrees(&l) && layouts_state_bytes(p, &l, 64) <= limit) {
            least = min_i64(least, layouts_bytes(p, &l, 64));
            ++*tried;
        }
        layouts_free(&l);
        for (v = 0; v < n && (!counts[v] || ++state[v] == min_sum_states(g.problem, v)); v++)
            state[v] = 0;
    } while (v < n);
    free(state);
    free(counts);
    layout_graph_free(&g);
    return least;
}

START_TEST(the_search_finds_the_fewest_bytes_of_small_programs)
{
    layouts l;
    layout_search s;
    int64_t tried = 0;
    mesh = trama_mesh_create(programs[_i].mesh);
    ck_assert_ptr_nonnull(programs[_i].build());
    ck_assert_msg(!trama_program_status(p), "%s", trama_program_error(p));
    ck_assert_int_eq(complete_program(p, 64, alone, &l), TRAMA_OK);
    const int64_t least = fewest(&l, INT64_MAX, &tried);
    search_layouts(p, &l, 64, &s);
    const int64_t found = s.found ? s.better_bytes : s.bytes;
    printf("%s: %lld B as completed, %lld found, bound %lld, %lld the fewest of %lld\n", programs[_i].name,
           (long long)s.bytes, (long long)found, (long long)s.bound, (long long)least, (long long)tried);
    ck_assert_int_eq(s.bytes, layouts_bytes(p, &l, 64));
    ck_assert_int_ge(tried, 8);
    ck_assert_int_eq(found, least);
    ck_assert_int_le(s.bound, least);
    if (!programs[_i].many)
        ck_assert_int_eq(s.bound, least);
    if (s.found)
        layouts_free(&s.better);
    layouts_free(&l);
}
END_TEST

/* Whole states of 8 x 12 f32 and two moments take 1,152 bytes. */
static trama_value *adam_step(void)
{
    const trama_optimizer adam = trama_adam(0.1);
    trama_value *w = parameter("w", TRAMA_SHAPE(8, 12), NULL);
    trama_value *loss = trama_sum(trama_square(trama_matmul(input("x", TRAMA_SHAPE(64, 8), "S(0)"), w)));
    return trama_minimize(loss, &adam);
}

/* Two weights, of which the smaller one is cheaper to keep whole. */
static trama_value *step_of_two(void)
{
    const trama_optimizer sgd = trama_sgd(0.1);
    trama_value *v = parameter("v", TRAMA_SHAPE(8, 3), NULL), *w = parameter("w", TRAMA_SHAPE(3, 9), NULL);
    trama_value *y = trama_matmul(trama_relu(trama_matmul(input("x", TRAMA_SHAPE(64, 8), "S(0)"), v)), w);
    return trama_minimize(trama_sum(y), &sgd);
}

/* The first one on processes 0 and 1, the second one on 1 and 2, so that 1 keeps both. */
static trama_value *step_on_two_meshes(void)
{
    const trama_optimizer sgd = trama_sgd(0.1);
    trama_mesh *behind = trama_mesh_create_ids(1, (int[]){2}, NULL, (int[]){1, 2});
    trama_value *v = parameter("v", TRAMA_SHAPE(8, 3), NULL), *w = parameter("w", TRAMA_SHAPE(3, 9), NULL);
    trama_value *h = trama_reshard(trama_matmul(input("x", TRAMA_SHAPE(64, 8), "S(0)"), v), behind, "S(0)");
    trama_value *made = trama_minimize(trama_sum(trama_matmul(h, w)), &sgd);
    trama_mesh_destroy(&behind);
    return made;
}

static const struct {
    const char *name, *mesh;
    trama_value *(*build)(void);
    int64_t limit; /* bytes of states */
    bool none;     /* no layouts keep it */
    int64_t gap;   /* bytes more than the fewest that may be found: prices do not reach all layouts */
    int64_t open;  /* and that the bound may be less */
} limited[] = {
    {"adam, whole", "2", adam_step, 2000, false, 0, 0},
    {"adam, halves", "2", adam_step, 700, false, 0, 0},
    {"adam, thirds", "3", adam_step, 500, false, 0, 0},
    {"adam, too little", "2", adam_step, 300, true, 0, 0},
    {"two, whole", "2", step_of_two, 300, false, 0, 0},
    {"two, one of them", "2", step_of_two, 170, false, 0, 0},
    {"two, halves", "2", step_of_two, 120, false, 0, 3},
    {"two by weights", "[2,1]", step_of_two, 170, false, 32, 2},
    {"two meshes, whole", "2", step_on_two_meshes, 204, false, 0, 0},
    {"two meshes, a half", "2", step_on_two_meshes, 160, false, 0, 0},
    {"two meshes, halves", "2", step_on_two_meshes, 110, false, 0, 0},
};
enum { LIMITED = sizeof limited / sizeof *limited };

START_TEST(a_limit_of_states_is_kept_with_the_fewest_bytes)
{
    layouts l;
    layout_search s;
    int64_t tried = 0;
    mesh = trama_mesh_create(limited[_i].mesh);
    ck_assert_ptr_nonnull(limited[_i].build());
    ck_assert_int_eq(trama_search_layouts_within(p, limited[_i].limit), TRAMA_OK);
    ck_assert_int_eq(complete_program(p, 64, alone, &l), TRAMA_OK);
    const int64_t least = fewest(&l, limited[_i].limit, &tried);
    search_layouts(p, &l, 64, &s);
    const int64_t kept = s.found ? layouts_state_bytes(p, &s.better, 64) : s.kept;
    printf("%s: %lld B with %lld of states as completed, %lld with %lld found, bound %lld, %lld the fewest of %lld\n",
           limited[_i].name, (long long)s.bytes, (long long)s.kept, (long long)(s.found ? s.better_bytes : s.bytes),
           (long long)kept, (long long)s.bound, (long long)least, (long long)tried);
    if (limited[_i].none) {
        ck_assert(!s.fits);
        ck_assert_int_le(s.bound, s.found ? s.better_bytes : s.bytes);
        ck_assert_int_eq(tried, 0);
        ck_assert_int_gt(kept, limited[_i].limit);
    } else {
        const int64_t found = s.found ? s.better_bytes : s.bytes;
        ck_assert_int_le(kept, limited[_i].limit);
        ck_assert_int_ge(found, least);
        ck_assert_int_le(found, least + limited[_i].gap);
        ck_assert(s.fits);
        ck_assert_int_le(s.bound, least);
        ck_assert_int_ge(s.bound, least - limited[_i].open);
    }
    if (s.found)
        layouts_free(&s.better);
    layouts_free(&l);
}
END_TEST

/* ---- A network ---- */

static trama_value *perceptron(int64_t batch)
{
    trama_value *w0 = parameter("w0", TRAMA_SHAPE(12, 16), NULL), *w1 = parameter("w1", TRAMA_SHAPE(16, 8), NULL);
    trama_value *y = trama_matmul(trama_relu(trama_matmul(input("x", TRAMA_SHAPE(batch, 12), "S(0)"), w0)), w1);
    return trama_mean(trama_square(y));
}

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
    trama_value *x = input("x", TRAMA_SHAPE(64, 12), "S(0)");
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

/* Of the annotation of a large batch: each process keeps a half of each weight, and as many bytes move as without the
 * limit: weights are gathered, their gradients are scattered. */
START_TEST(a_limit_gives_fully_sharded_weights)
{
    const trama_optimizer sgd = trama_sgd(0.1);
    trama_completion *c;
    int64_t bytes, bound, kept;
    mesh = trama_mesh_create("2");
    ck_assert_ptr_nonnull(trama_target_create(p, "train", trama_minimize(perceptron(512), &sgd)));
    ck_assert_int_eq(trama_search_layouts_within(p, (12 * 16 + 16 * 8) * 4 / 2), TRAMA_OK);
    ck_assert_int_eq(trama_completion_create(p, 64, &c), TRAMA_OK);
    ck_assert_int_eq(trama_completion_bytes(c, &bytes, &bound), TRAMA_OK);
    ck_assert_int_eq(trama_completion_state_bytes(c, &kept), TRAMA_OK);
    ck_assert_int_eq(bytes, (12 * 16 + 16 * 8) * 4);
    ck_assert_int_eq(bound, bytes);
    ck_assert_int_eq(kept, bytes / 2);
    trama_completion_destroy(&c);
}
END_TEST

/* 384 bytes of w and as many of each moment, and a count of steps of 8, which is no tensor to split. */
START_TEST(a_limit_is_told_with_the_bytes_of_states)
{
    char *said;
    int64_t kept;
    trama_completion *c;
    mesh = trama_mesh_create("2");
    ck_assert_ptr_nonnull(adam_step());
    ck_assert_int_eq(trama_search_layouts_within(p, 700), TRAMA_OK);
    ck_assert_int_eq(trama_complete_text(p, 64, &said), TRAMA_OK);
    ck_assert_msg(strstr(said, "a process keeps 584 B of states, and may keep 700\n"), "%s", said);
    trama_text_free(&said);
    ck_assert_int_eq(trama_completion_create(p, 64, &c), TRAMA_OK);
    ck_assert_int_eq(trama_completion_state_bytes(c, &kept), TRAMA_OK);
    ck_assert_int_eq(kept, 584);
    trama_completion_destroy(&c);
    ck_assert_int_eq(trama_search_layouts_within(p, 300), TRAMA_OK);
    ck_assert_int_eq(trama_completion_create(p, 64, &c), TRAMA_E_MEMORY);
    ck_assert_msg(strstr(trama_error(), "test_layout_search.c") && strstr(trama_error(), "may keep 300 bytes"), "%s",
                  trama_error());
    ck_assert_int_eq(trama_search_layouts(p), TRAMA_OK); /* without a limit */
    ck_assert_int_eq(trama_completion_create(p, 64, &c), TRAMA_OK);
    ck_assert_int_eq(trama_completion_state_bytes(c, &kept), TRAMA_OK);
    ck_assert_int_eq(kept, 1160);
    trama_completion_destroy(&c);
}
END_TEST

/* Weights on two processes each: only the one of 384 bytes is split, that of 96 stays whole. */
START_TEST(each_process_has_the_limit)
{
    const trama_optimizer sgd = trama_sgd(0.1);
    trama_completion *c;
    int64_t kept;
    mesh = trama_mesh_create_ids(1, (int[]){2}, NULL, (int[]){0, 1});
    trama_value *x = input("x", TRAMA_SHAPE(64, 8), "S(0)"), *w = parameter("w0", TRAMA_SHAPE(8, 12), NULL);
    trama_value *h = trama_matmul(x, w);
    trama_mesh *behind = trama_mesh_create_ids(1, (int[]){2}, NULL, (int[]){2, 3});
    h = trama_reshard(h, behind, "S(0)");
    trama_value *loss = trama_sum(trama_square(trama_matmul(h, parameter("w1", TRAMA_SHAPE(12, 2), NULL))));
    ck_assert_ptr_nonnull(trama_target_create(p, "train", trama_minimize(loss, &sgd)));
    ck_assert_int_eq(trama_search_layouts_within(p, 200), TRAMA_OK);
    ck_assert_int_eq(trama_completion_create(p, 64, &c), TRAMA_OK);
    trama_layout w0, w1;
    ck_assert(trama_completion_layout(c, program_leaf_named(p, "w0", NULL), &w0));
    ck_assert(trama_completion_layout(c, program_leaf_named(p, "w1", NULL), &w1));
    ck_assert_int_eq(w0.axis[0].kind, TRAMA_SPLIT);
    ck_assert_int_eq(w1.axis[0].kind, TRAMA_REPLICATE);
    ck_assert_int_eq(trama_completion_state_bytes(c, &kept), TRAMA_OK);
    ck_assert_int_eq(kept, 192);
    trama_completion_destroy(&c);
    trama_mesh_destroy(&behind);
}
END_TEST

START_TEST(a_limit_above_zero_is_wanted)
{
    ck_assert_int_eq(trama_search_layouts_within(p, 0), TRAMA_E_ARGUMENT);
    ck_assert_msg(strstr(trama_program_error(p), "0 bytes of states"), "%s", trama_program_error(p));
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
    tcase_add_checked_fixture(c, set_up, tear_down);
    tcase_add_loop_test(c, the_search_finds_the_fewest_bytes_of_small_programs, 0, PROGRAMS);
    tcase_add_loop_test(c, a_limit_of_states_is_kept_with_the_fewest_bytes, 0, LIMITED);
    tcase_add_test(c, a_small_batch_gives_tensor_parallelism);
    tcase_add_test(c, annotations_stay);
    tcase_add_test(c, a_value_that_the_user_reads_is_summed);
    tcase_add_test(c, open_annotations_are_searched);
    tcase_add_test(c, neighbours_are_told_with_their_bytes);
    tcase_add_test(c, ties_keep_splits);
    tcase_add_test(c, updates_write_what_they_read);
    tcase_add_test(c, each_change_of_layout_is_explained);
    tcase_add_test(c, a_limit_gives_fully_sharded_weights);
    tcase_add_test(c, a_limit_is_told_with_the_bytes_of_states);
    tcase_add_test(c, each_process_has_the_limit);
    tcase_add_test(c, a_limit_above_zero_is_wanted);
    tcase_add_test(c, calls_on_nothing_are_refused);
    suite_add_tcase(s, c);
    SRunner *runner = srunner_create(s);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed > 0;
}
