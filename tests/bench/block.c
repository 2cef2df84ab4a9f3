/* SPDX-License-Identifier: Apache-2.0 */
/* One unit is a transformer block (support/transformer_block.h) of 1,024 features, 16 heads and 4,096 hidden features
 * in f32, forward and backward, for 8 sequences of 256. Its input and the gradient of its result lie in memory and
 * stay; the gradients of the input and of all parameters are results. With --mesh mp=N the two input weights are split
 * by columns, and with --rows split the rows of its input, too (sequence parallelism).
 * Usage: block [--mesh 1] [--rows whole|split] [--plan summary|steps] */
#include <string.h>

#include "bench.h"
#include "program.h"
#include "transformer_block.h"

/* An op whose gradient is its second operand itself; never computed, since nothing but the gradient is wanted. */
static void second_operand(const trama_node *node, trama_value *const *d_out, trama_value **d_in)
{
    (void)d_out;
    d_in[0] = node->in[1];
}

static const trama_op has_gradient = {
    .name = "has_gradient", .n_in = 2, .n_out = 1, .rule = "...,...->...", .gradient = second_operand};

int main(int argc, char **argv)
{
    const transformer_sizes sizes = {.batch = 8, .length = 256, .features = 1024, .heads = 16, .hidden = 4096};
    const trama_init init = {-1, 1, 1, 100}, other = {-1, 1, 1, 101};
    const trama_shape shape = TRAMA_SHAPE(sizes.batch * sizes.length, sizes.features);
    trama_program *p = trama_program_create();
    trama_mesh *mesh = trama_mesh_create(bench_option(argc, argv, "mesh", "1"));
    trama_value *x = trama_parameter(p, "x", TRAMA_F32, shape, &init);
    trama_value *g = trama_parameter(p, "g", TRAMA_F32, shape, &other), *results[2 + BLOCK_PARAMETERS];
    if (!mesh)
        bench_fail("%s", trama_error());
    transformer_block b = transformer_block_new(p, x, "block", sizes);
    const bool split = trama_mesh_size(mesh) > 1;
    const char *rows = bench_option(argc, argv, "rows", "whole");
    if (strcmp(rows, "whole") && strcmp(rows, "split"))
        bench_fail("--rows '%s': takes whole or split", rows);
    if (split && !strcmp(rows, "split"))
        trama_shard(x, mesh, "S(0)");
    trama_shard(b.parameter[BLOCK_QKV], mesh, split ? "S(1)" : "R");
    trama_shard(b.parameter[BLOCK_UP], mesh, split ? "S(1)" : "R");
    trama_value *loss = trama_sum(trama_apply_at(TRAMA_HERE, p, &has_gradient, 2, (trama_value *[]){b.out, g}, NULL));
    results[0] = b.out;
    results[1] = trama_gradient(loss, x);
    for (int i = 0; i < BLOCK_PARAMETERS; i++)
        results[2 + i] = trama_gradient(loss, b.parameter[i]);
    trama_target *t = trama_target_at(TRAMA_HERE, p, "step", 2 + BLOCK_PARAMETERS, results);
    if (!t)
        bench_fail("%s", trama_program_error(p));
    bench_serve_program(p, t, bench_option(argc, argv, "plan", NULL));
    trama_program_destroy(&p);
    trama_mesh_destroy(&mesh);
    return 0;
}
