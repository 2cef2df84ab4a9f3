/* SPDX-License-Identifier: Apache-2.0 */
/* A matrix times a vector, as fast as the matrix comes from memory. The bits of an element depend neither on the number
 * of rows of the call nor on their place, which the gemv of a BLAS does not promise. */
#ifndef CODELETS_MATVEC_H
#define CODELETS_MATVEC_H

#include "number.h"

/* out [m] = alpha x [m, k] y [k] + beta out, with the steps between elements; beta is 0 or 1, and 0 reads no out. Terms
 * are added in double: in lanes where a row's elements are neighbours, else one after the other. */
typedef struct matvec {
    int64_t m, k;
    double alpha, beta;
    int64_t out, row, column, y; /* steps: of out, of x along each dim, of y */
    void *packed;                /* [k], room for a copy of y, where y is not 1 and k above 1 */
} matvec;

#define MATVEC_OF(dtype, type, unused) void matvec_##dtype(const matvec *p, type *out, const type *x, const type *y);
EACH_FLOAT(MATVEC_OF, )
#undef MATVEC_OF

#endif
