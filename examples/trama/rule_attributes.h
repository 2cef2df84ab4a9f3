/* SPDX-License-Identifier: Apache-2.0 */
/* The attributes that the user gives an op, "name=value", and their slots in the op. A wrong value ends the program
 * with argp_error. */
#ifndef EXAMPLES_RULE_ATTRIBUTES_H
#define EXAMPLES_RULE_ATTRIBUTES_H

#include "rule_build.h"

/* An op that is being made. */
typedef struct building {
    const rule_op *asked;
    const trama_op *op;
    trama_program *program;
    trama_value *in[TRAMA_MAX_OPERANDS];
} building;

/* The value of an attribute, or NULL where it is not given; and its name for messages, kept until the next call. */
const char *attribute_value(const building *b, const char *name);
const char *attribute_option(const char *name);

bool attribute_flag(const building *b, const char *name);
trama_shape attribute_shape(const building *b); /* "shape", which must be given */

/* Dims of an operand of ndim dims, from `low` on; returns how many are given. */
int attribute_dims(const building *b, const char *name, int ndim, int low, int *list);
/* "axis": the dims to reduce, each once; not given, or "none": all. And the dim along which an op goes; not given: the
 * last. */
int attribute_axes(const building *b, int ndim, int *list);
int attribute_axis(const building *b);

/* The slots of an attribute: its place among the names of the op, of which "shape[8]" has eight; reals stand behind a
 * bar. */
typedef struct op_slots {
    bool real;
    int first, count;
} op_slots;
op_slots attribute_slots(const trama_op *op, const char *name, size_t length);
int attribute_slot(const trama_op *op, const char *name);

/* The names of an op's attributes, with blanks between; kept until the next call. */
const char *attribute_names(const trama_op *op);

#endif
