/* SPDX-License-Identifier: Apache-2.0 */
/* Every op of ops.def as naive loops in double precision, written from the ops' descriptions alone: the tests' own idea
 * of what is right. Elements are found by their global index, so that a box that does not belong to the op's result
 * shows. */
#ifndef REFERENCE_H
#define REFERENCE_H

#include "trama_op.h"

/* Runs one call. All data are doubles whatever the views' dtypes (labels and indices too), two of complex ones, at any
 * strides, counted in elements; casts to
 * integer types still cut. Aborts with a message where an operand does not hold what the result needs. */
void reference_call(const trama_call *call);

/* The same, but false where the boxes do not belong together. */
bool reference_try(const trama_call *call);

/* Philox4x32-10 of Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3" (2011). */
void reference_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t result[4]);

/* Element i of a stream, in [0, 1), as trama_ops.h describes trama_uniform. */
double reference_uniform(uint64_t seed, uint32_t stream, uint32_t step, uint64_t i);

#endif
