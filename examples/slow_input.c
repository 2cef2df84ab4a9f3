/* SPDX-License-Identifier: Apache-2.0 */
/* A program with two faults that its trace shows: the batch is cut 3 to 1 though both processes are alike, and one rank
 * comes late with the input of one step. examples/trama/trace/README.md finds them:
 * examples/run --ranks 2 slow_input --trace TRACE, and then examples/run trama trace TRACE. */
#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "must.h"
#include "run_options.h"

enum { BATCH = 512, IN = 784, HIDDEN = 512, CLASSES = 10, STEPS = 16, LATE_STEP = 9 };

typedef struct network {
    trama_program *program;
    trama_value *x, *y, *loss;
    trama_target *train;
} network;

/* x w + b, w uniform in +-1/sqrt(in). */
static trama_value *layer(network *n, trama_value *x, int i, int64_t in, int64_t out)
{
    static const char *const weights[] = {"w0", "w1", "w2"}, *const biases[] = {"b0", "b1", "b2"};
    const trama_init init = {
        .low = -1 / sqrt((double)in), .high = 1 / sqrt((double)in), .seed = 1, .stream = (uint64_t)i};
    trama_value *w = trama_parameter(n->program, weights[i], TRAMA_F32, TRAMA_SHAPE(in, out), &init);
    return trama_add(trama_matmul(x, w), trama_parameter(n->program, biases[i], TRAMA_F32, TRAMA_SHAPE(out), NULL));
}

static network record(void)
{
    network n = {.program = trama_program_create()};
    trama_mesh *mesh = trama_mesh_create("dp=[3,1]"); /* the first fault: [1,1] would be fair */
    n.x = trama_input(n.program, "x", TRAMA_F32, TRAMA_SHAPE(BATCH, IN));
    n.y = trama_input(n.program, "y", TRAMA_I32, TRAMA_SHAPE(BATCH));
    trama_shard(n.x, mesh, "S(0)");
    trama_value *hidden = trama_relu(layer(&n, n.x, 0, IN, HIDDEN));
    hidden = trama_relu(layer(&n, hidden, 1, HIDDEN, HIDDEN));
    n.loss = trama_cross_entropy(layer(&n, hidden, 2, HIDDEN, CLASSES), n.y);
    trama_optimizer sgd = trama_sgd(0.1);
    n.train = trama_target_create(n.program, "train", trama_minimize(n.loss, &sgd), n.loss);
    trama_mesh_destroy(&mesh);
    return n;
}

/* Images of one bright stripe, whose place is the label. The last rank comes late once: the second fault. */
static void load(int step, bool is_last_rank, float *x, int32_t *y)
{
    if (step == LATE_STEP && is_last_rank)
        nanosleep(&(struct timespec){.tv_nsec = 120000000}, NULL);
    for (int i = 0; i < BATCH; i++) {
        y[i] = (i + step) % CLASSES;
        for (int k = 0; k < IN; k++)
            x[i * IN + k] = k / (IN / CLASSES) == y[i];
    }
}

static void feed(trama_context *context, trama_executable *e, const network *n, int step)
{
    static float x[BATCH * IN];
    int32_t y[BATCH];
    load(step, trama_context_rank(context) == trama_context_ranks(context) - 1, x, y);
    must(trama_feed(e, n->x, x, TRAMA_SHAPE(BATCH, IN)));
    must(trama_feed(e, n->y, y, TRAMA_SHAPE(BATCH)));
}

static void train(trama_context *context, trama_executable *e, const network *n)
{
    float loss = 0;
    for (int step = 0; step < STEPS; step++) {
        feed(context, e, n, step);
        must(trama_run(e, n->train));
    }
    must(trama_read(e, n->loss, &loss, sizeof loss));
    if (trama_context_rank(context) == 0)
        printf("loss %.6f after %d steps\n", loss, STEPS);
}

int main(int argc, char **argv)
{
    plan_form plan = plan_asked_for(argc, argv, "Trains on two processes, with two faults that a trace shows.");
    network n = record();
    trama_context *context = NULL;
    trama_executable *executable = NULL;
    must(trama_start(NULL, &context));
    must(trama_compile(context, n.program, &executable));
    if (plan) {
        feed(context, executable, &n, 0);
        must(plan_print(context, executable, n.train, plan, 1));
    } else {
        train(context, executable, &n);
    }
    trama_executable_destroy(&executable);
    must(trama_stop(&context));
    trama_program_destroy(&n.program);
    return EXIT_SUCCESS;
}
