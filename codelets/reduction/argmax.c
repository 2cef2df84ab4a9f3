/* SPDX-License-Identifier: Apache-2.0 */
/* The index of the largest, or least, element along one dim. NaN is both, and of equal elements the first counts, or
 * the last. */
#include "accumulate.h"
#include "kernel.h"
#include "ops.h"

enum { COLUMNS = 512, BLOCK = 64 };

/* The reduced dim. loop_run walks the kept dims. */
typedef struct place_search {
    int64_t n, step;
    bool last;
} place_search;

#define IS_SAME(dtype, a, b) (((a) == (b)) | (IS_NAN(dtype, a) & IS_NAN(dtype, b)))

/* The first, or last, of n elements that is `wanted`; 0 without one. Blocks are compared as a whole. */
#define FIND(dtype, type, unused)                                                                                      \
    FAST static bool has_##dtype(const type *x, int64_t step, int64_t n, NUMBER_##dtype wanted)                        \
    {                                                                                                                  \
        int found = 0;                                                                                                 \
        if (step == 1)                                                                                                 \
            for (int64_t j = 0; j < n; j++)                                                                            \
                found |= IS_SAME(dtype, LOAD(dtype, x[j]), wanted);                                                    \
        else                                                                                                           \
            for (int64_t j = 0; j < n; j++)                                                                            \
                found |= IS_SAME(dtype, LOAD(dtype, x[j * step]), wanted);                                             \
        return found;                                                                                                  \
    }                                                                                                                  \
    static int64_t find_##dtype(const place_search *p, const type *x, NUMBER_##dtype wanted)                           \
    {                                                                                                                  \
        const int64_t blocks = (p->n + BLOCK - 1) / BLOCK;                                                             \
        for (int64_t k = 0; k < blocks; k++) {                                                                         \
            const int64_t from = (p->last ? blocks - 1 - k : k) * BLOCK;                                               \
            const int64_t m = p->n - from < BLOCK ? p->n - from : BLOCK;                                               \
            if (!has_##dtype(x + from * p->step, p->step, m, wanted))                                                  \
                continue;                                                                                              \
            int64_t j = p->last ? from + m - 1 : from;                                                                 \
            while (!IS_SAME(dtype, LOAD(dtype, x[j * p->step]), wanted))                                               \
                j += p->last ? -1 : 1;                                                                                 \
            return j;                                                                                                  \
        }                                                                                                              \
        return 0;                                                                                                      \
    }
EACH_DTYPE(FIND, )

/* Neighbouring results go side by side, others one after the other. */
#define PLACE_ROWS(dtype, type, name, NONE, MORE, STEP)                                                                \
    LANES_OF(dtype, type, name, NUMBER_##dtype, true, STEP, STEP)                                                      \
    static int64_t name##_line_##dtype(const place_search *p, const type *x)                                           \
    {                                                                                                                  \
        NUMBER_##dtype lane[LANES];                                                                                    \
        for (int j = 0; j < LANES; j++)                                                                                \
            lane[j] = NONE;                                                                                            \
        name##_lanes_##dtype(lane, x, p->step, p->n);                                                                  \
        return find_##dtype(p, x, name##_joined_##dtype(lane));                                                        \
    }                                                                                                                  \
    FAST static void name##_columns_##dtype(const place_search *p, int64_t m, int64_t *out, const type *x)             \
    {                                                                                                                  \
        NUMBER_##dtype best[COLUMNS];                                                                                  \
        int64_t place[COLUMNS];                                                                                        \
        for (int64_t j = 0; j < m; j++) {                                                                              \
            best[j] = p->n ? LOAD(dtype, x[j]) : (NUMBER_##dtype)0;                                                    \
            place[j] = 0;                                                                                              \
        }                                                                                                              \
        for (int64_t i = 1; i < p->n; i++)                                                                             \
            INDEPENDENT                                                                                                \
        for (int64_t j = 0; j < m; j++) {                                                                              \
            const NUMBER_##dtype now = LOAD(dtype, x[i * p->step + j]), before = best[j];                              \
            const bool more = (now MORE before) | (IS_NAN(dtype, now) & !IS_NAN(dtype, before));                       \
            const bool take = more | (p->last & IS_SAME(dtype, now, before));                                          \
            best[j] = take ? now : before;                                                                             \
            place[j] = take ? i : place[j];                                                                            \
        }                                                                                                              \
        for (int64_t j = 0; j < m; j++)                                                                                \
            out[j] = place[j];                                                                                         \
    }                                                                                                                  \
    ROW_SIGNATURE(name##_##dtype)                                                                                      \
    {                                                                                                                  \
        const place_search *p = with;                                                                                  \
        int64_t *out = data[0];                                                                                        \
        const type *x = data[1];                                                                                       \
        if (step[0] == 1 && step[1] == 1 && n > 1)                                                                     \
            for (int64_t from = 0; from < n; from += COLUMNS)                                                          \
                name##_columns_##dtype(p, n - from < COLUMNS ? n - from : COLUMNS, out + from, x + from);              \
        else                                                                                                           \
            for (int64_t i = 0; i < n; i++)                                                                            \
                out[i * step[0]] = name##_line_##dtype(p, x + i * step[1]);                                            \
    }
#define LARGEST_ROWS(dtype, type, name) PLACE_ROWS(dtype, type, name, LOWEST_##dtype, >, STEP_MAX)
#define LEAST_ROWS(dtype, type, name) PLACE_ROWS(dtype, type, name, HIGHEST_##dtype, <, STEP_MIN)

static void find_places(const trama_call *call, loop_row *const rows[TRAMA_N_DTYPES])
{
    const trama_view *in = &call->in[0], kept = kept_view(call);
    const int64_t axes = call->attributes->integer[REDUCE_AXES];
    place_search p = {.last = call->attributes->integer[ARGMAX_LAST]};

    if (call->out[0].dtype != TRAMA_I64 || __builtin_popcountll((uint64_t)axes) != 1)
        kernel_impossible(call, "the index of an extreme is an i64 along one dim");
    p.n = in->extent[__builtin_ctzll((uint64_t)axes)];
    p.step = in->stride[__builtin_ctzll((uint64_t)axes)];
    loop_run(2, (const trama_view *[]){&call->out[0], &kept}, rows[in->dtype], &p);
}

#define PLACE_OP(name, ROWS_OF)                                                                                        \
    EACH_DTYPE(ROWS_OF, name)                                                                                          \
    static loop_row *const name##_rows[TRAMA_N_DTYPES] = {EACH_DTYPE(ROW_ENTRY, name)};                                \
    void cpu_##name(const trama_call *call)                                                                            \
    {                                                                                                                  \
        find_places(call, name##_rows);                                                                                \
    }
PLACE_OP(argmax, LARGEST_ROWS)
PLACE_OP(argmin, LEAST_ROWS)
