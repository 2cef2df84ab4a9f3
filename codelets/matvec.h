/* SPDX-License-Identifier: Apache-2.0 */
/* A matrix times a vector, as fast as the matrix comes from memory. What an element is does not depend on how many rows
 * the call has or where they lie, which the gemv of a BLAS does not promise. */
#ifndef CODELETS_MATVEC_H
#define CODELETS_MATVEC_H

#include <stdint.h>

/* out [m] = alpha x [m, k] y [k] + beta out, with the steps between elements; beta is 0 or 1, and 0 reads no out. Terms
 * are added in double: in lanes where a row's elements are neighbours, else one after the other. */
typedef struct matvec {
    int64_t m, k;
    double alpha, beta;
    int64_t out, row, column, y; /* steps: of out, of x along each dim, of y */
} matvec;

void matvec_f32(const matvec *p, float *out, const float *x, const float *y);
void matvec_f64(const matvec *p, double *out, const double *x, const double *y);

#endif
