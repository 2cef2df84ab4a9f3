/* SPDX-License-Identifier: Apache-2.0 */
/* Calls on doubles, run by the real kernel on real element types, in memory that shows whoever reads beside a box. */
#ifndef GUARDED_H
#define GUARDED_H

#include "trama_op.h"

/* What stands around boxes of integers, by operand; floats have NaN there. */
typedef struct guard {
    double around[TRAMA_MAX_OPERANDS];
    trama_status status; /* of the last call */
    char message[400];
} guard;

/* Runs the call, whose data are doubles whatever the types; false where the kernel fails. Results that are written over
 * an operand start from it. */
bool guarded_run(guard *g, const trama_call *call);

/* The same where every tensor is a scalar or as large as result 0, in two pieces of one dim, as chains are run. */
bool guarded_run_in_pieces(guard *g, const trama_call *call);

#endif
