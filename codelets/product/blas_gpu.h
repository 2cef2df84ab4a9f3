/* SPDX-License-Identifier: Apache-2.0 */
/* Products by cuBLASLt. */
#ifndef CODELETS_BLAS_GPU_H
#define CODELETS_BLAS_GPU_H

#include "gpu.h"
#include "product.h"

/* `batches` products; their matrices are `step` elements from one to the next in out, x and y. */
typedef struct blas_job {
    product p;
    trama_dtype dtype; /* of x and y, and of out unless it is wide */
    bool wide;         /* out is f32, of halves */
    void *data[3];
    int64_t batches, step[3];
    const void *bias;       /* [n] is added to each row; NULL: none */
    size_t workspace_bytes; /* of g->workspace, from its begin */
} blas_job;

/* Bytes of an element of out, x or y. */
static inline int64_t blas_element(const blas_job *job, int array)
{
    return array == 0 && job->wide ? (int64_t)sizeof(float) : (int64_t)trama_dtype_size(job->dtype);
}

/* Whether cuBLASLt reads a matrix with these steps. */
bool blas_takes(int64_t rows, int64_t columns, int64_t row_step, int64_t column_step);

/* Enqueues the job. Returns false and does nothing where cuBLASLt has no kernel for it. */
bool blas_run(const blas_job *job, const trama_call *call, const gpu *g);

/* Enqueues a job without a bias, of any steps but those of a wide result, whose rows are contiguous, if need be without
 * cuBLASLt (matmul.cu). It uses g->workspace. */
void product_run(const blas_job *job, const trama_call *call, const gpu *g);

#endif
