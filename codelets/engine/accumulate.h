/* SPDX-License-Identifier: Apache-2.0 */
/* The order of terms of every reduction on cores: of many terms into one accumulator per element, and along lines. It
 * is fixed, so that a sum has the same bits however its operand is cut along other dims. Sums of f32 and of halves are
 * kept in double, those of integers modulo 2^64. */
#ifndef CODELETS_ACCUMULATE_H
#define CODELETS_ACCUMULATE_H

#include <stdint.h>
#include <string.h>

#include "loop.h"

#define STEP_SUM(dtype, acc, x) ((acc) + (SUM(dtype))(x))
#define STEP_TOTAL(dtype, acc, x) ((acc) + (x)) /* of accumulators */
#define STEP_SQUARE(dtype, acc, x) ((acc) + BY_KIND(SQUARE, dtype)(x))
#define SQUARE_REAL(x) ((double)(x) * (double)(x))
#define SQUARE_HALF(x) SQUARE_REAL(x)
#define SQUARE_COMPLEX(x) (SQUARE_REAL(creal(x)) + SQUARE_REAL(cimag(x)))
#define STEP_PRODUCT(dtype, acc, x) ((acc) * (SUM(dtype))(x))
#define STEP_FACTOR(dtype, acc, x) ((acc) * (x)) /* of accumulators */
#define STEP_MAX(dtype, acc, x) MAXIMUM(dtype, acc, x)
#define STEP_MIN(dtype, acc, x) MINIMUM(dtype, acc, x)

/* acc[j] = acc[j] STEP x[r, j] for r = 0, 1, ... < rows: element (r, j) of x at r * row_step + j * step. Four rows at a
 * time read and write the accumulators once. */
#define ACCUMULATE(dtype, type, name, ACC, STEP)                                                                       \
    FAST static void name##_columns_##dtype(ACC *acc, int64_t n, const type *x, int64_t step, int64_t rows,            \
                                            int64_t row_step)                                                          \
    {                                                                                                                  \
        int64_t r = 0;                                                                                                 \
        for (; step == 1 && r + 4 <= rows; r += 4, x += 4 * row_step) {                                                \
            const type *x1 = x + row_step, *x2 = x1 + row_step, *x3 = x2 + row_step;                                   \
            INDEPENDENT                                                                                                \
            for (int64_t j = 0; j < n; j++) {                                                                          \
                const ACC one = STEP(dtype, acc[j], LOAD(dtype, x[j])), two = STEP(dtype, one, LOAD(dtype, x1[j]));    \
                const ACC three = STEP(dtype, two, LOAD(dtype, x2[j]));                                                \
                acc[j] = STEP(dtype, three, LOAD(dtype, x3[j]));                                                       \
            }                                                                                                          \
        }                                                                                                              \
        for (; r < rows; r++, x += row_step) {                                                                         \
            if (step == 1) {                                                                                           \
                INDEPENDENT                                                                                            \
                for (int64_t j = 0; j < n; j++)                                                                        \
                    acc[j] = STEP(dtype, acc[j], LOAD(dtype, x[j]));                                                   \
            } else {                                                                                                   \
                for (int64_t j = 0; j < n; j++)                                                                        \
                    acc[j] = STEP(dtype, acc[j], LOAD(dtype, x[j * step]));                                            \
            }                                                                                                          \
        }                                                                                                              \
    }

/* Along a line: element i joins lane i mod LANES, and in the end the lanes are joined pairwise. Where the order of
 * terms is FREE, as that of maxima, every second LANES neighbours have lanes of their own, so that none waits for the
 * one before. */
enum { LANES = 16, AHEAD = 2048 };
/* Asks for the memory AHEAD bytes behind x, which may lie in the next line: a core's own prefetching ends with each page
 * of 4 KiB. */
#define FETCH_AHEAD(x) __builtin_prefetch((const void *)((uintptr_t)(x) + AHEAD))
#define LANES_STEP(dtype, lane, x, STEP)                                                                               \
    _Pragma("GCC unroll 1") for (int j_ = 0; j_ < LANES; j_++) lane[j_] = STEP(dtype, lane[j_], LOAD(dtype, (x)[j_]))
#define JOIN_LANES(dtype, lane, STEP_ACC)                                                                              \
    for (int half_ = LANES / 2; half_ > 0; half_ /= 2)                                                                 \
        for (int j_ = 0; j_ < half_; j_++)                                                                             \
            lane[j_] = STEP_ACC(dtype, lane[j_], lane[j_ + half_]);
#define LANES_OF(dtype, type, name, ACC, FREE, STEP, STEP_ACC)                                                         \
    FAST static void name##_lanes_##dtype(ACC *lane, const type *x, int64_t step, int64_t n)                           \
    {                                                                                                                  \
        int64_t i = 0;                                                                                                 \
        ACC acc[LANES], odd[LANES];                                                                                    \
        memcpy(acc, lane, sizeof acc);                                                                                 \
        if (FREE && step == 1 && n >= 2 * LANES) {                                                                     \
            memcpy(odd, lane, sizeof odd);                                                                             \
            for (; i + 2 * LANES <= n; i += 2 * LANES) {                                                               \
                FETCH_AHEAD(x + i);                                                                                    \
                FETCH_AHEAD(x + i + LANES);                                                                            \
                LANES_STEP(dtype, acc, x + i, STEP);                                                                   \
                LANES_STEP(dtype, odd, x + i + LANES, STEP);                                                           \
            }                                                                                                          \
            for (int j = 0; j < LANES; j++)                                                                            \
                acc[j] = STEP_ACC(dtype, acc[j], odd[j]);                                                              \
        }                                                                                                              \
        for (; step == 1 && i + LANES <= n; i += LANES) {                                                              \
            FETCH_AHEAD(x + i);                                                                                        \
            LANES_STEP(dtype, acc, x + i, STEP);                                                                       \
        }                                                                                                              \
        for (; i < n; i++)                                                                                             \
            acc[i % LANES] = STEP(dtype, acc[i % LANES], LOAD(dtype, x[i * step]));                                    \
        memcpy(lane, acc, sizeof acc);                                                                                 \
    }                                                                                                                  \
    static inline ACC name##_joined_##dtype(ACC *lane)                                                                 \
    {                                                                                                                  \
        JOIN_LANES(dtype, lane, STEP_ACC)                                                                              \
        return lane[0];                                                                                                \
    }

/* The pairwise sum of LANES sums, in place. */
static inline double lanes_joined(double *lane)
{
    JOIN_LANES(TRAMA_F64, lane, STEP_TOTAL)
    return lane[0];
}

/* Sets sum to that of an expression of i, 0 <= i < n, in the same lanes. */
#define SUM_OF_LINE(sum, n, expression)                                                                                \
    do {                                                                                                               \
        double lane_[LANES] = {0};                                                                                     \
        int64_t from_ = 0;                                                                                             \
        for (; from_ + LANES <= (n); from_ += LANES)                                                                   \
            for (int64_t j_ = 0; j_ < LANES; j_++) {                                                                   \
                const int64_t i = from_ + j_;                                                                          \
                lane_[j_] += expression;                                                                               \
            }                                                                                                          \
        for (int64_t i = from_; i < (n); i++)                                                                          \
            lane_[i - from_] += expression;                                                                            \
        (sum) = lanes_joined(lane_);                                                                                   \
    } while (0)

#endif
