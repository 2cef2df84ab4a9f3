/* SPDX-License-Identifier: Apache-2.0 */
/* Rehearsals of programs: their figures against plans, hand calculation and each other. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "mlp.h"
#include "rehearsed.h"
#include "target_plans.h"
#include "trama_array.h"
#include "trama_ops.h"
#include "trama_optimizer.h"
#include "trama_rehearsal.h"

static const char four_nodes[] = "kind n\n cores 2\n core f32 1Gflop/s\n core memory 1GB/s\n task 2us\n switch s\n"
                                 "nodes 4 n in s 1GB/s 2us\n";
static const int sizes[] = {7, 13, 11, 3};

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

START_TEST(the_programs_own_work_comes_before_each_run)
{
    trama_program *p = trama_program_create();
    trama_value *x = trama_input(p, "x", TRAMA_F32, TRAMA_SHAPE(1000));
    trama_target *t = trama_target_create(p, "t", trama_flip(x, TRAMA_DIMS(0)));
    static const char node[] =
        "kind n\n core f32 1000Tflop/s\n core memory 1GB/s\n task 0s\n feed 4GB/s\n submit 2us 300ns 7us\n read 5us\n "
        "nodes 1 n";
    const trama_rehearsal_options o = {.size = sizeof o, .runs = 1, .own_seconds = 30e-6, .reads = 2};
    ck_assert_double_eq_tol(report_on(t, node, &o).step_seconds,
                            30e-6 + 7e-6 + 2 * 5e-6 + 1e-6 + 2e-6 + 2 * 3e-7 + 12e-6, 1e-8);
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
    const TTest *const tests[] = {a_run_takes_as_long_however_many_there_are,
                                  the_programs_own_work_comes_before_each_run,
                                  counts_and_memory_are_those_of_the_plans,
                                  equal_arguments_give_equal_figures,
                                  every_task_and_message_is_told_once_a_run,
                                  one_rank_can_be_planned_alone,
                                  more_work_on_more_ranks_takes_as_long_but_for_messages,
                                  wrong_requests_are_refused};
    return suite_run("rehearse", NULL, NULL, tests, sizeof tests / sizeof *tests);
}
