/* SPDX-License-Identifier: Apache-2.0 */
/* The main job in small: a multi-layer perceptron with relu and mean cross entropy, data parallel along the mesh axis
 * dp and model parallel along mp, where layers are split alternately by column and by row. */
#ifndef MLP_H
#define MLP_H

#include "simulation.h"
#include "single.h"

enum { MLP_MAX_LAYERS = 24 };

typedef struct mlp {
    trama_program *program;
    trama_mesh *mesh;
    trama_value *x, *y, *loss, *logits;
    trama_value *w[MLP_MAX_LAYERS], *b[MLP_MAX_LAYERS];
    int n_layers;
    trama_target *train;
} mlp;

/* sizes[n_layers + 1]; mesh "1", "dp=2", "mp=3", "dp=2,mp=2", ...; optimizer "sgd" or "adamw". */
mlp mlp_new(const char *mesh, int n_layers, const int *sizes, const char *optimizer);
void mlp_free(mlp *m);

/* A batch of inputs and labels. */
void mlp_batch(const mlp *m, int batch, uint64_t seed, dense *x, dense *y);

/* A network that trains. */
typedef struct mlp_job {
    mlp m;
    machine *machine;
    simulation *s;
} mlp_job;

/* ranks 0: as many as the mesh has processes. k: micro-steps of a cycle; 1: it does not merge. */
mlp_job mlp_job_new(mlp m, int ranks, int k, const plan_options *options);
void mlp_job_step(mlp_job *j, int batch, uint64_t seed);
void mlp_job_free(mlp_job *j);

#endif
