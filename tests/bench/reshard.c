/* SPDX-License-Identifier: Apache-2.0 */
/* One unit is one change of layout of an f32 matrix [n, n], which lies split by rows or `--from`, on a mesh of all
 * ranks. Usage: reshard [--n 8192] [--from S(0)] [--to S(1)] [--mesh 2] [--plan summary|steps] */
#include "bench.h"

int main(int argc, char **argv)
{
    trama_mesh *mesh = trama_mesh_create(bench_option(argc, argv, "mesh", "2"));
    int n = bench_number(argc, argv, "n", 8192);
    if (!mesh)
        bench_fail("%s", trama_error());
    trama_program *program = trama_program_create();
    trama_init init = {-1, 1, 1, 0};
    trama_value *x = trama_state(program, "x", TRAMA_F32, TRAMA_SHAPE(n, n), &init);
    trama_shard(x, mesh, bench_option(argc, argv, "from", "S(0)"));
    trama_value *y = trama_reshard(x, mesh, bench_option(argc, argv, "to", "S(1)"));
    bench_serve_program(program, trama_target_create(program, "change", y), bench_option(argc, argv, "plan", NULL));
    trama_program_destroy(&program);
    trama_mesh_destroy(&mesh);
    return 0;
}
