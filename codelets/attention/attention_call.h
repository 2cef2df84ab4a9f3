/* SPDX-License-Identifier: Apache-2.0 */
/* A call of attention or of its gradient: its extents, and its tensors as matrices of heads. For CPUs and GPUs alike.
 */
#ifndef CODELETS_ATTENTION_CALL_H
#define CODELETS_ATTENTION_CALL_H

#include <stdbool.h>

#include "trama_op.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A matrix of elements: (i, j) at data + size * (i row + j column). */
typedef struct attention_matrix {
    char *data;
    size_t size;
    int64_t row, column;
} attention_matrix;

/* An operand or a result: the matrix of one head, and the step to the next head of its group. */
typedef struct attention_array {
    attention_matrix first; /* of the group */
    int64_t head;
} attention_array;

/* A call. Its boxes have n queries and m keys, d features of these and e features of values. */
typedef struct attention {
    const struct attention_type *type; /* attention.h: of CPUs */
    int64_t n, m, d, e, groups, heads; /* heads of one group */
    int64_t ahead;                     /* query i sees the keys before i + ahead */
    double scale;
    trama_dtype mask; /* its type, of masked calls */
    bool masked, goes_on;
} attention;

/* Reads the operands q, k, v, and the mask where it is masked. */
attention attention_of(const trama_call *call, bool masked);

/* The steps of a tensor [.., heads, rows, columns], or, with `trailing` 1, [.., heads, rows]; and its view without
 * these dims and with one index a group. A mask may lack dims. */
attention_array attention_array_of(const attention *a, const trama_view *view, int trailing, trama_view *groups);

/* The matrix of a head at row i and column j. */
attention_matrix attention_at(const attention_array *array, int64_t head, int64_t i, int64_t j);

/* The number of keys that queries before i see. */
int64_t attention_visible(const attention *a, int64_t i);

#ifdef __cplusplus
}
#endif
#endif
