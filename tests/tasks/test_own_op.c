/* SPDX-License-Identifier: Apache-2.0 */
/* Ops of one's own in one rank: forward, gradients, fusion, tiles, eager mode, names of tasks, kernels that fail. */
#define _GNU_SOURCE /* RTLD_NEXT */
#include <dlfcn.h>

#include "fence.h"
#include "own_ops.h"
#include <starpu.h>

/* ---- Names of tasks, noted where they are submitted ---- */

static int n_named;
static const char *named;

#undef starpu_task_submit /* where StarPU traces, a macro around the function */
int starpu_task_submit(struct starpu_task *task)
{
    int (*theirs)(struct starpu_task *) = (int (*)(struct starpu_task *))dlsym(RTLD_NEXT, "starpu_task_submit");
    n_named += named && task->name && !strcmp(task->name, named);
    return theirs(task);
}

/* ---- Right results ---- */

START_TEST(own_ops_give_what_plain_loops_give_in_every_layout)
{
    start();
    own_programs(false);
    stop();
}
END_TEST

START_TEST(own_ops_give_what_plain_loops_give_in_the_smallest_tiles)
{
    start_with(&(trama_config){.max_tiles = 3, .workers = 2, .grain_flops = 1, .grain_bytes = 1});
    own_programs(false);
    stop();
    start_with(&(trama_config){.no_fusion = true});
    own_programs(false);
    stop();
}
END_TEST

START_TEST(own_ops_run_at_once_in_eager_mode)
{
    start();
    own_programs(true);
    stop();
}
END_TEST

/* ---- Results of several types ---- */

/* The largest of each row (f64) and where it stands (i32). */
static trama_status top_cpu(const trama_call *call)
{
    const trama_view *x = &call->in[0];
    for (int64_t i = 0; i < x->extent[0]; i++) {
        const double *row = (const double *)x->data + i * x->stride[0];
        int64_t best = 0;
        for (int64_t j = 1; j < x->extent[1]; j++)
            best = row[j * x->stride[1]] > row[best * x->stride[1]] ? j : best;
        ((double *)call->out[0].data)[i * call->out[0].stride[0]] = row[best * x->stride[1]];
        ((int32_t *)call->out[1].data)[i * call->out[1].stride[0]] = (int32_t)best;
    }
    return TRAMA_OK;
}

static trama_status f64_and_i32(const trama_op_use *use, trama_dtype *result)
{
    result[0] = use->dtype[0];
    result[1] = TRAMA_I32;
    return TRAMA_OK;
}

START_TEST(results_of_several_types_are_each_moved_and_read_in_their_own)
{
    static const double data[3][2] = {{1, 5}, {7, -2}, {-4, -3}};
    static const double tops[3] = {5, 7, -3};
    static const int32_t places[3] = {1, 0, 1};
    const trama_op *op = NULL;
    double top[3];
    int32_t place[3];
    start();
    must(trama_op_define(
        &(trama_op_definition){
            .name = "top", .n_in = 1, .n_out = 2, .rule = "b[n]->b,b", .dtype = f64_and_i32, .cpu = top_cpu},
        &op));
    trama_mesh *mesh = trama_mesh_create("dp=2");
    trama_program *p = trama_program_create();
    trama_value *x = trama_constant(p, TRAMA_F64, TRAMA_SHAPE(3, 2), data);
    trama_shard(x, mesh, "S(0)");
    trama_value *first = trama_apply(op, 1, &x, NULL), *second = trama_result(first, 1);
    trama_target *t = trama_target_create(p, "tops", first, second);
    demand(t != NULL, "%s", trama_program_error(p));
    trama_executable *e;
    must(trama_compile(ctx, p, &e));
    must(trama_run(e, t));
    must(trama_read(e, first, top, sizeof top));
    must(trama_read(e, second, place, sizeof place));
    demand(!memcmp(top, tops, sizeof top), "the largest are %g %g %g", top[0], top[1], top[2]);
    demand(!memcmp(place, places, sizeof place), "the places are %d %d %d", place[0], place[1], place[2]);
    must(trama_executable_destroy(&e));
    trama_program_destroy(&p);
    trama_mesh_destroy(&mesh);
    trama_op_destroy(&op);
    stop();
}
END_TEST

/* ---- As built-in ops ---- */

static void gate_of_itself(const trama_op_gradient *g)
{
    trama_value *both[] = {trama_op_result_gradient(g, 0), trama_op_operand(g, 1)};
    trama_op_set_gradient(g, 0, trama_apply_at(g->where, NULL, g->op, 2, both, NULL));
}

static trama_value *chain(trama_value *x, trama_value *w, const trama_op *op, int n)
{
    for (int i = 0; i < n; i++)
        x = op ? trama_apply(op, 2, (trama_value *[]){trama_relu(x), w}, NULL) : trama_mul(trama_relu(x), w);
    return x;
}

static trama_traffic traffic_of(const trama_op *op, int *forward, int *gradient)
{
    trama_traffic traffic = {0};
    trama_mesh *mesh = mesh_of("2");
    trama_program *p = trama_program_create();
    trama_value *x = trama_shard(trama_input(p, "x", TRAMA_F64, TRAMA_SHAPE(64, 32)), mesh, "S(0)");
    trama_value *w = trama_parameter(p, "w", TRAMA_F64, TRAMA_SHAPE(64, 32), &(trama_init){.low = 1, .high = 1});
    trama_value *loss = trama_sum(chain(x, w, op, 3));
    trama_target *t = trama_target_create(p, "t", trama_gradient(loss, x), loss);
    trama_executable *e = compile(p);
    double *zeros = calloc(64 * 32, sizeof *zeros);
    must(trama_feed(e, x, zeros, TRAMA_SHAPE(64, 32)));
    int *const counts[] = {forward, gradient};
    for (int i = 0; i < 2; i++) {
        named = op ? i ? "gate.grad" : "gate" : NULL;
        n_named = 0;
        must(trama_run(e, t));
        *counts[i] = n_named;
    }
    named = NULL;
    must(trama_target_traffic(e, t, &traffic));
    free(zeros);
    must(trama_executable_destroy(&e));
    trama_program_destroy(&p);
    trama_mesh_destroy(&mesh);
    return traffic;
}

START_TEST(an_own_pointwise_op_joins_chains_as_a_built_in_one)
{
    static const int64_t grains[] = {0, 1};
    const trama_op *op = NULL;
    int forward, gradient;
    must(trama_op_define(&(trama_op_definition){.name = "gate",
                                                .n_in = 2,
                                                .n_out = 1,
                                                .rule = "...,...->...",
                                                .partial = "linear,linear",
                                                .cpu = gate_cpu,
                                                .gradient = gate_of_itself,
                                                .flops = 5,
                                                .pointwise = true},
                         &op));
    for (int fused = 0; fused < 2; fused++)
        for (int g = 0; g < 2; g++) {
            start_with(&(trama_config){
                .no_fusion = !fused, .max_tiles = 2, .grain_flops = grains[g], .grain_bytes = grains[g]});
            trama_traffic theirs = traffic_of(NULL, &forward, &gradient), mine = traffic_of(op, &forward, &gradient);
            demand(mine.tasks == theirs.tasks && mine.steps == theirs.steps && mine.messages == theirs.messages,
                   "fused %d: %d tasks, a built-in op has %d", fused, mine.tasks, theirs.tasks);
            demand(forward > 0 && (fused || gradient > 0), /* fused, all is one task */
                   "fused %d: %d tasks are called gate, %d gate.grad", fused, forward, gradient);
            stop();
        }
    trama_op_destroy(&op);
}
END_TEST

/* ---- Kernels that fail ---- */

START_TEST(a_failure_is_logged_once_and_comes_back_from_every_call)
{
    picky f;
    double y[N_PICKY];
    trama_reading *reading = NULL;
    picky_begin(&f, "2", picky_cpu);
    must(picky_run(&f, -1));
    must(trama_read(f.e, f.y, y, sizeof y));
    demand(y[7] == 7 && !f.log.lines, "it fails for nothing");
    must(picky_run(&f, 5));
    expect(trama_wait(f.e), TRAMA_E_KERNEL, f.place, "rank 0: 13 is no number to work with");
    demand(f.log.lines == 1 && f.log.level == TRAMA_LOG_ERROR && strstr(f.log.last, f.place), "%d lines: %s",
           f.log.lines, f.log.last);
    expect(picky_run(&f, -1), TRAMA_E_KERNEL, f.place);
    expect(trama_run(f.e, f.t), TRAMA_E_KERNEL, f.place);
    expect(trama_read(f.e, f.y, y, sizeof y), TRAMA_E_KERNEL, f.place);
    expect(trama_read_start(f.e, f.y, &reading), TRAMA_E_KERNEL, f.place);
    expect(trama_wait(f.e), TRAMA_E_KERNEL, f.place);
    demand(y[7] == 7 && !reading, "an error that gives something");
    demand(f.log.lines == 1, "%d lines are logged", f.log.lines);
    must(trama_executable_destroy(&f.e)); /* it was told */
    picky_end(&f);
}
END_TEST

START_TEST(a_kernel_may_fail_without_a_word_and_destroy_tells_what_nobody_heard)
{
    picky f;
    picky_begin(&f, "2", mute_cpu);
    must(picky_run(&f, 2));
    expect(trama_executable_destroy(&f.e), TRAMA_E_KERNEL, f.place);
    demand(!f.e, "it is not destroyed");
    picky_end(&f);
    picky_begin(&f, "1", mute_cpu);
    must(picky_run(&f, 2));
    expect(trama_read(f.e, f.sum, &(double){0}, sizeof(double)), TRAMA_E_KERNEL, f.place);
    must(trama_executable_destroy(&f.e));
    picky_end(&f);
}
END_TEST

static trama_status silent_cpu(const trama_call *call)
{
    (void)call;
    return TRAMA_E_MEMORY;
}

START_TEST(a_status_without_a_message_is_told_by_its_text)
{
    picky f;
    picky_begin(&f, "1", silent_cpu);
    must(picky_run(&f, -1));
    expect(trama_wait(f.e), TRAMA_E_KERNEL, f.place, trama_status_text(TRAMA_E_MEMORY));
    must(trama_executable_destroy(&f.e));
    picky_end(&f);
}
END_TEST

START_TEST(a_failure_in_eager_mode_ends_the_program)
{
    picky f;
    trama_program *p;
    trama_executable *e;
    double data[] = {1, 13, 2}, got[3];
    picky_begin(&f, "1", picky_cpu);
    must(trama_executable_destroy(&f.e));
    must(trama_eager(ctx, &p, &e));
    trama_value *x = trama_constant(p, TRAMA_F64, TRAMA_SHAPE(3), data), *y = trama_apply(f.op, 1, &x, NULL);
    demand(y != NULL, "%s", trama_program_error(p));
    expect(trama_read(e, y, got, sizeof got), TRAMA_E_KERNEL, "picky", "13 is no number");
    demand(!trama_relu(x) && trama_program_status(p) == TRAMA_E_KERNEL, "a program that goes on");
    must(trama_executable_destroy(&e));
    trama_program_destroy(&p);
    picky_end(&f);
}
END_TEST

TESTS(own_ops_give_what_plain_loops_give_in_every_layout, own_ops_give_what_plain_loops_give_in_the_smallest_tiles,
      own_ops_run_at_once_in_eager_mode, results_of_several_types_are_each_moved_and_read_in_their_own,
      an_own_pointwise_op_joins_chains_as_a_built_in_one, a_failure_is_logged_once_and_comes_back_from_every_call,
      a_kernel_may_fail_without_a_word_and_destroy_tells_what_nobody_heard,
      a_status_without_a_message_is_told_by_its_text, a_failure_in_eager_mode_ends_the_program)
