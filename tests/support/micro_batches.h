/* SPDX-License-Identifier: Apache-2.0 */
/* A program of independent micro-batches x_i [batch, width], each through the same blocks: a matrix split by columns
 * over the mesh axis mp, relu, a matrix split by rows, after which the terms of all processes are summed on each. */
#ifndef MICRO_BATCHES_H
#define MICRO_BATCHES_H

#include "trama.h"

enum { MOST_MICRO_BATCHES = 16 };

typedef struct micro_batches {
    int n, blocks, batch, width; /* n <= MOST_MICRO_BATCHES */
    trama_program *program;
    trama_mesh *mesh;
    trama_target *forward; /* the last block's result of each micro-batch; it needs no feed */
} micro_batches;

/* The sizes are given; mesh "mp=2". program stays NULL where the mesh is no good; else its status says whether all is
 * well. */
void micro_batches_make(micro_batches *m, const char *mesh);
void micro_batches_free(micro_batches *m);

#endif
