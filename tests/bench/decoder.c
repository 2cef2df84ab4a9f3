/* SPDX-License-Identifier: Apache-2.0 */
/* How long one rank takes to plan a step of a decoder of real size, phase by phase; it runs no step. Prints
 *   record gradients complete leaves plan   in seconds,  then  ops steps messages buffer_bytes live_bytes
 * Usage: decoder [--mesh dp=16,pp=8,mp=8] [--rank 511] [--layers 96] [--heads 96] [--hidden 12288] [--seq 2048]
 * [--vocab 50304] */
#include "decoder.h"

#include <stdio.h>

#include "bench.h"
#include "target_plans.h"

/* The plan's buffers on all places of the rank. */
static plan_footprint footprint(const plan *made)
{
    plan_footprint all = {0};
    for (int i = 0; i < made->footprint.n; i++) {
        all.bytes += made->footprint.at[i].bytes;
        all.live += made->footprint.at[i].live;
    }
    return all;
}

int main(int argc, char **argv)
{
    const decoder_sizes sizes = {.layers = bench_number(argc, argv, "layers", 96),
                                 .sequences = 1,
                                 .length = bench_number(argc, argv, "seq", 2048),
                                 .features = bench_number(argc, argv, "hidden", 12288),
                                 .heads = bench_number(argc, argv, "heads", 96),
                                 .words = bench_number(argc, argv, "vocab", 50304)};
    double at[6] = {bench_now()};
    trama_mesh *mesh = trama_mesh_create(bench_option(argc, argv, "mesh", "dp=16,pp=8,mp=8"));
    if (!mesh || decoder_stages(mesh) > DECODER_MOST_STAGES)
        bench_fail("%s", mesh ? "the mesh has too many stages" : trama_error());
    decoder d = decoder_new(mesh, sizes);
    const int rank = bench_number(argc, argv, "rank", 511) % trama_mesh_size(d.mesh);
    at[1] = bench_now();
    decoder_train(&d);
    at[2] = bench_now();
    if (trama_program_status(d.program))
        bench_fail("%s", trama_program_error(d.program));
    target_plans p = target_plans_new(d.program, d.train, machine_uniform(trama_mesh_size(d.mesh), 1), 1);
    bench_try(target_plans_complete(&p), "completion");
    at[3] = bench_now();
    plan *leaves = target_plans_leaves(&p, rank);
    at[4] = bench_now();
    bench_try(target_plans_prepare(&p), "shapes");
    plan *made = target_plans_plan(&p, rank, leaves);
    at[5] = bench_now();
    const plan_totals totals = plan_count(made);
    for (int i = 0; i < 5; i++)
        printf("%.6f ", at[i + 1] - at[i]);
    const plan_footprint buffers = footprint(made);
    printf("%d %d %d %lld %lld\n", d.program->nodes.n, totals.steps, totals.messages, (long long)buffers.bytes,
           (long long)buffers.live);
    plan_destroy(&made);
    plan_destroy(&leaves);
    target_plans_free(&p);
    decoder_free(&d);
    return 0;
}
