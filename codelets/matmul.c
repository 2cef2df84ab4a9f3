/* SPDX-License-Identifier: Apache-2.0 */
/* Batched products. BLAS where memory can be described to it (one of the two strides 1), else a packed copy; where x or
 * y is a vector, matvec; integers by plain loops. Each batch element is one product. */
#include <cblas.h>
#include <limits.h>
#include <stdlib.h>

#include "base.h"
#include "kernel.h"
#include "loop.h"
#include "matvec.h"
#include "ops.h"

/* out [m, n] = alpha x [m, k] y [k, n] + beta out, each with the steps of its rows and columns; beta is 0 or 1, and
 * integers know alpha 1 and beta 0 only. */
typedef struct product {
    int64_t m, n, k;
    double alpha, beta;
    int64_t row[3], column[3]; /* of out, x, y */
    bool vector_x, vector_y;   /* the whole tensors, whatever part of them this is, have one row, or column */
} product;

#define DECLARE_ROW(dtype, type, name) static loop_row name##_##dtype;

EACH_DTYPE(DECLARE_ROW, product)
static loop_row *const product_rows[TRAMA_N_DTYPES] = {EACH_DTYPE(ROW_ENTRY, product)};

static product product_of(const trama_call *call);
static void multiply(const trama_call *call, double alpha, double beta);

void cpu_matmul(const trama_call *call)
{
    multiply(call, 1, 0);
}

void matmul_add(const trama_call *call, kernel_addition how)
{
    multiply(call, how.factor, how.keep);
}

static void multiply(const trama_call *call, double alpha, double beta)
{
    const trama_view *arrays[3] = {&call->out[0], &call->in[0], &call->in[1]}, *view[3];
    product p = product_of(call);
    trama_view batch[3];

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
}

static void steps_of(product *p, int array, const trama_view *view, bool transposed)
{
    const int rows = view->ndim - (transposed ? 1 : 2), columns = view->ndim - (transposed ? 2 : 1);
    p->row[array] = view->stride[rows];
    p->column[array] = view->stride[columns];
}

static int64_t batches(const trama_view *view)
{
    int64_t n = 1;
    for (int d = 0; d < view->ndim - 2; d++)
        n *= view->global[d];
    return n;
}

static product product_of(const trama_call *call)
{
    const trama_view *out = &call->out[0], *x = &call->in[0];
    const bool trans_x = call->attributes->integer[MATMUL_TRANS_X], trans_y = call->attributes->integer[MATMUL_TRANS_Y];
    product p = {.m = out->extent[out->ndim - 2], .n = out->extent[out->ndim - 1]};

    p.k = x->extent[x->ndim - (trans_x ? 2 : 1)];
    steps_of(&p, 0, out, false);
    steps_of(&p, 1, x, trans_x);
    steps_of(&p, 2, &call->in[1], trans_y);
    p.vector_y = out->global[out->ndim - 1] == 1;
    /* Rows that share y are the rows of one product with it. */
    p.vector_x = !p.vector_y && out->global[out->ndim - 2] == 1 && batches(out) == batches(&call->in[1]);
    return p;
}

/* ---- Plain loops -------------------------------------------------------------------------------- */

#define PLAIN_PRODUCT(dtype, type, unused)                                                                             \
    static void plain_row_##dtype(const product *p, type *out, const type *x, const type *y)                           \
    {                                                                                                                  \
        for (int64_t j = 0; j < p->n && p->beta == 0; j++)                                                             \
            out[j * p->column[0]] = 0;                                                                                 \
        for (int64_t l = 0; l < p->k; l++) {                                                                           \
            const type at = x[l * p->column[1]];                                                                       \
            const WRAP_##dtype factor = (WRAP_##dtype)(p->alpha == 1 ? at : (type)(p->alpha * (double)at));            \
            for (int64_t j = 0; j < p->n; j++)                                                                         \
                out[j * p->column[0]] = (type)((WRAP_##dtype)out[j * p->column[0]] +                                   \
                                               factor * (WRAP_##dtype)y[l * p->row[2] + j * p->column[2]]);            \
        }                                                                                                              \
    }                                                                                                                  \
    static void plain_##dtype(const product *p, type *out, const type *x, const type *y)                               \
    {                                                                                                                  \
        for (int64_t i = 0; i < p->m; i++)                                                                             \
            plain_row_##dtype(p, out + i * p->row[0], x + i * p->row[1], y);                                           \
    }
EACH_DTYPE(PLAIN_PRODUCT, )

#define PLAIN_ROW(dtype, type, unused)                                                                                 \
    ROW_SIGNATURE(product_##dtype)                                                                                     \
    {                                                                                                                  \
        for (int64_t b = 0; b < n; b++)                                                                                \
            plain_##dtype(with, (type *)data[0] + b * step[0], (const type *)data[1] + b * step[1],                    \
                          (const type *)data[2] + b * step[2]);                                                        \
    }
EACH_INTEGER(PLAIN_ROW, )

/* ---- BLAS --------------------------------------------------------------------------------------- */

/* A matrix as BLAS reads it, row-major: transposed where its rows and not its columns are contiguous. */
typedef struct matrix {
    void *data, *packed;
    CBLAS_TRANSPOSE transpose;
    int ld;
} matrix;

/* The distance between lines of n contiguous elements, or 0 if BLAS cannot take them. */
static int leading(int64_t lines, int64_t n, int64_t line_step, int64_t step)
{
    const int64_t least = n > 1 ? n : 1, ld = lines > 1 ? line_step : least;
    return (n > 1 && step != 1) || ld < least || ld > INT_MAX ? 0 : (int)ld;
}

static matrix matrix_of(const void *data, trama_dtype dtype, int64_t rows, int64_t columns, int64_t row, int64_t column)
{
    matrix a = {.data = (void *)(uintptr_t)data, .transpose = CblasNoTrans};

    if ((a.ld = leading(rows, columns, row, column)))
        return a;
    a.transpose = CblasTrans;
    if ((a.ld = leading(columns, rows, column, row)))
        return a;
    const trama_view from = {a.data, dtype, 2, {rows, columns}, {row, column}, {0}, {rows, columns}};
    a.data = a.packed = trama_resize(NULL, (size_t)(rows * columns) * trama_dtype_size(dtype));
    a.transpose = CblasNoTrans;
    a.ld = (int)columns;
    const trama_view to = {a.data, dtype, 2, {rows, columns}, {columns, 1}, {0}, {rows, columns}};
    kernel_copy(&to, &from);
    return a;
}

/* The transposed product: out' = y' x'. */
static product turned(const product *p)
{
    return (product){
        .m = p->n,
        .n = p->m,
        .k = p->k,
        .alpha = p->alpha,
        .beta = p->beta,
        .row = {p->column[0], p->column[2], p->column[1]},
        .column = {p->row[0], p->row[2], p->row[1]},
    };
}

static bool fits_blas(const product *p)
{
    return p->m <= INT_MAX && p->n <= INT_MAX && p->k <= INT_MAX;
}

/* With out's columns, or else its rows, contiguous; otherwise into a packed copy of out first. */
#define BLAS_PRODUCT(dtype, type, gemm)                                                                                \
    static void into_rows_##dtype(const product *p, type *out, int ld, const type *x, const type *y)                   \
    {                                                                                                                  \
        const matrix a = matrix_of(x, dtype, p->m, p->k, p->row[1], p->column[1]);                                     \
        const matrix b = matrix_of(y, dtype, p->k, p->n, p->row[2], p->column[2]);                                     \
        const int threads = blas_enter();                                                                              \
        gemm(CblasRowMajor, a.transpose, b.transpose, (int)p->m, (int)p->n, (int)p->k, (type)p->alpha, a.data, a.ld,   \
             b.data, b.ld, (type)p->beta, out, ld);                                                                    \
        blas_leave(threads);                                                                                           \
        free(a.packed);                                                                                                \
        free(b.packed);                                                                                                \
    }                                                                                                                  \
    static void through_copy_##dtype(const product *p, type *out, const type *x, const type *y)                        \
    {                                                                                                                  \
        type *packed = trama_resize(NULL, (size_t)(p->m * p->n) * sizeof *packed);                                     \
        const trama_view from = {packed, dtype, 2, {p->m, p->n}, {p->n, 1}, {0}, {p->m, p->n}};                        \
        const trama_view to = {out, dtype, 2, {p->m, p->n}, {p->row[0], p->column[0]}, {0}, {p->m, p->n}};             \
        if (p->beta != 0)                                                                                              \
            kernel_copy(&from, &to);                                                                                   \
        into_rows_##dtype(p, packed, (int)p->n, x, y);                                                                 \
        kernel_copy(&to, &from);                                                                                       \
        free(packed);                                                                                                  \
    }                                                                                                                  \
    static void blas_##dtype(const product *p, type *out, const type *x, const type *y)                                \
    {                                                                                                                  \
        const int ld = leading(p->m, p->n, p->row[0], p->column[0]);                                                   \
        const int ld_turned = leading(p->n, p->m, p->column[0], p->row[0]);                                            \
        const product other = turned(p);                                                                               \
        if (!fits_blas(p))                                                                                             \
            plain_##dtype(p, out, x, y);                                                                               \
        else if (ld)                                                                                                   \
            into_rows_##dtype(p, out, ld, x, y);                                                                       \
        else if (ld_turned)                                                                                            \
            into_rows_##dtype(&other, out, ld_turned, y, x);                                                           \
        else                                                                                                           \
            through_copy_##dtype(p, out, x, y);                                                                        \
    }
BLAS_PRODUCT(TRAMA_F32, float, cblas_sgemm)
BLAS_PRODUCT(TRAMA_F64, double, cblas_dgemm)

/* Whether n products with one y are one: the rows of x and out run on from batch to batch. */
static bool is_one_product(const product *p, int64_t n, const int64_t *step, product *whole)
{
    *whole = *p;
    whole->m = p->m * n;
    if (p->m == 1) {
        whole->row[0] = step[0];
        whole->row[1] = step[1];
    }
    return step[2] == 0 && step[0] == p->m * whole->row[0] && step[1] == p->m * whole->row[1];
}

#define VECTOR_PRODUCT(dtype, type, name)                                                                              \
    static void vector_##dtype(const product *p, type *out, const type *x, const type *y)                              \
    {                                                                                                                  \
        const product o = p->vector_y ? *p : turned(p);                                                                \
        const matvec v = {o.m, o.k, o.alpha, o.beta, o.row[0], o.row[1], o.column[1], o.row[2]};                       \
        name(&v, out, p->vector_y ? x : y, p->vector_y ? y : x);                                                       \
    }
VECTOR_PRODUCT(TRAMA_F32, float, matvec_f32)
VECTOR_PRODUCT(TRAMA_F64, double, matvec_f64)

#define BLAS_ROW(dtype, type, unused)                                                                                  \
    ROW_SIGNATURE(product_##dtype)                                                                                     \
    {                                                                                                                  \
        product whole;                                                                                                 \
        const bool one = is_one_product(with, n, step, &whole);                                                        \
        for (int64_t b = 0; b < (one ? 1 : n); b++)                                                                    \
            (whole.vector_x || whole.vector_y ? vector_##dtype : blas_##dtype)(                                        \
                one ? &whole : with, (type *)data[0] + b * step[0], (const type *)data[1] + b * step[1],               \
                (const type *)data[2] + b * step[2]);                                                                  \
    }
EACH_FLOAT(BLAS_ROW, )
