/* SPDX-License-Identifier: Apache-2.0 */
/* Programs of any size to plan and to rehearse: a decoder, a perceptron, conjugate gradients, the heat equation. They
 * are recorded and never run here. */
#ifndef EXAMPLES_MODELS_H
#define EXAMPLES_MODELS_H

#include "decoder.h"

enum { MODEL_MOST_LAYERS = 64 };

typedef struct model_sizes {
    decoder_sizes gpt; /* also the layers of the perceptron; sequences: samples of it */
    int n_hidden;      /* sizes of its hidden layers */
    int64_t hidden[MODEL_MOST_LAYERS];
    int64_t n; /* cg: rows of the matrix; heat: points along a side */
} model_sizes;

typedef struct model {
    trama_program *program;
    trama_mesh *mesh;
    trama_value *loss;    /* NULL: nothing is trained */
    trama_target *target; /* of a step */
    const trama_op *op;   /* of its own; NULL */
    decoder decoder;      /* its stages */
} model;

/* Records the forward part of "mlp", "gpt", "cg" or "heat"; takes over the mesh. NULL fields and an error on the
 * program where it cannot. */
enum { MODEL_MLP, MODEL_GPT, MODEL_CG, MODEL_HEAT, N_MODELS };
model model_record(int which, trama_mesh *mesh, const model_sizes *sizes);

/* Adds the gradients and the target of a step. */
void model_train(model *m);
void model_free(model *m);

#endif
