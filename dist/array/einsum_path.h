/* SPDX-License-Identifier: Apache-2.0 */
/* The order in which an einsum joins its operands, known by the labels of their dims alone. */
#ifndef EINSUM_PATH_H
#define EINSUM_PATH_H

#include <stdint.h>

#include "trama_base.h"

/* A label stands for a dim: letters count from 0, and the dims of "..." behind them, the last one first. */
enum { LETTERS = 52, LABELS = LETTERS + TRAMA_MAX_NDIM };

typedef uint64_t label_set;
_Static_assert(LABELS <= 64, "labels are bits of a set");

static inline label_set label_bit(int label)
{
    return (label_set)1 << label;
}

typedef struct label_pair {
    int a, b; /* a < b */
} label_pair;

/* The labels that the product of a pair of the n terms keeps: those of the result and of the other terms. */
label_set einsum_kept(int n, const label_set *terms, label_set result, label_pair p);

/* The pair of n >= 2 terms to be joined first. extent [LABELS]; TRAMA_ANY counts as 1,024. */
label_pair einsum_next_pair(int n, const label_set *terms, label_set result, const int64_t *extent);

#endif
