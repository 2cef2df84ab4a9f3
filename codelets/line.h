/* SPDX-License-Identifier: Apache-2.0 */
/* What softmax and cross entropy do along one line of n elements, `step` apart. */
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
/* A result over a line by lanes, or, where these would stay empty, one element after the other. */
#define LINE_FOLD(dtype, type, name, ACC, INIT, STEP, STEP_ACC)                                                        \
    LANES_OF(dtype, type, name, ACC, STEP, STEP_ACC)                                                                   \
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
            all = STEP(dtype, all, x[i * step]);                                                                       \
        return all;                                                                                                    \
    }
#define LINE_MAX(dtype, type, unused) LINE_FOLD(dtype, type, max, type, LOWEST_##dtype, STEP_MAX, STEP_MAX)
#define LINE_SUM(dtype, type, unused) LINE_FOLD(dtype, type, sum, double, 0, STEP_SUM, STEP_TOTAL)
EACH_FLOAT(LINE_EXP, )
EACH_FLOAT(LINE_MAX, )
EACH_FLOAT(LINE_SUM, )

#endif
