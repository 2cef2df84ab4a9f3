/* SPDX-License-Identifier: Apache-2.0 */
/* One unit is one product C = A B of matrices [n, n] through Trama. On a mesh A, B and C are split in both dims,
 * with 1/p on each of p processes, before and after; messages between ranks move inside the unit.
 * Usage: matmul [--n 4096] [--dtype f32] [--mesh r=2,c=2] [--plan summary|steps] */
#include "bench.h"

static trama_value *matrix(trama_program *program, const char *name, trama_dtype dtype, int n, uint64_t stream)
{
    trama_init init = {-1, 1, 1, stream};
    return trama_state(program, name, dtype, TRAMA_SHAPE(n, n), &init);
}

static trama_program *product_program(trama_dtype dtype, int n, const trama_mesh *mesh, trama_target **target)
{
    trama_program *program = trama_program_create();
    trama_value *a = matrix(program, "A", dtype, n, 0), *b = matrix(program, "B", dtype, n, 1);
    trama_value *c = trama_matmul(a, b);
    trama_value *all[] = {a, b, c};
    for (int i = 0; i < 3; i++)
        trama_shard(all[i], mesh, trama_mesh_ndim(mesh) == 2 ? "S(0),S(1)" : "R");
    *target = trama_target_create(program, "product", c);
    return program;
}

int main(int argc, char **argv)
{
    trama_mesh *mesh = trama_mesh_create(bench_option(argc, argv, "mesh", "1"));
    trama_target *target;
    if (!mesh)
        bench_fail("%s", trama_error());
    trama_program *program =
        product_program(bench_dtype(argc, argv), bench_number(argc, argv, "n", 4096), mesh, &target);
    bench_serve_program(program, target, bench_option(argc, argv, "plan", NULL));
    trama_program_destroy(&program);
    trama_mesh_destroy(&mesh);
    return 0;
}
