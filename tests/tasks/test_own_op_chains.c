/* SPDX-License-Identifier: Apache-2.0 */
/* A pointwise op of one's own in the chains of built-in ones, by the names of tasks as they are submitted. */
#define _GNU_SOURCE /* RTLD_NEXT */
#include <dlfcn.h>

#include "fence.h"
#include "harness.h"
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

TESTS(an_own_pointwise_op_joins_chains_as_a_built_in_one)
