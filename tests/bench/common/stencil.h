/* SPDX-License-Identifier: Apache-2.0 */
/* The row of a five-point stencil, the same for all who are compared. */
#ifndef STENCIL_H
#define STENCIL_H

#include <stdint.h>

/* next[j] from the neighbours of u[j], which stand 1 and `row` elements away; count points. */
static inline void stencil_row(int64_t count, const double *u, int64_t row, double *restrict next)
{
    for (int64_t j = 0; j < count; j++)
        next[j] = u[j] + 0.2 * (u[j - row] + u[j + row] + u[j - 1] + u[j + 1] - 4 * u[j]);
}

/* The state at the start. */
static inline double stencil_start(int64_t i, int64_t j)
{
    return (double)((i * 31 + j * 17) % 101) / 101;
}

#endif
