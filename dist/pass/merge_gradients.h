/* SPDX-License-Identifier: Apache-2.0 */
/* The gradient merge pass: a target that merges gradients becomes two ordinary ones that share state. */
#ifndef MERGE_GRADIENTS_H
#define MERGE_GRADIENTS_H

#include "program.h"

/* Scalars that a run is fed: whether the buffers keep their content (0 or 1), the weight of the gradients of a
 * micro-step, and the scale of the sum in the end. */
typedef enum { MERGE_KEEP, MERGE_WEIGHT, MERGE_SCALE, MERGE_SCALARS } merge_scalar;

/* The accumulation of a target's gradients. */
typedef struct accumulation {
    trama_target *apply;                /* ends a cycle; NULL: the target does not accumulate */
    trama_value *scalar[MERGE_SCALARS]; /* inputs */
} accumulation;

/* A target that merges becomes a micro-step: forward, backward, and the addition of each gradient to a buffer of the
 * same layout. A second target, `apply`, has its name and the ops that used the gradients: they read the buffers
 * instead, and values of the last micro-step where they need them. Its nodes come behind all others, so ids of nodes
 * change; ids of values and targets do not. Returns a table by target id, which the caller frees; NULL where no target
 * merges. */
accumulation *merge_gradients(trama_program *program);

#endif
