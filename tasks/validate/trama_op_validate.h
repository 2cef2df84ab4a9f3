/* SPDX-License-Identifier: Apache-2.0 */
/* Trying the rule of an op of one's own: its kernel is run on the parts that 2, 3, 4 and 6 processes would have, the
 * results are put together, and compared with those of the kernel on whole operands. */
#ifndef TRAMA_OP_VALIDATE_H
#define TRAMA_OP_VALIDATE_H

#include "trama_program.h"

TRAMA_API_BEGIN

/* Which values an operand may have: random ones in [low, high], whole numbers for integers. */
typedef struct trama_value_range {
    double low, high; /* the least and the most */
} trama_value_range;

/* What was found. */
typedef struct trama_validation {
    int tried;   /* combinations of placements of the operands */
    int wrong;   /* of them: what the rule promises, and the kernel does not keep */
    int missing; /* of them: what the rule refuses, and the kernel could do; to be had by brackets left out or partial
                    marks */
    char *text;  /* a line for each (the first 20 of either kind): shapes, placements, the mesh, and the largest
                    difference or how the definition would allow it. trama_text_free frees it */
} trama_validation;

/* Tries the op that made `value` (trama_apply) with the shapes and attributes that it has there. Not collective, needs
 * no context, computes in this thread, and is the same each time. Dims must be known, and small; 5 and 7 tell most:
 * pieces of them are unequal, while a dim of 1, or of as many as processes, hides mistakes. ranges: [operands], NULL:
 * -2 to 2, and 0 to 3 for integers. Of a pointwise op it is also tried whether pieces may be handed out as 1-d calls.
 *
 * Kernels are handed boxes at strides, within memory that holds NaN (integers: low) around them, so that one that reads
 * beside its box shows. For missing placements they are also handed boxes that do not belong together.
 *
 * E_LAYOUT where something is wrong, with the first line; E_KERNEL where the kernel fails on whole operands;
 * E_ARGUMENT for a built-in op (the library's tests try those), a value that no op made, or results that are all NaN;
 * E_SHAPE. found NULL: the status is all that is asked. Missing placements are no error. *found is set on TRAMA_OK and
 * E_LAYOUT. */
#define trama_op_validate(...) trama_op_validate_at(TRAMA_HERE, __VA_ARGS__) /* value, ranges, found */
trama_status trama_op_validate_at(trama_where where, const trama_value *value, const trama_value_range *ranges,
                                  trama_validation *found);

TRAMA_API_END
#endif
