/* SPDX-License-Identifier: Apache-2.0 */
/* The meshes on which training is compared with the plain loops, in one rank and over several. */
#ifndef TRAINING_H
#define TRAINING_H

#include "network.h"

static const char *const meshes[] = {NULL, "1", "dp=2", "mp=2", "dp=2,mp=2", "dp=3", "mp=3", "mp=2,dp=3", "dp=[3,1]"};
enum { N_MESHES = sizeof meshes / sizeof *meshes };

static inline void train_on_all(trama_dtype dtype, bool adamw, int steps, double tolerance)
{
    for (int i = 0; i < N_MESHES; i++)
        train_beside_plain(&(training){meshes[i], dtype, adamw, steps, tolerance, 3, small_sizes, {11}});
}

#endif
