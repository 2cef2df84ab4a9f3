/* SPDX-License-Identifier: Apache-2.0 */
/* Copies, combines and fills boxes. It knows no op. */
#include <stdlib.h>
#include <string.h>

#include "accumulate.h"
#include "base.h"
#include "kernel.h"

/* ---- Copy -------------------------------------------------------------------------------------- */

#define COPY_ROW(dtype, type, unused)                                                                                  \
    ROW_SIGNATURE(copy_##dtype)                                                                                        \
    {                                                                                                                  \
        type *out = data[0];                                                                                           \
        const type *a = data[1];                                                                                       \
        (void)with;                                                                                                    \
        if (out == a && step[0] == step[1])                                                                            \
            return;                                                                                                    \
        if (step[0] == 1 && step[1] == 1)                                                                              \
            memcpy(out, a, (size_t)n * sizeof *out);                                                                   \
        else if (step[0] == 1 && step[1] == 0) {                                                                       \
            const type first = *a;                                                                                     \
            INDEPENDENT                                                                                                \
            for (int64_t i = 0; i < n; i++)                                                                            \
                out[i] = first;                                                                                        \
        } else {                                                                                                       \
            UNROLLED                                                                                                   \
            for (int64_t i = 0; i < n; i++)                                                                            \
                out[i * step[0]] = a[i * step[1]];                                                                     \
        }                                                                                                              \
    }
EACH_ELEMENT(COPY_ROW, )
static loop_row *const copy_rows[TRAMA_N_DTYPES] = {EACH_ELEMENT(ROW_ENTRY, copy)};

void kernel_copy_row(trama_dtype dtype, int64_t n, void *to, int64_t to_step, const void *from, int64_t from_step)
{
    copy_rows[dtype](n, (void *[]){to, (void *)from}, (int64_t[]){to_step, from_step}, NULL);
}

/* A plane whose rows are contiguous in one of the two views and whose columns are in the other. */
typedef struct plane {
    int64_t rows, columns;     /* along the destination's contiguous dim, along the source's */
    int64_t out_step, in_step; /* from column to column in the destination, from row to row in the source */
} plane;
enum { PLANE_BLOCK = 16 };

#define PLANE_BLOCK_COPY(dtype, type, unused)                                                                          \
    static void plane_block_##dtype(const plane *p, type *out, const type *in, int64_t rows, int64_t columns)          \
    {                                                                                                                  \
        for (int64_t c = 0; c < columns; c++)                                                                          \
            for (int64_t r = 0; r < rows; r++)                                                                         \
                out[c * p->out_step + r] = in[r * p->in_step + c];                                                     \
    }
EACH_ELEMENT(PLANE_BLOCK_COPY, )

static int64_t block_extent(int64_t whole, int64_t from)
{
    return whole - from < PLANE_BLOCK ? whole - from : PLANE_BLOCK;
}

#define PLANE_ROW(dtype, type, unused)                                                                                 \
    ROW_SIGNATURE(plane_##dtype)                                                                                       \
    {                                                                                                                  \
        const plane *p = with;                                                                                         \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            type *out = (type *)data[0] + i * step[0];                                                                 \
            const type *in = (const type *)data[1] + i * step[1];                                                      \
            for (int64_t c = 0; c < p->columns; c += PLANE_BLOCK)                                                      \
                for (int64_t r = 0; r < p->rows; r += PLANE_BLOCK)                                                     \
                    plane_block_##dtype(p, out + c * p->out_step + r, in + r * p->in_step + c,                         \
                                        block_extent(p->rows, r), block_extent(p->columns, c));                        \
        }                                                                                                              \
    }
EACH_ELEMENT(PLANE_ROW, )
static loop_row *const plane_rows[TRAMA_N_DTYPES] = {EACH_ELEMENT(ROW_ENTRY, plane)};

/* The last dim of stride 1 that is long enough for blocks to pay, or -1. */
static int contiguous_dim(const trama_view *view)
{
    int d = view->ndim - 1;
    while (d >= 0 && !(view->stride[d] == 1 && view->extent[d] >= PLANE_BLOCK))
        d--;
    return d;
}

void kernel_copy(const trama_view *destination, const trama_view *source)
{
    const bool aligned = destination->ndim == source->ndim;
    const int row = contiguous_dim(destination), column = aligned ? contiguous_dim(source) : -1;

    if (row < 0 || column < 0 || row == column || source->extent[row] != destination->extent[row]) {
        loop_run(2, (const trama_view *[]){destination, source}, copy_rows[destination->dtype], NULL);
        return;
    }
    const plane p = {destination->extent[row], source->extent[column], destination->stride[column],
                     source->stride[row]};
    trama_view out = *destination, in = *source;
    out.extent[row] = out.extent[column] = in.extent[row] = in.extent[column] = 1;
    loop_run(2, (const trama_view *[]){&out, &in}, plane_rows[destination->dtype], &p);
}

/* ---- Combine ----------------------------------------------------------------------------------- */

enum { COMBINE_BLOCK = 512 };
typedef struct combination {
    int n; /* sources */
    double scale;
} combination;

/* Two sources without gaps, the commonest case, need no accumulators in memory. */
#define COMBINE_PAIR(dtype, type, name, ACC, STEP)                                                                     \
    FAST static void name##_pair_##dtype(type *out, const type *a, const type *b, int64_t n, double scale)             \
    {                                                                                                                  \
        INDEPENDENT                                                                                                    \
        for (int64_t j = 0; j < n; j++) {                                                                              \
            const ACC first = (ACC)LOAD(dtype, a[j]), both = STEP(dtype, first, LOAD(dtype, b[j]));                    \
            out[j] = SCALED(dtype, both, scale);                                                                       \
        }                                                                                                              \
    }
#define COMBINE_ROW(dtype, type, name, ACC)                                                                            \
    FAST static void name##_first_##dtype(ACC *acc, int64_t n, const type *x, int64_t step)                            \
    {                                                                                                                  \
        if (step == 1)                                                                                                 \
            for (int64_t j = 0; j < n; j++)                                                                            \
                acc[j] = (ACC)LOAD(dtype, x[j]);                                                                       \
        else                                                                                                           \
            for (int64_t j = 0; j < n; j++)                                                                            \
                acc[j] = (ACC)LOAD(dtype, x[j * step]);                                                                \
    }                                                                                                                  \
    FAST static void name##_last_##dtype(type *out, int64_t step, int64_t n, const ACC *acc, double scale)             \
    {                                                                                                                  \
        if (step == 1)                                                                                                 \
            for (int64_t j = 0; j < n; j++)                                                                            \
                out[j] = SCALED(dtype, acc[j], scale);                                                                 \
        else                                                                                                           \
            for (int64_t j = 0; j < n; j++)                                                                            \
                out[j * step] = SCALED(dtype, acc[j], scale);                                                          \
    }                                                                                                                  \
    ROW_SIGNATURE(name##_##dtype)                                                                                      \
    {                                                                                                                  \
        const combination *c = with;                                                                                   \
        ACC acc[COMBINE_BLOCK];                                                                                        \
        if (c->n == 2 && step[0] == 1 && step[1] == 1 && step[2] == 1) {                                               \
            name##_pair_##dtype(data[0], data[1], data[2], n, c->scale);                                               \
            return;                                                                                                    \
        }                                                                                                              \
        for (int64_t from = 0; from < n; from += COMBINE_BLOCK) {                                                      \
            const int64_t m = n - from < COMBINE_BLOCK ? n - from : COMBINE_BLOCK;                                     \
            name##_first_##dtype(acc, m, (const type *)data[1] + from * step[1], step[1]);                             \
            for (int s = 2; s <= c->n; s++)                                                                            \
                name##_columns_##dtype(acc, m, (const type *)data[s] + from * step[s], step[s], 1, 0);                 \
            name##_last_##dtype((type *)data[0] + from * step[0], step[0], m, acc, c->scale);                          \
        }                                                                                                              \
    }
#define COMBINE_SUMS(dtype, type, name)                                                                                \
    ACCUMULATE(dtype, type, name, SUM(dtype), STEP_SUM)                                                                \
    COMBINE_PAIR(dtype, type, name, SUM(dtype), STEP_SUM) COMBINE_ROW(dtype, type, name, SUM(dtype))
#define COMBINE_EXTREMES(dtype, type, name, STEP)                                                                      \
    ACCUMULATE(dtype, type, name, NUMBER_##dtype, STEP)                                                                \
    COMBINE_PAIR(dtype, type, name, NUMBER_##dtype, STEP) COMBINE_ROW(dtype, type, name, NUMBER_##dtype)
EACH_ELEMENT(COMBINE_SUMS, sum)
EACH_DTYPE(COMBINE_EXTREMES, max, STEP_MAX)
EACH_DTYPE(COMBINE_EXTREMES, min, STEP_MIN)

static loop_row *const combine_rows[][TRAMA_N_DTYPES] = {
    [COMBINE_SUM] = {EACH_ELEMENT(ROW_ENTRY, sum)},
    [COMBINE_MAX] = {EACH_DTYPE(ROW_ENTRY, max)},
    [COMBINE_MIN] = {EACH_DTYPE(ROW_ENTRY, min)},
};

void kernel_reduce(const trama_view *destination, int n, const trama_view *sources, kernel_combine combine,
                   double scale)
{
    const trama_view **view = trama_alloc(((size_t)n + 1) * sizeof *view);
    const combination with = {n, scale};

    view[0] = destination;
    for (int i = 0; i < n; i++)
        view[i + 1] = &sources[i];
    loop_run(n + 1, view, combine_rows[combine][destination->dtype], &with);
    free(view);
}

/* ---- Fill -------------------------------------------------------------------------------------- */

#define FILL_ROW(dtype, type, unused)                                                                                  \
    ROW_SIGNATURE(fill_##dtype)                                                                                        \
    {                                                                                                                  \
        const type value = OF_REAL(dtype, *(const double *)with);                                                      \
        type *out = data[0];                                                                                           \
        for (int64_t i = 0; i < n; i++)                                                                                \
            out[i * step[0]] = value;                                                                                  \
    }
EACH_ELEMENT(FILL_ROW, )
static loop_row *const fill_rows[TRAMA_N_DTYPES] = {EACH_ELEMENT(ROW_ENTRY, fill)};

void kernel_fill(const trama_view *destination, double value)
{
    loop_run(1, &destination, fill_rows[destination->dtype], &value);
}
