/* SPDX-License-Identifier: Apache-2.0 */
/* One unit is causal attention of batch 4, 8 heads, 1,024 queries and keys of 64 features in f32, forward or forward
 * and backward. Operands and the gradient of the result lie in memory and stay. Usage: attention forward|train
 * [--length 1024] [--plan summary|steps] */
#include <string.h>

#include "bench.h"
#include "program.h"
#include "trama_attention.h"

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
    static const char *const names[] = {"q", "k", "v", "g"};
    const bool train = argc > 1 && !strcmp(argv[1], "train");
    const trama_shape shape = TRAMA_SHAPE(4, 8, bench_number(argc, argv, "length", 1024), 64);
    trama_program *p = trama_program_create();
    trama_mesh *mesh = trama_mesh_create("1");
    trama_value *in[4], *d[3] = {0};
    if (!train && (argc < 2 || strcmp(argv[1], "forward")))
        bench_fail("usage: attention forward|train");
    for (int i = 0; i < 4; i++) {
        const trama_init init = {-1, 1, (uint64_t)i + 1, 0};
        in[i] = trama_parameter(p, names[i], TRAMA_F32, shape, &init);
    }
    trama_shard(in[0], mesh, "R");
    trama_value *out = trama_attention_causal(in[0], in[1], in[2]);
    trama_value *loss = trama_sum(trama_apply_at(TRAMA_HERE, p, &has_gradient, 2, (trama_value *[]){out, in[3]}, NULL));
    for (int i = 0; i < 3 && train; i++)
        d[i] = trama_gradient(loss, in[i]);
    trama_target *t =
        train ? trama_target_create(p, "train", out, d[0], d[1], d[2]) : trama_target_create(p, "forward", out);
    if (!t)
        bench_fail("%s", trama_program_error(p));
    bench_serve_program(p, t, bench_option(argc, argv, "plan", NULL));
    trama_program_destroy(&p);
    trama_mesh_destroy(&mesh);
    return 0;
}
