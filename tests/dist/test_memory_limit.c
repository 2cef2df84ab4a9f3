/* SPDX-License-Identifier: Apache-2.0 */
/* Searches within a limit of the memory that a process needs at a time: small programs against all layouts that there
 * are, a transformer block, and the count of memory against plans. */
#include "pair.h"
#include "rehearsed.h"
#include "searched_program.h"
#include "transformer_block.h"

/* ---- Small programs ---- */

/* The gradient reads h, of 64 x 12 f32. */
static trama_value *chain(void)
{
    const trama_optimizer sgd = trama_sgd(0.1);
    trama_value *x = input("x", TRAMA_SHAPE(64, 4), "R"), *w = parameter("w", TRAMA_SHAPE(4, 12), "R");
    return trama_minimize(trama_sum(trama_square(trama_matmul(x, w))), &sgd);
}

/* The weight is larger than all other values. */
static trama_value *large_weight(void)
{
    const trama_optimizer sgd = trama_sgd(0.1);
    trama_value *w = parameter("w", TRAMA_SHAPE(40, 50), NULL);
    return trama_minimize(trama_sum(trama_matmul(input("x", TRAMA_SHAPE(64, 40), "S(0)"), w)), &sgd);
}

/* No gradient: the two results of a branch are there together. */
static trama_value *branches(void)
{
    trama_value *x = trama_exp(input("x", TRAMA_SHAPE(6, 10), NULL));
    trama_value *a = trama_relu(trama_matmul(x, input("v", TRAMA_SHAPE(10, 8), "R"))),
                *b = trama_relu(trama_matmul(x, input("w", TRAMA_SHAPE(10, 8), "R")));
    return trama_shard(trama_sum(trama_mul(a, b)), mesh, "R");
}

static const limited_program limited[] = {
    {"a chain, halves", "2", chain, 6000, false, 0, 60},
    {"a chain, thirds", "3", chain, 4500, false, 0, 45},
    {"a chain, too little", "2", chain, 3000, true, 0, 0},
    {"a large weight, whole", "2", large_weight, 50000, false, 0, 0},
    {"a large weight, halves", "2", large_weight, 25000, false, 0, 2880},
    {"branches, halves", "2", branches, 900, false, 0, 0},
};
enum { LIMITED = sizeof limited / sizeof *limited };

START_TEST(a_limit_of_memory_is_kept_with_the_fewest_bytes)
{
    for (int i = 0; i < LIMITED; i++) {
        check_limit(&limited[i], trama_search_layouts_in_memory_at);
        tear_down();
        set_up();
    }
}
END_TEST

/* ---- Counted by hand ---- */

/* [8, 100] f32 take 3,200 bytes, the parts of 4 processes 800. */
static int64_t counted(void)
{
    trama_completion *c;
    int64_t bytes;
    ck_assert_msg(!trama_program_status(p), "%s", trama_program_error(p));
    ck_assert_msg(!trama_completion_create(p, 64, &c), "%s", trama_error());
    ck_assert_int_eq(trama_completion_memory_bytes(c, &bytes), TRAMA_OK);
    trama_completion_destroy(&c);
    return bytes;
}

static trama_value *rows(const char *name)
{
    return input(name, TRAMA_SHAPE(8, 100), "S(0)");
}

/* x and y stay to the product; exp(x) is there beside them, then its gathered copy, which the user reads. */
/* x stays to the end: it is there beside y and z. */
START_TEST(an_input_that_a_target_names_is_kept)
{
    mesh = trama_mesh_create("4");
    trama_value *x = rows("x");
    trama_value *y = trama_shard(trama_exp(x), mesh, "S(0)"), *z = trama_shard(trama_exp(y), mesh, "S(0)");
    ck_assert_ptr_nonnull(trama_target_create(p, "both", x, trama_sum(z)));
    ck_assert_int_eq(trama_search_layouts_in_memory(p, 2 * 800 + 800), TRAMA_OK);
    ck_assert_int_eq(counted(), 3 * 800);
}
END_TEST

START_TEST(a_resharded_value_is_kept_as_its_reader_has_it)
{
    mesh = trama_mesh_create("4");
    trama_value *whole = trama_reshard(trama_exp(rows("x")), mesh, "R");
    trama_value *more = trama_reshard(trama_exp(rows("y")), mesh, "R");
    trama_value *product = trama_shard(trama_mul(whole, more), mesh, "R");
    ck_assert_ptr_nonnull(trama_target_create(p, "product", product));
    ck_assert_int_eq(counted(), 3 * 3200);
}
END_TEST

/* A transpose of the gathered copy shows that copy: it stays to the last reader. */
START_TEST(a_view_of_a_copy_keeps_the_copy)
{
    static const int turned[] = {1, 0};
    mesh = trama_mesh_create("4");
    trama_value *x = trama_exp(rows("x")), *y = trama_transpose(x, turned);
    ck_assert_ptr_nonnull(trama_shard_op(y, mesh, "R", "R"));
    trama_value *z = trama_exp(rows("z"));
    trama_value *first = trama_sum(trama_mul(z, z)), *second = trama_shard(trama_sum(trama_mul(y, y)), mesh, "R");
    trama_value *sum = trama_add(first, second);
    ck_assert_ptr_nonnull(trama_target_create(p, "sum", sum));
    /* at the second product: the copy, the product, and the first sum */
    ck_assert_int_eq(counted(), 2 * 3200 + 4);
}
END_TEST

/* The product of split contracted dims is made as terms, and rests as their sum: both are there while it changes. */
START_TEST(a_value_that_settles_has_two_layouts_for_an_op)
{
    mesh = trama_mesh_create("4");
    trama_value *x = input("x", TRAMA_SHAPE(8, 8), "S(1)"), *w = input("w", TRAMA_SHAPE(8, 100), "S(0)");
    trama_value *product = trama_shard(trama_matmul(x, w), mesh, "R");
    ck_assert_ptr_nonnull(trama_target_create(p, "product", product));
    ck_assert_int_eq(counted(), 8 * 8 / 4 * 4 + 8 * 100 / 4 * 4 + 2 * 3200);
}
END_TEST

/* Ranks 2 and 3 have whole copies of both operands, and the whole product. */
START_TEST(processes_that_only_compute_need_memory)
{
    mesh = trama_mesh_create_ids(1, (int[]){2}, NULL, (int[]){0, 1});
    trama_mesh *there = trama_mesh_create_ids(1, (int[]){2}, NULL, (int[]){2, 3});
    trama_value *x = input("x", TRAMA_SHAPE(8, 8), "S(0)"), *w = input("w", TRAMA_SHAPE(8, 100), "R");
    trama_shard_begin(p, there, NULL);
    trama_value *product = trama_matmul(x, w);
    trama_shard_end(p);
    ck_assert_ptr_nonnull(trama_shard(product, mesh, "S(0)"));
    ck_assert_ptr_nonnull(trama_target_create(p, "product", product));
    ck_assert_int_eq(counted(), 8 * 8 * 4 + 3200 + 3200);
    trama_mesh_destroy(&there);
}
END_TEST

/* ---- A block ---- */

static trama_value *block(int64_t batch, int64_t sequence, int64_t features, const char *mesh_shape)
{
    const transformer_sizes sizes = {batch, sequence, features, 4, 4 * features, false};
    mesh = trama_mesh_create(mesh_shape);
    trama_value *x = parameter("x", TRAMA_SHAPE(batch * sequence, features), NULL);
    transformer_block b = transformer_block_new(p, x, "b", sizes);
    const char *columns = trama_mesh_ndim(mesh) == 2 ? "R,S(1)" : "S(1)";
    trama_shard(b.parameter[BLOCK_QKV], mesh, columns);
    trama_shard(b.parameter[BLOCK_UP], mesh, columns);
    return trama_mean(trama_square(b.out));
}

typedef struct figures {
    int64_t received, needed;
    bool splits_tokens;
} figures;

static figures complete(void)
{
    figures f;
    trama_layout layout;
    trama_completion *c;
    ck_assert_msg(!trama_completion_create(p, 64, &c), "%s", trama_error());
    ck_assert_int_eq(trama_completion_bytes(c, &f.received, NULL), TRAMA_OK);
    ck_assert_int_eq(trama_completion_memory_bytes(c, &f.needed), TRAMA_OK);
    ck_assert(trama_completion_layout(c, program_leaf_named(p, "x", NULL), &layout));
    f.splits_tokens = layout.axis[0].kind == TRAMA_SPLIT && layout.axis[0].dim == 0;
    trama_completion_destroy(&c);
    return f;
}

/* Of Megatron's two annotations: with less memory tokens are split between the products, too. An all-reduce becomes a
 * reduce-scatter and an all-gather, so that beside the gradients of norms and offsets no more bytes move. */
START_TEST(less_memory_gives_sequence_parallelism)
{
    const trama_optimizer sgd = trama_sgd(0.1);
    const int64_t tokens = 4 * 32 * 32 * 4, offsets = 8 * 32 * 4;
    trama_value *loss = block(4, 32, 32, "mp=4");
    trama_target *t = trama_target_create(p, "train", trama_minimize(loss, &sgd), loss);
    ck_assert_msg(t != NULL, "%s", trama_program_error(p));
    const figures whole = complete();
    ck_assert(!whole.splits_tokens);
    ck_assert_int_eq(whole.received, 4 * tokens * 6 / 4);
    ck_assert_int_eq(trama_search_layouts_in_memory(p, whole.needed * 3 / 4), TRAMA_OK);
    const figures within = complete();
    ck_assert(within.splits_tokens);
    ck_assert_int_le(within.needed, whole.needed * 3 / 4);
    ck_assert_int_le(within.received, whole.received + offsets * 6 / 4);
    pair_try(p, t, 0, NULL, NULL, 4, 1e-10, "within less memory");
}
END_TEST

/* ---- Plans ---- */

static const char nodes[] = "kind node\ncores 1\ncore f32 1Gflop/s\nswitch top\nnodes 4 node in top 1GB/s 5us\n";

/* Fusion leaves some results out, and messages are there besides. */
START_TEST(plans_need_the_memory_that_is_counted)
{
    static const char *const meshes[] = {"mp=2", "mp=4", "dp=2,mp=2"};
    const trama_optimizer adam = trama_adam(0.1);
    for (int i = 0; i < 3; i++)
        for (int searched = 0; searched < 2; searched++) {
            trama_value *loss = block(8, 128, 128, meshes[i]);
            trama_target *t = trama_target_create(p, "train", trama_minimize(loss, &adam), loss);
            ck_assert_msg(t != NULL, "%s", trama_program_error(p));
            if (searched)
                ck_assert_int_eq(trama_search_layouts(p), TRAMA_OK);
            const trama_rehearsal_report report =
                report_on(t, nodes, &(trama_rehearsal_options){.ranks = trama_mesh_size(mesh), .nominal = 64});
            const double planned = (double)(report.memory - report.buffers + report.live),
                         counted = (double)complete().needed;
            printf("%s%s: %.0f planned, %.0f counted\n", meshes[i], searched ? ", searched" : "", planned, counted);
            ck_assert_double_ge(counted, 0.8 * planned);
            ck_assert_double_le(counted, planned);
            tear_down();
            set_up();
        }
}
END_TEST

START_TEST(a_limit_of_memory_is_told)
{
    char *said;
    int64_t needed;
    trama_completion *c;
    mesh = trama_mesh_create("2");
    ck_assert_ptr_nonnull(chain());
    ck_assert_int_eq(trama_search_layouts_in_memory(p, 6000), TRAMA_OK);
    ck_assert_int_eq(trama_completion_create(p, 64, &c), TRAMA_OK);
    ck_assert_int_eq(trama_completion_memory_bytes(c, &needed), TRAMA_OK);
    trama_completion_destroy(&c);
    ck_assert_int_eq(trama_complete_text(p, 64, &said), TRAMA_OK);
    char words[80];
    snprintf(words, sizeof words, "a process needs %lld B at a time, and may need 6000\n", (long long)needed);
    ck_assert_msg(strstr(said, words), "%s", said);
    trama_text_free(&said);
    ck_assert_int_eq(trama_search_layouts_in_memory(p, 300), TRAMA_OK);
    ck_assert_int_eq(trama_completion_create(p, 64, &c), TRAMA_E_MEMORY);
    ck_assert_msg(strstr(trama_error(), "test_memory_limit.c") && strstr(trama_error(), "may need 300 bytes at a time"),
                  "%s", trama_error());
    ck_assert_int_eq(trama_search_layouts_in_memory(p, 0), TRAMA_E_ARGUMENT);
    ck_assert_msg(strstr(trama_program_error(p), "0 bytes of memory"), "%s", trama_program_error(p));
}
END_TEST

int main(void)
{
    const TTest *tests[] = {
        a_limit_of_memory_is_kept_with_the_fewest_bytes,
        an_input_that_a_target_names_is_kept,
        a_resharded_value_is_kept_as_its_reader_has_it,
        a_view_of_a_copy_keeps_the_copy,
        a_value_that_settles_has_two_layouts_for_an_op,
        processes_that_only_compute_need_memory,
        less_memory_gives_sequence_parallelism,
        plans_need_the_memory_that_is_counted,
        a_limit_of_memory_is_told,
    };
    return suite_run("memory_limit", set_up, tear_down, tests, sizeof tests / sizeof *tests);
}
