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

/* Of a half, 2^-9 and 2^-12 of it are lost wherever it is stored, a few hundred times on the way of 20 steps. */
static inline void train_halves(void)
{
    static const char *const some[] = {NULL, "dp=2", "mp=2", "dp=2,mp=2"};
    for (int i = 0; i < 4; i++) {
        train_beside_plain(&(training){some[i], TRAMA_BF16, false, 20, 3e-2, 3, small_sizes, {11}});
        train_beside_plain(&(training){some[i], TRAMA_F16, false, 20, 4e-3, 3, small_sizes, {11}});
        train_in(TRAMA_BF16, &(training){some[i], TRAMA_F32, i & 1, 20, 2e-2, 3, small_sizes, {11}});
    }
}

#endif
