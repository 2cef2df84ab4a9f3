/* SPDX-License-Identifier: Apache-2.0 */
/* Products by cuBLASLt: the description of matrices, and the choice of an algorithm. cuBLASLt is asked once for each
 * problem; its answer depends on the question alone, so that two runs give the same bits. */
#include <cublasLt.h>
#include <stdio.h>
#include <string.h>

#include "blas_gpu.h"
#include "number.cuh"
#include "view.h"

/* A matrix as cuBLASLt reads it: column-major, or the transpose of such. */
struct matrix {
    int64_t rows, columns, ld; /* of op(matrix) */
    bool transposed;
};

/* A problem: D [n, m] = op(A) op(B), column-major, where D is our out, A our y and B our x. Its bytes are compared, so
 * gaps are 0. */
struct question {
    void *handle;
    matrix matrices[3]; /* A, B, D */
    int64_t batches, step[3];
    size_t workspace_bytes;
    uint32_t alignment[3];
    int dtype;
    bool tf32, bias, wide;
};

struct answer {
    question asked;
    bool known, possible;
    cublasLtMatmulAlgo_t algorithm;
};

/* ---- Types ------------------------------------------------------------------------------------- */

struct types {
    cudaDataType matrix, out, scale;
    cublasComputeType_t compute;
};

/* False where cuBLASLt does not multiply the type. */
static bool types_of(trama_dtype dtype, bool wide, bool tf32, types *t)
{
    *t = {CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F};
    if (dtype == TRAMA_F64)
        *t = {CUDA_R_64F, CUDA_R_64F, CUDA_R_64F, CUBLAS_COMPUTE_64F};
    else if (dtype == TRAMA_BF16 || dtype == TRAMA_F16) {
        t->matrix = dtype == TRAMA_F16 ? CUDA_R_16F : CUDA_R_16BF;
        t->out = wide ? CUDA_R_32F : t->matrix;
        t->compute = CUBLAS_COMPUTE_32F;
    }
    return trama_dtype_is_float(dtype);
}

/* ---- Matrices ---------------------------------------------------------------------------------- */

/* The distance between lines of n contiguous elements, or 0 if there is none. */
static int64_t leading(int64_t lines, int64_t n, int64_t line_step, int64_t step)
{
    const int64_t ld = lines > 1 ? line_step : n;
    return (n > 1 && step != 1) || ld < n ? 0 : ld;
}

static bool describe(matrix *a, int64_t rows, int64_t columns, int64_t row_step, int64_t column_step)
{
    a->rows = rows;
    a->columns = columns;
    a->ld = leading(columns, rows, column_step, row_step);
    a->transposed = a->ld == 0;
    if (a->transposed)
        a->ld = leading(rows, columns, row_step, column_step);
    return a->ld > 0;
}

bool blas_takes(int64_t rows, int64_t columns, int64_t row_step, int64_t column_step)
{
    matrix a;
    return describe(&a, rows, columns, row_step, column_step);
}

/* The bytes to which all matrices of a batch are aligned, at most 16. */
static uint32_t alignment_of(const blas_job *job, int array)
{
    const uint64_t all = (uint64_t)(uintptr_t)job->data[array] |
                         (job->batches > 1 ? (uint64_t)(job->step[array] * blas_element(job, array)) : 0);
    uint32_t alignment = 16;
    while (all % alignment)
        alignment /= 2;
    return alignment;
}

static bool ask(question *q, const blas_job *job, const gpu *g)
{
    static const int arrays[3] = {2, 1, 0};
    const product *p = &job->p;

    memset(q, 0, sizeof *q);
    q->handle = g->blas;
    for (int i = 0; i < 3; i++) {
        q->step[i] = job->batches > 1 ? job->step[arrays[i]] : 0;
        q->alignment[i] = alignment_of(job, arrays[i]);
    }
    q->batches = job->batches;
    q->workspace_bytes = job->workspace_bytes;
    q->dtype = job->dtype;
    q->tf32 = g->tf32 && job->dtype == TRAMA_F32;
    q->bias = job->bias != NULL;
    q->wide = job->wide;
    return describe(&q->matrices[0], p->n, p->k, p->column[2], p->row[2]) &&
           describe(&q->matrices[1], p->k, p->m, p->column[1], p->row[1]) &&
           describe(&q->matrices[2], p->n, p->m, p->column[0], p->row[0]) && !q->matrices[2].transposed;
}

/* ---- cuBLASLt ---------------------------------------------------------------------------------- */

static void must(cublasStatus_t status, const trama_call *call)
{
    char text[128];
    if (status == CUBLAS_STATUS_SUCCESS)
        return;
    snprintf(text, sizeof text, "cuBLASLt: %s", cublasLtGetStatusString(status));
    kernel_impossible(call, text);
}

struct description {
    cublasLtMatmulDescOpaque_t operation;
    cublasLtMatrixLayoutOpaque_t matrix[3];
};
#define SET_OPERATION(d, what, value)                                                                                  \
    must(cublasLtMatmulDescSetAttribute(&(d)->operation, what, &value, sizeof value), call)
#define SET_LAYOUT(l, what, value) must(cublasLtMatrixLayoutSetAttribute(l, what, &value, sizeof value), call)

static void describe_operation(description *d, const question *q, const types *t, const void *bias,
                               const trama_call *call)
{
    const cublasOperation_t a = q->matrices[0].transposed ? CUBLAS_OP_T : CUBLAS_OP_N,
                            b = q->matrices[1].transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    const cublasLtEpilogue_t epilogue = q->bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;

    must(cublasLtMatmulDescInit(&d->operation, t->compute, t->scale), call);
    SET_OPERATION(d, CUBLASLT_MATMUL_DESC_TRANSA, a);
    SET_OPERATION(d, CUBLASLT_MATMUL_DESC_TRANSB, b);
    SET_OPERATION(d, CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue);
    if (q->bias)
        SET_OPERATION(d, CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
}

static void describe_matrix(cublasLtMatrixLayout_t to, const question *q, int i, const types *t, const trama_call *call)
{
    const matrix *a = &q->matrices[i];
    const int32_t batches = (int32_t)q->batches;
    const uint64_t rows = (uint64_t)(a->transposed ? a->columns : a->rows),
                   columns = (uint64_t)(a->transposed ? a->rows : a->columns);

    must(cublasLtMatrixLayoutInit(to, i == 2 ? t->out : t->matrix, rows, columns, a->ld), call);
    SET_LAYOUT(to, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, batches);
    SET_LAYOUT(to, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, q->step[i]);
}

/* Chooses among the algorithms that add up the parts of a sum in a fixed order, in the type that they are computed
 * in. */
static void choose(answer *a, description *d, const trama_call *call)
{
    static const cublasLtMatmulPreferenceAttributes_t alignments[3] = {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
                                                                       CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                                                                       CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES};
    const uint32_t schemes = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    const uint64_t bytes = a->asked.workspace_bytes;
    cublasLtMatmulPreferenceOpaque_t wish;
    cublasLtMatmulHeuristicResult_t found;
    int n = 0;

    must(cublasLtMatmulPreferenceInit(&wish), call);
#define SET_WISH(what, value) must(cublasLtMatmulPreferenceSetAttribute(&wish, what, &value, sizeof value), call)
    SET_WISH(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, bytes);
    SET_WISH(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, schemes);
    for (int i = 0; i < 3; i++)
        SET_WISH(alignments[i], a->asked.alignment[i]);
    SET_WISH(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, a->asked.alignment[2]);
    const cublasStatus_t status =
        cublasLtMatmulAlgoGetHeuristic((cublasLtHandle_t)a->asked.handle, &d->operation, &d->matrix[0], &d->matrix[1],
                                       &d->matrix[2], &d->matrix[2], &wish, 1, &found, &n);
    a->known = true;
    a->possible = status == CUBLAS_STATUS_SUCCESS && n > 0;
    if (a->possible)
        a->algorithm = found.algo;
    else if (status != CUBLAS_STATUS_SUCCESS && status != CUBLAS_STATUS_NOT_SUPPORTED)
        must(status, call);
}

/* The answer to a question of this thread; a new question may take the place of an old one. */
enum { ANSWERS = 256 };
static answer *answer_to(const question &q)
{
    static thread_local answer answers[ANSWERS];
    uint64_t hash = 0;
    for (size_t i = 0; i < sizeof q; i += sizeof hash) {
        uint64_t word;
        memcpy(&word, (const char *)&q + i, sizeof word);
        hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 32;
    }
    answer *a = &answers[hash % ANSWERS];
    if (!a->known || memcmp(&a->asked, &q, sizeof q)) {
        memset(a, 0, sizeof *a);
        memcpy(&a->asked, &q, sizeof q);
    }
    return a;
}
static_assert(sizeof(question) % sizeof(uint64_t) == 0, "a question is hashed word by word");

bool blas_run(const blas_job *job, const trama_call *call, const gpu *g)
{
    const float alpha = (float)job->p.alpha, beta = (float)job->p.beta;
    const bool wide = job->dtype == TRAMA_F64;
    description d;
    question q;
    types t;

    if (!types_of(job->dtype, job->wide, g->tf32, &t) || job->batches > INT32_MAX || !ask(&q, job, g))
        return false;
    answer *a = answer_to(q);
    if (a->known && !a->possible)
        return false;
    describe_operation(&d, &q, &t, job->bias, call);
    for (int i = 0; i < 3; i++)
        describe_matrix(&d.matrix[i], &q, i, &t, call);
    if (!a->known)
        choose(a, &d, call);
    if (!a->possible)
        return false;
    must(cublasLtMatmul((cublasLtHandle_t)g->blas, &d.operation, wide ? (const void *)&job->p.alpha : &alpha,
                        job->data[2], &d.matrix[0], job->data[1], &d.matrix[1],
                        wide ? (const void *)&job->p.beta : &beta, job->data[0], &d.matrix[2], job->data[0],
                        &d.matrix[2], &a->algorithm, g->workspace, job->workspace_bytes, (cudaStream_t)g->stream),
         call);
    return true;
}
