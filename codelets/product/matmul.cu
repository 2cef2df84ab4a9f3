/* SPDX-License-Identifier: Apache-2.0 */
/* Batched products on a GPU. cuBLASLt reads matrices with one step of 1, and copies of others. A product with a vector
 * is a reduction, at the speed of memory. Plain tiles compute integers, and products that cuBLASLt has no kernel
 * for. */
#include <string.h>

#include "blas_gpu.h"
#include "kernel.h"
#include "ops.h"
#include "plain_product.cuh"
#include "product.h"
#include "reduce.cuh"
#include "small.h"

/* ---- A matrix and a vector ----------------------------------------------------------------------- */

/* alpha sum + beta out */
template <typename T> struct dot_of {
    typedef T in, out;
    typedef double kept;
    static __device__ inline double none()
    {
        return 0;
    }
    static __device__ inline double with(double a, T x, int64_t i, const reduction &r)
    {
        return a + (double)of<T>::load(x) * (double)of<T>::load(((const T *)r.weights)[i * r.weight_step]);
    }
    static __device__ inline double join(double a, double b)
    {
        return a + b;
    }
    static __device__ inline void put(T *to, double a, const reduction &r)
    {
        *to = of<T>::real(r.beta == 0 ? r.alpha * a : r.alpha * a + (double)of<T>::load(*to));
    }
};

/* out = matrix vector, where the dim `along` of the matrix is that of the vector, and out has the other dims. Returns
 * false and does nothing where the vector depends on the batch. */
static bool multiply_vector(const trama_call *call, const product *p, const gpu *g)
{
    const bool by_rows = p->vector_y;
    const trama_view *matrix = &call->in[by_rows ? 0 : 1], *vector = &call->in[by_rows ? 1 : 0];
    const bool transposed = call->attributes->integer[by_rows ? MATMUL_TRANS_X : MATMUL_TRANS_Y];
    const int along = matrix->ndim - (by_rows == transposed ? 2 : 1);
    const trama_view kept = view_without(matrix, along),
                     out = view_without(&call->out[0], call->out[0].ndim - (by_rows ? 1 : 2));
    const trama_view *const views[2] = {&out, &kept};
    reduction r = {};

    if (view_count(vector) != p->k || !grid_walk_of(&r.kept, views))
        return false;
    r.terms = row_major_one();
    row_major_add(&r.terms, p->k, matrix->stride[along]);
    r.alpha = p->alpha;
    r.beta = p->beta;
    r.weights = vector->data;
    r.weight_step = by_rows ? p->row[2] : p->column[1];
    return with_float(out.dtype,
                      [&](auto zero) { reduce_all<dot_of<decltype(zero)>>(r, matrix->stride[along] == 1, call, g); });
}

/* ---- Copies of matrices that cuBLASLt does not read ------------------------------------------------ */

static trama_view view_of(void *data, trama_dtype dtype, int64_t rows, int64_t columns, int64_t row, int64_t column)
{
    trama_view v = {};
    v.data = data;
    v.dtype = dtype;
    v.ndim = 2;
    v.extent[0] = v.global[0] = rows;
    v.extent[1] = v.global[1] = columns;
    v.stride[0] = row;
    v.stride[1] = column;
    return v;
}

static bool is_readable(const product *p, int array)
{
    return blas_takes(array == 2 ? p->k : p->m, array == 1 ? p->k : p->n, p->row[array], p->column[array]);
}

/* Replaces matrix `array` of the job by `to`, row-major, and if `copies` copies its content. Returns the view of the
 * old matrix. */
static trama_view pack_matrix(blas_job *job, int array, void *to, bool copies, const gpu *g)
{
    product *p = &job->p;
    const int64_t rows = array == 2 ? p->k : p->m, columns = array == 1 ? p->k : p->n;
    const trama_view from = view_of(job->data[array], job->dtype, rows, columns, p->row[array], p->column[array]);
    const trama_view packed = view_of(to, job->dtype, rows, columns, columns, 1);

    if (copies)
        gpu_copy(&packed, &from, g);
    job->data[array] = to;
    p->row[array] = columns;
    p->column[array] = 1;
    return from;
}

static bool run_job(blas_job job, const trama_call *call, const gpu *g);

/* Runs one block of out. Matrices that are not readable are copied to `room`, the workspace behind cuBLASLt's part. */
static bool run_packed(blas_job job, char *room, const trama_call *call, const gpu *g)
{
    const int64_t size = (int64_t)trama_dtype_size(job.dtype);
    const bool packs = !is_readable(&job.p, 0);
    trama_view out = {};

    for (int array = 0; array < 3; array++) {
        const int64_t elements = (array == 2 ? job.p.k : job.p.m) * (array == 1 ? job.p.k : job.p.n);
        if (is_readable(&job.p, array))
            continue;
        const trama_view was = pack_matrix(&job, array, room, array > 0 || job.p.beta != 0, g);
        out = array == 0 ? was : out;
        room += rounded_up(elements * size, 256);
    }
    if (!run_job(job, call, g))
        return false;
    if (packs) {
        const trama_view packed = view_of(job.data[0], job.dtype, job.p.m, job.p.n, job.p.row[0], 1);
        gpu_copy(&out, &packed, g);
    }
    return true;
}

/* The extent of blocks of out whose matrices fit in the room; 0: none. */
static int64_t block_extent(int64_t room, int64_t k)
{
    int64_t block = 1 << 14;
    while (block > 0 && block * (2 * k + block) + 3 * 256 > room)
        block /= 2;
    return block;
}

enum { LEAST_BLOCK = 64 };
static bool run_blocks(const blas_job *job, const trama_call *call, const gpu *g)
{
    const int64_t size = blas_element(job, 1);
    const size_t half = g->workspace_bytes / 512 * 256;
    const int64_t block = block_extent((int64_t)half / size, job->p.k);

    if (block < LEAST_BLOCK)
        return false;
    for (int64_t i = 0; i < job->p.m; i += block)
        for (int64_t j = 0; j < job->p.n; j += block) {
            blas_job part = *job;
            part.p.m = job->p.m - i < block ? job->p.m - i : block;
            part.p.n = job->p.n - j < block ? job->p.n - j : block;
            part.data[0] = (char *)job->data[0] + (i * job->p.row[0] + j * job->p.column[0]) * blas_element(job, 0);
            part.data[1] = (char *)job->data[1] + i * job->p.row[1] * size;
            part.data[2] = (char *)job->data[2] + j * job->p.column[2] * size;
            part.workspace_bytes = half;
            if (!run_packed(part, (char *)g->workspace + half, call, g))
                return false;
        }
    return true;
}

/* ---- All products --------------------------------------------------------------------------------- */

/* cuBLASLt needs contiguous rows of out. Contiguous columns of out are rows of the transposed product. */
static bool run_job(blas_job job, const trama_call *call, const gpu *g)
{
    if (blas_run(&job, call, g))
        return true;
    if (job.bias)
        return false;
    const blas_job was = job;
    job.p = product_turned(&was.p);
    job.data[1] = was.data[2];
    job.data[2] = was.data[1];
    job.step[1] = was.step[2];
    job.step[2] = was.step[1];
    return blas_run(&job, call, g);
}

/* The products along the last dim of the batch as one job, or as one product. */
static blas_job job_of(const product *p, trama_dtype dtype, const grid_walk<3> &batch, const gpu *g)
{
    const int last = batch.ndim - 1;
    blas_job job = {};

    job.p = *p;
    job.dtype = dtype;
    job.batches = batch.extent[last].by;
    memcpy(job.data, batch.data, sizeof job.data);
    memcpy(job.step, batch.step[last], sizeof job.step);
    job.workspace_bytes = g->workspace_bytes;
    if (job.batches > 1 && product_is_one(p, job.batches, job.step, &job.p))
        job.batches = 1;
    else
        job.p = *p;
    return job;
}

static bool run_batch(const blas_job *job, const trama_call *call, const gpu *g)
{
    bool readable = true;
    for (int array = 0; array < 3; array++)
        readable &= is_readable(&job->p, array);
    if (readable)
        return run_job(*job, call, g);
    blas_job one = *job;
    one.batches = 1;
    for (int64_t b = 0; b < job->batches; b++) {
        for (int array = 0; array < 3; array++)
            one.data[array] = (char *)job->data[array] + b * job->step[array] * blas_element(job, array);
        if (!run_blocks(&one, call, g))
            return false; /* at the first one, since all are alike */
    }
    return true;
}

void product_run(const blas_job *job, const trama_call *call, const gpu *g)
{
    grid_walk<3> batch = {};
    if (trama_dtype_is_float(job->dtype) && run_batch(job, call, g))
        return;
    batch.ndim = 1;
    batch.count = job->batches;
    batch.extent[0] = divisor_of(job->batches);
    memcpy(batch.step[0], job->step, sizeof job->step);
    memcpy(batch.data, job->data, sizeof job->data);
    multiply_plainly(&job->p, job->dtype, job->wide, batch, false, g);
}

/* The part of the batch at index `outer` of its dims but the last; or at one of all its dims: one product. */
static grid_walk<3> batch_at(const grid_walk<3> &batch, int64_t outer, bool of_all, int64_t size)
{
    grid_walk<3> part = batch;
    part.ndim = 1;
    part.extent[0] = of_all ? divisor_of(1) : batch.extent[batch.ndim - 1];
    part.count = part.extent[0].by;
    memcpy(part.step[0], batch.step[batch.ndim - 1], sizeof part.step[0]);
    int64_t at[3];
    grid_walk_outer(batch, batch.ndim - (of_all ? 0 : 1), outer, at);
    for (int a = 0; a < 3; a++)
        part.data[a] = (char *)part.data[a] + at[a] * size;
    return part;
}

/* Whether all products of a batch are added up, and are not one product. */
static bool is_sum(const trama_call *call)
{
    return call->attributes->integer[MATMUL_SUM_BATCH] && call->in[0].ndim > 2;
}

static bool batch_of(const trama_call *call, grid_walk<3> *batch)
{
    trama_view views[3] = {call->out[0], call->in[0], call->in[1]};
    const trama_view *const all[3] = {&views[0], &views[1], &views[2]};
    if (is_sum(call)) {
        views[0] = call->in[0];
        views[0].data = call->out[0].data;
        for (int d = 0; d < views[0].ndim; d++)
            views[0].stride[d] = 0;
    }
    for (trama_view &v : views)
        v.ndim -= 2;
    return grid_walk_of(batch, all);
}

/* The call as one of matrices; a sum over a batch becomes one product where the memory of both operands allows it. */
static const trama_call *as_matrices(const trama_call *call, matrix_call *m)
{
    const trama_call *matrices = matrix_call_of(call, m);
    trama_view joined[2] = {m->in[0], m->in[1]};
    if (is_sum(matrices) && product_join_rows(&joined[0]) && product_join_rows(&joined[1]))
        memcpy(m->in, joined, sizeof joined);
    return matrices;
}

static void multiply(const trama_call *call, kernel_addition how, const gpu *g)
{
    const trama_dtype dtype = call->out[0].dtype;
    matrix_call matrices;
    call = as_matrices(call, &matrices);
    const bool sums = is_sum(call);
    product p = product_of(call);
    grid_walk<3> batch;

    p.alpha = how.factor;
    p.beta = how.keep;
    if (p.m == 0 || p.n == 0 || !batch_of(call, &batch))
        return;
    if (p.k == 0) {
        if (p.beta == 0)
            gpu_fill(&call->out[0], 0, g);
        return;
    }
    if ((p.vector_x || p.vector_y) && trama_dtype_is_float(dtype) && multiply_vector(call, &p, g))
        return;
    if (sums && trama_dtype_size(dtype) < sizeof(float)) { /* which are rounded once */
        multiply_plainly(&p, dtype, false, batch, true, g);
        return;
    }
    const int64_t outer = sums ? batch.count : batch.count / batch.extent[batch.ndim - 1].by;
    for (int64_t i = 0; i < outer; i++) {
        const grid_walk<3> part = batch_at(batch, i, sums, (int64_t)trama_dtype_size(dtype));
        p.beta = sums && i > 0 ? 1 : p.beta;
        const blas_job job = job_of(&p, dtype, part, g);
        if (!small_run(&job, 0, NULL, NULL, NULL, g))
            product_run(&job, call, g);
    }
}

extern "C" void cuda_matmul(const trama_call *call, const gpu *g)
{
    multiply(call, {0, 1}, g);
}

extern "C" void cuda_matmul_add(const trama_call *call, kernel_addition how, const gpu *g)
{
    multiply(call, how, g);
}

/* ---- With the calls behind it ---------------------------------------------------------------------- */

/* The row that a call adds to the rows of `made`; NULL: it adds no row, or cuBLASLt cannot read it. */
static const trama_view *row_of(const trama_call *call, const trama_view *made)
{
    const trama_view *row = &call->in[call->in[0].data == made->data];
    const int last = row->ndim - 1;
    if (last < 0 || row->extent[last] != made->extent[made->ndim - 1] || view_count(row) != row->extent[last])
        return NULL;
    return (row->extent[last] == 1 || row->stride[last] == 1) && (uintptr_t)row->data % 16 == 0 ? row : NULL;
}

static int count_reads(const trama_call *call, const trama_view *made)
{
    int n = 0;
    for (int t = 0; t < call->n_in; t++)
        n += call->in[t].data == made->data;
    return n;
}

/* Whether the first of the calls alone reads the product, and adds a row that cuBLASLt can read. */
static const trama_view *row_alone(const trama_view *made, int n_more, const trama_call *more)
{
    int reads = 0;
    for (int i = 1; i < n_more; i++)
        reads += count_reads(&more[i], made);
    return reads == 0 && count_reads(&more[0], made) == 1 && more[0].op->epilogue == TRAMA_EPILOGUE_ROW
               ? row_of(&more[0], made)
               : NULL;
}

extern "C" int cuda_matmul_then(const trama_call *call, int n_more, const trama_call *more, const unsigned *inner,
                                const gpu *g)
{
    const trama_dtype dtype = call->out[0].dtype;
    matrix_call matrices;
    trama_call whole = *call;
    grid_walk<3> batch;

    whole.out = more[0].out;
    const product p = product_of(as_matrices(&whole, &matrices));
    if (is_sum(&matrices.call) || p.m == 0 || p.n == 0 || p.k == 0 || dtype == TRAMA_F64 || p.vector_x || p.vector_y ||
        !trama_dtype_is_float(dtype) || more[0].out[0].ndim != call->out[0].ndim || !batch_of(&matrices.call, &batch) ||
        batch.ndim != 1)
        return 0;
    blas_job job = job_of(&p, dtype, batch, g);
    if (small_run(&job, n_more, more, &call->out[0], inner, g))
        return n_more;
    const trama_view *row = row_alone(&call->out[0], n_more, more);
    job.bias = row ? row->data : NULL;
    return row && job.batches == 1 && blas_run(&job, call, g) ? 1 : 0;
}
