/* SPDX-License-Identifier: Apache-2.0 */
/* Times of single steps in rehearsals, against hand calculation. */
#include <stdio.h>
#include <string.h>

#include "rehearsed.h"
#include "trama_array.h"
#include "trama_attention.h"
#include "trama_op_define.h"
#include "trama_ops.h"

/* Results count twice: they are read into the cache before they are written. */
START_TEST(a_product_takes_the_time_of_its_flops_and_bytes)
{
    trama_program *p = trama_program_create();
    trama_value *x = trama_input(p, "x", TRAMA_F32, TRAMA_SHAPE(100, 50));
    trama_value *w = trama_parameter(p, "w", TRAMA_F32, TRAMA_SHAPE(50, 40), NULL);
    trama_target *t = trama_target_create(p, "t", trama_matmul(x, w));
    trama_rehearsal *r =
        rehearsed(t, "kind n\n core f32 1Gflop/s\n core memory 1TB/s\n task 2us\n feed 1000TB/s\n nodes 1 n", NULL);
    const trama_rehearsal_report f = report_of(r);
    const double flop = 2 * 100 * 50 * 40, operands = 4 * (100 * 50 + 50 * 40), results = 4 * 2 * 100 * 40;
    ck_assert_double_eq_tol(f.seconds, 2e-6 + flop / 1e9 + (operands + results) / 1e12, 1e-9);
    ck_assert(f.steps == 1 && f.messages == 0 && f.bytes == 0 && f.hidden == 1 && f.idle < 1e-6);
    ck_assert_double_eq_tol(f.work_seconds, f.seconds, 1e-9);
    ck_assert_double_eq(f.link_seconds, 0);
    ck_assert_int_eq(f.memory, 4 * (100 * 50 + 50 * 40 + 100 * 40));
    const char *name;
    ck_assert_double_eq_tol(trama_rehearsal_path(r, 0, &name), f.seconds, 1e-9);
    ck_assert_str_eq(name, "matmul");
    trama_rehearsal_destroy(&r);
    static const char core[] =
        "kind n\n core f32 1Tflop/s\n op matmul memory 1GB/s\n core memory 2GB/s\n task 0s\n feed 1000TB/s\n nodes 1 n";
    static const char gpu[] =
        "kind n\n gpus 1\n gpu f32 1Tflop/s\n gpu memory 1GB/s\n task 0s\n feed 1000TB/s\n nodes 1 n";
    ck_assert_double_eq_tol(report_on(t, core, NULL).seconds, flop / 1e12 + operands / 1e9 + results / 2e9, 1e-9);
    ck_assert_double_eq_tol(report_on(t, gpu, NULL).seconds, (operands + results) / 1e9, 1e-9);
    trama_program_destroy(&p);
}
END_TEST

/* A product with a vector has rates of its own, and the gradient of an op those of the op. */
START_TEST(rates_are_found_by_the_name_of_the_op)
{
    trama_program *p = trama_program_create();
    trama_value *x = trama_parameter(p, "x", TRAMA_F32, TRAMA_SHAPE(100, 50), NULL);
    trama_value *v = trama_parameter(p, "v", TRAMA_F32, TRAMA_SHAPE(50, 1), NULL);
    trama_target *products = trama_target_create(p, "products", trama_matmul(x, v));
    trama_value *d = trama_gradient(trama_sum(trama_square(trama_softmax(x, 1))), x);
    trama_target *softmax = trama_target_create(p, "softmax", d);
    static const char rates[] = "kind n\n core f32 1000Tflop/s\n core memory 1000TB/s\n op matvec memory 1GB/s\n"
                                "op softmax memory 2GB/s\n task 0s\n feed 1000TB/s\n nodes 1 n";
    ck_assert_double_eq_tol(report_on(products, rates, NULL).seconds, 4 * (100 * 50 + 50) / 1e9, 1e-8);
    /* x and y; then g, y and d */
    ck_assert_double_eq_tol(report_on(softmax, rates, NULL).seconds, 4 * (3 + 4) * 100 * 50 / 2e9, 1e-7);
    trama_program_destroy(&p);
}
END_TEST

START_TEST(sums_of_terms_have_the_rates_of_additions)
{
    enum { N = 100 };
    static const char *const slow[] = {"sum", "add"};
    trama_program *p = trama_program_create();
    trama_mesh *mesh = trama_mesh_create("mp=2");
    trama_value *x = trama_parameter(p, "x", TRAMA_F32, TRAMA_SHAPE(N, N), NULL);
    trama_value *w = trama_parameter(p, "w", TRAMA_F32, TRAMA_SHAPE(N, N), NULL);
    trama_shard(x, mesh, "S(1)");
    trama_shard(w, mesh, "S(0)");
    trama_target *t = trama_target_create(p, "t", trama_shard(trama_matmul(x, w), mesh, "R"));
    for (int i = 0; i < 2; i++) {
        char source[256];
        snprintf(source, sizeof source,
                 "kind n\n core f32 1000Tflop/s\n core memory 1000TB/s\n op %s memory 1MB/s\n task 0s\n feed 1000TB/s\n"
                 "switch s\nnodes 2 n in s 1000TB/s 0s",
                 slow[i]);
        const double seconds = report_on(t, source, NULL).seconds,
                     of_half = 4.0 * N * N / 2 / 1e6; /* one operand of a half */
        ck_assert_msg(i ? seconds >= of_half : seconds < 0.1 * of_half, "op %s: %g s", slow[i], seconds);
    }
    trama_mesh_destroy(&mesh);
    trama_program_destroy(&p);
}
END_TEST

/* Seconds of a run on a node whose flops take no time and whose memory gives 1 GB/s, but for the lines. */
static double seconds_with(const char *lines, const trama_target *t, const trama_rehearsal_options *o)
{
    char node[200];
    snprintf(node, sizeof node,
             "kind n\n core memory 1GB/s\n core f32 1000Tflop/s\n core f64 1000Tflop/s\n task 0s\n %s\n nodes 1 n",
             lines);
    return report_on(t, node, o).step_seconds;
}

/* The second flip reads the result of the first. */
START_TEST(operands_in_the_cache_come_at_its_rate)
{
    static const struct {
        const char *cache;
        int runs;
        double seconds;
    } cases[] = {
        {"", 1, 24e-6},
        {"cache 5000B 10GB/s", 1, 12e-6 + 8.4e-6},
        {"cache 5000B 10GB/s", 3, 12e-6 + 8.4e-6}, /* each operand was used too long ago */
        {"cache 1MB 10GB/s", 3, 2.4e-6},           /* all operands come from the run before */
        {"cache 1MB 0B/s", 3, 24e-6},
        {"far 5000B 500MB/s", 1, 24e-6},
        {"far 5000B 500MB/s", 3, 24e-6 + 16e-6 + 4e-6}, /* all but the operand of the second, which was just written */
        {"far 5000B 500MB/s 1GB/s", 3, 16e-6 + 4e-6 + 4e-6 + 8e-6 + 4e-6}, /* results go back twice as fast */
        {"far 1MB 500MB/s", 3, 24e-6},
        {"far 5000B 5GB/s", 3, 24e-6}, /* it is no slower than the op */
        {"task 1us 100ns", 1, 2 * (12e-6 + 1e-6 + 2 * 100e-9)},
        {"task 2us 500ns\n evict 6kB 2", 1, 2 * (12e-6 + 3e-6)}, /* of one run the first */
        {"task 2us 500ns\n evict 6kB 2", 3, 2 * (12e-6 + 2 * 3e-6)},
        {"task 2us 500ns\n evict 36kB 3", 3, 2 * (12e-6 + 3e-6 + 2 * 1e-6)}, /* 12 kB of x and both results */
        {"submit 20us\n evict 6kB 1 3", 3, 24e-6 + 2 * 60e-6},               /* the core that computes submits, too */
        {"submit 20us\n evict 36kB 1 4", 3, 24e-6 + 2 * 40e-6},
    };
    trama_program *p = trama_program_create();
    trama_value *x = trama_parameter(p, "x", TRAMA_F32, TRAMA_SHAPE(1000), NULL);
    trama_target *t = trama_target_create(p, "t", trama_flip(trama_flip(x, TRAMA_DIMS(0)), TRAMA_DIMS(0)));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const trama_rehearsal_options o = {.runs = cases[i].runs};
        ck_assert_double_eq_tol(seconds_with(cases[i].cache, t, &o), cases[i].seconds, 1e-8);
    }
    trama_program_destroy(&p);
}
END_TEST

/* Two ranks exchange an element: each run has a task, a send and a receive. */
START_TEST(messages_have_times_of_their_own)
{
    trama_program *p = trama_program_create();
    trama_mesh *mesh = trama_mesh_create("2"), *swapped = trama_mesh_child(mesh, 1, (int[]){2}, NULL, (int[]){1, 0});
    trama_value *x = trama_shard(trama_parameter(p, "x", TRAMA_F32, TRAMA_SHAPE(2), NULL), mesh, "S(0)");
    trama_target *t = trama_target_create(p, "t", trama_neg(trama_reshard(x, swapped, "S(0)")));
    static const struct {
        const char *lines;
        double seconds;
    } cases[] = {{"submit 1ms\n message 0s", 3e-3},
                 {"submit 1ms 0s 2ms\n message 0s", 5e-3},
                 {"submit 1ms\n message 0s 4ms", 11e-3},
                 {"submit 0s\n message 1ms 0s 3\n evict 0B 1 1", 2e-3},
                 {"submit 0s\n message 1ms 0s 3\n evict 1B 1 1", 6e-3},
                 {"submit 0s\n message 1ms 0s 3\n evict 12B 1 1", 4e-3}}; /* 12 bytes of 2 workers */
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char node[200];
        snprintf(node, sizeof node, "kind n\n ranks 2\n cores 4\n task 0s\n %s\n nodes 1 n", cases[i].lines);
        const trama_rehearsal_options o = {.runs = 5};
        ck_assert_double_eq_tol(report_on(t, node, &o).step_seconds, cases[i].seconds, 1e-4);
    }
    trama_mesh_destroy(&swapped);
    trama_mesh_destroy(&mesh);
    trama_program_destroy(&p);
}
END_TEST

/* Each of two workers has tiles of its own: it used its 4,000 bytes of the result 8,000 bytes ago, those of x 4,000. */
START_TEST(each_tile_has_a_last_use)
{
    static const char node[] = "kind n\n cores 2\n core memory 1GB/s\n core f32 1000Tflop/s\n task 0s\n"
                               "far 5000B 500MB/s\n nodes 1 n";
    const trama_rehearsal_options o = {.runs = 3, .max_tiles = 2, .grain_flops = 1, .grain_bytes = 1};
    trama_program *p = trama_program_create();
    trama_value *x = trama_parameter(p, "x", TRAMA_F32, TRAMA_SHAPE(2000), NULL);
    trama_target *t = trama_target_create(p, "t", trama_neg(x));
    const trama_rehearsal_report f = report_on(t, node, &o);
    ck_assert_int_eq(f.steps, 2);
    ck_assert_double_eq_tol(f.step_seconds, 4e-6 + 16e-6, 1e-8);
    ck_assert_double_lt(f.idle, 1e-6);
    trama_program_destroy(&p);
}
END_TEST

/* Each of two workers has a half of the columns of x. A flip of columns is cut by rows, so that each worker reads 2,000
 * of the 4,000 bytes that the other one writes; one of rows is cut by columns. */
START_TEST(results_that_others_have_read_take_longer)
{
    const trama_rehearsal_options o = {.runs = 3, .max_tiles = 2, .grain_flops = 1, .grain_bytes = 1};
    for (int others = 0; others < 2; others++) {
        trama_program *p = trama_program_create();
        trama_value *x = trama_parameter(p, "x", TRAMA_F32, TRAMA_SHAPE(40, 50), NULL);
        trama_value *read = trama_flip(x, TRAMA_DIMS(others));
        trama_target *t = trama_target_create(p, "t", read, trama_assign(x, trama_affine(x, 2, 1)));
        const double without = seconds_with("cores 2", t, &o),
                     with = seconds_with("cores 2\n op shared memory 500MB/s", t, &o);
        ck_assert_double_eq_tol(with, without + (others ? 2e-6 : 0), 1e-8);
        trama_program_destroy(&p);
    }
}
END_TEST

static trama_status never_run(const trama_call *call)
{
    (void)call;
    return TRAMA_E_KERNEL;
}

/* Of f64: 6,000 flop and 24,000 bytes. */
START_TEST(ops_of_the_program_share_rates)
{
    static const struct {
        const char *lines;
        int runs;
        double seconds;
    } cases[] = {
        {"", 1, 24e-6},
        {"op own f64 100Mflop/s", 1, 60e-6 + 24e-6},
        {"op own memory 500MB/s", 1, 48e-6},
        {"op own f64 100Mflop/s\n op mine memory 2GB/s", 1, 12e-6}, /* a line of its name: none of these holds */
        {"op own f64 100Mflop/s\n cache 1MB 2GB/s", 3, 60e-6}, /* its rate of flops is that of operands in the cache */
        {"op own f64 100Mflop/s\n far 1kB 200MB/s", 3, 120e-6},
    };
    static const trama_op_definition mine = {
        .name = "mine", .n_in = 1, .n_out = 1, .rule = "...->...", .flops = 6, .cpu = never_run};
    const trama_op *op = NULL;
    ck_assert(!trama_op_define(&mine, &op));
    trama_program *p = trama_program_create();
    trama_value *x = trama_parameter(p, "x", TRAMA_F64, TRAMA_SHAPE(1000), NULL);
    trama_target *t = trama_target_create(p, "t", trama_apply(op, 1, &x, NULL));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const trama_rehearsal_options o = {.runs = cases[i].runs};
        ck_assert_double_eq_tol(seconds_with(cases[i].lines, t, &o), cases[i].seconds, 1e-8);
    }
    trama_program_destroy(&p);
    trama_op_destroy(&op);
}
END_TEST

/* Each of two ranks sums two terms of 1 MB: it reads its own and that of the other rank, and writes the sum. */
START_TEST(what_another_rank_lends_has_a_rate)
{
    enum { N = 250000 };
    static const char *const lines[] = {"", "op lent memory 500MB/s"};
    trama_program *p = trama_program_create();
    trama_mesh *mesh = trama_mesh_create("2");
    trama_value *x = trama_parameter(p, "x", TRAMA_F32, TRAMA_SHAPE(2, N), NULL);
    trama_shard(x, mesh, "S(0)");
    trama_value *sum = trama_sum_over(trama_neg(x), TRAMA_DIMS(0), false);
    trama_target *t = trama_target_create(p, "t", trama_shard(sum, mesh, "R"));
    double seconds[2];
    for (int i = 0; i < 2; i++) {
        char node[200];
        snprintf(node, sizeof node,
                 "kind n\n ranks 2\n cores 2\n core memory 1GB/s\n core f32 1000Tflop/s\n task 0s\n message 0s\n "
                 "local 1000TB/s 0s\n %s\n nodes 1 n",
                 lines[i]);
        seconds[i] = report_on(t, node, NULL).step_seconds;
    }
    ck_assert_double_eq_tol(seconds[1] - seconds[0], 1e-3, 1e-6); /* 1 MB at half of the rate */
    trama_mesh_destroy(&mesh);
    trama_program_destroy(&p);
}
END_TEST

static void take_attention(void *closure, const trama_rehearsed_step *step)
{
    if (!strncmp(step->name, "attention", 9))
        *(double *)closure += step->flops;
}

/* Queries times keys times the features of both products: 2 flop each, and 5 in the gradient. */
START_TEST(attention_counts_the_features_of_both_products)
{
    enum { BATCH = 3, HEADS = 4, QUERIES = 10, KEYS = 14, D = 6, E = 8 };
    trama_program *p = trama_program_create();
    trama_value *q = trama_parameter(p, "q", TRAMA_F32, TRAMA_SHAPE(BATCH, HEADS, QUERIES, D), NULL);
    trama_value *k = trama_parameter(p, "k", TRAMA_F32, TRAMA_SHAPE(BATCH, HEADS, KEYS, D), NULL);
    trama_value *v = trama_parameter(p, "v", TRAMA_F32, TRAMA_SHAPE(BATCH, HEADS, KEYS, E), NULL);
    trama_value *sum = trama_sum(trama_attention(q, k, v));
    trama_target *forward = trama_target_create(p, "forward", sum);
    trama_target *both = trama_target_create(p, "both", trama_gradient(sum, q), trama_gradient(sum, k));
    const double points = BATCH * HEADS * QUERIES * KEYS * (D + E);
    trama_value *k3 = trama_parameter(p, "k3", TRAMA_F32, TRAMA_SHAPE(HEADS, KEYS, D), NULL);
    trama_value *v3 = trama_parameter(p, "v3", TRAMA_F32, TRAMA_SHAPE(HEADS, KEYS, E), NULL);
    trama_target *shared = trama_target_create(p, "shared", trama_attention(q, k3, v3));
    trama_target *targets[] = {forward, both, shared};
    for (int i = 0; i < 3; i++) {
        double flops = 0;
        const trama_rehearsal_options o = {.size = sizeof o, .step = take_attention, .closure = &flops};
        trama_rehearsal *r = rehearsed(targets[i], "kind n\nnodes 1 n", &o);
        ck_assert_double_eq_tol(flops, (i == 1 ? 2 + 5 : 2) * points, 1e-3 * points);
        trama_rehearsal_destroy(&r);
    }
    trama_program_destroy(&p);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {a_product_takes_the_time_of_its_flops_and_bytes,
                                  rates_are_found_by_the_name_of_the_op,
                                  sums_of_terms_have_the_rates_of_additions,
                                  operands_in_the_cache_come_at_its_rate,
                                  messages_have_times_of_their_own,
                                  each_tile_has_a_last_use,
                                  results_that_others_have_read_take_longer,
                                  ops_of_the_program_share_rates,
                                  what_another_rank_lends_has_a_rate,
                                  attention_counts_the_features_of_both_products};
    return suite_run("step_seconds", NULL, NULL, tests, sizeof tests / sizeof *tests);
}
