/* SPDX-License-Identifier: Apache-2.0 */
/* Lines with the mean 0 and the mean square 1, and the gradient. Means are sums in double, in an order that the extent
 * of the line alone determines. */
#include <math.h>

#include "along.h"
#include "line.h"
#include "ops.h"

/* Lines whose elements follow each other (step 1) get a copy of the loops for that. */
#define NORM_LINE(dtype, type, unused)                                                                                 \
    FORMULA double norm_of_##dtype(int64_t n, type *y, int64_t to, const type *x, int64_t step, double eps,            \
                                   bool centred)                                                                       \
    {                                                                                                                  \
        const double count = n > 0 ? (double)n : 1;                                                                    \
        double sum = 0, squares;                                                                                       \
        if (centred)                                                                                                   \
            SUM_OF_LINE(sum, n, (double)LOAD(dtype, x[i * step]));                                                     \
        const double mean = sum / count;                                                                               \
        SUM_OF_LINE(squares, n,                                                                                        \
                    ((double)LOAD(dtype, x[i * step]) - mean) * ((double)LOAD(dtype, x[i * step]) - mean));            \
        const double r = 1 / sqrt(squares / count + eps);                                                              \
        for (int64_t i = 0; i < n; i++)                                                                                \
            y[i * to] = OF_REAL(dtype, ((double)LOAD(dtype, x[i * step]) - mean) * r);                                 \
        return r;                                                                                                      \
    }                                                                                                                  \
    FAST static double norm_line_##dtype(int64_t n, type *y, int64_t to, const type *x, int64_t step, double eps,      \
                                         bool centred)                                                                 \
    {                                                                                                                  \
        return to == 1 && step == 1 ? norm_of_##dtype(n, y, 1, x, 1, eps, centred)                                     \
                                    : norm_of_##dtype(n, y, to, x, step, eps, centred);                                \
    }                                                                                                                  \
    ROW_SIGNATURE(norm_##dtype)                                                                                        \
    {                                                                                                                  \
        const along *l = with;                                                                                         \
        const trama_attributes *a = l->call->attributes;                                                               \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            const double r = norm_line_##dtype(l->n[0], (type *)data[0] + i * step[0], l->step[0],                     \
                                               (const type *)data[2] + i * step[2], l->step[2], a->real[NORM_EPS],     \
                                               a->integer[NORM_CENTRED]);                                              \
            ((SCALE_##dtype *)data[1])[i * step[1]] = (SCALE_##dtype)r;                                                \
        }                                                                                                              \
    }
#define SCALE_TRAMA_F64 double
#define SCALE_TRAMA_F32 float
#define SCALE_TRAMA_F16 float
#define SCALE_TRAMA_BF16 float
EACH_FLOAT(NORM_LINE, )
static loop_row *const norm_rows[TRAMA_N_DTYPES] = {EACH_FLOAT(ROW_ENTRY, norm)};

#define GRAD_LINE(dtype, type, unused)                                                                                 \
    FORMULA void grad_of_##dtype(int64_t n, type *out, int64_t to, const type *g, int64_t g_step, const type *y,       \
                                 int64_t y_step, double r, bool centred)                                               \
    {                                                                                                                  \
        const double count = n > 0 ? (double)n : 1;                                                                    \
        double sum = 0, product;                                                                                       \
        if (centred)                                                                                                   \
            SUM_OF_LINE(sum, n, (double)LOAD(dtype, g[i * g_step]));                                                   \
        SUM_OF_LINE(product, n, (double)LOAD(dtype, g[i * g_step]) * (double)LOAD(dtype, y[i * y_step]));              \
        const double mean = sum / count, along_y = product / count;                                                    \
        for (int64_t i = 0; i < n; i++)                                                                                \
            out[i * to] = OF_REAL(dtype, r * ((double)LOAD(dtype, g[i * g_step]) - mean -                              \
                                              (double)LOAD(dtype, y[i * y_step]) * along_y));                          \
    }                                                                                                                  \
    FAST static void grad_line_##dtype(int64_t n, type *out, int64_t to, const type *g, int64_t g_step, const type *y, \
                                       int64_t y_step, double r, bool centred)                                         \
    {                                                                                                                  \
        if (to == 1 && g_step == 1 && y_step == 1)                                                                     \
            grad_of_##dtype(n, out, 1, g, 1, y, 1, r, centred);                                                        \
        else                                                                                                           \
            grad_of_##dtype(n, out, to, g, g_step, y, y_step, r, centred);                                             \
    }                                                                                                                  \
    ROW_SIGNATURE(norm_grad_##dtype)                                                                                   \
    {                                                                                                                  \
        const along *l = with;                                                                                         \
        for (int64_t i = 0; i < n; i++)                                                                                \
            grad_line_##dtype(l->n[0], (type *)data[0] + i * step[0], l->step[0], (const type *)data[1] + i * step[1], \
                              l->step[1], (const type *)data[2] + i * step[2], l->step[2],                             \
                              (double)((const SCALE_##dtype *)data[3])[i * step[3]],                                   \
                              l->call->attributes->integer[NORM_CENTRED]);                                             \
    }
EACH_FLOAT(GRAD_LINE, )
static loop_row *const norm_grad_rows[TRAMA_N_DTYPES] = {EACH_FLOAT(ROW_ENTRY, norm_grad)};

static void along_axis(const trama_call *call, loop_row *const rows[TRAMA_N_DTYPES])
{
    along_run(call, (int)call->attributes->integer[NORM_AXIS], rows[call->out[0].dtype], NULL);
}

void cpu_norm(const trama_call *call)
{
    along_axis(call, norm_rows);
}

void cpu_norm_grad(const trama_call *call)
{
    along_axis(call, norm_grad_rows);
}
