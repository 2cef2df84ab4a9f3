/* SPDX-License-Identifier: Apache-2.0 */
/* A validation under way, and its part on whole tensors. */
#ifndef VALIDATION_H
#define VALIDATION_H

#include "guarded.h"
#include "trama_op_validate.h"
#include "trial.h"

typedef struct validation {
    trama_where where;
    const trama_node *node;
    const trama_value_range *ranges;
    guard guard;
    trial trial, other;  /* on the current mesh; on another one with as many axes */
    int64_t all, passed; /* combinations on this mesh, and those visited so far */
    trama_validation found;
    text lines, first; /* first: the line of the first wrong one */
} validation;

/* Values of an operand, in its range and the same for each seed. arg: the validation. */
void validation_values(void *arg, const trama_node *node, int operand, uint64_t seed, int64_t n, double *at);

/* validate_whole.c: the op on whole operands. E_KERNEL and E_ARGUMENT of trama_op_validate. */
trama_status validate_whole(validation *v);

/* The same file: compares a pointwise op with calls of one dim, as which fused chains run it. */
void validate_pieces(validation *v);

#endif
