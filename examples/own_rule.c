/* SPDX-License-Identifier: Apache-2.0 */
/* An update rule of one's own: AdaGrad (Duchi, Hazan, Singer 2011), written as ops. A line is fitted to 64 points,
 * split over two processes; an update takes its gradient from two micro-steps of 32 points. examples/run own_rule, or
 * examples/run --ranks 2 own_rule; with --plan, it prints the messages of a step. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "run_options.h"
#include "trama.h"

enum { POINTS = 64, MICRO_STEPS = 2, UPDATES = 40 };

/* s += g g; w -= lr g / max(sqrt(s), 1e-10). s has the layout of w; schedules, clipping, loss scaling and gradient
 * merge work as they do with the rules that are there. */
static void adagrad(const trama_update *u)
{
    trama_value *s = trama_update_slot(u, "s"), *g = trama_update_gradient(u);
    trama_value *next = trama_add(s, trama_square(g)), *root = trama_clamp(trama_sqrt(next), 1e-10, INFINITY);
    trama_value *step = trama_mul(trama_update_lr(u), trama_div(g, root));
    trama_update_set(u, s, next);
    trama_update_set(u, u->parameter, trama_sub(u->parameter, step));
}

typedef struct fit {
    trama_program *program;
    trama_value *x, *y, *slope, *loss;
    trama_target *train;
} fit;

static fit record(const trama_mesh *mesh)
{
    fit f = {.program = trama_program_create()};
    f.x = trama_input(f.program, "x", TRAMA_F64, TRAMA_SHAPE(TRAMA_ANY, 1));
    f.y = trama_input(f.program, "y", TRAMA_F64, TRAMA_SHAPE(TRAMA_ANY, 1));
    f.slope = trama_parameter(f.program, "slope", TRAMA_F64, TRAMA_SHAPE(1, 1), NULL);
    trama_value *offset = trama_parameter(f.program, "offset", TRAMA_F64, TRAMA_SHAPE(1), NULL);
    trama_shard(f.x, mesh, "S(0)");
    trama_value *line = trama_add(trama_matmul(f.x, f.slope), offset);
    f.loss = trama_mean(trama_square(trama_sub(line, f.y)));
    trama_optimizer mine = trama_optimizer_define("adagrad", 1, adagrad);
    f.train = trama_target_create(f.program, "train", trama_minimize(f.loss, &mine), f.loss);
    trama_gradient_merge(f.train, MICRO_STEPS, TRAMA_MERGE_AVG);
    return f;
}

static trama_status feed_part(trama_executable *e, const fit *f, int part)
{
    enum { N = POINTS / MICRO_STEPS };
    double x[N], y[N];
    for (int i = 0; i < N; i++) {
        x[i] = (double)(part * N + i) / POINTS;
        y[i] = 3 * x[i] - 1;
    }
    trama_status status = trama_feed(e, f->x, x, TRAMA_SHAPE(N, 1));
    return status ? status : trama_feed(e, f->y, y, TRAMA_SHAPE(N, 1));
}

static trama_status train(trama_executable *e, const fit *f)
{
    trama_status status = TRAMA_OK;
    for (int i = 0; i < UPDATES * MICRO_STEPS && !status; i++) {
        status = feed_part(e, f, i % MICRO_STEPS);
        if (!status)
            status = trama_run(e, f->train);
    }
    return status;
}

int main(int argc, char **argv)
{
    plan_form plan = plan_asked_for(argc, argv, "Fits a line by an update rule of its own.");
    trama_mesh *mesh = trama_mesh_create("dp=2");
    fit f = record(mesh);
    trama_context *context = NULL;
    trama_executable *executable = NULL;
    double slope = 0, loss = 0;
    if (trama_start(NULL, &context) || trama_compile(context, f.program, &executable) || feed_part(executable, &f, 0) ||
        (plan ? plan_print(context, executable, f.train, plan, 1)
              : train(executable, &f) || trama_read(executable, f.slope, &slope, sizeof slope) ||
                    trama_read(executable, f.loss, &loss, sizeof loss))) {
        fprintf(stderr, "own_rule: %s\n", trama_error());
        return EXIT_FAILURE;
    }
    if (!plan && trama_context_rank(context) == 0)
        printf("after %d updates the slope is %.12f, the last loss %.12f\n", UPDATES, slope, loss);
    trama_executable_destroy(&executable);
    trama_stop(&context);
    trama_program_destroy(&f.program);
    trama_mesh_destroy(&mesh);
    return EXIT_SUCCESS;
}
