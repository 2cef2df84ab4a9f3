/* SPDX-License-Identifier: Apache-2.0 */
/* Of the stand-in for CUDA (standin.h): cuBLASLt's products, by naive loops in double, and of cuBLAS the handle. It
 * takes operands as cuBLASLt's documentation says: column-major matrices unless they say row-major, types that go
 * together, alignments and workspace as the algorithm was asked for. A caller's mistake ends the process with a
 * message. */
#include "cublas.h"
#include "numbers.h"
#include <algorithm>

#include <cmath>
#include <string.h>
#include <vector>

using namespace standin;

namespace
{
enum { WORKSPACE = 64 << 10, ALIGNED = 16, MARK = 0x57a9d19 };

const layout &of(cublasLtMatrixLayout_t l)
{
    return *(const layout *)l;
}

/* ---- Numbers --------------------------------------------------------------------------------- */

size_t size_of(uint32_t type)
{
    return type == CUDA_R_64F ? 8 : type == CUDA_R_32F ? 4 : 2;
}

double load(uint32_t type, const void *from, int64_t i)
{
    if (type == CUDA_R_64F)
        return ((const double *)from)[i];
    if (type == CUDA_R_32F)
        return ((const float *)from)[i];
    return type == CUDA_R_16F ? of_half(((const uint16_t *)from)[i]) : of_bf16(((const uint16_t *)from)[i]);
}

void store(uint32_t type, void *to, int64_t i, double x)
{
    if (type == CUDA_R_64F)
        ((double *)to)[i] = x;
    else if (type == CUDA_R_32F)
        ((float *)to)[i] = (float)x;
    else
        ((uint16_t *)to)[i] = type == CUDA_R_16F ? to_half(x) : to_bf16(x);
}

/* ---- Requests -------------------------------------------------------------------------------- */

/* A product, with what it was asked for at the time of the call. */
struct product {
    description d;
    layout a, b, c, out;
    double alpha, beta;
    const char *A, *B, *C;
    char *D;
    uint64_t m, n, k;
};

int64_t step_of_row(const layout &l)
{
    return l.order == CUBLASLT_ORDER_COL ? 1 : l.ld;
}
int64_t step_of_col(const layout &l)
{
    return l.order == CUBLASLT_ORDER_COL ? l.ld : 1;
}

size_t bytes_of(const layout &l)
{
    const int64_t last = (int64_t)(l.rows - 1) * step_of_row(l) + (int64_t)(l.cols - 1) * step_of_col(l);
    return (size_t)((l.batches - 1) * l.stride + last + 1) * size_of(l.type);
}

void check_layout(const char *which, const layout &l)
{
    const uint64_t least = l.order == CUBLASLT_ORDER_COL ? l.rows : l.cols;
    if (l.order != CUBLASLT_ORDER_COL && l.order != CUBLASLT_ORDER_ROW)
        wrong("cublasLtMatmul: %s: it does not know order %d", which, l.order);
    if (!l.rows || !l.cols || l.batches < 1)
        wrong("cublasLtMatmul: %s is %zu x %zu, %d times: cuBLASLt refuses empty matrices", which, (size_t)l.rows,
              (size_t)l.cols, l.batches);
    if (l.ld < (int64_t)least)
        wrong("cublasLtMatmul: %s: leading dimension %ld, but lines of %zu", which, (long)l.ld, (size_t)least);
}

void check_shapes(const product &p)
{
    const bool ta = p.d.transposed[0] != CUBLAS_OP_N, tb = p.d.transposed[1] != CUBLAS_OP_N;
    check_layout("A", p.a);
    check_layout("B", p.b);
    check_layout("C", p.c);
    check_layout("D", p.out);
    if ((ta ? p.a.rows : p.a.cols) != p.k || (tb ? p.b.cols : p.b.rows) != p.k || (ta ? p.a.cols : p.a.rows) != p.m ||
        (tb ? p.b.rows : p.b.cols) != p.n || p.c.rows != p.m || p.c.cols != p.n)
        wrong("cublasLtMatmul: A %zu x %zu%s times B %zu x %zu%s, C %zu x %zu, D %zu x %zu", (size_t)p.a.rows,
              (size_t)p.a.cols, ta ? "^T" : "", (size_t)p.b.rows, (size_t)p.b.cols, tb ? "^T" : "", (size_t)p.c.rows,
              (size_t)p.c.cols, (size_t)p.m, (size_t)p.n);
    if (p.a.batches != p.out.batches || p.b.batches != p.out.batches || p.c.batches != p.out.batches)
        wrong("cublasLtMatmul: batches of %d, %d, %d and %d matrices", p.a.batches, p.b.batches, p.c.batches,
              p.out.batches);
    if (p.d.transposed[2] != CUBLAS_OP_N)
        wrong("cublasLtMatmul: C cannot be transposed");
    if (p.d.pointer_mode != CUBLASLT_POINTER_MODE_HOST)
        wrong("cublasLtMatmul: it takes alpha and beta from the host");
}

product product_of(cublasLtMatmulDesc_t d, cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c,
                   cublasLtMatrixLayout_t out)
{
    product p = {};
    p.d = *(const description *)d;
    p.a = of(a);
    p.b = of(b);
    p.c = of(c);
    p.out = of(out);
    p.m = p.out.rows;
    p.n = p.out.cols;
    p.k = p.d.transposed[0] == CUBLAS_OP_N ? p.a.cols : p.a.rows;
    check_shapes(p);
    return p;
}

/* The combinations of cuBLASLt's table that are of use to us. */
bool is_supported(const product &p)
{
    const uint32_t in = p.a.type, out = p.out.type;
    const bool plain = p.d.epilogue == CUBLASLT_EPILOGUE_DEFAULT;
    const uint32_t known = CUBLASLT_EPILOGUE_RELU | CUBLASLT_EPILOGUE_BIAS | CUBLASLT_EPILOGUE_GELU;
    if (p.b.type != in || p.c.type != out || (!plain && p.d.epilogue & ~known))
        return false;
    if (in == CUDA_R_64F)
        return out == in && p.d.compute == CUBLAS_COMPUTE_64F && p.d.scale == CUDA_R_64F && plain;
    if (p.d.scale != CUDA_R_32F)
        return false;
    if (in == CUDA_R_32F)
        return out == in && (p.d.compute == CUBLAS_COMPUTE_32F || p.d.compute == CUBLAS_COMPUTE_32F_FAST_TF32);
    return (in == CUDA_R_16F || in == CUDA_R_16BF) && (out == in || out == CUDA_R_32F) &&
           p.d.compute == CUBLAS_COMPUTE_32F;
}

uint64_t mixed(uint64_t hash, uint64_t with)
{
    return (hash ^ with) * 0x9e3779b97f4a7c15u + 1;
}

uint64_t hash_of(const product &p)
{
    uint64_t hash =
        mixed(mixed(p.d.compute, p.d.epilogue), (uint64_t)p.d.transposed[0] * 8 + (unsigned)p.d.transposed[1]);
    for (const layout *l : {&p.a, &p.b, &p.c, &p.out})
        for (const uint64_t part : {(uint64_t)l->type, (uint64_t)l->order, l->rows, l->cols, (uint64_t)l->ld,
                                    (uint64_t)l->batches, (uint64_t)l->stride})
            hash = mixed(hash, part);
    return hash;
}

/* ---- Computing ------------------------------------------------------------------------------- */

/* op(X)[i][j] of one matrix of a batch as rows of doubles. */
std::vector<double> unpacked(const product &p, const layout &l, const char *from, bool transposed)
{
    const uint64_t rows = transposed ? l.cols : l.rows, cols = transposed ? l.rows : l.cols;
    std::vector<double> x(rows * cols);
    for (uint64_t i = 0; i < rows; i++)
        for (uint64_t j = 0; j < cols; j++) {
            const int64_t row = (int64_t)(transposed ? j : i), col = (int64_t)(transposed ? i : j);
            double value = load(l.type, from, row * step_of_row(l) + col * step_of_col(l));
            if (p.d.compute == CUBLAS_COMPUTE_32F_FAST_TF32)
                value = of_bits(shortened(to_bits((float)value), 13));
            x[i * cols + j] = value;
        }
    return x;
}

/* As cuBLASLt holds what is between the sums and the result. */
double held(const product &p, double x)
{
    return p.d.scale == CUDA_R_64F ? x : (double)(float)x;
}

double finished(const product &p, double x, double bias)
{
    if (p.d.epilogue & CUBLASLT_EPILOGUE_BIAS)
        x = held(p, x + bias);
    if (p.d.epilogue & CUBLASLT_EPILOGUE_RELU)
        x = x > 0 ? x : 0; /* NaN is lost, as cuBLASLt's documentation allows */
    if (p.d.epilogue & CUBLASLT_EPILOGUE_GELU)
        x = 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    return x;
}

void multiply(const product &p, int64_t batch)
{
    const auto a = unpacked(p, p.a, p.A + batch * p.a.stride * (int64_t)size_of(p.a.type), p.d.transposed[0]);
    const auto b = unpacked(p, p.b, p.B + batch * p.b.stride * (int64_t)size_of(p.b.type), p.d.transposed[1]);
    const char *C = p.C + batch * p.c.stride * (int64_t)size_of(p.c.type);
    char *D = p.D + batch * p.out.stride * (int64_t)size_of(p.out.type);
    std::vector<double> row(p.n);
    for (uint64_t i = 0; i < p.m; i++) {
        row.assign(p.n, 0);
        for (uint64_t k = 0; k < p.k; k++)
            for (uint64_t j = 0; j < p.n; j++)
                row[j] += a[i * p.k + k] * b[k * p.n + j];
        const double bias = p.d.epilogue & CUBLASLT_EPILOGUE_BIAS
                                ? load(p.d.bias_type, p.d.bias, batch * p.d.bias_stride + (int64_t)i)
                                : 0;
        for (uint64_t j = 0; j < p.n; j++) {
            const int64_t c = (int64_t)i * step_of_row(p.c) + (int64_t)j * step_of_col(p.c),
                          d = (int64_t)i * step_of_row(p.out) + (int64_t)j * step_of_col(p.out);
            const double sum = held(p, p.alpha * row[j]);
            const double x = p.beta != 0 ? held(p, sum + p.beta * load(p.c.type, C, c)) : sum;
            store(p.out.type, D, d, finished(p, x, bias));
        }
    }
}

bool overlap(const char *a, size_t a_bytes, const char *b, size_t b_bytes)
{
    return a < b + b_bytes && b < a + a_bytes;
}

void check_memory(product &p)
{
    if (p.d.epilogue & CUBLASLT_EPILOGUE_BIAS) {
        if (p.d.bias_type == UINT32_MAX)
            p.d.bias_type = p.out.type;
        const int64_t elements = (p.out.batches - 1) * p.d.bias_stride + (int64_t)p.m;
        check_device("cublasLtMatmul: bias", p.d.bias, (size_t)elements * size_of(p.d.bias_type));
    }
    check_device("cublasLtMatmul: A", p.A, bytes_of(p.a));
    check_device("cublasLtMatmul: B", p.B, bytes_of(p.b));
    check_device("cublasLtMatmul: D", p.D, bytes_of(p.out));
    if (p.beta != 0)
        check_device("cublasLtMatmul: C", p.C, bytes_of(p.c));
    if (overlap(p.D, bytes_of(p.out), p.A, bytes_of(p.a)) || overlap(p.D, bytes_of(p.out), p.B, bytes_of(p.b)))
        wrong("cublasLtMatmul: D lies over A or B");
    if (p.out.batches > 1 && p.out.stride == 0)
        wrong("cublasLtMatmul: all matrices of D lie over each other");
    if (p.beta != 0 && p.C == p.D && (p.c.ld != p.out.ld || p.c.order != p.out.order || p.c.stride != p.out.stride))
        wrong("cublasLtMatmul: C and D are one buffer with two layouts");
}

void check_algorithm(const product &p, const algorithm &how, const void *workspace, size_t workspace_bytes)
{
    const void *const pointers[4] = {p.A, p.B, p.C, p.D};
    if (how.mark != MARK)
        wrong("cublasLtMatmul: the algorithm is not from cublasLtMatmulAlgoGetHeuristic");
    if (how.product != hash_of(p))
        wrong("cublasLtMatmul: the algorithm was chosen for another product");
    if (workspace_bytes < how.workspace)
        wrong("cublasLtMatmul: the algorithm needs %zu bytes of workspace, and gets %zu", (size_t)how.workspace,
              workspace_bytes);
    for (int i = 0; i < 4; i++)
        if (pointers[i] && (uintptr_t)pointers[i] % how.alignment[i])
            wrong("cublasLtMatmul: %c is at %p; the algorithm was asked for alignment %u", "ABCD"[i], pointers[i],
                  how.alignment[i]);
    if (how.workspace && (uintptr_t)workspace % ALIGNED)
        wrong("cublasLtMatmul: the workspace at %p is not aligned to %d bytes", workspace, ALIGNED);
}
} // namespace

extern "C" cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t d, const void *alpha,
                                         const void *A, cublasLtMatrixLayout_t a, const void *B,
                                         cublasLtMatrixLayout_t b, const void *beta, const void *C,
                                         cublasLtMatrixLayout_t c, void *D, cublasLtMatrixLayout_t out,
                                         const cublasLtMatmulAlgo_t *how, void *workspace, size_t workspace_bytes,
                                         cudaStream_t in)
{
    if (!handle || cudaPeekAtLastError() == cudaErrorLaunchFailure)
        return handle ? CUBLAS_STATUS_EXECUTION_FAILED : CUBLAS_STATUS_NOT_INITIALIZED;
    product p = product_of(d, a, b, c, out);
    if (!is_supported(p))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    if (fails("blas"))
        return CUBLAS_STATUS_EXECUTION_FAILED;
    p.alpha = load(p.d.scale, alpha, 0);
    p.beta = load(p.d.scale, beta, 0);
    p.A = (const char *)A;
    p.B = (const char *)B;
    p.C = (const char *)C;
    p.D = (char *)D;
    check_memory(p);
    if (how)
        check_algorithm(p, *(const algorithm *)how, workspace, workspace_bytes);
    if (workspace && workspace_bytes)
        check_device("cublasLtMatmul: workspace", workspace, workspace_bytes);
    stream *s = stream_of(in);
    const unsigned mask = reach(gpu_of(s));
    submit(s, [p, mask, workspace, workspace_bytes] {
        opened access(mask);
        if (workspace)
            memset(workspace, 0xff, std::min(workspace_bytes, (size_t)WORKSPACE)); /* nothing else may lie there */
        for (int64_t batch = 0; batch < p.out.batches; batch++)
            multiply(p, batch);
    });
    return CUBLAS_STATUS_SUCCESS;
}

extern "C" cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t d,
                                                         cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                                         cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t out,
                                                         cublasLtMatmulPreference_t want, int wanted,
                                                         cublasLtMatmulHeuristicResult_t results[], int *found)
{
    const product p = product_of(d, a, b, c, out);
    const preference &asked = *(const preference *)want;
    algorithm how = {MARK, {}, asked.workspace >= WORKSPACE ? (uint64_t)WORKSPACE : 0, hash_of(p)};
    *found = 0;
    if (wanted < 1)
        return CUBLAS_STATUS_INVALID_VALUE;
    if (!is_supported(p))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    for (int i = 0; i < 4; i++)
        how.alignment[i] = asked.alignment[i] < ALIGNED ? asked.alignment[i] : (uint32_t)ALIGNED;
    memset(&results[0], 0, sizeof results[0]);
    memcpy(&results[0].algo, &how, sizeof how);
    results[0].workspaceSize = how.workspace;
    results[0].state = CUBLAS_STATUS_SUCCESS;
    results[0].wavesCount = 1;
    *found = 1;
    return CUBLAS_STATUS_SUCCESS;
}
