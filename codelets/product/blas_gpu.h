/* SPDX-License-Identifier: Apache-2.0 */
/* Products by cuBLASLt. */
#ifndef CODELETS_BLAS_GPU_H
#define CODELETS_BLAS_GPU_H

#include "gpu.h"
#include "product.h"

/* `batches` products of one element type; their matrices are `step` elements from one to the next in out, x and y. */
typedef struct blas_job {
    product p;
    trama_dtype dtype;
    void *data[3];
    int64_t batches, step[3];
    const void *bias;       /* [n] is added to each row; NULL: none */
    size_t workspace_bytes; /* of g->workspace, from its begin */
} blas_job;

/* Whether cuBLASLt reads a matrix with these steps. */
bool blas_takes(int64_t rows, int64_t columns, int64_t row_step, int64_t column_step);

/* Enqueues the job. Returns false and does nothing where cuBLASLt has no kernel for it. */
bool blas_run(const blas_job *job, const trama_call *call, const gpu *g);

#endif
