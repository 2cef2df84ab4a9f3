/* SPDX-License-Identifier: Apache-2.0 */
/* The recipes of dist/RECIPES.md, and other programs with the annotations that a user writes, in bytes of a training
 * step that the process receives which receives most. The expected numbers are those of the layouts that an expert
 * writes down for every tensor, worked out by hand. Among two processes that each hold a part or a term of M bytes: an
 * all-gather and a reduce-scatter take M/2 of each, an all-reduce M, and S(i) to S(j) M/4. Elements have 4 bytes. */
#include <check.h>

#include "pair.h"
#include "suite.h"
#include "trama_complete.h"
#include "trama_composed.h"
#include "trama_network.h"
#include "trama_ops.h"
#include "trama_optimizer.h"
#include "transformer_block.h"

static const trama_init init = {-1, 1, 9, 9};
static trama_program *p;
static trama_mesh *mesh;

/* layout NULL: none is written. */
static trama_value *annotated(trama_value *v, const char *layout)
{
    if (layout)
        ck_assert_ptr_nonnull(trama_shard(v, mesh, layout));
    return v;
}

static trama_value *parameter(const char *name, trama_shape shape, const char *layout)
{
    return annotated(trama_parameter(p, name, TRAMA_F32, shape, &init), layout);
}

static trama_value *data(const char *name, trama_shape shape, const char *layout)
{
    return annotated(trama_state(p, name, TRAMA_F32, shape, &init), layout);
}

typedef struct recipe {
    const char *name, *mesh;
    const char *layout[3]; /* of the data and the weights; NULL: none is written */
    int64_t batch;
    trama_value *(*loss)(const struct recipe *r);
    int64_t bytes, searched; /* searched: with trama_search_layouts; 0: as many */
    int64_t bound;           /* of these; 0: it may rise */
} recipe;

/* ---- Programs ---- */

/* [batch, 12] x [12, 16], relu, x [16, 8], with offsets. Parameters: 192 + 16 + 128 + 8 = 344. */
static trama_value *perceptron(const recipe *r)
{
    trama_value *x = data("x", TRAMA_SHAPE(r->batch, 12), r->layout[0]);
    trama_value *w0 = parameter("w0", TRAMA_SHAPE(12, 16), r->layout[1]);
    trama_value *w1 = parameter("w1", TRAMA_SHAPE(16, 8), r->layout[2]);
    trama_value *h = trama_add(trama_matmul(x, w0), parameter("b0", TRAMA_SHAPE(16), NULL));
    trama_value *z = trama_add(trama_matmul(trama_relu(h), w1), parameter("b1", TRAMA_SHAPE(8), NULL));
    trama_value *labels = trama_mod(trama_arange(p, TRAMA_I64, r->batch, 0, 1), trama_scalar(p, TRAMA_I64, 8));
    return trama_cross_entropy(z, labels);
}

/* [16, 16] x [16, 32], relu, x [32, 16]. */
static trama_value *square_perceptron(const recipe *r)
{
    trama_value *x = data("x", TRAMA_SHAPE(16, 16), r->layout[0]);
    trama_value *w0 = parameter("w0", TRAMA_SHAPE(16, 32), r->layout[1]);
    trama_value *w1 = parameter("w1", TRAMA_SHAPE(32, 16), r->layout[2]);
    return trama_mean(trama_square(trama_matmul(trama_relu(trama_matmul(x, w0)), w1)));
}

/* A block on 16 tokens of 12 features, 768 bytes, whose input is trained as if a block stood before it. */
static trama_value *block(const recipe *r)
{
    const transformer_sizes sizes = {2, 8, 12, 4, 24, false};
    transformer_block b = transformer_block_new(p, parameter("x", TRAMA_SHAPE(16, 12), r->layout[0]), "b", sizes);
    annotated(b.parameter[BLOCK_QKV], r->layout[1]);
    annotated(b.parameter[BLOCK_UP], r->layout[2]);
    return trama_mean(trama_square(b.out));
}

/* [batch, 6, 8] x [8, 24] and cross entropy over the 24 classes. */
static trama_value *head(const recipe *r)
{
    trama_value *x = parameter("x", TRAMA_SHAPE(r->batch, 6, 8), r->layout[0]);
    trama_value *z = trama_matmul(x, parameter("w", TRAMA_SHAPE(8, 24), r->layout[1]));
    trama_value *labels = trama_mod(trama_arange(p, TRAMA_I64, r->batch * 6, 0, 1), trama_scalar(p, TRAMA_I64, 24));
    labels = trama_reshape(labels, TRAMA_SHAPE(r->batch, 6));
    return trama_cross_entropy_with(z, labels, 2, NULL, -1, 0, TRAMA_LOSS_MEAN);
}

/* [8, 16, k] x [k, 64] read in a layout; nothing is trained. */
static trama_value *product(const recipe *r)
{
    trama_value *x = data("x", TRAMA_SHAPE(8, 16, r->batch), r->layout[0]);
    return annotated(trama_matmul(x, data("w", TRAMA_SHAPE(r->batch, 64), r->layout[1])), r->layout[2]);
}

/* A product with a contracted dim that is split, whose sum is read by rows. */
static trama_value *rows_of_a_sum(const recipe *r)
{
    trama_value *a = parameter("a", TRAMA_SHAPE(8, 8), r->layout[0]),
                *b = parameter("b", TRAMA_SHAPE(8, 8), r->layout[1]);
    return trama_mean(trama_tanh(trama_reshard(trama_matmul(a, b), mesh, r->layout[2])));
}

/* ---- Bytes ---- */

enum {
    PARAMETERS = 344 * 4,
    TOKENS = 16 * 12 * 4,
    OFFSET = 12 * 4,
    /* Along dp, of the halves that mp leaves, an all-reduce each: qkv, out, up, down and the offsets of qkv and up;
     * whole are two offsets and two norms. */
    BLOCK_OVER_DP = (12 * 36 + 12 * 12 + 12 * 24 + 24 * 12 + 36 + 24) / 2 * 4 + 6 * OFFSET,
};

static const recipe recipes[] = {
    /* An all-reduce of each parameter's gradient. */
    {"data parallel", "dp=2", {"S(0)"}, 8, perceptron, PARAMETERS, 528, 0},
    {"data parallel, uneven", "dp=2", {"S(0)"}, 7, perceptron, PARAMETERS, 480, 0},
    /* An all-reduce of the logits, 8x8. The gradient of x is not asked for. */
    {"model parallel", "mp=2", {NULL, "S(1)"}, 8, perceptron, 8 * 8 * 4, 0, 256},
    /* Half of the logits along mp. Along dp halves of w0, b0 and w1, and b1, which is whole. */
    {"both", "dp=2,mp=2", {"S(0),R", "R,S(1)"}, 8, perceptron, (4 * 8 + (192 + 16 + 128) / 2 + 8) * 4, 816, 816},
    /* An all-gather of each weight, which serves both directions, a reduce-scatter of its gradient, and an all-reduce
     * of the offsets' gradients: as many bytes as data parallel. */
    {"fully sharded", "dp=2", {"S(0)", "S(0)", "S(0)"}, 64, perceptron, PARAMETERS, 0, 1376},
    /* An all-reduce after attention and after the perceptron, and of the gradient of each one's input. */
    {"Megatron", "mp=2", {NULL, "S(1)", "S(1)"}, 0, block, 4 * TOKENS, 0, 3072},
    /* The same sums as reduce-scatters and all-gathers: of each half of the block an all-gather before it and a
     * reduce-scatter behind it, and the reverse. Norms and offsets see half of the tokens: the gradients of two weights
     * and two offsets of norms and of two offsets of products are all-reduced. */
    {"Megatron with sequence parallelism",
     "mp=2",
     {"S(0)", "S(1)", "S(1)"},
     0,
     block,
     8 * TOKENS / 2 + 6 * OFFSET,
     0,
     3312},
    /* Megatron on half of the tokens, and the all-reduce of data parallel. */
    {"data parallel and Megatron",
     "dp=2,mp=2",
     {"S(0),R", "R,S(1)", "R,S(1)"},
     0,
     block,
     4 * TOKENS / 2 + BLOCK_OVER_DP,
     4200,
     0},
    /* Of blocks that lie on one line of the mesh: x, half of 512 bytes; w0 and w1, half of 1,024 each, for both
     * directions; an all-reduce of the result, 512; reduce-scatters of the gradients of w1 and w0, half of 1,024 each.
     */
    {"2-d",
     "2,2",
     {"S(0),S(1)", "S(0),S(1)", "S(1),S(0)"},
     0,
     square_perceptron,
     256 + 2 * 512 + 512 + 2 * 512,
     0,
     2816},
    /* Three numbers a sample: the largest logit, the sum of exponentials and the logit of the label, each an
     * all-reduce; and the all-reduce of the gradient of x. No logit moves. */
    {"split vocabulary", "mp=2", {NULL, "S(1)"}, 4, head, 3 * 4 * 6 * 4 + 4 * 6 * 8 * 4, 820, 820},
    /* The gradient of w, and the number of samples. */
    {"head, uneven batch", "dp=2", {"S(0)"}, 7, head, 8 * 24 * 4 + 4, 0, 772},
    /* A reduce-scatter of [4, 16, 64] along axis 1; x and w stay where they are. */
    {"product read by rows", "2,2", {"S(0),S(2)", "R,S(0)", "S(0),S(1)"}, 256, product, 8192, 0, 8192},
    /* Where k is small, x as S(0),S(1), a quarter of 8,192 bytes, and the whole w, half of 8,192, take fewer. */
    {"small product read by rows", "2,2", {"S(0),S(2)", "R,S(0)", "S(0),S(1)"}, 32, product, 2048 + 4096, 0, 6144},
    /* A reduce-scatter, and an all-gather of the gradient that both operands need. */
    {"rows of a sum", "mp=2", {"S(1)", "S(0)", "S(0)"}, 0, rows_of_a_sum, 2 * 8 * 8 * 4 / 2, 0, 256},
};
enum { RECIPES = sizeof recipes / sizeof *recipes };

static trama_target *target_of(const recipe *r)
{
    const trama_optimizer sgd = trama_sgd(0.1);
    p = trama_program_create();
    mesh = trama_mesh_create(r->mesh);
    trama_value *loss = r->loss(r);
    trama_target *t = r->loss == product ? trama_target_create(p, "target", loss)
                                         : trama_target_create(p, "target", trama_minimize(loss, &sgd), loss);
    ck_assert_msg(t != NULL, "%s: %s", r->name, trama_program_error(p));
    return t;
}

static void end(void)
{
    trama_program_destroy(&p);
    trama_mesh_destroy(&mesh);
}

/* The bytes of a run. Completion adds up the most of each change, so where pieces are uneven it may count more. */
static int64_t planned_bytes(const recipe *r, const trama_target *t)
{
    const simulation_options o = {.plan = {.max_tiles = 1, .grain_flops = 1, .grain_bytes = 1}};
    const int ranks = trama_mesh_size(mesh);
    machine *m = machine_uniform(ranks, 1);
    simulation *s = simulation_new(p, m, &o);
    simulation_run(s, t);
    int64_t most = 0, counted = 0;
    for (int rank = 0; rank < ranks; rank++)
        most = max_i64(most, plan_count(simulation_plan(s, rank)).received);
    trama_completion *c;
    ck_assert_int_eq(trama_completion_create(p, 64, &c), TRAMA_OK);
    ck_assert_int_eq(trama_completion_bytes(c, &counted, NULL), TRAMA_OK);
    trama_completion_destroy(&c);
    ck_assert_msg(counted == most || (r->batch % 2 && counted > most),
                  "%s: completion counts %lld bytes, the plan has %lld", r->name, (long long)counted, (long long)most);
    simulation_destroy(&s);
    machine_destroy(&m);
    return most;
}

START_TEST(each_moves_the_bytes_of_an_expert)
{
    const recipe *r = &recipes[_i];
    const trama_target *t = target_of(r);
    const int64_t most = planned_bytes(r, t);
    ck_assert_msg(most == r->bytes, "%s: %lld bytes, the expert's layouts take %lld", r->name, (long long)most,
                  (long long)r->bytes);
    end();
}
END_TEST

START_TEST(each_computes_the_values_of_one_device)
{
    const recipe *r = &recipes[_i];
    const trama_target *t = target_of(r);
    pair_try(p, t, 0, NULL, NULL, 2, 1e-10, r->name);
    end();
}
END_TEST

START_TEST(a_search_moves_as_few_bytes_or_fewer)
{
    const recipe *r = &recipes[_i];
    const trama_target *t = target_of(r);
    ck_assert_int_eq(trama_search_layouts(p), TRAMA_OK);
    const int64_t most = planned_bytes(r, t), wanted = r->searched ? r->searched : r->bytes;
    ck_assert_msg(most == wanted, "%s: %lld bytes, not %lld", r->name, (long long)most, (long long)wanted);
    ck_assert_int_le(wanted, r->bytes);
    end();
}
END_TEST

/* No layouts receive fewer bytes, as the page says. */
START_TEST(bounds_are_those_of_the_page)
{
    const recipe *r = &recipes[_i];
    int64_t bytes, bound;
    trama_completion *c;
    target_of(r);
    ck_assert_int_eq(trama_search_layouts(p), TRAMA_OK);
    ck_assert_int_eq(trama_completion_create(p, 64, &c), TRAMA_OK);
    ck_assert_int_eq(trama_completion_bytes(c, &bytes, &bound), TRAMA_OK);
    if (r->bound)
        ck_assert_int_eq(bound, r->bound);
    trama_completion_destroy(&c);
    end();
}
END_TEST

START_TEST(searched_layouts_compute_the_values_of_one_device)
{
    const recipe *r = &recipes[_i];
    const trama_target *t = target_of(r);
    ck_assert_int_eq(trama_search_layouts(p), TRAMA_OK);
    pair_try(p, t, 0, NULL, NULL, 2, 1e-10, r->name);
    end();
}
END_TEST

int main(void)
{
    Suite *s = suite_create("recipes");
    TCase *c = tcase_create("recipes");
    tcase_add_loop_test(c, each_moves_the_bytes_of_an_expert, 0, RECIPES);
    tcase_add_loop_test(c, each_computes_the_values_of_one_device, 0, RECIPES);
    tcase_add_loop_test(c, bounds_are_those_of_the_page, 0, RECIPES);
    tcase_add_loop_test(c, a_search_moves_as_few_bytes_or_fewer, 0, RECIPES);
    tcase_add_loop_test(c, searched_layouts_compute_the_values_of_one_device, 0, RECIPES);
    suite_add_tcase(s, c);
    SRunner *runner = srunner_create(s);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed > 0;
}
