/* SPDX-License-Identifier: Apache-2.0 */
/* Cumulative sums and products, and recurrences, along one whole dim. Several lines go side by side, each in the order
 * of its elements, so that a line has the same bits wherever it lies. */
#include "accumulate.h"
#include "along.h"
#include "ops.h"

/* Lines side by side: those whose elements are neighbours, and others, whose number keeps them in a cache. */
enum { NEIGHBOURS = 512, LINES = 4 };

/* The elements of a line in the order of the scan. */
typedef struct scan {
    int64_t n, step[3]; /* of result and operands; negative in reverse */
    int64_t first[3];   /* where the scan begins */
    bool exclusive, late;
} scan;

static scan scan_of(const along *a)
{
    const int64_t *flags = a->call->attributes->integer;
    scan s = {.n = a->n[0], .exclusive = flags[SCAN_EXCLUSIVE], .late = flags[SCAN_LATE]};
    for (int i = 0; i < a->call->n_out + a->call->n_in; i++) {
        s.step[i] = flags[SCAN_REVERSE] ? -a->step[i] : a->step[i];
        s.first[i] = flags[SCAN_REVERSE] && s.n ? (s.n - 1) * a->step[i] : 0;
    }
    return s;
}

/* A loop over all elements of m lines, at most `most`, where across[i] leads from a line to the next. NEXT sets `next`,
 * and the state that is kept, from the state before and the elements of the operands. */
#define SCAN_LOOP(dtype, type, STATE, INIT, NEXT, most, m, ACROSS)                                                     \
    {                                                                                                                  \
        STATE state[most];                                                                                             \
        for (int64_t j = 0; j < (m); j++)                                                                              \
            state[j] = INIT;                                                                                           \
        for (int64_t i = 0; i < s->n; i++) {                                                                           \
            type *restrict y = (type *)data[0] + s->first[0] + i * s->step[0];                                         \
            const type *x = (const type *)data[1] + s->first[1] + i * s->step[1];                                      \
            const type *b = (const type *)data[2] + s->first[2] + i * s->step[2];                                      \
            INDEPENDENT                                                                                                \
            for (int64_t j = 0; j < (m); j++) {                                                                        \
                const STATE before = state[j];                                                                         \
                NEXT(dtype, ACROSS)                                                                                    \
                y[j * ACROSS(0)] = SCALED(dtype, s->exclusive ? before : next, 1);                                     \
            }                                                                                                          \
        }                                                                                                              \
    }
#define SIDE_BY_SIDE(array) 1
#define APART(array) across[array]

#define SCAN_ROW(dtype, type, name, STATE, INIT, NEXT)                                                                 \
    FAST static void name##_neighbours_##dtype(const scan *s, int64_t m, void *const *data){SCAN_LOOP(                 \
        dtype, type, STATE, INIT, NEXT, NEIGHBOURS, m,                                                                 \
        SIDE_BY_SIDE)} FAST static void name##_lines_##dtype(const scan *s, void *const *data, const int64_t *across)  \
    {                                                                                                                  \
        SCAN_LOOP(dtype, type, STATE, INIT, NEXT, LINES, LINES, APART)                                                 \
    }                                                                                                                  \
    static void name##_line_##dtype(const scan *s, void *const *data){                                                 \
        SCAN_LOOP(dtype, type, STATE, INIT, NEXT, 1, 1, SIDE_BY_SIDE)} ROW_SIGNATURE(name##_##dtype)                   \
    {                                                                                                                  \
        const scan s = scan_of(with);                                                                                  \
        const int last = ((const along *)with)->call->n_in;                                                            \
        const bool neighbours = step[0] == 1 && step[1] == 1 && step[last] == 1;                                       \
        for (int64_t from = 0, m; from < n; from += m) {                                                               \
            void *here[3];                                                                                             \
            for (int i = 0; i < 3; i++)                                                                                \
                here[i] = (type *)data[i <= last ? i : last] + from * step[i <= last ? i : last];                      \
            const int64_t most = neighbours ? NEIGHBOURS : LINES;                                                      \
            m = n - from < most ? n - from : most;                                                                     \
            m = neighbours || m == LINES ? m : 1;                                                                      \
            if (neighbours)                                                                                            \
                name##_neighbours_##dtype(&s, m, here);                                                                \
            else if (m == LINES)                                                                                       \
                name##_lines_##dtype(&s, here, step);                                                                  \
            else                                                                                                       \
                name##_line_##dtype(&s, here);                                                                         \
        }                                                                                                              \
    }

#define NEXT_SUM(dtype, ACROSS)                                                                                        \
    const SUM(dtype) next = STEP_SUM(dtype, before, LOAD(dtype, x[j * ACROSS(1)]));                                    \
    (void)b;                                                                                                           \
    state[j] = next;
#define NEXT_PRODUCT(dtype, ACROSS)                                                                                    \
    const SUM(dtype) next = STEP_PRODUCT(dtype, before, LOAD(dtype, x[j * ACROSS(1)]));                                \
    (void)b;                                                                                                           \
    state[j] = next;
#define NEXT_RECURRENCE(dtype, ACROSS)                                                                                 \
    const SUM(dtype) factor = LOAD(dtype, x[j * ACROSS(1)]);                                                           \
    const SUM(dtype) next = LOAD(dtype, b[j * ACROSS(2)]) + (s->late ? before : factor * before);                      \
    state[j] = s->late ? factor * next : next;
#define SUM_SCAN(dtype, type, name) SCAN_ROW(dtype, type, name, SUM(dtype), 0, NEXT_SUM)
#define PRODUCT_SCAN(dtype, type, name) SCAN_ROW(dtype, type, name, SUM(dtype), 1, NEXT_PRODUCT)
#define RECURRENCE_SCAN(dtype, type, name) SCAN_ROW(dtype, type, name, SUM(dtype), 0, NEXT_RECURRENCE)

#define SCAN_OP(name, EACH, KIND)                                                                                      \
    EACH(KIND, name)                                                                                                   \
    static loop_row *const name##_rows[TRAMA_N_DTYPES] = {EACH(ROW_ENTRY, name)};                                      \
    void cpu_##name(const trama_call *call)                                                                            \
    {                                                                                                                  \
        along_run(call, (int)call->attributes->integer[SCAN_AXIS], name##_rows[call->out[0].dtype], NULL);             \
    }
SCAN_OP(cumsum, EACH_FIELD, SUM_SCAN)
SCAN_OP(cumprod, EACH_FIELD, PRODUCT_SCAN)
SCAN_OP(recurrence, EACH_ANALYTIC, RECURRENCE_SCAN)

/* ---- Extremes so far, and their indices ---- */

/* The first element is taken, then each that is more than all before it. */
#define EXTREME_LOOP(dtype, type, NONE, MORE, most, m, ACROSS)                                                         \
    {                                                                                                                  \
        NUMBER_##dtype best[most];                                                                                     \
        int64_t place[most];                                                                                           \
        for (int64_t j = 0; j < (m); j++) {                                                                            \
            best[j] = NONE;                                                                                            \
            place[j] = s->n;                                                                                           \
        }                                                                                                              \
        for (int64_t i = 0; i < s->n; i++) {                                                                           \
            type *restrict y = (type *)data[0] + s->first[0] + i * s->step[0];                                         \
            int64_t *restrict at = (int64_t *)data[1] + s->first[1] + i * s->step[1];                                  \
            const type *x = (const type *)data[2] + s->first[2] + i * s->step[2];                                      \
            const int64_t here = s->step[0] < 0 ? s->n - 1 - i : i;                                                    \
            INDEPENDENT                                                                                                \
            for (int64_t j = 0; j < (m); j++) {                                                                        \
                const NUMBER_##dtype now = LOAD(dtype, x[j * ACROSS(2)]), before = best[j];                            \
                const int64_t place_before = place[j];                                                                 \
                const bool take = (i == 0) | (now MORE before) | (IS_NAN(dtype, now) & !IS_NAN(dtype, before));        \
                best[j] = take ? now : before;                                                                         \
                place[j] = take ? here : place_before;                                                                 \
                y[j * ACROSS(0)] = STORE(dtype, s->exclusive ? before : best[j]);                                      \
                at[j * ACROSS(1)] = s->exclusive ? place_before : place[j];                                            \
            }                                                                                                          \
        }                                                                                                              \
    }
#define EXTREME_ROW(dtype, type, name, NONE, MORE)                                                                     \
    FAST static void name##_neighbours_##dtype(const scan *s, int64_t m, void *const *data)                            \
    {                                                                                                                  \
        EXTREME_LOOP(dtype, type, NONE, MORE, NEIGHBOURS, m, SIDE_BY_SIDE)                                             \
    }                                                                                                                  \
    static void name##_line_##dtype(const scan *s, void *const *data){                                                 \
        EXTREME_LOOP(dtype, type, NONE, MORE, 1, 1, SIDE_BY_SIDE)} ROW_SIGNATURE(name##_##dtype)                       \
    {                                                                                                                  \
        const scan s = scan_of(with);                                                                                  \
        const bool neighbours = step[0] == 1 && step[1] == 1 && step[2] == 1;                                          \
        for (int64_t from = 0, m; from < n; from += m) {                                                               \
            void *here[] = {(type *)data[0] + from * step[0], (int64_t *)data[1] + from * step[1],                     \
                            (type *)data[2] + from * step[2]};                                                         \
            m = !neighbours ? 1 : n - from < NEIGHBOURS ? n - from : NEIGHBOURS;                                       \
            if (neighbours)                                                                                            \
                name##_neighbours_##dtype(&s, m, here);                                                                \
            else                                                                                                       \
                name##_line_##dtype(&s, here);                                                                         \
        }                                                                                                              \
    }
#define LARGEST_SCAN(dtype, type, name) EXTREME_ROW(dtype, type, name, LOWEST_##dtype, >)
#define LEAST_SCAN(dtype, type, name) EXTREME_ROW(dtype, type, name, HIGHEST_##dtype, <)
SCAN_OP(cummax, EACH_DTYPE, LARGEST_SCAN)
SCAN_OP(cummin, EACH_DTYPE, LEAST_SCAN)
