/* SPDX-License-Identifier: Apache-2.0 */
/* A split dim as parts, for split forms: [.., length, ..] as [.., n, padded / n, ..], of which each process has its
 * parts. */
#ifndef SPLIT_PARTS_H
#define SPLIT_PARTS_H

#include "families.h"

/* A dim of `length` elements as n parts, padded to a multiple of n. */
typedef struct parts {
    const trama_node *node; /* the one that is replaced */
    int dim;
    int64_t length, n, padded;
} parts;

/* Whether dim of x can be divided by n: its extent is known and not 0, and x can have one dim more. */
bool parts_find(const trama_node *node, const trama_value *x, int dim, int64_t n, parts *p);

/* x, padded by `fill`, with its dim divided. */
trama_value *parts_divide(const parts *p, trama_value *x, double fill);

/* The reverse of it. */
trama_value *parts_join(const parts *p, trama_value *x);

/* [padded, 1, ..] bool with ndim dims: whether an element is none of the padding. */
trama_value *parts_own(const parts *p, int ndim);

#endif
