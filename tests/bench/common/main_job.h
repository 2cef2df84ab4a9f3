/* SPDX-License-Identifier: Apache-2.0 */
/* The main job as a program: layers 784-...-10 with relu, mean cross entropy and sgd; dp splits the batch, mp hidden
 * layers alternately by column and by row. */
#ifndef MAIN_JOB_H
#define MAIN_JOB_H

#include "trama.h"

enum { MAIN_JOB_MAX_LAYERS = 8, MAIN_JOB_IN = 784, MAIN_JOB_OUT = 10 };

typedef struct main_job {
    trama_program *program;
    trama_mesh *mesh;
    trama_value *x, *y, *loss;                       /* x [any, 784] f32, y [any] i64 */
    trama_value *parameter[2 * MAIN_JOB_MAX_LAYERS]; /* w0, b0, w1, ... */
    trama_target *train;                             /* NULL without a target */
    int n_layers, size[MAIN_JOB_MAX_LAYERS + 1];
} main_job;

/* hidden "512,256". Ends the program on a wrong mesh or hidden. */
main_job main_job_new(const char *mesh, const char *hidden);
main_job main_job_forward(const char *mesh, const char *hidden); /* up to the loss: no target yet */
void main_job_free(main_job *job);

/* n synthetic samples, the same on every rank: images [n, 784] and labels [n], which the caller frees. */
void main_job_samples(int n, float **images, int64_t **labels);

/* 784, the hidden sizes and 10 in size[]; returns the number of layers. */
int main_job_sizes(const char *hidden, int size[MAIN_JOB_MAX_LAYERS + 1]);

#endif
