/* SPDX-License-Identifier: Apache-2.0 */
/* One unit is one change of layout of an f32 matrix [n, n], which is split by rows, on a mesh of all ranks.
 * Usage: reshard [--n 8192] [--to S(1)] [--mesh 2] [--plan summary|steps] */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

typedef struct change {
    trama_executable *executable;
    trama_target *target;
} change;

static void run(void *arg, int n)
{
    const change *c = arg;
    for (int i = 0; i < n; i++)
        bench_try(trama_run(c->executable, c->target), "run");
    bench_try(trama_wait(c->executable), "wait");
}

int main(int argc, char **argv)
{
    trama_mesh *mesh = trama_mesh_parse(bench_option(argc, argv, "mesh", "2"));
    int n = bench_number(argc, argv, "n", 8192);
    const char *plan = bench_option(argc, argv, "plan", NULL);
    trama_context *context;
    change c;
    char *text;
    if (!mesh)
        bench_fail("%s", trama_error());
    trama_program *program = trama_program_new();
    trama_init init = {-1, 1, 1, 0};
    trama_value *x = trama_state(program, "x", TRAMA_F32, TRAMA_SHAPE(n, n), &init);
    trama_shard(x, mesh, "S(0)");
    c.target = trama_target_new(program, "change", trama_reshard(x, mesh, bench_option(argc, argv, "to", "S(1)")));
    bench_try(trama_start(NULL, &context), "start");
    bench_try(trama_compile(context, program, &c.executable), "compile");
    if (plan) {
        bench_try(trama_plan_text(c.executable, c.target, !strcmp(plan, "steps"), &text), "plan");
        fputs(text, stderr);
        free(text);
    }
    bench_serve(trama_context_rank(context), trama_context_ranks(context), run, &c);
    bench_try(trama_executable_destroy(&c.executable), "destroy");
    bench_try(trama_stop(&context), "stop");
    trama_program_destroy(&program);
    trama_mesh_destroy(&mesh);
    return 0;
}
