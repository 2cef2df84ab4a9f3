/* SPDX-License-Identifier: Apache-2.0 */
/* Softmax along one whole dim. Sums are kept in double and taken in an order that depends on that dim's extent alone.
 */
#include "along.h"
#include "line.h"
#include "ops.h"

#define SOFTMAX_LINE(dtype, type, unused)                                                                              \
    FAST static void line_scale_##dtype(int64_t n, type *y, int64_t step, double factor)                               \
    {                                                                                                                  \
        for (int64_t i = 0; i < n; i++)                                                                                \
            y[i * step] = (type)(y[i * step] * factor);                                                                \
    }                                                                                                                  \
    static void softmax_line_##dtype(const along *l, type *y, const type *x)                                           \
    {                                                                                                                  \
        line_exp_##dtype(l->n[0], y, l->step[0], x, l->step[1], line_max_##dtype(l->n[0], x, l->step[1]));             \
        line_scale_##dtype(l->n[0], y, l->step[0], 1 / line_sum_##dtype(l->n[0], y, l->step[0]));                      \
    }

/* A half cannot keep exp(x - top) until its sum is known, so it is computed once for the sum and once for the result.
 */
#define SOFTMAX_HALF_LINE(dtype, type, unused)                                                                         \
    static void softmax_line_##dtype(const along *l, type *y, const type *x)                                           \
    {                                                                                                                  \
        NUMBER_##dtype terms[LINE_BLOCK], top;                                                                         \
        const double factor = 1 / exp_sum_##dtype(x, l->step[1], l->n[0], &top);                                       \
        for (int64_t from = 0; from < l->n[0]; from += LINE_BLOCK) {                                                   \
            const int64_t m = exp_block_##dtype(terms, x + from * l->step[1], l->step[1], l->n[0] - from, top);        \
            for (int64_t j = 0; j < m; j++)                                                                            \
                y[(from + j) * l->step[0]] = OF_REAL(dtype, terms[j] * factor);                                       \
        }                                                                                                              \
    }

/* Lines that lie beside each other, element by element: m of them, in the order of terms of line_sum. */
enum { ACROSS = 64 };
#define SOFTMAX_ACROSS(dtype, type, unused)                                                                            \
    FAST static void softmax_across_##dtype(const along *l, type *y, const type *x, int64_t m)                          \
    {                                                                                                                  \
        const int64_t lanes = l->n[0] > LANES ? LANES : 1;                                                                \
        type top[ACROSS];                                                                                              \
        double sum[LANES][ACROSS] = {{0}};                                                                             \
        for (int64_t j = 0; j < m; j++)                                                                                \
            top[j] = LOWEST_##dtype;                                                                                   \
        for (int64_t i = 0; i < l->n[0]; i++)                                                                             \
            for (int64_t j = 0; j < m; j++)                                                                            \
                top[j] = MAXIMUM(dtype, top[j], x[i * l->step[1] + j]);                                                \
        for (int64_t i = 0; i < l->n[0]; i++) {                                                                           \
            INDEPENDENT                                                                                                \
            for (int64_t j = 0; j < m; j++)                                                                            \
                y[i * l->step[0] + j] = exp_of_##dtype(x[i * l->step[1] + j] - top[j]);                                \
            for (int64_t j = 0; j < m; j++)                                                                            \
                sum[i % lanes][j] += (double)y[i * l->step[0] + j];                                                    \
        }                                                                                                              \
        for (int64_t half = lanes / 2; half > 0; half /= 2)                                                            \
            for (int64_t i = 0; i < half; i++)                                                                         \
                for (int64_t j = 0; j < m; j++)                                                                        \
                    sum[i][j] += sum[i + half][j];                                                                     \
        for (int64_t j = 0; j < m; j++)                                                                                \
            sum[0][j] = 1 / sum[0][j];                                                                                 \
        for (int64_t i = 0; i < l->n[0]; i++)                                                                             \
            for (int64_t j = 0; j < m; j++)                                                                            \
                y[i * l->step[0] + j] = (type)((double)y[i * l->step[0] + j] * sum[0][j]);                             \
    }
EACH_REAL(SOFTMAX_ACROSS, )
/* Halves go line by line. */
#define ACROSS_REAL(dtype) softmax_across_##dtype
#define ACROSS_HALF(dtype) NULL

#define SOFTMAX_ROW(dtype, type, unused)                                                                               \
    ROW_SIGNATURE(softmax_##dtype)                                                                                     \
    {                                                                                                                  \
        void (*const across)(const along *, type *, const type *, int64_t) = BY_KIND(ACROSS, dtype)(dtype);             \
        const along *l = with;                                                                                          \
        if (across && n > 1 && step[0] == 1 && step[1] == 1) {                                                         \
            for (int64_t i = 0; i < n; i += ACROSS)                                                                    \
                across(l, (type *)data[0] + i, (const type *)data[1] + i, n - i < ACROSS ? n - i : ACROSS);            \
            return;                                                                                                    \
        }                                                                                                              \
        for (int64_t i = 0; i < n; i++)                                                                                \
            softmax_line_##dtype(with, (type *)data[0] + i * step[0], (const type *)data[1] + i * step[1]);            \
    }
EACH_REAL(SOFTMAX_LINE, )
EACH_HALF(SOFTMAX_HALF_LINE, )
EACH_FLOAT(SOFTMAX_ROW, )
static loop_row *const softmax_rows[TRAMA_N_DTYPES] = {EACH_FLOAT(ROW_ENTRY, softmax)};

/* y (g - sum of g y) */
#define SOFTMAX_GRAD_LINE(dtype, type, unused)                                                                         \
    FAST static void softmax_grad_line_##dtype(const along *l, type *out, const type *g, const type *y)                \
    {                                                                                                                  \
        double lane[LANES] = {0};                                                                                      \
        for (int64_t i = 0; i < l->n[0]; i++)                                                                          \
            lane[i % LANES] += (double)LOAD(dtype, g[i * l->step[1]]) * LOAD(dtype, y[i * l->step[2]]);              \
        const double sum = sum_joined_##dtype(lane);                                                                   \
        INDEPENDENT                                                                                                    \
        for (int64_t i = 0; i < l->n[0]; i++)                                                                          \
            out[i * l->step[0]] =                                                                                      \
                OF_REAL(dtype, LOAD(dtype, y[i * l->step[2]]) * (LOAD(dtype, g[i * l->step[1]]) - sum));            \
    }                                                                                                                  \
    ROW_SIGNATURE(softmax_grad_##dtype)                                                                                \
    {                                                                                                                  \
        for (int64_t i = 0; i < n; i++)                                                                                \
            softmax_grad_line_##dtype(with, (type *)data[0] + i * step[0], (const type *)data[1] + i * step[1],        \
                                      (const type *)data[2] + i * step[2]);                                            \
    }
EACH_FLOAT(SOFTMAX_GRAD_LINE, )
static loop_row *const softmax_grad_rows[TRAMA_N_DTYPES] = {EACH_FLOAT(ROW_ENTRY, softmax_grad)};

static void along_axis(const trama_call *call, loop_row *const rows[TRAMA_N_DTYPES])
{
    along_run(call, (int)call->attributes->integer[SOFTMAX_AXIS], rows[call->out[0].dtype], NULL);
}

void cpu_softmax(const trama_call *call)
{
    along_axis(call, softmax_rows);
}

void cpu_softmax_grad(const trama_call *call)
{
    along_axis(call, softmax_grad_rows);
}
