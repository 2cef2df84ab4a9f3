/* SPDX-License-Identifier: Apache-2.0 */
/* The gradient merge pass: a target that merges gradients becomes two ordinary ones that share state. */
#ifndef MERGE_GRADIENTS_H
#define MERGE_GRADIENTS_H

#include "program.h"

/* What a cycle is told: whether the buffers keep what they have, the weight of what a micro-step adds, and what the sum
 * is multiplied by in the end. */
typedef enum { MERGE_KEEP, MERGE_WEIGHT, MERGE_SCALE, MERGE_SCALARS } merge_scalar;

/* How a target accumulates gradients. */
typedef struct accumulation {
    trama_target *apply;                /* ends a cycle; NULL: the target does not accumulate */
    trama_value *scalar[MERGE_SCALARS]; /* inputs */
} accumulation;

/* A target that merges becomes a micro-step: forward, backward, and the addition of each gradient to a buffer, which
 * lies like it. Another target, `apply`, has its name and what was made of the gradients: it reads the buffers instead,
 * and values of the last micro-step where it needs them. Its nodes come behind all others, so numbers of nodes change;
 * those of values and targets do not. Returns a table by the number of the target, which the caller frees; NULL where
 * no target merges. */
accumulation *merge_gradients(trama_program *program);

#endif
