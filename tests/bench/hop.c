/* SPDX-License-Identifier: Apache-2.0 */
/* One unit is a chain of tiny tasks that alternate between two processes: each scales a vector, which then goes to the
 * other one as a message. The next chain begins when the last one has ended. On two ranks.
 * Usage: hop [--hops 200] [--elements 16] [--plan summary|steps] */
#include "bench.h"

static trama_value *chain(trama_program *program, trama_mesh *const mesh[2], int hops, int elements)
{
    trama_init init = {0, 1, 1, 0};
    trama_value *x = trama_state(program, "x", TRAMA_F32, TRAMA_SHAPE(elements), &init);
    trama_shard(x, mesh[0], "R");
    for (int i = 1; i <= hops; i++)
        x = trama_reshard(trama_scale(x, i % 2 ? 2 : 0.5), mesh[i % 2], "R");
    return x;
}

static void run(void *arg, int n)
{
    for (int i = 0; i < n; i++)
        bench_run_target(arg, 1);
}

int main(int argc, char **argv)
{
    int hops = bench_number(argc, argv, "hops", 200), elements = bench_number(argc, argv, "elements", 16);
    trama_mesh *mesh[2] = {trama_mesh_create("1:0"), trama_mesh_create("1:1")};
    trama_program *program = trama_program_create();
    bench_target t = {.target = trama_target_create(program, "chain", chain(program, mesh, hops, elements))};
    trama_context *context;
    bench_try(trama_start(NULL, &context), "start");
    bench_try(trama_compile(context, program, &t.executable), "compile");
    bench_print_plan(&t, bench_option(argc, argv, "plan", NULL));
    bench_serve(trama_context_rank(context), trama_context_ranks(context), run, &t);
    bench_try(trama_executable_destroy(&t.executable), "destroy");
    bench_try(trama_stop(&context), "stop");
    trama_program_destroy(&program);
    for (int i = 0; i < 2; i++)
        trama_mesh_destroy(&mesh[i]);
    return 0;
}
