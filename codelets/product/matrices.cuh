/* SPDX-License-Identifier: Apache-2.0 */
/* Products of several matrices of one shape on a GPU, for kernels that keep other matrices in scratch memory. */
#ifndef CODELETS_MATRICES_CUH
#define CODELETS_MATRICES_CUH

#include "blas_gpu.h"
#include "kernel.h"
#include "view.h"

/* Element (i, j) of matrix h: data + (h step + i row + j column) elements. */
struct matrices {
    char *data;
    trama_dtype dtype;
    int64_t step, row, column;
};

static inline matrices turned(const matrices &m)
{
    return {m.data, m.dtype, m.step, m.column, m.row};
}

static inline matrices from_row(matrices m, int64_t i)
{
    m.data += i * m.row * (int64_t)trama_dtype_size(m.dtype);
    return m;
}

static inline matrices from_matrix(matrices m, int64_t h)
{
    m.data += h * m.step * (int64_t)trama_dtype_size(m.dtype);
    return m;
}

static inline void fill(const matrices &m, int64_t n_matrices, int64_t rows, int64_t columns, const gpu *g)
{
    trama_view v = {};
    v.data = m.data;
    v.dtype = m.dtype;
    v.ndim = 3;
    v.extent[0] = v.global[0] = n_matrices;
    v.extent[1] = v.global[1] = rows;
    v.extent[2] = v.global[2] = columns;
    v.stride[0] = m.step;
    v.stride[1] = m.row;
    v.stride[2] = m.column;
    gpu_fill(&v, 0, g);
}

/* The type in which numbers of a float type are summed. */
static inline trama_dtype number_type(trama_dtype dtype)
{
    return dtype == TRAMA_F64 ? TRAMA_F64 : TRAMA_F32;
}

/* A call on a GPU, of products and of other kernels. Products have the first quarter of the scratch memory. */
struct product_worker {
    const trama_call *call;
    gpu g;
    char *room; /* the scratch memory behind it */
    int64_t bytes;
};

static inline product_worker product_worker_of(const trama_call *call, const gpu *g)
{
    const size_t quarter = g->workspace_bytes / 1024 * 256;
    product_worker w = {call, *g, (char *)g->workspace + quarter, (int64_t)(g->workspace_bytes - quarter)};
    w.g.workspace_bytes = quarter;
    return w;
}

/* out [m, n] = alpha x [m, k] y [k, n] + beta out, for each matrix */
static inline void multiply(const product_worker *w, int64_t n_matrices, int64_t m, int64_t n, int64_t k, double alpha,
                            const matrices &x, const matrices &y, double beta, const matrices &out)
{
    const matrices *const all[3] = {&out, &x, &y};
    blas_job job = {};
    if (m == 0 || n == 0)
        return;
    if (k == 0) {
        if (beta == 0)
            fill(out, n_matrices, m, n, &w->g);
        return;
    }
    job.p.m = m;
    job.p.n = n;
    job.p.k = k;
    job.p.alpha = alpha;
    job.p.beta = beta;
    job.dtype = x.dtype;
    job.wide = out.dtype != x.dtype;
    job.batches = n_matrices;
    job.workspace_bytes = w->g.workspace_bytes;
    for (int a = 0; a < 3; a++) {
        job.data[a] = all[a]->data;
        job.step[a] = all[a]->step;
        job.p.row[a] = all[a]->row;
        job.p.column[a] = all[a]->column;
    }
    product_run(&job, w->call, &w->g);
}

#endif
