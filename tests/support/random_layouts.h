/* SPDX-License-Identifier: Apache-2.0 */
/* Meshes, layouts and tensors by chance, through the public functions; `chance` is the state of the generator, so that
 * ranks with the same state have the same. */
#ifndef RANDOM_LAYOUTS_H
#define RANDOM_LAYOUTS_H

#include "trama.h"

enum { MOST_PROCESSES = 64 };

/* From 0 to n - 1. */
int chance_below(uint64_t *chance, int n);

/* Up to `most` processes out of `pool`, in any order, some axes with weights. */
trama_mesh *random_mesh(uint64_t *chance, int most, int pool);

/* Splits nested in any order, terms where they are asked for, sometimes a mask; its text goes to `out` [200]. */
void random_layout(uint64_t *chance, const trama_mesh *mesh, int ndim, bool with_partials, char *out, trama_layout *l);

/* Up to 3 dims of 0 to 11 elements; large: about 70,000 elements. */
trama_shape random_shape(uint64_t *chance, bool large);

/* n integers from -100 to 100, for the caller to free. */
double *random_numbers(uint64_t *chance, int64_t n);

#endif
