/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of every built-in op, in several sizes: what the validator and the gradient tests run through. */
#ifndef CASES_H
#define CASES_H

#include "dense.h"

/* Domains of an operand's elements. INDEX: into a dim of at least 4 elements, from either end. SPECIAL: some are NaN or infinite. */
typedef enum { REAL, POSITIVE, NONZERO, UNIT, INTEGER, INDEX, LABEL, STEP, FLAG, ABOVE_1, WIDE, SPECIAL } domain;

typedef struct op_case op_case;
struct op_case {
    const char *name; /* the op, and what is special */
    const char *op;
    domain domains[TRAMA_MAX_OPERANDS];
    /* Appends operands and the call, in size number `variant`, to a program. */
    trama_value *(*build)(trama_program *p, const op_case *c, int variant);
    int64_t integer[4]; /* for build */
    double real;
};

extern const op_case op_cases[];
extern const int n_op_cases;

/* In the first sizes all dims are larger than 3 and divide nothing; others have dims of 0, 1, 2, 4. */
enum { N_GENERIC = 2, N_VARIANTS = 8 };

/* Random elements of a domain; classes: for LABEL. */
dense dense_of_domain(trama_shape shape, domain d, int64_t classes, uint64_t seed);

/* How many classes the labels among a node's operands stand for. */
int64_t case_classes(const trama_node *node);

#endif
