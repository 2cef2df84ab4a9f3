/* SPDX-License-Identifier: Apache-2.0 */
/* Gather and scatter, and the lists of places that they go by. */
#include "index.h"

#include <math.h>
#include <string.h>

#include "loop.h"

/* ---- Places ---- */

bool places_of(places *p, const trama_view *index, const trama_view *part, int axis, const indexed_dim *dim)
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

trama_view view_without_dims(const trama_view *v, int d, int n)
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
    const int axis = indexed_axis(call);
    const indexed_dim dim = indexed_dim_of(x, axis);
    places p;
    if (places_of(&p, index, out, axis, &dim)) {
        const gathering g = {.places = &p, .blanks = blanks_of(x->dtype)};
        const trama_view to = view_without_dims(out, axis, index->ndim), from = view_without_dims(x, axis, 1);
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
    const trama_view *x = &call->in[0], *index = &call->in[1], from = repeated(x, indexed_axis(call));
    const gathering g = {
        .dim = indexed_dim_of(x, indexed_axis(call)), .wide = index->dtype == TRAMA_I64, .blanks = blanks_of(x->dtype)};
    loop_run(3, (const trama_view *[]){&call->out[0], index, &from}, rows[trama_dtype_size(x->dtype)], &g);
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
            return STORE(dtype, EXTREME(dtype, MAXIMUM, x, y));                                                        \
        case TRAMA_SCATTER_MIN:                                                                                        \
            return STORE(dtype, EXTREME(dtype, MINIMUM, x, y));                                                        \
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
#define WRAP_OF_COMPLEX(dtype) NUMBER_##dtype
#define EXTREME(dtype, WHICH, x, y) BY_KIND(EXTREME, dtype)(WHICH, dtype, x, y)
#define EXTREME_REAL(WHICH, dtype, x, y) WHICH(dtype, x, y)
#define EXTREME_HALF(WHICH, dtype, x, y) WHICH(dtype, x, y)
#define EXTREME_SIGNED(WHICH, dtype, x, y) WHICH(dtype, x, y)
#define EXTREME_UNSIGNED(WHICH, dtype, x, y) WHICH(dtype, x, y)
#define EXTREME_BOOL(WHICH, dtype, x, y) WHICH(dtype, x, y)
#define EXTREME_COMPLEX(WHICH, dtype, x, y) (y) /* planning refuses it */
EACH_ELEMENT(JOIN, )

void cpu_scatter(const trama_call *call)
{
    static loop_row *const rows[TRAMA_N_DTYPES] = {EACH_ELEMENT(ROW_ENTRY, scatter)};
    const trama_view *index = &call->in[1], *u = &call->in[2], *out = &call->out[0];
    const int axis = indexed_axis(call);
    const indexed_dim dim = indexed_dim_of(out, axis);
    const trama_view to = view_without_dims(out, axis, 1), from = view_without_dims(u, axis, index->ndim);
    places p;
    if (places_of(&p, index, u, axis, &dim)) {
        const scattering s = {.places = &p, .how = scatter_how(call)};
        kernel_copy(out, &call->in[0]);
        loop_run(2, (const trama_view *[]){&to, &from}, rows[out->dtype], &s);
    }
    scratch_free(&p.memory);
}

void cpu_scatter_along(const trama_call *call)
{
    static loop_row *const rows[TRAMA_N_DTYPES] = {EACH_ELEMENT(ROW_ENTRY, scatter_along)};
    const trama_view *index = &call->in[1], *out = &call->out[0], to = repeated(out, indexed_axis(call));
    const scattering s = {
        .dim = indexed_dim_of(out, indexed_axis(call)), .wide = index->dtype == TRAMA_I64, .how = scatter_how(call)};
    kernel_copy(out, &call->in[0]);
    loop_run(3, (const trama_view *[]){&call->in[2], index, &to}, rows[out->dtype], &s);
}
