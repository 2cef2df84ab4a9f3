/* SPDX-License-Identifier: Apache-2.0 */
/* A small fit, through Trama in some layout and as plain loops in double precision: what optimizers are tried on.
 * loss = mean((x w + b - y)^2); x [12, 7] and y [12, 5] are inputs. */
#ifndef DESCENT_H
#define DESCENT_H

#include "simulation.h"
#include "trama_optimizer.h"

enum { FIT_ROWS = 12, FIT_IN = 7, FIT_OUT = 5, FIT_PARAMETERS = 2 };

/* mesh NULL: nothing is annotated; b_mesh NULL: b is on the mesh of the others. */
typedef struct fit_layout {
    const char *mesh, *x, *w, *b_mesh, *b;
} fit_layout;
extern const fit_layout fit_layouts[];
extern const int n_fit_layouts;

/* ---- Plain ---- */

/* A parameter, its gradient, and what an optimizer keeps of it. */
typedef struct plain_tensor {
    int n;
    double value[FIT_IN * FIT_OUT], gradient[FIT_IN * FIT_OUT], first[FIT_IN * FIT_OUT], second[FIT_IN * FIT_OUT];
} plain_tensor;

typedef struct plain_fit {
    double x[FIT_ROWS * FIT_IN], y[FIT_ROWS * FIT_OUT];
    plain_tensor parameter[FIT_PARAMETERS]; /* w, b */
    int64_t steps;                          /* taken */
} plain_fit;

plain_fit plain_fit_new(void);            /* numbers that f32 holds exactly */
double plain_fit_gradients(plain_fit *p); /* the loss */

/* Step t, from 1, of a built-in optimizer, as its paper has it. */
void plain_update(const trama_optimizer *o, double lr, int64_t t, plain_tensor *q);

/* A step of all parameters: gradients, clipped, and updates. */
void plain_fit_step(const trama_optimizer *o, double lr, plain_fit *p);

/* Of n parameters together. */
double plain_norm(int n, const plain_tensor *p); /* of all gradients */
void plain_clip(const trama_optimizer *o, int n, plain_tensor *p);

/* GradScaler's rule, as its documentation has it. */
typedef struct plain_scale {
    double scale;
    int64_t good; /* steps in a row that were taken */
} plain_scale;
void plain_scale_step(const trama_loss_scale *o, plain_scale *s, bool finite);

/* ---- Through Trama ---- */

typedef struct fit {
    trama_program *program;
    trama_mesh *mesh, *b_mesh;
    trama_value *x, *y, *parameter[FIT_PARAMETERS], *loss;
} fit;

fit fit_new(const fit_layout *l, trama_dtype dtype);
fit fit_of_rows(const fit_layout *l, trama_dtype dtype, int64_t rows); /* of x and y; TRAMA_ANY: as fed */
void fit_free(fit *f);

/* ---- Simulated ---- */

typedef struct fit_run {
    fit f;
    trama_target *train;
    machine *machine;
    simulation *s;
} fit_run;

/* A fit of f64 with its target, taken over, fed, on ranks of two workers; a program in error ends the test. variant: of
 * machine_vary. */
fit_run fit_run_new(fit f, trama_target *train, const plain_fit *data, int ranks, int variant);
void fit_run_free(fit_run *r);

/* Ends the test where a parameter is not the plain one; name, step: for the message. */
void fit_compare(fit_run *r, const plain_fit *plain, const char *name, int step, double tolerance);

/* The rule that trama_optimizer.h has as its example: momentum of 0.9. */
void heavy_ball(const trama_update *u);

#endif
