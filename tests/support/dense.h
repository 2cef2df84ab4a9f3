/* SPDX-License-Identifier: Apache-2.0 */
/* Whole tensors in one place, as doubles: what everything distributed is compared with. */
#ifndef DENSE_H
#define DENSE_H

#include "program.h"

typedef struct dense {
    trama_shape shape;
    double *at; /* row-major */
} dense;

dense dense_new(trama_shape shape); /* NaN */
dense dense_copy(const dense *d);
void dense_free(dense *d);

/* Seeded, in [low, high]; whole: multiples of 1, so that sums are exact in any order. */
dense dense_random(trama_shape shape, uint64_t seed, double low, double high, bool whole);

/* A state's initial value, or a constant's data. */
dense dense_initial(const trama_value *v);

trama_view dense_view(const dense *d, trama_dtype dtype);

/* The largest |a - b| / max(1, |b|); infinite where shapes, NaNs or infinities differ. */
double dense_difference(const dense *a, const dense *b);

/* A stream of pseudo-random numbers for tests (splitmix64). */
uint64_t random_next(uint64_t *state);
int random_below(uint64_t *state, int n);

#endif
