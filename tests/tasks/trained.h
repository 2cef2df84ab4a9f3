/* SPDX-License-Identifier: Apache-2.0 */
/* A training with everything that lives from step to step, for the tests of checkpoints; each test records a network of
 * its own. */
#ifndef TRAINED_H
#define TRAINED_H

#include "harness.h"

enum { BATCH = 6, IN = 5, HIDDEN = 7, OUT = 3 };

typedef struct training {
    trama_mesh *mesh;
    trama_program *p;
    trama_value *x, *y, *loss;
    trama_target *train;
    trama_executable *e;
} training;

typedef struct kind {
    const char *mesh, *data, *weight; /* the mesh, and layouts on it */
    trama_optimizer (*optimizer)(double lr);
    double momentum;
    int64_t k; /* micro-steps of a cycle; 0: gradients are not accumulated */
    trama_dtype dtype;
} kind;

/* Adds the target that lowers t->loss, and compiles the program. */
static inline void training_compile(training *t, const kind *k)
{
    trama_optimizer optimizer = k->optimizer(0.05);
    optimizer.momentum = k->momentum;
    optimizer.clip_norm = 0.3;
    optimizer.schedule = trama_schedule_cosine(20, 0.1);
    optimizer.loss_scale = (trama_loss_scale){.initial = 1024, .growth = 2, .backoff = 0.5, .interval = 3};
    t->train = trama_target_create(t->p, "train", trama_minimize(t->loss, &optimizer), t->loss);
    if (k->k)
        demand(trama_gradient_merge(t->train, k->k, TRAMA_MERGE_AVG), "%s", trama_program_error(t->p));
    t->e = compile(t->p);
}

static inline void training_free(training *t)
{
    must(trama_executable_destroy(&t->e));
    trama_program_destroy(&t->p);
    trama_mesh_destroy(&t->mesh);
}

/* Batches of two sizes, so that micro-steps have weights. Returns the loss. */
static inline double training_step(const training *t, const kind *k, int step)
{
    int rows = step % 2 ? BATCH : BATCH - 2;
    _Alignas(8) char x[BATCH * IN * 8], y[BATCH * OUT * 8], read[8];
    for (int i = 0; i < rows * IN; i++)
        set_number(x, k->dtype, i, sin(step * 100 + i));
    for (int i = 0; i < rows * OUT; i++)
        set_number(y, k->dtype, i, cos(step * 100 + i));
    must(trama_feed(t->e, t->x, x, TRAMA_SHAPE(rows, IN)));
    must(trama_feed(t->e, t->y, y, TRAMA_SHAPE(rows, OUT)));
    must(trama_run(t->e, t->train));
    must(trama_read(t->e, t->loss, read, trama_dtype_size(k->dtype)));
    return number_at(read, k->dtype, 0);
}

#endif
