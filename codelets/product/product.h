/* SPDX-License-Identifier: Apache-2.0 */
/* One product of two matrices, as a BLAS takes it. A call of matmul consists of such products. */
#ifndef CODELETS_PRODUCT_H
#define CODELETS_PRODUCT_H

#include "trama_op.h"

#ifdef __cplusplus
extern "C" {
#endif

struct scratch;

/* out [m, n] = alpha x [m, k] y [k, n] + beta out, each with the steps of its rows and columns. beta is 0 or 1.
 * Products of integers are called with alpha 1 and beta 0 only. */
typedef struct product {
    int64_t m, n, k;
    double alpha, beta;
    int64_t row[3], column[3]; /* of out, x, y */
    bool conjugate[3];         /* x, y: their elements are conjugated; [0] is false */
    bool vector_x, vector_y;   /* the whole tensors, not this part only, have one row of x, or one column of y */
    struct scratch *scratch;   /* of the call, on CPUs; not owned */
} product;

/* A product with vectors as one of matrices: x [k] is a row, y [k] a column, and out has the dims that it lacks. */
typedef struct matrix_call {
    trama_call call; /* points to in and out: do not copy the struct */
    trama_view in[2], out;
} matrix_call;

/* Returns &m->call. */
const trama_call *matrix_call_of(const trama_call *call, matrix_call *m);

/* Joins all dims of a view but the last to one: those that a sum over a batch contracts. Returns false and does nothing
 * where no single step leads through them. */
bool product_join_rows(trama_view *v);

/* The product of one batch element of matrices; alpha 1, beta 0. */
product product_of(const trama_call *call);

/* The transposed product: out' = y' x'. */
product product_turned(const product *p);

/* Whether n products, step[3] elements from one to the next in out, x and y, are one product: they have one y, and the
 * rows of x and out run on from batch to batch. */
bool product_is_one(const product *p, int64_t n, const int64_t *step, product *whole);

#ifdef __cplusplus
}
#endif
#endif
