/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a call on doubles by the op's kernel on its element types, in memory where reads outside a box give NaN. */
#ifndef GUARDED_H
#define GUARDED_H

#include "trama_op.h"

/* around [operands]: the value around boxes of integers; floats have NaN there. */
typedef struct guard {
    double around[TRAMA_MAX_OPERANDS];
    trama_status status; /* of the last call */
    char message[400];
} guard;

/* Runs the call. Its data are doubles for every element type. False where the kernel fails. A result that updates an
 * operand starts with the operand's values. */
bool guarded_run(guard *g, const trama_call *call);

/* Runs a call whose tensors are scalars or as large as result 0 as two 1-d calls, as fused chains run. */
bool guarded_run_in_pieces(guard *g, const trama_call *call);

#endif
