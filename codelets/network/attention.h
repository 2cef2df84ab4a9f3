/* SPDX-License-Identifier: Apache-2.0 */
/* The parts that the kernels of attention and of its gradient share: scores are made in blocks of some queries and some
 * keys, as products of matrices of numbers: f32, or f64 for f64. They know views, and no layouts. */
#ifndef CODELETS_ATTENTION_H
#define CODELETS_ATTENTION_H

#include "base.h"
#include "loop.h"
#include "scratch.h"

/* The most queries and keys of a block. Its scores stay in the cache of a core. */
enum { ATTENTION_ROWS = 64, ATTENTION_COLUMNS = 512 };

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

/* Functions by the element type. Scores, and slopes, their gradients, are numbers [rows, ATTENTION_COLUMNS], of which
 * the first `columns` of each row count. */
typedef struct attention_type {
    size_t size; /* of a number */
    bool direct; /* elements are numbers */
    /* Elements become numbers [rows, columns], and numbers times factor[row] become elements. */
    void (*load)(void *to, attention_matrix from, int64_t rows, int64_t columns);
    void (*store)(attention_matrix to, const void *from, int64_t rows, int64_t columns, const double *factor);
    /* Adds a mask of elements to scores. */
    void (*add_mask)(void *scores, attention_matrix mask, int64_t rows, int64_t columns);
    /* Makes scores -infinity where a mask of type bool is false. */
    void (*hide)(void *scores, attention_matrix mask, int64_t rows, int64_t columns);
    /* c [m, n] += alpha a b; a_turned, b_turned: of a [k, m] or b [n, k] the transposed. first: c = alpha a b. */
    void (*multiply)(bool a_turned, bool b_turned, int64_t m, int64_t n, int64_t k, double alpha, const void *a,
                     int64_t lda, const void *b, int64_t ldb, bool first, void *c, int64_t ldc);
    /* Of row i of scores the first length[i] become exp(score - top[i]), and the others 0. top[i] first rises to their
     * maximum; sum[i] and row i of out [rows, e] are scaled to it, and the sum gets the row. */
    void (*soften)(void *scores, int64_t rows, int64_t columns, const int64_t *length, double *top, double *sum,
                   void *out, int64_t e);
    /* A column of numbers, written and read. */
    void (*keep)(attention_matrix to, const double *from, int64_t rows);
    void (*recall)(double *to, attention_matrix from, int64_t rows);
    /* Of row i the first length[i] scores become p = exp(score - lse[i]), and slopes p (slope - delta[i]); the others
     * 0, and all where lse[i] is -infinity. */
    void (*derive)(void *scores, void *slopes, int64_t rows, int64_t columns, const int64_t *length,
                   attention_matrix lse, attention_matrix delta);
} attention_type;

/* A call. Its boxes have n queries and m keys, d features of these and e features of values. */
typedef struct attention {
    const attention_type *type;
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

/* Rows of elements as numbers: where they lie, if the BLAS can read them there, else in copy. Sets their distance. */
const void *attention_numbers(const attention *a, attention_matrix m, int64_t rows, int64_t columns, void *copy,
                              int64_t *ld);

/* The number of keys that queries before i see. */
int64_t attention_visible(const attention *a, int64_t i);

/* Queries i to i + rows and keys j to j + columns. */
typedef struct attention_block {
    int64_t i, j, rows, columns, ldq, ldk;
    const void *q, *k; /* numbers, from query i and key j on */
    int64_t length[ATTENTION_ROWS];
} attention_block;

/* scores = scale q k' + mask, and in length the number of these keys that each query sees. */
void attention_scores(const attention *a, attention_block *b, const attention_array *mask, int64_t head, void *scores);

/* Takes scratch memory for n parts of numbers; false where the system refuses it. */
bool attention_take(const attention *a, scratch *memory, int n, const int64_t *numbers, void **part);

#endif
