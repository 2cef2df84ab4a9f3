/* SPDX-License-Identifier: Apache-2.0 */
/* Makes one op out of words: its name, shapes of its operands, attributes. Knows which op has which attributes, and
 * nothing of layouts. */
#ifndef EXAMPLES_RULE_BUILD_H
#define EXAMPLES_RULE_BUILD_H

#include <argp.h>

#include "trama.h"

enum { MOST_ATTRIBUTES = 8 };

/* The op asked for. The texts are borrowed. */
typedef struct rule_op {
    const struct argp_state *state; /* for messages */
    const char *name;
    int n_in, n_attributes;
    trama_shape in[TRAMA_MAX_OPERANDS];
    const char *in_text[TRAMA_MAX_OPERANDS]; /* as the user wrote them, for messages */
    const char *attribute[MOST_ATTRIBUTES];  /* "name=value" */
} rule_op;

/* The names of an op's attributes, with blanks between; kept until the next call. */
const char *op_attributes(const char *name);

/* Result 0 of the op, whose operands in0, in1, ... are inputs of the program. A wrong use ends the program with
 * argp_error. */
trama_value *build_op(trama_program *program, const rule_op *asked);

#endif
