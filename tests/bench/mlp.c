/* SPDX-License-Identifier: Apache-2.0 */
/* One unit is a training step of equally wide layers: products, biases, relu between them, mean cross entropy over as
 * many classes, gradients, sgd. Samples and labels are fed once.
 * Usage: mlp [--width 4096] [--layers 4] [--batch 4096] [--dtype f32] [--plan summary|steps] */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench.h"

enum { MOST_LAYERS = 64 };

typedef struct network {
    trama_program *program;
    trama_value *labels; /* [batch] */
    trama_target *step;
} network;

static trama_value *layer(trama_program *program, int i, trama_dtype dtype, int width, trama_value *h)
{
    double bound = 1 / sqrt(width);
    char weight[16], bias[16];
    snprintf(weight, sizeof weight, "w%d", i);
    snprintf(bias, sizeof bias, "b%d", i);
    trama_init init = {-bound, bound, 1, (uint64_t)i + 1};
    trama_value *w = trama_parameter(program, weight, dtype, TRAMA_SHAPE(width, width), &init);
    trama_value *b = trama_parameter(program, bias, dtype, TRAMA_SHAPE(width), NULL);
    return trama_add(trama_matmul(h, w), b);
}

static network network_of(trama_dtype dtype, int width, int layers, int batch)
{
    network n = {.program = trama_program_create()};
    trama_value *h = trama_state(n.program, "x", dtype, TRAMA_SHAPE(batch, width), &(trama_init){-1, 1, 1, 0});
    n.labels = trama_input(n.program, "labels", TRAMA_I64, TRAMA_SHAPE(batch));
    for (int i = 0; i < layers; i++)
        h = layer(n.program, i, dtype, width, i ? trama_relu(h) : h);
    trama_value *loss = trama_cross_entropy(h, n.labels);
    trama_optimizer sgd = trama_sgd(0.01);
    n.step = trama_target_create(n.program, "step", trama_minimize(loss, &sgd), loss);
    if (trama_program_status(n.program))
        bench_fail("%s", trama_program_error(n.program));
    return n;
}

static void feed_labels(trama_executable *executable, const network *n, int width, int batch)
{
    int64_t *labels = malloc((size_t)batch * sizeof *labels);
    for (int i = 0; i < batch; i++)
        labels[i] = (int64_t)i * 7 % width;
    bench_try(trama_feed(executable, n->labels, labels, TRAMA_SHAPE(batch)), "feed");
    free(labels);
}

int main(int argc, char **argv)
{
    int width = bench_number(argc, argv, "width", 4096), layers = bench_number(argc, argv, "layers", 4);
    int batch = bench_number(argc, argv, "batch", 4096);
    if (layers > MOST_LAYERS)
        bench_fail("--layers takes at most %d", MOST_LAYERS);
    network n = network_of(bench_dtype(argc, argv), width, layers, batch);
    bench_target t = {.target = n.step};
    trama_context *context;
    bench_try(trama_start(NULL, &context), "start");
    bench_try(trama_compile(context, n.program, &t.executable), "compile");
    feed_labels(t.executable, &n, width, batch);
    bench_print_plan(&t, bench_option(argc, argv, "plan", NULL));
    bench_serve(trama_context_rank(context), trama_context_ranks(context), bench_run_target, &t);
    bench_try(trama_executable_destroy(&t.executable), "destroy");
    bench_try(trama_stop(&context), "stop");
    trama_program_destroy(&n.program);
    return 0;
}
