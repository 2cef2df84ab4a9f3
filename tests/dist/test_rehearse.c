/* SPDX-License-Identifier: Apache-2.0 */
/* Rehearsals of programs: their figures against plans, hand calculation and each other. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "mlp.h"
#include "suite.h"
#include "target_plans.h"
#include "trama_array.h"
#include "trama_attention.h"
#include "trama_op_define.h"
#include "trama_ops.h"
#include "trama_optimizer.h"
#include "trama_rehearsal.h"

static const char four_nodes[] = "kind n\n cores 2\n core f32 1Gflop/s\n core memory 1GB/s\n task 2us\n switch s\n"
                                 "nodes 4 n in s 1GB/s 2us\n";
static const int sizes[] = {7, 13, 11, 3};

static trama_cluster *made(const char *source)
{
    trama_cluster *c = NULL;
    ck_assert_msg(!trama_cluster_create(source, &c), "%s", trama_error());
    return c;
}

static trama_rehearsal *rehearsed(const trama_target *t, const char *cluster, const trama_rehearsal_options *o)
{
    trama_cluster *c = made(cluster);
    trama_rehearsal *r = NULL;
    ck_assert_msg(!trama_rehearse(t, c, o, &r), "%s", trama_error());
    trama_cluster_destroy(&c);
    return r;
}

static trama_rehearsal_report report_of(const trama_rehearsal *r)
{
    trama_rehearsal_report f = {.size = sizeof f};
    ck_assert(!trama_rehearsal_read(r, &f));
    return f;
}

static trama_rehearsal_report report_on(const trama_target *t, const char *cluster, const trama_rehearsal_options *o)
{
    trama_rehearsal *r = rehearsed(t, cluster, o);
    const trama_rehearsal_report report = report_of(r);
    trama_rehearsal_destroy(&r);
    return report;
}

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

/* Bytes of the shards with a buffer of their own, and of the scratch memory of two workers. */
static int64_t bytes_of(const plan *p)
{
    int64_t bytes = 0;
    for (int i = 0; i < p->footprint.n; i++)
        bytes += 2 * p->footprint.at[i].scratch;
    for (int i = 0; i < p->shards.n; i++) {
        const plan_shard *s = &p->shards.at[i];
        if (s->within < 0 && s->reuses < 0 && s->source != SHARD_IMPORT && s->source != SHARD_INTERNAL)
            bytes += box_count(&s->box) * (int64_t)trama_dtype_size(s->dtype);
    }
    return bytes;
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
        {"far 1MB 500MB/s", 3, 24e-6},
        {"far 5000B 5GB/s", 3, 24e-6}, /* it is no slower than the op */
        {"task 1us 100ns", 1, 2 * (12e-6 + 1e-6 + 2 * 100e-9)},
        {"cold 0s 6kB 3us", 1, 24e-6}, /* of one run the first */
        {"cold 0s 6kB 3us", 3, 24e-6 + 2 * 3e-6},
        {"cold 0s 72kB 3us", 3, 24e-6 + 2 * 1e-6},
    };
    trama_program *p = trama_program_create();
    trama_value *x = trama_parameter(p, "x", TRAMA_F32, TRAMA_SHAPE(1000), NULL);
    trama_target *t = trama_target_create(p, "t", trama_flip(trama_flip(x, TRAMA_DIMS(0)), TRAMA_DIMS(0)));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char node[200];
        snprintf(node, sizeof node, "kind n\n core memory 1GB/s\n core f32 1000Tflop/s\n task 0s\n %s\n nodes 1 n",
                 cases[i].cache);
        ck_assert_double_eq_tol(report_on(t, node, &(trama_rehearsal_options){.runs = cases[i].runs}).step_seconds,
                                cases[i].seconds, 1e-8);
    }
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

static trama_value *by_rows(trama_program *p, const trama_mesh *mesh, const char *name, int64_t columns)
{
    return trama_shard(trama_parameter(p, name, TRAMA_F64, TRAMA_SHAPE(100, columns), NULL), mesh, "S(0)");
}

/* The product of a run goes before the last two sums of the run before it, on which no message waits. So each run but
 * the last one ends with work of the next. */
START_TEST(a_run_takes_as_long_however_many_there_are)
{
    const char node[] = "kind n\n ranks 2\n cores 2\n core f64 1Gflop/s\n core memory 1GB/s\n task 0s\n submit 0s\n "
                        "message 0s\n local 1TB/s 1ns\n nodes 1 n";
    static const int runs[] = {3, 4, 12};
    trama_program *p = trama_program_create();
    trama_mesh *mesh = trama_mesh_create("2");
    trama_value *x = by_rows(p, mesh, "x", 1), *more = by_rows(p, mesh, "more", 10),
                *less = by_rows(p, mesh, "less", 10);
    trama_value *y = trama_matmul(by_rows(p, mesh, "w", 100), x), *next = trama_mul(y, trama_sum(y));
    trama_target *t = trama_target_create(p, "t", trama_assign(x, next), trama_assign(more, trama_add(more, next)),
                                          trama_assign(less, trama_sub(less, next)));
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        const trama_rehearsal_report f = report_on(t, node, &(trama_rehearsal_options){.runs = runs[i]});
        ck_assert_double_gt(f.work_seconds, 70e-6);
        ck_assert_double_eq_tol(f.step_seconds, f.work_seconds, 1e-8);
    }
    trama_program_destroy(&p);
    trama_mesh_destroy(&mesh);
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
        double seconds;
    } cases[] = {
        {"", 24e-6},
        {"op own f64 100Mflop/s", 60e-6},
        {"op own memory 500MB/s", 48e-6},
        {"op own f64 100Mflop/s\n op mine memory 2GB/s", 12e-6}, /* a line of its name: none of these holds */
    };
    static const trama_op_definition mine = {
        .name = "mine", .n_in = 1, .n_out = 1, .rule = "...->...", .flops = 6, .cpu = never_run};
    const trama_op *op = NULL;
    ck_assert(!trama_op_define(&mine, &op));
    trama_program *p = trama_program_create();
    trama_value *x = trama_parameter(p, "x", TRAMA_F64, TRAMA_SHAPE(1000), NULL);
    trama_target *t = trama_target_create(p, "t", trama_apply(op, 1, &x, NULL));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char node[200];
        snprintf(node, sizeof node, "kind n\n core memory 1GB/s\n core f64 1000Tflop/s\n task 0s\n %s\n nodes 1 n",
                 cases[i].lines);
        ck_assert_double_eq_tol(report_on(t, node, NULL).step_seconds, cases[i].seconds, 1e-8);
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

START_TEST(the_programs_own_work_comes_before_each_run)
{
    trama_program *p = trama_program_create();
    trama_value *x = trama_input(p, "x", TRAMA_F32, TRAMA_SHAPE(1000));
    trama_target *t = trama_target_create(p, "t", trama_flip(x, TRAMA_DIMS(0)));
    static const char node[] =
        "kind n\n core f32 1000Tflop/s\n core memory 1GB/s\n task 0s\n feed 4GB/s\n submit 2us 300ns\n read 5us\n "
        "nodes 1 n";
    const trama_rehearsal_options o = {.size = sizeof o, .runs = 1, .own_seconds = 30e-6, .reads = 2};
    ck_assert_double_eq_tol(report_on(t, node, &o).step_seconds, 30e-6 + 2 * 5e-6 + 1e-6 + 2e-6 + 2 * 3e-7 + 12e-6,
                            1e-8);
    trama_program_destroy(&p);
}
END_TEST

START_TEST(counts_and_memory_are_those_of_the_plans)
{
    mlp m = mlp_new("dp=2,mp=2", 3, sizes, "adamw");
    target_plans plans = target_plans_new(m.program, m.train, machine_uniform(4, 2), 10);
    ck_assert(!target_plans_complete(&plans) && !target_plans_prepare(&plans));
    trama_rehearsal_options o = {.any = 10};
    trama_rehearsal *r = rehearsed(m.train, four_nodes, &o);
    int64_t steps = 0, sends = 0, sent = 0, most = 0;
    for (int rank = 0; rank < 4; rank++) {
        plan *leaves = target_plans_leaves(&plans, rank), *p = target_plans_plan(&plans, rank, leaves);
        const int64_t bytes = bytes_of(leaves) + bytes_of(p);
        ck_assert_int_eq(trama_rehearsal_memory(r, rank), bytes);
        most = max_i64(most, bytes);
        steps += p->steps.n;
        sent += plan_count(p).sent;
        for (int i = 0; i < p->steps.n; i++)
            sends += p->steps.at[i].kind == STEP_SEND;
        plan_destroy(&p);
        plan_destroy(&leaves);
    }
    const trama_rehearsal_report f = report_of(r);
    ck_assert(f.steps == steps && f.messages == sends && f.bytes == sent && f.memory == most);
    ck_assert(f.ranks == 4 && f.runs == 1 && f.idle > 0 && f.idle < 1 && f.hidden >= 0 && f.hidden <= 1);
    trama_rehearsal_destroy(&r);
    target_plans_free(&plans);
    mlp_free(&m);
}
END_TEST

static char *text_of(const trama_target *t, const trama_rehearsal_options *o)
{
    char *words = NULL;
    trama_rehearsal *r = rehearsed(t, four_nodes, o);
    ck_assert(!trama_rehearsal_text(r, &words));
    trama_rehearsal_destroy(&r);
    return words;
}

START_TEST(equal_arguments_give_equal_figures)
{
    mlp m = mlp_new("dp=4", 3, sizes, "sgd");
    const trama_rehearsal_options o = {.size = sizeof o, .runs = 5, .any = 33};
    char *one = text_of(m.train, &o), *other = text_of(m.train, &o);
    ck_assert_str_eq(one, other);
    ck_assert_ptr_nonnull(strstr(one, "4 ranks, 5 runs"));
    trama_text_free(&one);
    trama_text_free(&other);
    mlp_free(&m);
}
END_TEST

typedef struct seen {
    int tasks, messages, planned, phases;
    int64_t bytes;
    double until, busy;
} seen;

static void see(void *closure, const trama_rehearsed *e)
{
    seen *s = closure;
    ck_assert(e->begin <= e->end && e->end >= s->until && e->run >= 0 && e->name);
    s->until = e->end;
    if (e->peer < 0) {
        s->tasks++;
        s->busy += e->end - e->begin;
        ck_assert(e->worker >= 0 && e->worker < 2);
    } else {
        s->messages++;
        s->bytes += e->bytes;
        ck_assert(e->rank != e->peer && e->rank < 4 && e->peer < 4);
    }
}

static void hear(void *closure, trama_rehearsal_phase phase, int n, int ranks)
{
    seen *s = closure;
    s->planned = phase == TRAMA_REHEARSAL_PLAN ? n : s->planned;
    s->phases |= 1 << phase;
    ck_assert_int_eq(ranks, 4);
}

START_TEST(every_task_and_message_is_told_once_a_run)
{
    mlp m = mlp_new("dp=2,mp=2", 3, sizes, "sgd");
    seen s = {0};
    const trama_rehearsal_options o = {.runs = 3, .any = 10, .tell = hear, .event = see, .closure = &s};
    trama_rehearsal *r = rehearsed(m.train, four_nodes, &o);
    const trama_rehearsal_report f = report_of(r);
    ck_assert_int_eq(s.messages, 3 * f.messages);
    ck_assert_int_eq(s.tasks, 3 * (f.steps - 2 * f.messages));
    ck_assert_int_eq(s.bytes, 3 * f.bytes);
    ck_assert(s.planned == 4 && s.phases == 15);
    ck_assert_double_eq_tol(f.seconds, s.until, 1e-12);
    trama_rehearsal_destroy(&r);
    mlp_free(&m);
}
END_TEST

START_TEST(one_rank_can_be_planned_alone)
{
    mlp m = mlp_new("dp=4", 3, sizes, "sgd");
    const trama_rehearsal_options all = {.any = 33}, one = {.any = 33, .plan_only = true, .rank = 2};
    trama_rehearsal *r = rehearsed(m.train, four_nodes, &all), *alone = rehearsed(m.train, four_nodes, &one);
    const trama_rehearsal_report f = report_of(alone);
    ck_assert(f.seconds == 0 && f.runs == 0 && f.steps > 0 && f.steps < report_of(r).steps);
    ck_assert_int_eq(trama_rehearsal_memory(alone, 2), trama_rehearsal_memory(r, 2));
    ck_assert_int_eq(trama_rehearsal_memory(alone, 1), 0);
    trama_rehearsal_destroy(&r);
    trama_rehearsal_destroy(&alone);
    mlp_free(&m);
}
END_TEST

START_TEST(more_work_on_more_ranks_takes_as_long_but_for_messages)
{
    static const int wide[] = {784, 512, 10};
    double alone = 0;
    for (int dp = 1; dp <= 4; dp *= 2) {
        char mesh[16];
        snprintf(mesh, sizeof mesh, "dp=%d", dp);
        mlp m = mlp_new(mesh, 2, wide, "sgd");
        const trama_rehearsal_options o = {.any = 64 * dp};
        trama_rehearsal *r = rehearsed(m.train, four_nodes, &o);
        const trama_rehearsal_report f = report_of(r);
        alone = dp == 1 ? f.seconds : alone;
        /* a rank sends and receives at most all gradients twice, at 1 GB/s; their sums read each term, and their
         * results count twice */
        const double gradients = 4.0 * (784 * 512 + 512 * 10 + 522);
        ck_assert_double_ge(f.seconds, 0.9 * alone);
        ck_assert_double_le(f.seconds, alone + 9 * gradients / 1e9 + 1e-3);
        /* all ranks send as much as they receive, and have tasks of the same time, but for rounding of slices */
        ck_assert_double_eq_tol(f.link_seconds, (double)f.bytes / dp / 1e9, 0.02 * f.link_seconds + 1e-12);
        ck_assert_double_ge(f.seconds, fmax(f.work_seconds, f.link_seconds));
        ck_assert_double_eq_tol(f.work_seconds, (1 - f.idle) * f.seconds, 0.02 * f.work_seconds);
        trama_rehearsal_destroy(&r);
        mlp_free(&m);
    }
}
END_TEST

static void refuses(const trama_target *t, trama_status status, const trama_rehearsal_options *o, const char *says)
{
    trama_cluster *c = made(four_nodes);
    trama_rehearsal *r = NULL;
    ck_assert_int_eq(trama_rehearse(t, c, o, &r), status);
    ck_assert_ptr_null(r);
    ck_assert_msg(strstr(trama_error(), says) != NULL, "'%s' lacks '%s'", trama_error(), says);
    trama_cluster_destroy(&c);
}

START_TEST(wrong_requests_are_refused)
{
    mlp m = mlp_new("dp=2", 3, sizes, "sgd");
    refuses(m.train, TRAMA_E_ARGUMENT, &(trama_rehearsal_options){.runs = -1}, "options.runs is -1");
    refuses(m.train, TRAMA_E_ARGUMENT, &(trama_rehearsal_options){.max_in_flight = 65}, "it may be 0 to 64");
    refuses(m.train, TRAMA_E_ARGUMENT, &(trama_rehearsal_options){.ranks = 5}, "the machine has 4 ranks");
    refuses(m.train, TRAMA_E_ARGUMENT, &(trama_rehearsal_options){.plan_only = true, .rank = 2}, "2 ranks take part");
    refuses(m.train, TRAMA_E_ARGUMENT, &(trama_rehearsal_options){.size = 3}, "size");
    const trama_rehearsal_options before = {.size = sizeof before, .own_seconds = -1};
    refuses(m.train, TRAMA_E_ARGUMENT, &before, "options.own_seconds is -1");
    const trama_rehearsal_options unknown = {.size = sizeof unknown, .own_seconds = NAN};
    refuses(m.train, TRAMA_E_ARGUMENT, &unknown, "options.own_seconds is");
    trama_gradient_merge(m.train, 2, TRAMA_MERGE_AVG);
    refuses(m.train, TRAMA_E_UNSUPPORTED, NULL, "without trama_gradient_merge");
    trama_matmul(m.x, m.y);
    refuses(m.train, trama_program_status(m.program), NULL, trama_program_error(m.program));
    mlp_free(&m);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {a_product_takes_the_time_of_its_flops_and_bytes,
                                  rates_are_found_by_the_name_of_the_op,
                                  sums_of_terms_have_the_rates_of_additions,
                                  operands_in_the_cache_come_at_its_rate,
                                  each_tile_has_a_last_use,
                                  a_run_takes_as_long_however_many_there_are,
                                  ops_of_the_program_share_rates,
                                  what_another_rank_lends_has_a_rate,
                                  attention_counts_the_features_of_both_products,
                                  the_programs_own_work_comes_before_each_run,
                                  counts_and_memory_are_those_of_the_plans,
                                  equal_arguments_give_equal_figures,
                                  every_task_and_message_is_told_once_a_run,
                                  one_rank_can_be_planned_alone,
                                  more_work_on_more_ranks_takes_as_long_but_for_messages,
                                  wrong_requests_are_refused};
    return suite_run("rehearse", NULL, NULL, tests, sizeof tests / sizeof *tests);
}
