/* SPDX-License-Identifier: Apache-2.0 */
/* Pools: rows of windows, one place of the kernel after the other. Sums of f32 and halves are kept in double. */
#include <string.h>

#include "conv.h"
#include "index.h"
#include "loop.h"
#include "pooling.h"

/* Windows [i, i + n) of a row of y. */
typedef struct pool_run {
    int64_t image, channel, at[CONV_SPACE], n;
} pool_run;
enum { RUN = 256 };

typedef void pool_row(const pool *p, const pool_run *r);

pool pool_of(const trama_call *call, const trama_view *x, const trama_view *y, const trama_view *index)
{
    pool p = {
        .x = conv_array_of(x), .y = conv_array_of(y), .index = conv_array_of(index), .wide = index->dtype == TRAMA_I64};
    for (int d = 0; d < CONV_SPACE; d++) {
        const int from = x->ndim - CONV_SPACE + d;
        p.global[d] = from < 2 ? 1 : x->global[from];
        p.kernel[d] = conv_attribute(call, POOL_KERNEL, d, 1);
        p.stride[d] = conv_attribute(call, CONV_STRIDE, d, 1);
        p.dilation[d] = conv_attribute(call, CONV_DILATION, d, 1);
        p.first[d] = p.y.offset[d] * p.stride[d] - conv_attribute(call, CONV_BEFORE, d, 0) - p.x.offset[d];
    }
    return p;
}

static void each_row(const pool *p, int64_t image, int64_t channel, pool_row *row)
{
    pool_run r = {.image = image, .channel = channel};
    for (r.at[0] = 0; r.at[0] < p->y.space[0]; r.at[0]++)
        for (r.at[1] = 0; r.at[1] < p->y.space[1]; r.at[1]++)
            for (r.at[2] = 0; r.at[2] < p->y.space[2]; r.at[2] += r.n) {
                r.n = p->y.space[2] - r.at[2] < RUN ? p->y.space[2] - r.at[2] : RUN;
                row(p, &r);
            }
}

static void each_plane(const pool *p, pool_row *row)
{
    for (int64_t i = 0; i < p->y.n[0]; i++)
        for (int64_t c = 0; c < p->y.n[1]; c++)
            each_row(p, i, c, row);
}

/* Element of an array at a run's position, or at local indices of x. */
static int64_t place_in(const conv_array *a, const pool_run *r, const int64_t *at)
{
    return r->image * a->step[0] + r->channel * a->step[1] + conv_offset(a, at);
}

/* Place k of the kernel: local indices in x of the run's first window, and its windows [*lo, *hi) that have it. */
static void reads(const pool *p, const pool_run *r, const int64_t *k, int64_t *at, int64_t *lo, int64_t *hi)
{
    *lo = *hi = 0;
    for (int d = 0; d < CONV_SPACE; d++)
        at[d] = p->first[d] + r->at[d] * p->stride[d] + k[d] * p->dilation[d];
    if (at[0] >= 0 && at[0] < p->x.space[0] && at[1] >= 0 && at[1] < p->x.space[1])
        conv_inside(at[2], p->stride[2], r->n, p->x.space[2], lo, hi);
}

#define EACH_PLACE(p, k)                                                                                               \
    for ((k)[0] = 0; (k)[0] < (p)->kernel[0]; (k)[0]++)                                                                \
        for ((k)[1] = 0; (k)[1] < (p)->kernel[1]; (k)[1]++)                                                            \
            for ((k)[2] = 0; (k)[2] < (p)->kernel[2]; (k)[2]++)

/* ---- max_pool ---- */

#define MAX_POOL(dtype, type, unused)                                                                                  \
    FAST static void max_run_##dtype(NUMBER_##dtype *best, int64_t *index, const type *x, int64_t step, int64_t n,     \
                                     int64_t at, int64_t by)                                                           \
    {                                                                                                                  \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            const NUMBER_##dtype v = LOAD(dtype, x[i * step]), b = best[i];                                            \
            const bool takes = (index[i] < 0) | ((!(v <= b)) & !IS_NAN(dtype, b));                                     \
            best[i] = takes ? v : b;                                                                                   \
            index[i] = takes ? at + i * by : index[i];                                                                 \
        }                                                                                                              \
    }                                                                                                                  \
    static void max_pool_##dtype(const pool *p, const pool_run *r)                                                     \
    {                                                                                                                  \
        NUMBER_##dtype best[RUN] = {0};                                                                                \
        int64_t index[RUN], k[CONV_SPACE], at[CONV_SPACE], lo, hi;                                                     \
        for (int64_t i = 0; i < r->n; i++)                                                                             \
            index[i] = -1;                                                                                             \
        EACH_PLACE(p, k)                                                                                               \
        {                                                                                                              \
            reads(p, r, k, at, &lo, &hi);                                                                              \
            if (lo == hi)                                                                                              \
                continue;                                                                                              \
            const int64_t by = p->stride[2], start = at[2] + lo * by;                                                  \
            const int64_t flat = ((at[0] + p->x.offset[0]) * p->global[1] + at[1] + p->x.offset[1]) * p->global[2] +   \
                                 start + p->x.offset[2];                                                               \
            at[2] = start;                                                                                             \
            max_run_##dtype(best + lo, index + lo, (const type *)p->x.data + place_in(&p->x, r, at),                   \
                            by * p->x.space_step[2], hi - lo, flat, by);                                               \
        }                                                                                                              \
        type *y = (type *)p->y.data + place_in(&p->y, r, r->at);                                                       \
        int64_t *to = (int64_t *)p->index.data + place_in(&p->index, r, r->at);                                        \
        for (int64_t i = 0; i < r->n; i++) {                                                                           \
            y[i * p->y.space_step[2]] = STORE(dtype, best[i]);                                                         \
            to[i * p->index.space_step[2]] = index[i];                                                                 \
        }                                                                                                              \
    }
EACH_NUMBER(MAX_POOL, )
#define MAX_POOL_ENTRY(dtype, type, unused) [dtype] = max_pool_##dtype,
static pool_row *const max_pool_rows[TRAMA_N_DTYPES] = {EACH_NUMBER(MAX_POOL_ENTRY, )};

void cpu_max_pool(const trama_call *call)
{
    const pool p = pool_of(call, &call->in[0], &call->out[0], &call->out[1]);
    each_plane(&p, max_pool_rows[call->out[0].dtype]);
}

/* ---- Sums, and elements by index ---- */

/* The local indices in x of the index of window i of a run. False: the window does not have it, or this box does not.
 */
static bool find(const pool *p, const pool_run *r, int64_t i, int64_t *at)
{
    const int64_t window[CONV_SPACE] = {r->at[0], r->at[1], r->at[2] + i};
    return pool_find(p, window, index_at(p->index.data, place_in(&p->index, r, window), p->wide), at);
}

#define SUM_POOL(dtype, type, unused)                                                                                  \
    FAST static void add_run_##dtype(double *sum, int64_t to, const type *x, int64_t step, int64_t n)                  \
    {                                                                                                                  \
        for (int64_t i = 0; i < n; i++)                                                                                \
            sum[i * to] += (double)LOAD(dtype, x[i * step]);                                                           \
    }                                                                                                                  \
    FAST static void store_run_##dtype(type *to, int64_t step, const double *from, int64_t n)                          \
    {                                                                                                                  \
        for (int64_t i = 0; i < n; i++)                                                                                \
            to[i * step] = OF_REAL(dtype, from[i]);                                                                    \
    }                                                                                                                  \
    static void sum_pool_##dtype(const pool *p, const pool_run *r)                                                     \
    {                                                                                                                  \
        double sum[RUN] = {0};                                                                                         \
        int64_t k[CONV_SPACE], at[CONV_SPACE], lo, hi;                                                                 \
        EACH_PLACE(p, k)                                                                                               \
        {                                                                                                              \
            reads(p, r, k, at, &lo, &hi);                                                                              \
            at[2] += lo * p->stride[2];                                                                                \
            if (lo < hi)                                                                                               \
                add_run_##dtype(sum + lo, 1, (const type *)p->x.data + place_in(&p->x, r, at),                         \
                                p->stride[2] * p->x.space_step[2], hi - lo);                                           \
        }                                                                                                              \
        store_run_##dtype((type *)p->y.data + place_in(&p->y, r, r->at), p->y.space_step[2], sum, r->n);               \
    }                                                                                                                  \
    static void spread_##dtype(const pool *p, const pool_run *r)                                                       \
    {                                                                                                                  \
        int64_t k[CONV_SPACE], at[CONV_SPACE], lo, hi;                                                                 \
        EACH_PLACE(p, k)                                                                                               \
        {                                                                                                              \
            reads(p, r, k, at, &lo, &hi);                                                                              \
            if (lo < hi)                                                                                               \
                add_run_##dtype(                                                                                       \
                    p->plane + (at[0] * p->x.space[1] + at[1]) * p->x.space[2] + at[2] + lo * p->stride[2],            \
                    p->stride[2], (const type *)p->y.data + place_in(&p->y, r, r->at) + lo * p->y.space_step[2],       \
                    p->y.space_step[2], hi - lo);                                                                      \
        }                                                                                                              \
    }                                                                                                                  \
    static void put_##dtype(const pool *p, const pool_run *r)                                                          \
    {                                                                                                                  \
        const type *y = (const type *)p->y.data + place_in(&p->y, r, r->at);                                           \
        for (int64_t i = 0; i < r->n; i++) {                                                                           \
            int64_t at[CONV_SPACE];                                                                                    \
            if (find(p, r, i, at))                                                                                     \
                p->plane[(at[0] * p->x.space[1] + at[1]) * p->x.space[2] + at[2]] +=                                   \
                    (double)LOAD(dtype, y[i * p->y.space_step[2]]);                                                    \
        }                                                                                                              \
    }                                                                                                                  \
    static void take_##dtype(const pool *p, const pool_run *r)                                                         \
    {                                                                                                                  \
        type *y = (type *)p->y.data + place_in(&p->y, r, r->at);                                                       \
        for (int64_t i = 0; i < r->n; i++) {                                                                           \
            int64_t at[CONV_SPACE];                                                                                    \
            const bool here = find(p, r, i, at);                                                                       \
            y[i * p->y.space_step[2]] =                                                                                \
                STORE(dtype, here ? LOAD(dtype, ((const type *)p->x.data)[place_in(&p->x, r, at)]) : 0);               \
        }                                                                                                              \
    }                                                                                                                  \
    static void keep_##dtype(const pool *p, const pool_run *r)                                                         \
    {                                                                                                                  \
        for (int64_t i = 0; i < p->x.space[0]; i++)                                                                    \
            for (int64_t j = 0; j < p->x.space[1]; j++)                                                                \
                store_run_##dtype((type *)p->x.data + place_in(&p->x, r, (int64_t[]){i, j, 0}), p->x.space_step[2],    \
                                  p->plane + (i * p->x.space[1] + j) * p->x.space[2], p->x.space[2]);                  \
    }

EACH_FLOAT(SUM_POOL, )
#define SUM_POOL_ENTRY(dtype, type, unused)                                                                            \
    [dtype] = {sum_pool_##dtype, spread_##dtype, put_##dtype, take_##dtype, keep_##dtype},
static const struct {
    pool_row *sum, *spread, *put, *take;
    pool_row *keep; /* plane to x */
} sum_rows[TRAMA_N_DTYPES] = {EACH_FLOAT(SUM_POOL_ENTRY, )};

void cpu_sum_pool(const trama_call *call)
{
    const pool p = pool_of(call, &call->in[0], &call->out[0], &call->out[0]);
    each_plane(&p, sum_rows[call->out[0].dtype].sum);
}

void cpu_max_pool_at(const trama_call *call)
{
    const pool p = pool_of(call, &call->in[0], &call->out[0], &call->in[1]);
    each_plane(&p, sum_rows[call->out[0].dtype].take);
}

/* Adds the rows of y to planes of x, which are 0 at first. */
static void add_to_planes(pool *p, trama_dtype dtype, pool_row *row)
{
    const size_t bytes = sizeof(double) * (size_t)(p->x.space[0] * p->x.space[1] * p->x.space[2]);
    scratch memory = {0};
    p->plane = scratch_take(&memory, 0, bytes);
    for (int64_t i = 0; p->plane && i < p->x.n[0]; i++)
        for (int64_t c = 0; c < p->x.n[1]; c++) {
            memset(p->plane, 0, bytes);
            each_row(p, i, c, row);
            sum_rows[dtype].keep(p, &(pool_run){.image = i, .channel = c});
        }
    scratch_free(&memory);
}

void cpu_sum_unpool(const trama_call *call)
{
    pool p = pool_of(call, &call->out[0], &call->in[0], &call->in[0]);
    add_to_planes(&p, call->out[0].dtype, sum_rows[call->out[0].dtype].spread);
}

void cpu_max_unpool(const trama_call *call)
{
    pool p = pool_of(call, &call->out[0], &call->in[0], &call->in[1]);
    add_to_planes(&p, call->out[0].dtype, sum_rows[call->out[0].dtype].put);
}
