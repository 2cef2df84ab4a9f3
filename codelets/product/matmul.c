/* SPDX-License-Identifier: Apache-2.0 */
/* Batched products. BLAS where memory can be described to it (one of the two strides 1), else a packed copy; where x or
 * y is a vector, matvec; integers by plain loops; halves in f32. Each batch element is one product. */
#include <cblas.h>
#include <limits.h>
#include <stdlib.h>

#include "base.h"
#include "kernel.h"
#include "loop.h"
#include "matvec.h"
#include "ops.h"
#include "product.h"
#include "scratch.h"

#define DECLARE_ROW(dtype, type, name) static loop_row name##_##dtype;

EACH_NUMBER(DECLARE_ROW, product)
EACH_COMPLEX(DECLARE_ROW, product)
static loop_row *const product_rows[TRAMA_N_DTYPES] = {
    EACH_NUMBER(ROW_ENTRY, product) EACH_COMPLEX(ROW_ENTRY, product)};

static void multiply(const trama_call *call, double alpha, double beta);

void cpu_matmul(const trama_call *call)
{
    multiply(call, 1, 0);
}

void cpu_matmul_add(const trama_call *call, kernel_addition how)
{
    multiply(call, how.factor, how.keep);
}

static trama_view matrix_view(const void *data, trama_dtype dtype, int64_t rows, int64_t columns, int64_t row,
                              int64_t column)
{
    return (trama_view){(void *)(uintptr_t)data, dtype, 2, {rows, columns}, {row, column}, {0}, {rows, columns}};
}

/* Replaces an operand of a sum by a packed copy, its contracted dims joined. Returns false without memory for it. */
static bool pack_rows(trama_view *v, scratch *memory, int operand)
{
    trama_view packed = *v;
    int64_t n = 1;
    for (int d = v->ndim - 1; d >= 0; d--) {
        packed.stride[d] = n;
        n *= v->extent[d];
    }
    packed.data = scratch_take(memory, operand, (size_t)n * trama_dtype_size(v->dtype));
    if (!packed.data)
        return false;
    kernel_copy(&packed, v);
    *v = packed;
    return product_join_rows(v);
}

static void multiply(const trama_call *call, double alpha, double beta)
{
    matrix_call matrices;
    scratch memory = {0};
    call = matrix_call_of(call, &matrices);
    for (int i = 0; i < 2 && call->attributes->integer[MATMUL_SUM_BATCH]; i++)
        if (!product_join_rows(&matrices.in[i]) && !pack_rows(&matrices.in[i], &memory, 1 + i)) {
            scratch_free(&memory);
            return;
        }
    const trama_view *arrays[3] = {&call->out[0], &call->in[0], &call->in[1]}, *view[3];
    product p = product_of(call);
    trama_view batch[3];

    p.scratch = &memory;
    p.alpha = alpha;
    p.beta = beta;
    if (p.k == 0 && beta == 0)
        kernel_fill(&call->out[0], 0);
    if (p.k == 0)
        return;
    if (p.m == 0 || p.n == 0)
        return;
    for (int a = 0; a < 3; a++) {
        batch[a] = *arrays[a];
        batch[a].ndim -= 2;
        view[a] = &batch[a];
    }
    loop_run(3, view, product_rows[call->out[0].dtype], &p);
    scratch_free(&memory);
}

/* ---- Plain loops -------------------------------------------------------------------------------- */

/* An element of an operand, or its conjugate. */
#define READ(dtype, operand, x) BY_KIND(READ, dtype)(dtype, operand, x)
#define READ_REAL(dtype, operand, x) (x)
#define READ_SIGNED(dtype, operand, x) (x)
#define READ_UNSIGNED(dtype, operand, x) (x)
#define READ_COMPLEX(dtype, operand, x) (p->conjugate[operand] ? ~(x) : (x)) /* ~ is GNU C for the conjugate */
#define PLAIN_PRODUCT(dtype, type, unused)                                                                             \
    static void plain_row_##dtype(const product *p, type *out, const type *x, const type *y)                           \
    {                                                                                                                  \
        for (int64_t j = 0; j < p->n && p->beta == 0; j++)                                                             \
            out[j * p->column[0]] = 0;                                                                                 \
        for (int64_t l = 0; l < p->k; l++) {                                                                           \
            const type at = READ(dtype, 1, x[l * p->column[1]]);                                                                       \
            const WRAP_##dtype factor = (WRAP_##dtype)(p->alpha == 1 ? at : (type)(p->alpha * (SUM(dtype))at));        \
            for (int64_t j = 0; j < p->n; j++)                                                                         \
                out[j * p->column[0]] = (type)((WRAP_##dtype)out[j * p->column[0]] +                                   \
                                               factor * (WRAP_##dtype)READ(dtype, 2, y[l * p->row[2] + j * p->column[2]])); \
        }                                                                                                              \
    }                                                                                                                  \
    static void plain_##dtype(const product *p, type *out, const type *x, const type *y)                               \
    {                                                                                                                  \
        for (int64_t i = 0; i < p->m; i++)                                                                             \
            plain_row_##dtype(p, out + i * p->row[0], x + i * p->row[1], y);                                           \
    }
EACH_REAL(PLAIN_PRODUCT, )
EACH_INTEGER(PLAIN_PRODUCT, )
EACH_COMPLEX(PLAIN_PRODUCT, )

#define PLAIN_ROW(dtype, type, unused)                                                                                 \
    ROW_SIGNATURE(product_##dtype)                                                                                     \
    {                                                                                                                  \
        for (int64_t b = 0; b < n; b++)                                                                                \
            plain_##dtype(with, (type *)data[0] + b * step[0], (const type *)data[1] + b * step[1],                    \
                          (const type *)data[2] + b * step[2]);                                                        \
    }
EACH_INTEGER(PLAIN_ROW, )

/* ---- BLAS --------------------------------------------------------------------------------------- */

/* A matrix as BLAS reads it, row-major; transposed if its columns are contiguous and its rows are not. */
typedef struct matrix {
    void *data;
    CBLAS_TRANSPOSE transpose;
    int ld;
} matrix;

/* The distance between lines of n contiguous elements, or 0 if BLAS cannot take them. */
static int leading(int64_t lines, int64_t n, int64_t line_step, int64_t step)
{
    const int64_t least = n > 1 ? n : 1, ld = lines > 1 ? line_step : least;
    return (n > 1 && step != 1) || ld < least || ld > INT_MAX ? 0 : (int)ld;
}

static void conjugate(void *data, int64_t n, trama_dtype dtype)
{
    for (int64_t i = 0; i < n && dtype == TRAMA_C64; i++)
        ((trama_c64 *)data)[i] = ~((trama_c64 *)data)[i];
    for (int64_t i = 0; i < n && dtype == TRAMA_C128; i++)
        ((trama_c128 *)data)[i] = ~((trama_c128 *)data)[i];
}

/* Operand 1 or 2 of a product; data is NULL where there is no memory for a packed copy. BLAS conjugates what it
 * transposes. */
static matrix matrix_of(const product *p, int operand, const void *data, trama_dtype dtype)
{
    const int64_t rows = operand == 1 ? p->m : p->k, columns = operand == 1 ? p->k : p->n;
    const int64_t row = p->row[operand], column = p->column[operand];
    const bool conjugated = p->conjugate[operand];
    matrix a = {.data = (void *)(uintptr_t)data, .transpose = CblasNoTrans};

    if (!conjugated && (a.ld = leading(rows, columns, row, column)))
        return a;
    a.transpose = conjugated ? CblasConjTrans : CblasTrans;
    if ((a.ld = leading(columns, rows, column, row)))
        return a;
    const trama_view from = {a.data, dtype, 2, {rows, columns}, {row, column}, {0}, {rows, columns}};
    a.data = scratch_take(p->scratch, operand, (size_t)(rows * columns) * trama_dtype_size(dtype));
    a.transpose = CblasNoTrans;
    a.ld = (int)columns;
    if (!a.data)
        return a;
    const trama_view to = {a.data, dtype, 2, {rows, columns}, {columns, 1}, {0}, {rows, columns}};
    kernel_copy(&to, &from);
    if (conjugated)
        conjugate(a.data, rows * columns, dtype);
    return a;
}

static bool fits_blas(const product *p)
{
    return p->m <= INT_MAX && p->n <= INT_MAX && p->k <= INT_MAX;
}

/* Into out if its rows, or else its columns, are contiguous; otherwise into a packed copy of out first. */
#define BLAS_PRODUCT(dtype, type, gemm, SCALAR)                                                                                \
    static bool into_rows_##dtype(const product *p, type *out, int ld, const type *x, const type *y)                   \
    {                                                                                                                  \
        const matrix a = matrix_of(p, 1, x, dtype), b = matrix_of(p, 2, y, dtype);                                     \
        if (!a.data || !b.data)                                                                                        \
            return false;                                                                                              \
        const int threads = blas_enter();                                                                              \
        gemm(CblasRowMajor, a.transpose, b.transpose, (int)p->m, (int)p->n, (int)p->k, SCALAR(type, p->alpha), a.data, \
             a.ld, b.data, b.ld, SCALAR(type, p->beta), out, ld);                                                                    \
        blas_leave(threads);                                                                                           \
        return true;                                                                                                   \
    }                                                                                                                  \
    static void through_copy_##dtype(const product *p, type *out, const type *x, const type *y)                        \
    {                                                                                                                  \
        type *packed = scratch_take(p->scratch, 0, (size_t)(p->m * p->n) * sizeof *packed);                            \
        const trama_view from = {packed, dtype, 2, {p->m, p->n}, {p->n, 1}, {0}, {p->m, p->n}};                        \
        const trama_view to = {out, dtype, 2, {p->m, p->n}, {p->row[0], p->column[0]}, {0}, {p->m, p->n}};             \
        if (packed && p->beta != 0)                                                                                    \
            kernel_copy(&from, &to);                                                                                   \
        if (packed && into_rows_##dtype(p, packed, (int)p->n, x, y))                                                   \
            kernel_copy(&to, &from);                                                                                   \
    }                                                                                                                  \
    static void blas_##dtype(const product *p, type *out, const type *x, const type *y)                                \
    {                                                                                                                  \
        const int ld = leading(p->m, p->n, p->row[0], p->column[0]);                                                   \
        const int ld_turned = leading(p->n, p->m, p->column[0], p->row[0]);                                            \
        const product other = product_turned(p);                                                                       \
        if (!fits_blas(p))                                                                                             \
            plain_##dtype(p, out, x, y);                                                                               \
        else if (ld)                                                                                                   \
            into_rows_##dtype(p, out, ld, x, y);                                                                       \
        else if (ld_turned)                                                                                            \
            into_rows_##dtype(&other, out, ld_turned, y, x);                                                           \
        else                                                                                                           \
            through_copy_##dtype(p, out, x, y);                                                                        \
    }
#define BY_VALUE(type, x) (type)(x)
#define BY_ADDRESS(type, x) &(type){x}
BLAS_PRODUCT(TRAMA_F32, float, cblas_sgemm, BY_VALUE)
BLAS_PRODUCT(TRAMA_F64, double, cblas_dgemm, BY_VALUE)
BLAS_PRODUCT(TRAMA_C64, trama_c64, cblas_cgemm, BY_ADDRESS)
BLAS_PRODUCT(TRAMA_C128, trama_c128, cblas_zgemm, BY_ADDRESS)

/* ---- Halves: blocks of f32, which the BLAS adds up over all of k, and which are rounded once ----------- */

/* BLOCK: the most rows and columns of a block. TERMS: the most terms that are in memory as f32 at once. */
enum { BLOCK = 1024, TERMS = 512, HALF_BYTES = 2 };

#define HALF_STORE(dtype, type, unused)                                                                                \
    FAST ROW_SIGNATURE(half_store_##dtype)                                                                             \
    {                                                                                                                  \
        const product *p = with;                                                                                       \
        const float alpha = (float)p->alpha, *sum = data[1];                                                           \
        type *out = data[0];                                                                                           \
        if (p->beta == 0)                                                                                              \
            for (int64_t i = 0; i < n; i++)                                                                            \
                out[i * step[0]] = STORE(dtype, alpha * sum[i * step[1]]);                                            \
        else                                                                                                           \
            for (int64_t i = 0; i < n; i++)                                                                            \
                out[i * step[0]] = STORE(dtype, alpha * sum[i * step[1]] + LOAD(dtype, out[i * step[0]]));           \
    }
EACH_HALF(HALF_STORE, )
static loop_row *const half_store_rows[TRAMA_N_DTYPES] = {EACH_HALF(ROW_ENTRY, half_store)};

/* Copies operand a (1 or 2) of the part as f32; neighbours stay neighbours. Its steps become those of the copy. */
static void half_load(product *part, int a, float *to, const void *from, trama_dtype dtype)
{
    const int64_t rows = a == 1 ? part->m : part->k, columns = a == 1 ? part->k : part->n;
    const bool turned = part->row[a] == 1 && part->column[a] != 1;
    const trama_view source = matrix_view(from, dtype, rows, columns, part->row[a], part->column[a]);

    part->row[a] = turned ? 1 : columns;
    part->column[a] = turned ? rows : 1;
    const trama_view copy = matrix_view(to, TRAMA_F32, rows, columns, part->row[a], part->column[a]);
    cpu_cast(&(trama_call){.n_in = 1, .n_out = 1, .in = &source, .out = &copy});
}

/* sum [m, n] = x y. parts: room for the operands' parts. */
static void half_sum(const product *p, float *sum, float *parts, const char *x, const char *y, trama_dtype dtype)
{
    for (int64_t l = 0; l < p->k; l += TERMS) {
        product part = *p;
        part.k = min_i64(TERMS, p->k - l);
        part.alpha = 1;
        part.beta = l > 0;
        part.scratch = NULL; /* the BLAS takes these operands as they are */
        part.row[0] = p->n;
        part.column[0] = 1;
        half_load(&part, 1, parts, x + l * p->column[1] * HALF_BYTES, dtype);
        half_load(&part, 2, parts + p->m * part.k, y + l * p->row[2] * HALF_BYTES, dtype);
        blas_TRAMA_F32(&part, sum, parts, parts + p->m * part.k);
    }
}

static void half_product(const product *p, char *out, const char *x, const char *y, trama_dtype dtype)
{
    const int64_t m = min_i64(p->m, BLOCK), n = min_i64(p->n, BLOCK), k = min_i64(p->k, TERMS);
    float *sum = scratch_take(p->scratch, 0, (size_t)(m * n + m * k + k * n) * sizeof *sum);
    product block = *p;

    for (int64_t i = 0; i < p->m && sum; i += m)
        for (int64_t j = 0; j < p->n; j += n) {
            block.m = min_i64(m, p->m - i);
            block.n = min_i64(n, p->n - j);
            half_sum(&block, sum, sum + m * n, x + i * p->row[1] * HALF_BYTES, y + j * p->column[2] * HALF_BYTES,
                     dtype);
            char *at = out + (i * p->row[0] + j * p->column[0]) * HALF_BYTES;
            const trama_view to = matrix_view(at, dtype, block.m, block.n, p->row[0], p->column[0]);
            const trama_view from = matrix_view(sum, TRAMA_F32, block.m, block.n, block.n, 1);
            loop_run(2, (const trama_view *[]){&to, &from}, half_store_rows[dtype], p);
        }
}

#define HALF_PRODUCT(dtype, type, unused)                                                                              \
    static void blas_##dtype(const product *p, type *out, const type *x, const type *y)                                \
    {                                                                                                                  \
        half_product(p, (char *)out, (const char *)x, (const char *)y, dtype);                                         \
    }
EACH_HALF(HALF_PRODUCT, )

/* ---- All floats --------------------------------------------------------------------------------- */

#define VECTOR_PRODUCT(dtype, type, unused)                                                                            \
    static void vector_##dtype(const product *p, type *out, const type *x, const type *y)                              \
    {                                                                                                                  \
        const product o = p->vector_y ? *p : product_turned(p);                                                        \
        matvec v = {o.m, o.k, o.alpha, o.beta, o.row[0], o.row[1], o.column[1], o.row[2], NULL};                       \
        if (v.y != 1 && v.k > 1 && !(v.packed = scratch_take(p->scratch, 0, (size_t)v.k * sizeof(type))))              \
            return;                                                                                                    \
        matvec_##dtype(&v, out, p->vector_y ? x : y, p->vector_y ? y : x);                                             \
    }
EACH_FLOAT(VECTOR_PRODUCT, )

#define BLAS_ROW(dtype, type, unused)                                                                                  \
    ROW_SIGNATURE(product_##dtype)                                                                                     \
    {                                                                                                                  \
        product whole;                                                                                                 \
        const bool one = product_is_one(with, n, step, &whole);                                                        \
        for (int64_t b = 0; b < (one ? 1 : n); b++)                                                                    \
            (whole.vector_x || whole.vector_y ? vector_##dtype : blas_##dtype)(                                        \
                one ? &whole : with, (type *)data[0] + b * step[0], (const type *)data[1] + b * step[1],               \
                (const type *)data[2] + b * step[2]);                                                                  \
    }
EACH_FLOAT(BLAS_ROW, )
#define COMPLEX_ROW(dtype, type, unused)                                                                               \
    ROW_SIGNATURE(product_##dtype)                                                                                     \
    {                                                                                                                  \
        product whole;                                                                                                 \
        const bool one = product_is_one(with, n, step, &whole);                                                        \
        for (int64_t b = 0; b < (one ? 1 : n); b++)                                                                    \
            blas_##dtype(one ? &whole : with, (type *)data[0] + b * step[0], (const type *)data[1] + b * step[1],      \
                         (const type *)data[2] + b * step[2]);                                                         \
    }
EACH_COMPLEX(COMPLEX_ROW, )
