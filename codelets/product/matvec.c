/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the matrix once, several lines of it side by side, which hides the wait for memory; y, or the sums, stay in the
 * cache. [4096, 8192] on one core of an EPYC of Zen 4, GB/s with neighbours in rows / in columns: f64 23 / 23, f32 20 /
 * 22; OpenBLAS's gemv f64 21 / 19, f32 20 / 26; its gemm f64 a quarter of that. */
#include "matvec.h"

#include <stdlib.h>
#include <string.h>

#include "accumulate.h"
#include "base.h"

enum { ROWS = 4, TERMS = 8, COLUMNS = 4096 };

/* n rows, whose elements are neighbours: term l goes to lane l mod LANES. */
#define LANES_OF_ROWS(dtype, type, name, n)                                                                            \
    FAST static void name(double(*lane)[LANES], int64_t k, const type *x, int64_t row, const type *y)                  \
    {                                                                                                                  \
        double acc[n][LANES] = {0};                                                                                    \
        int64_t l = 0;                                                                                                 \
        for (; l + LANES <= k; l += LANES)                                                                             \
            _Pragma("GCC unroll 4") for (int r = 0; r < n; r++)                                                        \
                _Pragma("GCC unroll 1") for (int j = 0; j < LANES; j++) acc[r][j] +=                                   \
                (double)LOAD(dtype, x[r * row + l + j]) * (double)LOAD(dtype, y[l + j]);                               \
        for (; l < k; l++)                                                                                             \
            for (int r = 0; r < n; r++)                                                                                \
                acc[r][l % LANES] += (double)LOAD(dtype, x[r * row + l]) * (double)LOAD(dtype, y[l]);                  \
        memcpy(lane, acc, sizeof acc);                                                                                 \
    }

#define ADD_EACH(dtype, n, ROW)                                                                                        \
    INDEPENDENT                                                                                                        \
    for (int64_t i = 0; i < m; i++) {                                                                                  \
        double sum = acc[i];                                                                                           \
        _Pragma("GCC unroll 8") for (int t = 0; t < n; t++) sum +=                                                     \
            (double)LOAD(dtype, x[ROW + t * column]) * (double)LOAD(dtype, y[t]);                                      \
        acc[i] = sum;                                                                                                  \
    }

/* acc[i] += x[i, 0] y[0] + ... + x[i, n-1] y[n-1], one after the other. */
#define ADD_TERMS(dtype, type, name, n)                                                                                \
    FAST static void name(double *acc, int64_t m, const type *x, int64_t row, int64_t column, const type *y)           \
    {                                                                                                                  \
        if (row == 1) {                                                                                                \
            ADD_EACH(dtype, n, i)                                                                                      \
        } else {                                                                                                       \
            ADD_EACH(dtype, n, (row * i))                                                                              \
        }                                                                                                              \
    }

#define MATVEC(dtype, type, unused)                                                                                    \
    LANES_OF_ROWS(dtype, type, row_##dtype, 1)                                                                         \
    LANES_OF_ROWS(dtype, type, rows_##dtype, ROWS)                                                                     \
    ADD_TERMS(dtype, type, add_term_##dtype, 1)                                                                        \
    ADD_TERMS(dtype, type, add_terms_##dtype, TERMS)                                                                   \
    static void put_##dtype(const matvec *p, type *out, double sum)                                                    \
    {                                                                                                                  \
        *out = OF_REAL(dtype, p->beta == 0 ? p->alpha * sum : p->alpha * sum + (double)LOAD(dtype, *out));             \
    }                                                                                                                  \
    static void by_rows_##dtype(const matvec *p, type *out, const type *x, const type *y)                              \
    {                                                                                                                  \
        double lane[ROWS][LANES];                                                                                      \
        for (int64_t i = 0, n; i < p->m; i += n) {                                                                     \
            n = i + ROWS <= p->m ? ROWS : 1;                                                                           \
            (n == ROWS ? rows_##dtype : row_##dtype)(lane, p->k, x + i * p->row, p->row, y);                           \
            for (int64_t r = 0; r < n; r++)                                                                            \
                put_##dtype(p, out + (i + r) * p->out, lanes_joined(lane[r]));                                         \
        }                                                                                                              \
    }                                                                                                                  \
    static void by_columns_##dtype(const matvec *p, type *out, const type *x, const type *y)                           \
    {                                                                                                                  \
        double acc[COLUMNS];                                                                                           \
        for (int64_t from = 0; from < p->m; from += COLUMNS) {                                                         \
            const int64_t m = p->m - from < COLUMNS ? p->m - from : COLUMNS;                                           \
            const type *block = x + from * p->row;                                                                     \
            memset(acc, 0, (size_t)m * sizeof *acc);                                                                   \
            for (int64_t l = 0, n; l < p->k; l += n) {                                                                 \
                n = l + TERMS <= p->k ? TERMS : 1;                                                                     \
                (n == TERMS ? add_terms_##dtype : add_term_##dtype)(acc, m, block + l * p->column, p->row, p->column,  \
                                                                    y + l);                                            \
            }                                                                                                          \
            for (int64_t i = 0; i < m; i++)                                                                            \
                put_##dtype(p, out + (from + i) * p->out, acc[i]);                                                     \
        }                                                                                                              \
    }                                                                                                                  \
    void matvec_##dtype(const matvec *p, type *out, const type *x, const type *y)                                      \
    {                                                                                                                  \
        if (p->y != 1 && p->k > 1) {                                                                                   \
            type *packed = p->packed;                                                                                  \
            for (int64_t l = 0; l < p->k; l++)                                                                         \
                packed[l] = y[l * p->y];                                                                               \
            y = packed;                                                                                                \
        }                                                                                                              \
        (p->column == 1 ? by_rows_##dtype : by_columns_##dtype)(p, out, x, y);                                         \
    }
EACH_FLOAT(MATVEC, )
