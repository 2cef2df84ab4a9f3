/* SPDX-License-Identifier: Apache-2.0 */
/* Validation of the rule of a user's op. The kernel runs on the boxes that 2, 3, 4 and 6 processes would have; the
 * combined results are compared with those of the kernel on whole operands. */
#ifndef TRAMA_OP_VALIDATE_H
#define TRAMA_OP_VALIDATE_H

#include "trama_program.h"

TRAMA_API_BEGIN

/* The range of the random values of an operand, [low, high]; integers for integer types. */
typedef struct trama_value_range {
    double low, high; /* least and largest value */
} trama_value_range;

/* The result of a validation. */
typedef struct trama_validation {
    int tried;   /* combinations of placements of the operands */
    int wrong;   /* those whose results by the rule are wrong */
    int missing; /* those that the rule refuses although their results are right; omit brackets or add partial marks to
                    allow them */
    char *text;  /* a line for each of the first 20 wrong and 20 missing ones: shapes, placements, the mesh, and the
                    largest difference or the definition that would allow it. trama_text_free frees it */
} trama_validation;

/* Validates the op that made `value` (trama_apply), with the shapes and attributes that it has there. Not collective;
 * needs no context, computes in this thread, and gives the same result each time. Dims must be known, and should be
 * small: 5 and 7 are best, since their boxes are unequal, while a dim of 1 or of the number of processes hides
 * mistakes. ranges [operands]; NULL: -2 to 2, and 0 to 3 for integers. A pointwise op is also tried with each box as a
 * 1-d call.
 *
 * Kernels receive strided boxes within memory that holds NaN (low for integers) around them, so a read outside a box
 * shows. In the search for missing placements they also receive boxes of different parts of the tensors.
 *
 * E_LAYOUT where a combination is wrong, with the first line; E_KERNEL where the kernel fails on whole operands;
 * E_ARGUMENT for a built-in op (the library's tests validate those), a value that no op made, or results that are all
 * NaN; E_SHAPE for dims that are TRAMA_ANY and for tensors of more than 16384 elements. Missing placements are no
 * error. *found is set on TRAMA_OK and E_LAYOUT; found may be NULL. */
#define trama_op_validate(...) trama_op_validate_at(TRAMA_HERE, __VA_ARGS__) /* value, ranges, found */
trama_status trama_op_validate_at(trama_where where, const trama_value *value, const trama_value_range *ranges,
                                  trama_validation *found);

TRAMA_API_END
#endif
