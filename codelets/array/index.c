/* SPDX-License-Identifier: Apache-2.0 */
/* Gather and scatter, and the sums that are their reverse. The dim that an index points into may be a part of the
 * tensor: an index of another part reads 0 and writes nothing. */
#include <string.h>

#include "accumulate.h"
#include "kernel.h"
#include "ops.h"
#include "scratch.h"

/* ---- Places ---- */

enum { ELSEWHERE = -1, NOWHERE = -2 }; /* of an index in another part, of one that is not there */

/* The dim that indices point into: a box of it, and its step in memory. */
typedef struct indexed_dim {
    int64_t global, offset, extent, step;
} indexed_dim;

static indexed_dim dim_of(const trama_view *v, int d)
{
    return (indexed_dim){v->global[d], v->offset[d], v->extent[d], v->stride[d]};
}

/* The place of an index in the box, or one of the names above. */
static inline int64_t place(const indexed_dim *d, int64_t index)
{
    const int64_t at = index < 0 ? index + d->global : index, inside = at - d->offset;
    if (at < 0 || at >= d->global)
        return NOWHERE;
    return inside >= 0 && inside < d->extent ? inside : ELSEWHERE;
}

static inline int64_t index_at(const void *data, int64_t i, bool wide)
{
    return wide ? ((const int64_t *)data)[i] : ((const int32_t *)data)[i];
}

static int axis_of(const trama_call *call)
{
    return (int)call->attributes->integer[INDEX_AXIS];
}

/* ---- Lists of places ---- */

/* The indices in row-major order: the offsets in memory of index i in the tensor that has the dim, or a name of places,
 * and in the one that has the dims of the index. */
typedef struct places {
    int64_t n, *full, *part;
    scratch memory;
} places;

/* part: the view that has the dims of the index at axis. False where there is no memory. */
static bool places_of(places *p, const trama_view *index, const trama_view *part, int axis, const indexed_dim *dim)
{
    const bool wide = index->dtype == TRAMA_I64;
    int64_t at[TRAMA_MAX_NDIM] = {0}, from = 0, to = 0;
    *p = (places){.n = view_count(index)};
    p->full = scratch_take(&p->memory, 0, (size_t)p->n * sizeof *p->full);
    p->part = scratch_take(&p->memory, 1, (size_t)p->n * sizeof *p->part);
    if (!p->full || !p->part)
        return false;
    for (int64_t i = 0; i < p->n; i++) {
        const int64_t k = place(dim, index_at(index->data, from, wide));
        p->full[i] = k < 0 ? k : k * dim->step;
        p->part[i] = to;
        for (int d = index->ndim - 1; d >= 0; d--) {
            from += index->stride[d];
            to += part->stride[axis + d];
            if (++at[d] < index->extent[d])
                break;
            from -= at[d] * index->stride[d];
            to -= at[d] * part->stride[axis + d];
            at[d] = 0;
        }
    }
    return true;
}

/* A view without n dims from d on, at their first elements. */
static trama_view without(const trama_view *v, int d, int n)
{
    trama_view rest = *v;
    while (n-- > 0)
        rest = view_without(&rest, d);
    return rest;
}

/* ---- gather ---- */

typedef struct sixteen_bytes {
    uint64_t half[2];
} sixteen_bytes;
#define EACH_SIZE(X) X(1, uint8_t) X(2, uint16_t) X(4, uint32_t) X(8, uint64_t) X(16, sixteen_bytes)

/* The elements that an index reads which is elsewhere, and nowhere: 0 and NaN. */
typedef struct blanks {
    sixteen_bytes of[2];
} blanks;

static blanks blanks_of(trama_dtype dtype)
{
    blanks b;
    for (int i = 0; i < 2; i++)
        kernel_fill(&(trama_view){.data = &b.of[i], .dtype = dtype, .ndim = 1, .extent = {1}, .stride = {1}},
                    i ? NAN : 0);
    return b;
}

typedef struct gathering {
    const places *places;
    indexed_dim dim; /* along */
    bool wide;       /* along: the index is i64 */
    blanks blanks;
} gathering;

#define GATHER_ROW(size, unit)                                                                                         \
    ROW_SIGNATURE(gather_##size)                                                                                       \
    {                                                                                                                  \
        const gathering *g = with;                                                                                     \
        const places *p = g->places;                                                                                   \
        unit *out = data[0], blank[2];                                                                                 \
        const unit *x = data[1];                                                                                       \
        memcpy(&blank[0], &g->blanks.of[0], sizeof *blank);                                                            \
        memcpy(&blank[1], &g->blanks.of[1], sizeof *blank);                                                            \
        if (step[0] == 1 && step[1] == 1 && n > 1) {                                                                   \
            for (int64_t i = 0; i < p->n; i++)                                                                         \
                if (p->full[i] >= 0)                                                                                   \
                    memcpy(out + p->part[i], x + p->full[i], (size_t)n * sizeof *out);                                 \
                else                                                                                                   \
                    for (int64_t j = 0; j < n; j++)                                                                    \
                        out[p->part[i] + j] = blank[-1 - p->full[i]];                                                  \
            return;                                                                                                    \
        }                                                                                                              \
        for (int64_t j = 0; j < n; j++, out += step[0], x += step[1])                                                  \
            for (int64_t i = 0; i < p->n; i++)                                                                         \
                out[p->part[i]] = p->full[i] >= 0 ? x[p->full[i]] : blank[-1 - p->full[i]];                            \
    }
EACH_SIZE(GATHER_ROW)

/* out, index, x at the first element of the dim */
#define GATHER_ALONG_ROW(size, unit)                                                                                   \
    ROW_SIGNATURE(gather_along_##size)                                                                                 \
    {                                                                                                                  \
        const gathering *g = with;                                                                                     \
        unit *out = data[0], blank[2];                                                                                 \
        const unit *x = data[2];                                                                                       \
        memcpy(&blank[0], &g->blanks.of[0], sizeof *blank);                                                            \
        memcpy(&blank[1], &g->blanks.of[1], sizeof *blank);                                                            \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            const int64_t k = place(&g->dim, index_at(data[1], i * step[1], g->wide));                                 \
            out[i * step[0]] = k >= 0 ? x[i * step[2] + k * g->dim.step] : blank[-1 - k];                              \
        }                                                                                                              \
    }
EACH_SIZE(GATHER_ALONG_ROW)

#define GATHER_ENTRY(size, unit) [size] = gather_##size,
#define GATHER_ALONG_ENTRY(size, unit) [size] = gather_along_##size,

void cpu_gather(const trama_call *call)
{
    static loop_row *const rows[] = {EACH_SIZE(GATHER_ENTRY)};
    const trama_view *x = &call->in[0], *index = &call->in[1], *out = &call->out[0];
    const int axis = axis_of(call);
    const indexed_dim dim = dim_of(x, axis);
    places p;
    if (places_of(&p, index, out, axis, &dim)) {
        const gathering g = {.places = &p, .blanks = blanks_of(x->dtype)};
        const trama_view to = without(out, axis, index->ndim), from = without(x, axis, 1);
        if (p.n)
            loop_run(2, (const trama_view *[]){&to, &from}, rows[trama_dtype_size(x->dtype)], &g);
    }
    scratch_free(&p.memory);
}

/* The view with its dim d repeated from its first element on. */
static trama_view repeated(const trama_view *v, int d)
{
    trama_view r = *v;
    r.extent[d] = 1;
    return r;
}

void cpu_gather_along(const trama_call *call)
{
    static loop_row *const rows[] = {EACH_SIZE(GATHER_ALONG_ENTRY)};
    const trama_view *x = &call->in[0], *index = &call->in[1], from = repeated(x, axis_of(call));
    const gathering g = {
        .dim = dim_of(x, axis_of(call)), .wide = index->dtype == TRAMA_I64, .blanks = blanks_of(x->dtype)};
    loop_run(3, (const trama_view *[]){&call->out[0], index, &from}, rows[trama_dtype_size(x->dtype)], &g);
}

/* ---- Sums of the elements of one index ---- */

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
EACH_DTYPE(SUM_ROW, )

void cpu_gather_grad(const trama_call *call)
{
    static loop_row *const rows[TRAMA_N_DTYPES] = {EACH_DTYPE(ROW_ENTRY, gather_grad)};
    const trama_view *g = &call->in[0], *index = &call->in[1], *out = &call->out[0];
    const int axis = axis_of(call);
    const indexed_dim dim = dim_of(out, axis), places_only = {dim.global, dim.offset, dim.extent, 1};
    const trama_view to = without(out, axis, 1), from = without(g, axis, index->ndim);
    places p;
    sums s = {0};
    if (places_of(&p, index, g, axis, &places_only) && sums_of(&s, &p, &places_only)) {
        s.step = dim.step;
        loop_run(2, (const trama_view *[]){&to, &from}, rows[out->dtype], &s);
    }
    scratch_free(&s.memory);
    scratch_free(&p.memory);
}

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
EACH_DTYPE(LINE_SUM_ROW, )

void cpu_gather_along_grad(const trama_call *call)
{
    static loop_row *const rows[TRAMA_N_DTYPES] = {EACH_DTYPE(ROW_ENTRY, gather_along_grad)};
    const trama_view *g = &call->in[0], *index = &call->in[1], *out = &call->out[0];
    const int axis = axis_of(call);
    const trama_view to = without(out, axis, 1), from = without(g, axis, 1), at = without(index, axis, 1);
    scratch memory = {0};
    line_sums s = {dim_of(out, axis),   g->extent[axis],           g->stride[axis],
                   index->stride[axis], index->dtype == TRAMA_I64, NULL};
    s.acc = scratch_take(&memory, 0, (size_t)(LINE_BLOCK * s.dim.extent) * 2 * sizeof(double));
    if (s.acc)
        loop_run(3, (const trama_view *[]){&to, &from, &at}, rows[out->dtype], &s);
    scratch_free(&memory);
}

/* ---- scatter ---- */

typedef struct scattering {
    const places *places;
    indexed_dim dim; /* along */
    bool wide;       /* along: the index is i64 */
    trama_scatter_how how;
} scattering;

/* The element of `how` from the one that is there and a new one. */
#define JOIN(dtype, type, unused)                                                                                      \
    static inline type join_##dtype(type old, type new, trama_scatter_how how)                                         \
    {                                                                                                                  \
        const NUMBER_##dtype x = LOAD(dtype, old), y = LOAD(dtype, new);                                               \
        switch (how) {                                                                                                 \
        case TRAMA_SCATTER_MULTIPLY:                                                                                   \
            return STORE(dtype, (WRAP_OF(dtype))x * (WRAP_OF(dtype))y);                                                \
        case TRAMA_SCATTER_MAX:                                                                                        \
            return STORE(dtype, MAXIMUM(dtype, x, y));                                                                 \
        case TRAMA_SCATTER_MIN:                                                                                        \
            return STORE(dtype, MINIMUM(dtype, x, y));                                                                 \
        default:                                                                                                       \
            return new;                                                                                                \
        }                                                                                                              \
    }                                                                                                                  \
    ROW_SIGNATURE(scatter_##dtype)                                                                                     \
    {                                                                                                                  \
        const scattering *s = with;                                                                                    \
        const places *p = s->places;                                                                                   \
        for (int64_t i = 0; i < p->n; i++) {                                                                           \
            type *out = (type *)data[0] + p->full[i];                                                                  \
            const type *u = (const type *)data[1] + p->part[i];                                                        \
            for (int64_t j = 0; j < n && p->full[i] >= 0; j++)                                                         \
                out[j * step[0]] = join_##dtype(out[j * step[0]], u[j * step[1]], s->how);                             \
        }                                                                                                              \
    }                                                                                                                  \
    ROW_SIGNATURE(scatter_along_##dtype)                                                                               \
    {                                                                                                                  \
        const scattering *s = with;                                                                                    \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            const int64_t k = place(&s->dim, index_at(data[1], i * step[1], s->wide));                                 \
            type *out = (type *)data[2] + i * step[2] + k * s->dim.step;                                               \
            if (k >= 0)                                                                                                \
                *out = join_##dtype(*out, ((const type *)data[0])[i * step[0]], s->how);                               \
        }                                                                                                              \
    }
#define WRAP_OF(dtype) BY_KIND(WRAP_OF, dtype)(dtype)
#define WRAP_OF_REAL(dtype) NUMBER_##dtype
#define WRAP_OF_HALF(dtype) NUMBER_##dtype
#define WRAP_OF_SIGNED(dtype) uint64_t
#define WRAP_OF_UNSIGNED(dtype) uint64_t
#define WRAP_OF_BOOL(dtype) uint64_t
EACH_DTYPE(JOIN, )

static trama_scatter_how how_of(const trama_call *call)
{
    return (trama_scatter_how)call->attributes->integer[SCATTER_HOW];
}

void cpu_scatter(const trama_call *call)
{
    static loop_row *const rows[TRAMA_N_DTYPES] = {EACH_DTYPE(ROW_ENTRY, scatter)};
    const trama_view *index = &call->in[1], *u = &call->in[2], *out = &call->out[0];
    const int axis = axis_of(call);
    const indexed_dim dim = dim_of(out, axis);
    const trama_view to = without(out, axis, 1), from = without(u, axis, index->ndim);
    places p;
    if (places_of(&p, index, u, axis, &dim)) {
        const scattering s = {.places = &p, .how = how_of(call)};
        kernel_copy(out, &call->in[0]);
        loop_run(2, (const trama_view *[]){&to, &from}, rows[out->dtype], &s);
    }
    scratch_free(&p.memory);
}

void cpu_scatter_along(const trama_call *call)
{
    static loop_row *const rows[TRAMA_N_DTYPES] = {EACH_DTYPE(ROW_ENTRY, scatter_along)};
    const trama_view *index = &call->in[1], *out = &call->out[0], to = repeated(out, axis_of(call));
    const scattering s = {.dim = dim_of(out, axis_of(call)), .wide = index->dtype == TRAMA_I64, .how = how_of(call)};
    kernel_copy(out, &call->in[0]);
    loop_run(3, (const trama_view *[]){&call->in[2], index, &to}, rows[out->dtype], &s);
}
