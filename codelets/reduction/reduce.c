/* SPDX-License-Identifier: Apache-2.0 */
/* Sums, means, products and extremes over some dims, and expand, which repeats along them.
 * The order of terms depends on the reduced dims alone, never on how the others are cut or where they lie: with the
 * last dim among the reduced, element j of it goes to lane j mod LANES, and lanes are combined pairwise; otherwise
 * row-major. */
#include <string.h>

#include "accumulate.h"
#include "kernel.h"
#include "ops.h"

enum { COLUMNS = 512, SIDE_BY_SIDE = 8 };

/* The reduced dims of an operand, at least one. loop_run walks the kept dims. */
typedef struct reduction {
    int ndim;
    int64_t extent[TRAMA_MAX_NDIM], stride[TRAMA_MAX_NDIM];
    double divisor;
} reduction;

static int64_t reduction_rows(const reduction *r)
{
    int64_t rows = 1;
    for (int d = 0; d < r->ndim - 1; d++)
        rows *= r->extent[d];
    return rows;
}

/* The offset of row i of the last reduced dim. */
static int64_t reduction_row(const reduction *r, int64_t i)
{
    int64_t at = 0;
    for (int d = r->ndim - 2; d >= 0; i /= r->extent[d--])
        at += i % r->extent[d] * r->stride[d];
    return at;
}

bool is_reduced(const trama_call *call, int d)
{
    return call->attributes->integer[REDUCE_AXES] >> d & 1;
}

trama_view kept_view(const trama_call *call)
{
    trama_view kept = call->in[0];
    for (int d = kept.ndim - 1; d >= 0; d--) {
        if (!is_reduced(call, d))
            continue;
        kept.extent[d] = 1;
        if (!call->attributes->integer[REDUCE_KEEP_DIM])
            kept = view_without(&kept, d);
    }
    return kept;
}

double reduced_count(const trama_call *call)
{
    double count = 1;
    for (int d = 0; d < call->in[0].ndim; d++)
        if (is_reduced(call, d))
            count *= (double)call->in[0].global[d];
    return count;
}

/* ---- Sum, mean, max, min ------------------------------------------------------------------------ */

/* The last dim is reduced: the lanes of some results are joined side by side, since each joining waits for itself. */
#define INNER_ROW(dtype, type, name, ACC, INIT, OUT, RESULT)                                                           \
    ROW_SIGNATURE(name##_inner_##dtype)                                                                                \
    {                                                                                                                  \
        const reduction *r = with;                                                                                     \
        const int64_t rows = reduction_rows(r), last = r->ndim - 1;                                                    \
        for (int64_t from = 0, m; from < n; from += m) {                                                               \
            const type *x = (const type *)data[1] + from * step[1];                                                    \
            OUT *out = (OUT *)data[0] + from * step[0];                                                                \
            ACC lane[SIDE_BY_SIDE][LANES];                                                                             \
            m = n - from < SIDE_BY_SIDE ? n - from : SIDE_BY_SIDE;                                                     \
            for (int64_t i = 0; i < m; i++) {                                                                          \
                for (int j = 0; j < LANES; j++)                                                                        \
                    lane[i][j] = INIT;                                                                                 \
                for (int64_t row = 0; row < rows; row++)                                                               \
                    name##_lanes_##dtype(lane[i], x + i * step[1] + reduction_row(r, row), r->stride[last],            \
                                         r->extent[last]);                                                             \
            }                                                                                                          \
            for (int64_t i = 0; i < m; i++)                                                                            \
                out[i * step[0]] = RESULT(dtype, name##_joined_##dtype(lane[i]), r->divisor);                          \
        }                                                                                                              \
    }

/* The last dim is kept: a block of results at a time. */
#define OUTER_ROW(dtype, type, name, ACC, INIT, OUT, RESULT)                                                           \
    ROW_SIGNATURE(name##_outer_##dtype)                                                                                \
    {                                                                                                                  \
        const reduction *r = with;                                                                                     \
        const int64_t rows = reduction_rows(r), last = r->ndim - 1;                                                    \
        for (int64_t from = 0; from < n; from += COLUMNS) {                                                            \
            const int64_t m = n - from < COLUMNS ? n - from : COLUMNS;                                                 \
            const type *x = (const type *)data[1] + from * step[1];                                                    \
            ACC acc[COLUMNS];                                                                                          \
            for (int64_t j = 0; j < m; j++)                                                                            \
                acc[j] = INIT;                                                                                         \
            for (int64_t row = 0; row < rows; row++)                                                                   \
                name##_columns_##dtype(acc, m, x + reduction_row(r, row), step[1], r->extent[last], r->stride[last]);  \
            for (int64_t j = 0; j < m; j++)                                                                            \
                ((OUT *)data[0])[(from + j) * step[0]] = RESULT(dtype, acc[j], r->divisor);                            \
        }                                                                                                              \
    }

#define REDUCE_ROWS(dtype, type, name, ACC, INIT, FREE, STEP, STEP_ACC, OUT, RESULT)                                   \
    ACCUMULATE(dtype, type, name, ACC, STEP)                                                                           \
    LANES_OF(dtype, type, name, ACC, FREE, STEP, STEP_ACC)                                                             \
    INNER_ROW(dtype, type, name, ACC, INIT, OUT, RESULT)                                                               \
    OUTER_ROW(dtype, type, name, ACC, INIT, OUT, RESULT)
#define DIVIDED(dtype, x, divisor) QUOTIENT(dtype, x, divisor)
#define AS_IT_IS(dtype, x, divisor) (x)
#define SUM_ROWS(dtype, type, name)                                                                                    \
    REDUCE_ROWS(dtype, type, name, SUM(dtype), 0, false, STEP_SUM, STEP_TOTAL, type, DIVIDED)
#define PRODUCT_ROWS(dtype, type, name)                                                                                \
    REDUCE_ROWS(dtype, type, name, SUM(dtype), 1, false, STEP_PRODUCT, STEP_FACTOR, type, DIVIDED)
#define SQUARE_ROWS(dtype, type, name)                                                                                 \
    REDUCE_ROWS(dtype, type, name, double, 0, false, STEP_SQUARE, STEP_TOTAL, double, AS_IT_IS)
#define MAX_ROWS(dtype, type, name)                                                                                    \
    REDUCE_ROWS(dtype, type, name, NUMBER_##dtype, LOWEST_##dtype, true, STEP_MAX, STEP_MAX, type, DIVIDED)
#define MIN_ROWS(dtype, type, name)                                                                                    \
    REDUCE_ROWS(dtype, type, name, NUMBER_##dtype, HIGHEST_##dtype, true, STEP_MIN, STEP_MIN, type, DIVIDED)
EACH_ELEMENT(SUM_ROWS, sum)
EACH_FIELD(PRODUCT_ROWS, prod)
EACH_ANALYTIC(SQUARE_ROWS, sum_square)
EACH_DTYPE(MAX_ROWS, max)
EACH_DTYPE(MIN_ROWS, min)

typedef struct reduce_rows {
    loop_row *inner[TRAMA_N_DTYPES], *outer[TRAMA_N_DTYPES];
} reduce_rows;
#define REDUCE_TABLE(name, EACH)                                                                                       \
    static const reduce_rows name##_rows = {{EACH(ROW_ENTRY, name##_inner)}, {EACH(ROW_ENTRY, name##_outer)}};
REDUCE_TABLE(sum, EACH_ELEMENT)
REDUCE_TABLE(prod, EACH_FIELD)
REDUCE_TABLE(sum_square, EACH_ANALYTIC)
REDUCE_TABLE(max, EACH_DTYPE)
REDUCE_TABLE(min, EACH_DTYPE)

/* Divides the dims of the operand into the reduced and the kept, which come out as a view that fits the result. */
static trama_view reduction_split(const trama_call *call, reduction *r)
{
    const trama_view *in = &call->in[0];

    r->ndim = 0;
    for (int d = 0; d < in->ndim; d++)
        if (is_reduced(call, d)) {
            r->extent[r->ndim] = in->extent[d];
            r->stride[r->ndim++] = in->stride[d];
        }
    if (r->ndim == 0) {
        r->extent[0] = 1;
        r->stride[0] = 0;
        r->ndim = 1;
    }
    return kept_view(call);
}

static void reduce(const trama_call *call, const reduce_rows *rows, double divisor)
{
    reduction r = {.divisor = divisor};
    const trama_view *in = &call->in[0], kept = reduction_split(call, &r);
    const bool inner = in->ndim > 0 && is_reduced(call, in->ndim - 1);

    loop_run(2, (const trama_view *[]){&call->out[0], &kept}, (inner ? rows->inner : rows->outer)[in->dtype], &r);
}

#define REDUCE_OP(name)                                                                                                \
    void cpu_##name(const trama_call *call)                                                                            \
    {                                                                                                                  \
        reduce(call, &name##_rows, 1);                                                                                 \
    }
REDUCE_OP(sum)
REDUCE_OP(prod)
REDUCE_OP(sum_square)
REDUCE_OP(max)
REDUCE_OP(min)

/* Divides by the global extents, so that the means of pieces are terms of a sum. */
void cpu_mean(const trama_call *call)
{
    reduce(call, &sum_rows, reduced_count(call));
}

/* ---- expand ------------------------------------------------------------------------------------- */

#define DIVIDED_ROW(name, dtype, x, y, with) QUOTIENT(dtype, x, *(const double *)(with))
ROWS(UNARY_ROW, EACH_ELEMENT, quotient, DIVIDED_ROW)

static double global_count(const trama_view *view)
{
    double count = 1;
    for (int d = 0; d < view->ndim; d++)
        count *= (double)view->global[d];
    return count;
}

trama_view expanded_view(const trama_call *call)
{
    const trama_view *out = &call->out[0], *in = &call->in[0];
    trama_view wide = *out;

    wide.data = in->data;
    wide.dtype = in->dtype;
    for (int d = 0, from = 0; d < out->ndim; d++) {
        wide.stride[d] = is_reduced(call, d) || in->extent[from] == 1 ? 0 : in->stride[from];
        from += !is_reduced(call, d) || call->attributes->integer[REDUCE_KEEP_DIM];
    }
    return wide;
}

double expand_repeats(const trama_call *call)
{
    return global_count(&call->out[0]) / global_count(&call->in[0]);
}

void cpu_expand(const trama_call *call)
{
    const trama_view wide = expanded_view(call);
    const double repeats = expand_repeats(call);

    if (call->attributes->integer[EXPAND_AVERAGE])
        loop_dense(1, 2, (const trama_view *[]){&call->out[0], &wide}, quotient_rows[wide.dtype], STEPS_1, &repeats);
    else
        kernel_copy(&call->out[0], &wide);
}
