/* SPDX-License-Identifier: Apache-2.0 */
/* The parts that the kernels of attention and of its gradient share: scores are made in blocks of some queries and some
 * keys, as products of matrices of numbers: f32, or f64 for f64. They know views, and no layouts. */
#ifndef CODELETS_ATTENTION_H
#define CODELETS_ATTENTION_H

#include "attention_call.h"
#include "base.h"
#include "block.h"
#include "loop.h"
#include "scratch.h"

/* The most queries and keys of a block of the gradient. Its scores stay in the cache of a core. */
enum { ATTENTION_ROWS = 64, ATTENTION_COLUMNS = 512 };

/* The forward kernel has keys in rows and queries in columns: ATTENTION_PARTS parts of BLOCK_BYTES bytes a row, for
 * ATTENTION_KEYS keys at a time. Panels of keys, and of features of values, have BLOCK_ROWS rows. */
enum {
    ATTENTION_KEYS = 128,
    ATTENTION_PARTS = 2 * BLOCK_PARTS,
    ATTENTION_QUERIES = ATTENTION_PARTS * BLOCK_BYTES / sizeof(float) /* the most */
};

/* Functions by the element type. Scores of the gradient, and slopes, their gradients, are numbers
 * [rows, ATTENTION_COLUMNS], of which the first `columns` of each row count. */
typedef struct attention_type {
    size_t size; /* of a number */
    bool direct; /* elements are numbers */
    /* Elements become numbers [rows, columns], and numbers become elements. */
    void (*load)(void *to, attention_matrix from, int64_t rows, int64_t columns);
    void (*store)(attention_matrix to, const void *from, int64_t rows, int64_t columns);
    /* Rows become panels of `width` rows, each of them turned: factor times (r, c) of the matrix becomes number
     * c width + r of the panel. Rows that lack in the last panel are 0. And a panel becomes elements, times
     * factor[row]. */
    void (*pack)(void *to, attention_matrix from, int64_t rows, int64_t columns, int64_t width, double factor);
    void (*unpack)(attention_matrix to, const void *from, int64_t rows, int64_t columns, int64_t width,
                   const double *factor);
    /* Adds a mask of elements to scores, of which (r, c) is number r row + c column. */
    void (*add_mask)(void *scores, int64_t row, int64_t column, attention_matrix mask, int64_t rows, int64_t columns);
    /* Makes scores -infinity where a mask of type bool is false. */
    void (*hide)(void *scores, int64_t row, int64_t column, attention_matrix mask, int64_t rows, int64_t columns);
    /* Makes columns below first + r of row r of scores [keys, ld] -infinity. */
    void (*cover)(void *scores, int64_t keys, int64_t width, int64_t ld, int64_t first);
    /* The sum of products of panels. */
    block_add *(*add)(void);
    /* c [m, n] += alpha a b; a_turned, b_turned: of a [k, m] or b [n, k] the transposed. first: c = alpha a b. */
    void (*multiply)(bool a_turned, bool b_turned, int64_t m, int64_t n, int64_t k, double alpha, const void *a,
                     int64_t lda, const void *b, int64_t ldb, bool first, void *c, int64_t ldc);
    /* Scores [keys, ld] become exp(score - top) in their first `width` columns. top of a column first rises to its
     * maximum; its sum and its column of out [features, ld] are scaled to that, and the sum gets the column. */
    void (*soften)(void *scores, int64_t keys, int64_t width, int64_t ld, double *top, double *sum, void *out,
                   int64_t features);
    /* A column of numbers, written and read. */
    void (*keep)(attention_matrix to, const double *from, int64_t rows);
    void (*recall)(double *to, attention_matrix from, int64_t rows);
    /* Of row i the first length[i] scores become p = exp(score - lse[i]), and slopes p (slope - delta[i]); the others
     * 0, and all where lse[i] is -infinity. */
    void (*derive)(void *scores, void *slopes, int64_t rows, int64_t columns, const int64_t *length,
                   attention_matrix lse, attention_matrix delta);
} attention_type;

/* The functions of an element type. Types that are no floats have size 0. */
const attention_type *attention_type_of(trama_dtype dtype);

/* Rows of elements as numbers: where they lie, if the BLAS can read them there, else in copy. Sets their distance. */
const void *attention_numbers(const attention *a, attention_matrix m, int64_t rows, int64_t columns, void *copy,
                              int64_t *ld);

/* Applies the mask at query i and key j to scores, of which (query, key) is number query row + key column. */
void attention_apply_mask(const attention *a, const attention_array *mask, int64_t head, int64_t i, int64_t j,
                          int64_t queries, int64_t keys, void *scores, int64_t row, int64_t column);

/* Takes scratch memory for n parts of numbers; false where the system refuses it. */
bool attention_take(const attention *a, scratch *memory, int n, const int64_t *numbers, void **part);

#endif
