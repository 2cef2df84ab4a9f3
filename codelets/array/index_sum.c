/* SPDX-License-Identifier: Apache-2.0 */
/* The reverse of gather: sums of the elements of one index. */
#include <string.h>

#include "accumulate.h"
#include "index.h"

/* ---- Whole lines ---- */

/* The indices of each place of the dim, in order: those of place k are order[begin[k]] to order[begin[k + 1] - 1]. */
typedef struct sums {
    int64_t extent, step; /* of the dim */
    int64_t *begin, *order;
    const int64_t *part;
    scratch memory;
} sums;

static bool sums_of(sums *s, const places *p, const indexed_dim *dim)
{
    *s = (sums){.extent = dim->extent, .step = dim->step, .part = p->part};
    s->begin = scratch_take(&s->memory, 0, (size_t)(dim->extent + 2) * sizeof *s->begin);
    s->order = scratch_take(&s->memory, 1, (size_t)p->n * sizeof *s->order);
    if (!s->begin || !s->order)
        return false;
    memset(s->begin, 0, (size_t)(dim->extent + 2) * sizeof *s->begin);
    for (int64_t i = 0; i < p->n; i++)
        if (p->full[i] >= 0)
            s->begin[p->full[i] + 2]++;
    for (int64_t k = 2; k < dim->extent + 2; k++)
        s->begin[k] += s->begin[k - 1];
    for (int64_t i = 0; i < p->n; i++)
        if (p->full[i] >= 0)
            s->order[s->begin[p->full[i] + 1]++] = i;
    return true;
}

enum { SUM_BLOCK = 256, LINE_BLOCK = 8 };

/* out, g: each at the first element of its indexed dims. Sums are kept in SUM(dtype) and rounded once. */
#define SUM_ROW(dtype, type, unused)                                                                                   \
    FAST static void add_row_##dtype(SUM(dtype) * acc, const type *x, int64_t n, int64_t step)                         \
    {                                                                                                                  \
        if (step == 1) {                                                                                               \
            INDEPENDENT                                                                                                \
            for (int64_t j = 0; j < n; j++)                                                                            \
                acc[j] = STEP_SUM(dtype, acc[j], LOAD(dtype, x[j]));                                                   \
        } else {                                                                                                       \
            for (int64_t j = 0; j < n; j++)                                                                            \
                acc[j] = STEP_SUM(dtype, acc[j], LOAD(dtype, x[j * step]));                                            \
        }                                                                                                              \
    }                                                                                                                  \
    ROW_SIGNATURE(gather_grad_##dtype)                                                                                 \
    {                                                                                                                  \
        const sums *s = with;                                                                                          \
        SUM(dtype) acc[SUM_BLOCK];                                                                                     \
        for (int64_t from = 0; from < n; from += SUM_BLOCK) {                                                          \
            const int64_t m = n - from < SUM_BLOCK ? n - from : SUM_BLOCK;                                             \
            type *out = (type *)data[0] + from * step[0];                                                              \
            const type *g = (const type *)data[1] + from * step[1];                                                    \
            for (int64_t k = 0; k < s->extent; k++) {                                                                  \
                memset(acc, 0, (size_t)m * sizeof *acc);                                                               \
                for (int64_t i = s->begin[k]; i < s->begin[k + 1]; i++)                                                \
                    add_row_##dtype(acc, g + s->part[s->order[i]], m, step[1]);                                        \
                for (int64_t j = 0; j < m; j++)                                                                        \
                    out[k * s->step + j * step[0]] = SCALED(dtype, acc[j], 1);                                         \
            }                                                                                                          \
        }                                                                                                              \
    }
EACH_ELEMENT(SUM_ROW, )

void cpu_gather_grad(const trama_call *call)
{
    static loop_row *const rows[TRAMA_N_DTYPES] = {EACH_ELEMENT(ROW_ENTRY, gather_grad)};
    const trama_view *g = &call->in[0], *index = &call->in[1], *out = &call->out[0];
    const int axis = indexed_axis(call);
    const indexed_dim dim = indexed_dim_of(out, axis), places_only = {dim.global, dim.offset, dim.extent, 1};
    const trama_view to = view_without_dims(out, axis, 1), from = view_without_dims(g, axis, index->ndim);
    places p;
    sums s = {0};
    if (places_of(&p, index, g, axis, &places_only) && sums_of(&s, &p, &places_only)) {
        s.step = dim.step;
        loop_run(2, (const trama_view *[]){&to, &from}, rows[out->dtype], &s);
    }
    scratch_free(&s.memory);
    scratch_free(&p.memory);
}

/* ---- Element by element ---- */

/* Lines along the dim: out, g, index. */
typedef struct line_sums {
    indexed_dim dim;
    int64_t m, g_step, index_step;
    bool wide;
    void *acc; /* [LINE_BLOCK dim.extent] of SUM(dtype) */
} line_sums;

#define LINE_SUM_ROW(dtype, type, unused)                                                                              \
    ROW_SIGNATURE(gather_along_grad_##dtype)                                                                           \
    {                                                                                                                  \
        const line_sums *s = with;                                                                                     \
        SUM(dtype) *acc = s->acc;                                                                                      \
        for (int64_t from = 0; from < n; from += LINE_BLOCK) {                                                         \
            const int64_t block = n - from < LINE_BLOCK ? n - from : LINE_BLOCK;                                       \
            memset(acc, 0, (size_t)(s->dim.extent * block) * sizeof *acc);                                             \
            for (int64_t i = 0; i < s->m; i++)                                                                         \
                for (int64_t j = 0; j < block; j++) {                                                                  \
                    const int64_t at = i * s->index_step + (from + j) * step[2];                                       \
                    const int64_t k = place(&s->dim, index_at(data[2], at, s->wide));                                  \
                    const type g = ((const type *)data[1])[i * s->g_step + (from + j) * step[1]];                      \
                    if (k >= 0)                                                                                        \
                        acc[k * block + j] = STEP_SUM(dtype, acc[k * block + j], LOAD(dtype, g));                      \
                }                                                                                                      \
            for (int64_t k = 0; k < s->dim.extent; k++)                                                                \
                for (int64_t j = 0; j < block; j++)                                                                    \
                    ((type *)data[0])[k * s->dim.step + (from + j) * step[0]] = SCALED(dtype, acc[k * block + j], 1);  \
        }                                                                                                              \
    }
EACH_ELEMENT(LINE_SUM_ROW, )

void cpu_gather_along_grad(const trama_call *call)
{
    static loop_row *const rows[TRAMA_N_DTYPES] = {EACH_ELEMENT(ROW_ENTRY, gather_along_grad)};
    const trama_view *g = &call->in[0], *index = &call->in[1], *out = &call->out[0];
    const int axis = indexed_axis(call);
    const trama_view to = view_without_dims(out, axis, 1), from = view_without_dims(g, axis, 1),
                     at = view_without_dims(index, axis, 1);
    scratch memory = {0};
    line_sums s = {indexed_dim_of(out, axis), g->extent[axis],           g->stride[axis],
                   index->stride[axis],       index->dtype == TRAMA_I64, NULL};
    s.acc = scratch_take(&memory, 0, (size_t)(LINE_BLOCK * s.dim.extent) * 2 * sizeof(double));
    if (s.acc)
        loop_run(3, (const trama_view *[]){&to, &from, &at}, rows[out->dtype], &s);
    scratch_free(&memory);
}
