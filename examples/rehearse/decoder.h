/* SPDX-License-Identifier: Apache-2.0 */
/* A decoder of real size as a program: an embedding, transformer blocks, a norm, the product with the classes, mean
 * cross entropy and adamw. dp splits the batch and mp the input weights of each block by columns; along pp lie stages,
 * each with its share of the blocks on a mesh of its own. */
#ifndef DECODER_H
#define DECODER_H

#include "transformer_block.h"

enum { DECODER_MOST_STAGES = 64 };

typedef struct decoder_sizes {
    int layers, sequences; /* sequences: for each process along dp */
    int64_t length, features, heads, words;
} decoder_sizes;

typedef struct decoder {
    trama_program *program;
    trama_mesh *mesh, *stage[DECODER_MOST_STAGES];
    int n_stages;
    trama_value *loss;
    trama_target *train; /* NULL before decoder_train */
} decoder;

/* Stages along the axis pp of the mesh; a decoder has at most DECODER_MOST_STAGES. */
int decoder_stages(const trama_mesh *mesh);

/* Up to the loss; takes over the mesh. Errors stay on the program. */
decoder decoder_new(trama_mesh *mesh, decoder_sizes sizes);
void decoder_train(decoder *d); /* the gradients, the updates and the target of a step */
void decoder_free(decoder *d);

#endif
