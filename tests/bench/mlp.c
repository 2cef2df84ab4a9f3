/* SPDX-License-Identifier: Apache-2.0 */
/* One unit is a training step of layers: products, biases, relu between them, mean cross entropy over the last one's
 * width, gradients, sgd. Samples and labels are fed once.
 * Usage: mlp [--sizes 4096,4096,4096,4096,4096] [--batch 4096] [--dtype f32] [--plan summary|steps]
 *   --sizes  the width of the samples, then of each layer */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench.h"

enum { MOST_LAYERS = 64 };

typedef struct sizes {
    int layers, width[MOST_LAYERS + 1];
} sizes;

typedef struct network {
    trama_program *program;
    trama_value *labels; /* [batch] */
    trama_target *step;
} network;

static sizes sizes_of(const char *list)
{
    sizes s = {.layers = -1};
    char *end;
    for (const char *at = list;; at = end + 1) {
        const long width = strtol(at, &end, 10);
        if (end == at || width < 1 || width > 1 << 24 || (*end && *end != ',') || s.layers == MOST_LAYERS)
            bench_fail("--sizes takes two to %d widths: 784,512,10", MOST_LAYERS + 1);
        s.width[++s.layers] = (int)width;
        if (!*end)
            break;
    }
    if (s.layers < 1)
        bench_fail("--sizes takes at least two widths: 784,10");
    return s;
}

static trama_value *layer(trama_program *program, int i, trama_dtype dtype, const int *width, trama_value *h)
{
    double bound = 1 / sqrt(width[i]);
    char weight[16], bias[16];
    snprintf(weight, sizeof weight, "w%d", i);
    snprintf(bias, sizeof bias, "b%d", i);
    trama_init init = {-bound, bound, 1, (uint64_t)i + 1};
    trama_value *w = trama_parameter(program, weight, dtype, TRAMA_SHAPE(width[i], width[i + 1]), &init);
    trama_value *b = trama_parameter(program, bias, dtype, TRAMA_SHAPE(width[i + 1]), NULL);
    return trama_add(trama_matmul(h, w), b);
}

static network network_of(trama_dtype dtype, const sizes *s, int batch)
{
    network n = {.program = trama_program_create()};
    trama_value *h = trama_state(n.program, "x", dtype, TRAMA_SHAPE(batch, s->width[0]), &(trama_init){-1, 1, 1, 0});
    n.labels = trama_input(n.program, "labels", TRAMA_I64, TRAMA_SHAPE(batch));
    for (int i = 0; i < s->layers; i++)
        h = layer(n.program, i, dtype, s->width, i ? trama_relu(h) : h);
    trama_value *loss = trama_cross_entropy(h, n.labels);
    trama_optimizer sgd = trama_sgd(0.01);
    n.step = trama_target_create(n.program, "step", trama_minimize(loss, &sgd), loss);
    if (trama_program_status(n.program))
        bench_fail("%s", trama_program_error(n.program));
    return n;
}

static void feed_labels(trama_executable *executable, const network *n, int classes, int batch)
{
    int64_t *labels = malloc((size_t)batch * sizeof *labels);
    for (int i = 0; i < batch; i++)
        labels[i] = (int64_t)i * 7 % classes;
    bench_try(trama_feed(executable, n->labels, labels, TRAMA_SHAPE(batch)), "feed");
    free(labels);
}

int main(int argc, char **argv)
{
    const sizes s = sizes_of(bench_option(argc, argv, "sizes", "4096,4096,4096,4096,4096"));
    int batch = bench_number(argc, argv, "batch", 4096);
    network n = network_of(bench_dtype(argc, argv), &s, batch);
    bench_target t = {.target = n.step};
    trama_context *context;
    bench_try(trama_start(NULL, &context), "start");
    bench_try(trama_compile(context, n.program, &t.executable), "compile");
    feed_labels(t.executable, &n, s.width[s.layers], batch);
    bench_print_plan(&t, bench_option(argc, argv, "plan", NULL));
    bench_serve(trama_context_rank(context), trama_context_ranks(context), bench_run_target, &t);
    bench_try(trama_executable_destroy(&t.executable), "destroy");
    bench_try(trama_stop(&context), "stop");
    trama_program_destroy(&n.program);
    return 0;
}
