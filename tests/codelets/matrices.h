/* SPDX-License-Identifier: Apache-2.0 */
/* Products of matrices by the triple loop. */
#ifndef TESTS_CODELETS_MATRICES_H
#define TESTS_CODELETS_MATRICES_H

#include "views.h"

/* The stand-in for a GPU is slow: it runs every EACH_VARIANT-th variant of a case, and shorter vectors. */
#ifdef TESTS_ON_GPU
enum { EACH_VARIANT = 7, LENGTH = 133 };
#else
enum { EACH_VARIANT = 1, LENGTH = 4101 };
#endif

static inline double naive_product(const tensor *x, const tensor *y, const tensor *out, const int64_t *index, bool tx,
                                   bool ty)
{
    const int nx = x->view.ndim, ny = y->view.ndim, no = out->view.ndim;
    int64_t i[TRAMA_MAX_NDIM] = {0}, j[TRAMA_MAX_NDIM] = {0};
    double sum = 0;

    for (int d = 0; d < nx - 2; d++)
        i[d] = x->view.extent[d] == 1 ? 0 : index[d + no - nx];
    for (int d = 0; d < ny - 2; d++)
        j[d] = y->view.extent[d] == 1 ? 0 : index[d + no - ny];
    for (int64_t k = 0; k < x->view.extent[nx - (tx ? 2 : 1)]; k++) {
        i[nx - 2] = tx ? k : index[no - 2];
        i[nx - 1] = tx ? index[no - 2] : k;
        j[ny - 2] = ty ? index[no - 1] : k;
        j[ny - 1] = ty ? k : index[no - 1];
        sum += at(x, i) * at(y, j);
    }
    return sum;
}

static inline trama_shape matrix_shape(int n_batch, const int64_t *batch, int64_t rows, int64_t columns,
                                       bool transposed)
{
    trama_shape shape = trama_shape_of(n_batch, batch);
    shape.dim[shape.ndim++] = transposed ? columns : rows;
    shape.dim[shape.ndim++] = transposed ? rows : columns;
    return shape;
}

#endif
