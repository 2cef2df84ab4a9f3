/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of softmax and cross entropy along one line of n elements, `step` elements from one to the next. */
#ifndef CODELETS_LINE_H
#define CODELETS_LINE_H

#include "accumulate.h"
#include "exponential.h"

/* y = exp(x - top) */
#define LINE_EXP(dtype, type, unused)                                                                                  \
    FAST static void line_exp_##dtype(int64_t n, type *y, int64_t y_step, const type *x, int64_t x_step, type top)     \
    {                                                                                                                  \
        if (y_step == 1 && x_step == 1) {                                                                              \
            INDEPENDENT                                                                                                \
            for (int64_t i = 0; i < n; i++)                                                                            \
                y[i] = exp_of_##dtype(x[i] - top);                                                                     \
        } else {                                                                                                       \
            for (int64_t i = 0; i < n; i++)                                                                            \
                y[i * y_step] = exp_of_##dtype(x[i * x_step] - top);                                                   \
        }                                                                                                              \
    }
/* A result over a line by lanes; over a line of at most LANES elements one element after the other. */
#define LINE_FOLD(dtype, type, name, ACC, INIT, FREE, STEP, STEP_ACC)                                                  \
    LANES_OF(dtype, type, name, ACC, FREE, STEP, STEP_ACC)                                                             \
    static inline ACC line_##name##_##dtype(int64_t n, const type *x, int64_t step)                                    \
    {                                                                                                                  \
        ACC lane[LANES], all = INIT;                                                                                   \
        if (n > LANES) {                                                                                               \
            for (int j = 0; j < LANES; j++)                                                                            \
                lane[j] = INIT;                                                                                        \
            name##_lanes_##dtype(lane, x, step, n);                                                                    \
            return name##_joined_##dtype(lane);                                                                        \
        }                                                                                                              \
        for (int64_t i = 0; i < n; i++)                                                                                \
            all = STEP(dtype, all, LOAD(dtype, x[i * step]));                                                          \
        return all;                                                                                                    \
    }
#define LINE_MAX(dtype, type, unused)                                                                                  \
    LINE_FOLD(dtype, type, max, NUMBER_##dtype, LOWEST_##dtype, true, STEP_MAX, STEP_MAX)
#define LINE_SUM(dtype, type, unused) LINE_FOLD(dtype, type, sum, double, 0, false, STEP_SUM, STEP_TOTAL)
EACH_REAL(LINE_EXP, )
EACH_FLOAT(LINE_MAX, )
EACH_FLOAT(LINE_SUM, )

enum { LINE_BLOCK = 16 * LANES };

/* terms = exp(z - top) for at most LINE_BLOCK elements of a line, filled up to whole vectors; returns the number of
 * elements without the filling. */
#define EXP_BLOCK(dtype, type, unused)                                                                                 \
    static inline int64_t exp_block_##dtype(NUMBER_##dtype *terms, const type *z, int64_t step, int64_t left,          \
                                            NUMBER_##dtype top)                                                        \
    {                                                                                                                  \
        const int64_t m = left < LINE_BLOCK ? left : LINE_BLOCK, full = (m + LANES - 1) / LANES * LANES;               \
        for (int64_t j = 0; j < m; j++)                                                                                \
            terms[j] = LOAD(dtype, z[j * step]);                                                                       \
        for (int64_t j = m; j < full; j++)                                                                             \
            terms[j] = LOWEST_##dtype;                                                                                 \
        EXPANDED(EXP_TERMS, COMPUTE_##dtype)(full, terms, 1, terms, 1, top);                                           \
        return m;                                                                                                      \
    }
#define EXP_TERMS(dtype) line_exp_##dtype
#define SUM_TERMS(dtype) line_sum_##dtype

/* The sum of exp(z - maximum) over a line z [n], and in *top its maximum. */
#define EXP_SUM(dtype, type, unused)                                                                                   \
    static inline double exp_sum_##dtype(const type *z, int64_t step, int64_t n, NUMBER_##dtype *top)                  \
    {                                                                                                                  \
        double sum = 0;                                                                                                \
        NUMBER_##dtype terms[LINE_BLOCK];                                                                              \
        *top = line_max_##dtype(n, z, step);                                                                           \
        for (int64_t from = 0; from < n; from += LINE_BLOCK) {                                                         \
            const int64_t m = exp_block_##dtype(terms, z + from * step, step, n - from, *top);                         \
            sum += EXPANDED(SUM_TERMS, COMPUTE_##dtype)(m, terms, 1);                                                  \
        }                                                                                                              \
        return sum;                                                                                                    \
    }
EACH_FLOAT(EXP_BLOCK, )
EACH_FLOAT(EXP_SUM, )

#endif
