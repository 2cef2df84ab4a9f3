/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of attention for each element type. */
#include <cblas.h>

#include "attention.h"
#include "exponential.h"
#include "ops.h"

/* ---- Elements ---- */

#define ROW_OF(type, m, r) ((type *)(m).data + (r) * (m).row)

#define ATTENTION_ELEMENTS(dtype, type, unused)                                                                        \
    FAST static void load_##dtype(void *to, attention_matrix from, int64_t rows, int64_t columns)                      \
    {                                                                                                                  \
        for (int64_t r = 0; r < rows; r++) {                                                                           \
            NUMBER_##dtype *y = (NUMBER_##dtype *)to + r * columns;                                                    \
            const type *x = ROW_OF(type, from, r);                                                                     \
            for (int64_t c = 0; c < columns; c++)                                                                      \
                y[c] = LOAD(dtype, x[c * from.column]);                                                                \
        }                                                                                                              \
    }                                                                                                                  \
    FAST static void store_##dtype(attention_matrix to, const void *from, int64_t rows, int64_t columns)               \
    {                                                                                                                  \
        for (int64_t r = 0; r < rows; r++) {                                                                           \
            const NUMBER_##dtype *x = (const NUMBER_##dtype *)from + r * columns;                                      \
            type *y = ROW_OF(type, to, r);                                                                             \
            for (int64_t c = 0; c < columns; c++)                                                                      \
                y[c * to.column] = STORE(dtype, x[c]);                                                                 \
        }                                                                                                              \
    }                                                                                                                  \
    FAST static void pack_##dtype(void *to, attention_matrix from, int64_t rows, int64_t columns, int64_t width,       \
                                  double factor)                                                                       \
    {                                                                                                                  \
        NUMBER_##dtype *y = to;                                                                                        \
        const NUMBER_##dtype by = (NUMBER_##dtype)factor;                                                              \
        for (int64_t first = 0; first < rows; first += width) {                                                        \
            const int64_t n = min_i64(rows - first, width);                                                            \
            const type *x = ROW_OF(type, from, first);                                                                 \
            for (int64_t c = 0; c < columns; c++, x += from.column, y += width) {                                      \
                for (int64_t r = 0; r < n; r++)                                                                        \
                    y[r] = LOAD(dtype, x[r * from.row]) * by;                                                          \
                for (int64_t r = n; r < width; r++)                                                                    \
                    y[r] = 0;                                                                                          \
            }                                                                                                          \
        }                                                                                                              \
    }                                                                                                                  \
    FAST static void unpack_##dtype(attention_matrix to, const void *from, int64_t rows, int64_t columns,              \
                                    int64_t width, const double *factor)                                               \
    {                                                                                                                  \
        for (int64_t r = 0; r < rows; r++) {                                                                           \
            const NUMBER_##dtype *x = (const NUMBER_##dtype *)from + r, by = (NUMBER_##dtype)factor[r];                \
            type *y = ROW_OF(type, to, r);                                                                             \
            for (int64_t c = 0; c < columns; c++)                                                                      \
                y[c * to.column] = STORE(dtype, x[c * width] * by);                                                    \
        }                                                                                                              \
    }                                                                                                                  \
    FAST static void add_mask_##dtype(void *scores, int64_t row, int64_t column, attention_matrix mask, int64_t rows,  \
                                      int64_t columns)                                                                 \
    {                                                                                                                  \
        for (int64_t r = 0; r < rows; r++) {                                                                           \
            NUMBER_##dtype *s = (NUMBER_##dtype *)scores + r * row;                                                    \
            const type *x = ROW_OF(type, mask, r);                                                                     \
            for (int64_t c = 0; c < columns; c++)                                                                      \
                s[c * column] += LOAD(dtype, x[c * mask.column]);                                                      \
        }                                                                                                              \
    }
EACH_FLOAT(ATTENTION_ELEMENTS, )

/* ---- Numbers ---- */

#define ATTENTION_NUMBERS(dtype, type, unused)                                                                         \
    FAST static void hide_##dtype(void *scores, int64_t row, int64_t column, attention_matrix mask, int64_t rows,      \
                                  int64_t columns)                                                                     \
    {                                                                                                                  \
        for (int64_t r = 0; r < rows; r++) {                                                                           \
            type *s = (type *)scores + r * row;                                                                        \
            const bool *x = ROW_OF(bool, mask, r);                                                                     \
            for (int64_t c = 0; c < columns; c++)                                                                      \
                s[c * column] = x[c * mask.column] ? s[c * column] : -INFINITY;                                        \
        }                                                                                                              \
    }                                                                                                                  \
    static void cover_##dtype(void *scores, int64_t keys, int64_t width, int64_t ld, int64_t first)                    \
    {                                                                                                                  \
        for (int64_t r = max_i64(0, -first); r < keys; r++)                                                            \
            for (int64_t c = 0; c < min_i64(first + r, width); c++)                                                    \
                ((type *)scores)[r * ld + c] = -INFINITY;                                                              \
    }                                                                                                                  \
    static void keep_##dtype(attention_matrix to, const double *from, int64_t rows)                                    \
    {                                                                                                                  \
        for (int64_t r = 0; r < rows; r++)                                                                             \
            *ROW_OF(type, to, r) = (type)from[r];                                                                      \
    }                                                                                                                  \
    static void recall_##dtype(double *to, attention_matrix from, int64_t rows)                                        \
    {                                                                                                                  \
        for (int64_t r = 0; r < rows; r++)                                                                             \
            to[r] = (double)*ROW_OF(type, from, r);                                                                    \
    }                                                                                                                  \
    FAST static void soften_##dtype(void *scores, int64_t keys, int64_t width, int64_t ld, double *top, double *sum,   \
                                    void *out, int64_t features)                                                       \
    {                                                                                                                  \
        type most[ATTENTION_QUERIES], by[ATTENTION_QUERIES];                                                           \
        bool risen = false;                                                                                            \
        for (int64_t c = 0; c < width; c++)                                                                            \
            most[c] = (type)top[c];                                                                                    \
        for (int64_t r = 0; r < keys; r++) {                                                                           \
            const type *s = (const type *)scores + r * ld;                                                             \
            INDEPENDENT                                                                                                \
            for (int64_t c = 0; c < width; c++)                                                                        \
                most[c] = MAXIMUM(dtype, most[c], s[c]);                                                               \
        }                                                                                                              \
        for (int64_t c = 0; c < width; c++) {                                                                          \
            const type before = (type)top[c];                                                                          \
            top[c] = (double)most[c];                                                                                  \
            risen |= !(most[c] == before);                                                                             \
            most[c] = most[c] == -INFINITY ? 0 : most[c]; /* exp(-infinity - 0) is 0 */                                \
            by[c] = exp_of_##dtype(before - most[c]);                                                                  \
            sum[c] *= by[c];                                                                                           \
        }                                                                                                              \
        for (int64_t r = 0; r < keys; r++) {                                                                           \
            type *s = (type *)scores + r * ld;                                                                         \
            INDEPENDENT                                                                                                \
            for (int64_t c = 0; c < width; c++) {                                                                      \
                s[c] = exp_of_##dtype(s[c] - most[c]);                                                                 \
                sum[c] += s[c];                                                                                        \
            }                                                                                                          \
        }                                                                                                              \
        for (int64_t f = 0; f < features && risen; f++) {                                                              \
            type *y = (type *)out + f * ld;                                                                            \
            INDEPENDENT                                                                                                \
            for (int64_t c = 0; c < width; c++)                                                                        \
                y[c] *= by[c];                                                                                         \
        }                                                                                                              \
    }                                                                                                                  \
    FAST static void slope_row_##dtype(type *p, type *slope, int64_t n, type lse, type delta)                          \
    {                                                                                                                  \
        INDEPENDENT                                                                                                    \
        for (int64_t c = 0; c < n; c++) {                                                                              \
            p[c] = exp_of_##dtype(p[c] - lse);                                                                         \
            slope[c] = p[c] * (slope[c] - delta);                                                                      \
        }                                                                                                              \
    }                                                                                                                  \
    static void derive_##dtype(void *scores, void *slopes, int64_t rows, int64_t columns, const int64_t *length,       \
                               attention_matrix lse, attention_matrix delta)                                           \
    {                                                                                                                  \
        for (int64_t r = 0; r < rows; r++) {                                                                           \
            type *p = (type *)scores + r * ATTENTION_COLUMNS, *slope = (type *)slopes + r * ATTENTION_COLUMNS;         \
            const type sum = *ROW_OF(type, lse, r);                                                                    \
            const int64_t n = sum == -INFINITY ? 0 : length[r];                                                        \
            slope_row_##dtype(p, slope, n, sum, *ROW_OF(type, delta, r));                                              \
            memset(p + n, 0, (size_t)(columns - n) * sizeof *p);                                                       \
            memset(slope + n, 0, (size_t)(columns - n) * sizeof *slope);                                               \
        }                                                                                                              \
    }
EACH_REAL(ATTENTION_NUMBERS, )

#define ATTENTION_PRODUCT(dtype, type, gemm)                                                                           \
    static void multiply_##dtype(bool a_turned, bool b_turned, int64_t m, int64_t n, int64_t k, double alpha,          \
                                 const void *a, int64_t lda, const void *b, int64_t ldb, bool first, void *c,          \
                                 int64_t ldc)                                                                          \
    {                                                                                                                  \
        if (m == 0 || n == 0)                                                                                          \
            return;                                                                                                    \
        const int threads = blas_enter();                                                                              \
        gemm(CblasRowMajor, a_turned ? CblasTrans : CblasNoTrans, b_turned ? CblasTrans : CblasNoTrans, (int)m,        \
             (int)n, (int)k, (type)alpha, a, (int)lda, b, (int)ldb, first ? 0 : 1, c, (int)ldc);                       \
        blas_leave(threads);                                                                                           \
    }
ATTENTION_PRODUCT(TRAMA_F32, float, cblas_sgemm)
ATTENTION_PRODUCT(TRAMA_F64, double, cblas_dgemm)

/* ---- Types ---- */

#define OF_NUMBER(function, dtype) EXPANDED(OF_NUMBER_, function, COMPUTE_##dtype)
#define OF_NUMBER_(function, dtype) function##_##dtype
#define BLOCK_TRAMA_F32 block_add_f32
#define BLOCK_TRAMA_F64 block_add_f64
#define ATTENTION_TYPE(dtype, type, unused)                                                                            \
    [dtype] = {sizeof(NUMBER_##dtype),                                                                                 \
               dtype == COMPUTE_##dtype,                                                                               \
               load_##dtype,                                                                                           \
               store_##dtype,                                                                                          \
               pack_##dtype,                                                                                           \
               unpack_##dtype,                                                                                         \
               add_mask_##dtype,                                                                                       \
               OF_NUMBER(hide, dtype),                                                                                 \
               OF_NUMBER(cover, dtype),                                                                                \
               OF_NUMBER(BLOCK, dtype),                                                                                \
               OF_NUMBER(multiply, dtype),                                                                             \
               OF_NUMBER(soften, dtype),                                                                               \
               OF_NUMBER(keep, dtype),                                                                                 \
               OF_NUMBER(recall, dtype),                                                                               \
               OF_NUMBER(derive, dtype)},
static const attention_type types[TRAMA_N_DTYPES] = {EACH_FLOAT(ATTENTION_TYPE, )};

const attention_type *attention_type_of(trama_dtype dtype)
{
    return &types[dtype];
}

/* ---- Scratch memory, and masks ---- */

/* Parts begin at multiples of BLOCK_BYTES: vectors that lie in one line of the cache are read faster. */
static size_t part_bytes(const attention *a, int64_t numbers)
{
    return ((size_t)numbers * a->type->size + BLOCK_BYTES - 1) / BLOCK_BYTES * BLOCK_BYTES;
}

bool attention_take(const attention *a, scratch *memory, int n, const int64_t *numbers, void **part)
{
    size_t bytes = BLOCK_BYTES;
    for (int i = 0; i < n; i++)
        bytes += part_bytes(a, numbers[i]);
    char *all = scratch_take(memory, 0, bytes);
    if (!all)
        return false;
    all += BLOCK_BYTES - (uintptr_t)all % BLOCK_BYTES;
    for (int i = 0; i < n; all += part_bytes(a, numbers[i]), i++)
        part[i] = all;
    return true;
}

const void *attention_numbers(const attention *a, attention_matrix m, int64_t rows, int64_t columns, void *copy,
                              int64_t *ld)
{
    *ld = max_i64(1, columns);
    if (a->type->direct && (m.column == 1 || columns <= 1) && (rows <= 1 || (m.row >= *ld && m.row <= INT32_MAX))) {
        *ld = rows <= 1 ? *ld : m.row;
        return m.data;
    }
    a->type->load(copy, m, rows, columns);
    return copy;
}

void attention_apply_mask(const attention *a, const attention_array *mask, int64_t head, int64_t i, int64_t j,
                          int64_t queries, int64_t keys, void *scores, int64_t row, int64_t column)
{
    if (a->masked)
        (a->mask == TRAMA_BOOL ? a->type->hide : a->type->add_mask)(scores, row, column, attention_at(mask, head, i, j),
                                                                    queries, keys);
}
