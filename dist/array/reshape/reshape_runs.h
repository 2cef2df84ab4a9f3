/* SPDX-License-Identifier: Apache-2.0 */
/* The rule of a reshape from the shapes of its operand and its result, whose dims fall into runs with equal numbers of
 * elements. */
#ifndef RESHAPE_RUNS_H
#define RESHAPE_RUNS_H

#include "ops.h"
#include "rule.h"

/* The number of dims that are only known when fed. */
static inline int count_fed(const trama_shape *shape)
{
    int n = 0;
    for (int d = 0; d < shape->ndim; d++)
        n += shape->dim[d] == TRAMA_ANY;
    return n;
}

/* Adds the factors of operand 0 and of the result; false where the shapes do not correspond. */
bool reshape_match(trama_rule *rule, const trama_shape *in, const trama_shape *out, const trama_attributes *a);

/* The same for shapes without elements: no dim corresponds to another. */
void reshape_whole(trama_rule *rule, const trama_shape *in, const trama_shape *out);

/* Adds operand 1, whose dims that are only known when fed are those of the result, in their order. */
void reshape_add_like(trama_rule *rule, const trama_shape *like, const trama_shape *out);

#endif
