/* SPDX-License-Identifier: Apache-2.0 */
/* Every op with attributes and shapes worth trying: uneven and prime extents, 0, 1, fewer elements than processes. */
#ifndef TRIED_OPS_H
#define TRIED_OPS_H

#include "dense.h"

/* shapes: "7x5,5x3", one an operand; domain, a letter an operand: real, positive, unit (below 1 in size), above 1, wide, with NaN and infinities, bool, labels 0..2 (i64), small integers,
 * which repeat (i32), count (i64). */
typedef struct tried_op {
    const char *op, *shapes, *domain;
    trama_attributes attributes;
} tried_op;

extern const tried_op tried_ops[];
extern const int n_tried_ops;

/* Appends the op on operands "a", "b", ...: states where it updates them, else inputs. Returns its node. */
trama_node *tried_op_node(const tried_op *c, trama_program *program);
/* The same on operands whose numbers of the domains r, p and s are of one type, or those of shape "" doubles. NULL
 * where the op does not take it. */
trama_node *tried_op_node_of(const tried_op *c, trama_dtype dtype, bool scalars_are_doubles, trama_program *program);

/* Random values of an operand's domain. */
dense tried_op_operand(const tried_op *c, int operand, trama_shape shape, uint64_t seed);

#endif
