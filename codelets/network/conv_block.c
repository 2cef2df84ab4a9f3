/* SPDX-License-Identifier: Apache-2.0 */
/* Packed operands of convolutions, and the products of them. */
#include <string.h>

#include "conv.h"
#include "loop.h"
#include "ops.h"

/* ---- Elements ---- */

#define AT(type, array, image, channel)                                                                                \
    ((type *)(array)->data + (image) * (array)->step[0] + (channel) * (array)->step[1])

/* A copy by parts of PART numbers, the last of which may repeat some. */
enum { PART = 8, SQUARE = 4 };
#define SQUARED(dtype, x, by)                                                                                          \
    ((square_##dtype){LOAD(dtype, (x)[0]), LOAD(dtype, (x)[by]), LOAD(dtype, (x)[2 * (by)]),                           \
                      LOAD(dtype, (x)[3 * (by)])})
#define CONV_COPY(dtype, type, unused)                                                                                 \
    FORMULA void copy_##dtype(NUMBER_##dtype *to, const type *from, int64_t by, int64_t n)                             \
    {                                                                                                                  \
        int64_t i = 0;                                                                                                 \
        if (sizeof *to == sizeof *from && by == 1 && n >= PART) {                                                      \
            for (; i + PART <= n; i += PART)                                                                           \
                memcpy(to + i, from + i, PART * sizeof *to);                                                           \
            memcpy(to + n - PART, from + n - PART, PART * sizeof *to);                                                 \
            return;                                                                                                    \
        }                                                                                                              \
        for (; i < n; i++)                                                                                             \
            to[i] = LOAD(dtype, from[i * by]);                                                                         \
    }                                                                                                                  \
    /* Squares of SQUARE channels and positions are transposed in registers. */                                        \
    typedef NUMBER_##dtype square_##dtype                                                                              \
        __attribute__((vector_size(SQUARE * sizeof(NUMBER_##dtype)), aligned(sizeof(NUMBER_##dtype))));                \
    FORMULA void square_across_##dtype(NUMBER_##dtype *to, int64_t ld, const type *from, int64_t step, int64_t by)     \
    {                                                                                                                  \
        const square_##dtype a = SQUARED(dtype, from, by), b = SQUARED(dtype, from + step, by);                        \
        const square_##dtype c = SQUARED(dtype, from + 2 * step, by), d = SQUARED(dtype, from + 3 * step, by);         \
        const square_##dtype ab = __builtin_shufflevector(a, b, 0, 4, 1, 5);                                           \
        const square_##dtype ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7);                                      \
        const square_##dtype cd = __builtin_shufflevector(c, d, 0, 4, 1, 5);                                           \
        const square_##dtype cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);                                      \
        *(square_##dtype *)to = __builtin_shufflevector(ab, cd, 0, 1, 4, 5);                                           \
        *(square_##dtype *)(to + ld) = __builtin_shufflevector(ab, cd, 2, 3, 6, 7);                                    \
        *(square_##dtype *)(to + 2 * ld) = __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5);                      \
        *(square_##dtype *)(to + 3 * ld) = __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7);                      \
    }                                                                                                                  \
    FORMULA void across_of_##dtype(NUMBER_##dtype *to, int64_t ld, const type *from, int64_t step, int64_t by,         \
                                   int64_t positions, int64_t channels)                                                \
    {                                                                                                                  \
        int64_t p = 0;                                                                                                 \
        for (; p + SQUARE <= positions; p += SQUARE) {                                                                 \
            int64_t c = 0;                                                                                             \
            for (; c + SQUARE <= channels; c += SQUARE)                                                                \
                square_across_##dtype(to + p * ld + c, ld, from + p * by + c * step, step, by);                        \
            for (; c < channels; c++)                                                                                  \
                for (int64_t i = p; i < p + SQUARE; i++)                                                               \
                    to[i * ld + c] = LOAD(dtype, from[i * by + c * step]);                                             \
        }                                                                                                              \
        for (; p < positions; p++)                                                                                     \
            for (int64_t c = 0; c < channels; c++)                                                                     \
                to[p * ld + c] = LOAD(dtype, from[p * by + c * step]);                                                 \
    }                                                                                                                  \
    /* to[p ld + c] = from[p by + c step] */                                                                           \
    FORMULA void across_##dtype(NUMBER_##dtype *to, int64_t ld, const type *from, int64_t step, int64_t by,            \
                                int64_t positions, int64_t channels)                                                   \
    {                                                                                                                  \
        if (by == 1)                                                                                                   \
            across_of_##dtype(to, ld, from, step, 1, positions, channels);                                             \
        else                                                                                                           \
            across_of_##dtype(to, ld, from, step, by, positions, channels);                                            \
    }
EACH_FLOAT(CONV_COPY, )

#define CONV_ELEMENTS(dtype, type, unused)                                                                             \
    /* The first element that a run reads, and the positions [*lo, *hi) of the run that have one. */                   \
    FORMULA const type *first_##dtype(const conv_array *x, int64_t channel, const conv_taps *taps, const int64_t *t,   \
                                      const conv_run *r, int64_t *lo, int64_t *hi)                                     \
    {                                                                                                                  \
        const type *from = AT(const type, x, r->image, channel);                                                       \
        int64_t at[CONV_SPACE];                                                                                        \
        *lo = *hi = 0;                                                                                                 \
        for (int d = 0; d < CONV_SPACE; d++) {                                                                         \
            at[d] = taps[d].offset[t[d]] + taps[d].step * r->i[d];                                                     \
            from += at[d] * x->space_step[d];                                                                          \
        }                                                                                                              \
        if (at[0] >= 0 && at[0] < x->space[0] && at[1] >= 0 && at[1] < x->space[1])                                    \
            conv_inside(at[2], taps[2].step, r->count, x->space[2], lo, hi);                                           \
        return from;                                                                                                   \
    }                                                                                                                  \
    FAST static void read_##dtype(void *to, const conv_array *x, int64_t channel, const conv_taps *taps,               \
                                  const int64_t *t, const conv_run *runs, int64_t n_runs)                              \
    {                                                                                                                  \
        const int64_t by = taps[2].step * x->space_step[2];                                                            \
        for (const conv_run *r = runs; r < runs + n_runs; r++) {                                                       \
            int64_t lo, hi;                                                                                            \
            const type *from = first_##dtype(x, channel, taps, t, r, &lo, &hi);                                        \
            NUMBER_##dtype *row = (NUMBER_##dtype *)to + r->at;                                                        \
            for (int64_t i = 0; i < lo; i++)                                                                           \
                row[i] = 0;                                                                                            \
            copy_##dtype(row + lo, from + lo * by, by, hi - lo);                                                       \
            for (int64_t i = hi; i < r->count; i++)                                                                    \
                row[i] = 0;                                                                                            \
        }                                                                                                              \
    }                                                                                                                  \
    FAST static void read_across_##dtype(void *to, int64_t ld, const conv_array *x, int64_t channel, int64_t n,        \
                                         const conv_taps *taps, const int64_t *t, const conv_run *runs,                \
                                         int64_t n_runs)                                                               \
    {                                                                                                                  \
        const int64_t by = taps[2].step * x->space_step[2];                                                            \
        for (const conv_run *r = runs; r < runs + n_runs; r++) {                                                       \
            int64_t lo, hi;                                                                                            \
            const type *from = first_##dtype(x, channel, taps, t, r, &lo, &hi);                                        \
            NUMBER_##dtype *rows = (NUMBER_##dtype *)to + r->at * ld;                                                  \
            for (int64_t i = 0; i < lo; i++)                                                                           \
                memset(rows + i * ld, 0, (size_t)n * sizeof *rows);                                                    \
            across_##dtype(rows + lo * ld, ld, from + lo * by, x->step[1], by, hi - lo, n);                            \
            for (int64_t i = hi; i < r->count; i++)                                                                    \
                memset(rows + i * ld, 0, (size_t)n * sizeof *rows);                                                    \
        }                                                                                                              \
    }                                                                                                                  \
    FORMULA type *place_##dtype(const conv_array *y, int64_t channel, const conv_grid *grid, const conv_run *r)        \
    {                                                                                                                  \
        type *place = AT(type, y, r->image, channel);                                                                  \
        for (int d = 0; d < CONV_SPACE; d++)                                                                           \
            place += (grid->first[d] + grid->by[d] * r->i[d]) * y->space_step[d];                                      \
        return place;                                                                                                  \
    }                                                                                                                  \
    FAST static void load_across_##dtype(void *to, int64_t ld, const conv_array *y, int64_t channel, int64_t n,        \
                                         const conv_grid *grid, const conv_run *runs, int64_t n_runs)                  \
    {                                                                                                                  \
        for (const conv_run *r = runs; r < runs + n_runs; r++)                                                         \
            across_##dtype((NUMBER_##dtype *)to + r->at * ld, ld, place_##dtype(y, channel, grid, r), y->step[1],      \
                           grid->by[2] * y->space_step[2], r->count, n);                                               \
    }                                                                                                                  \
    FAST static void store_row_##dtype(type *to, int64_t step, const NUMBER_##dtype *from, int64_t n)                  \
    {                                                                                                                  \
        if (step == 1)                                                                                                 \
            for (int64_t i = 0; i < n; i++)                                                                            \
                to[i] = STORE(dtype, from[i]);                                                                         \
        else                                                                                                           \
            for (int64_t i = 0; i < n; i++)                                                                            \
                to[i * step] = STORE(dtype, from[i]);                                                                  \
    }                                                                                                                  \
    static void store_##dtype(const void *from, const conv_array *y, int64_t channel, const conv_grid *grid,           \
                              const conv_run *runs, int64_t n_runs)                                                    \
    {                                                                                                                  \
        for (const conv_run *r = runs; r < runs + n_runs; r++)                                                         \
            store_row_##dtype(place_##dtype(y, channel, grid, r), grid->by[2] * y->space_step[2],                      \
                              (const NUMBER_##dtype *)from + r->at, r->count);                                         \
    }                                                                                                                  \
    static void pack_##dtype(void *to, const conv_weights *w, const conv_taps *taps)                                   \
    {                                                                                                                  \
        NUMBER_##dtype *next = to;                                                                                     \
        for (int64_t row = 0; row < w->rows; row += BLOCK_ROWS)                                                        \
            for (int64_t c = 0; c < w->columns; c++)                                                                   \
                for (int64_t i = 0; i < taps[0].n; i++)                                                                \
                    for (int64_t j = 0; j < taps[1].n; j++)                                                            \
                        for (int64_t k = 0; k < taps[2].n; k++) {                                                      \
                            const type *from = (const type *)w->data + row * w->row_step + c * w->column_step +        \
                                               taps[0].at[i] * w->place_step[0] + taps[1].at[j] * w->place_step[1] +   \
                                               taps[2].at[k] * w->place_step[2];                                       \
                            for (int r = 0; r < BLOCK_ROWS; r++)                                                       \
                                *next++ = row + r < w->rows ? LOAD(dtype, from[r * w->row_step]) : 0;                  \
                        }                                                                                              \
    }                                                                                                                  \
    static void unpack_##dtype(const void *from, int64_t ld, const conv_weights *w, const int64_t *place, int64_t n)   \
    {                                                                                                                  \
        for (int64_t row = 0; row < w->rows; row++) {                                                                  \
            type *to = (type *)w->data + row * w->row_step;                                                            \
            for (int64_t i = 0; i < n; i++)                                                                            \
                to[place[i]] = STORE(dtype, ((const NUMBER_##dtype *)from)[row * ld + i]);                             \
        }                                                                                                              \
    }
EACH_FLOAT(CONV_ELEMENTS, )

#define ADD_OF_TRAMA_F64 block_add_f64
#define ADD_OF_TRAMA_F32 block_add_f32
#define ADD_OF_TRAMA_BF16 block_add_f32
#define ADD_OF_TRAMA_F16 block_add_f32
#define CONV_TYPE(dtype, type, unused)                                                                                 \
    [dtype] = {sizeof(NUMBER_##dtype), BLOCK_PARTS * BLOCK_BYTES / sizeof(NUMBER_##dtype),                             \
               ADD_OF_##dtype,         read_##dtype,                                                                   \
               read_across_##dtype,    load_across_##dtype,                                                            \
               store_##dtype,          pack_##dtype,                                                                   \
               unpack_##dtype},
static const conv_type types[TRAMA_N_DTYPES] = {EACH_FLOAT(CONV_TYPE, )};

/* ---- Calls ---- */

static int64_t *take_numbers(int64_t **next, int64_t n)
{
    int64_t *numbers = *next;
    *next += n;
    return numbers;
}

bool conv_start(conv *v, const trama_call *call, int x, int w, int y)
{
    *v = (conv){.call = conv_call_of(call, x, w, y), .type = &types[call->out[0].dtype]};
    if (!v->type->size)
        kernel_impossible(call, "a convolution is for floats");
    const int64_t weights =
        v->call.w.space[0] * v->call.w.space[1] * v->call.w.space[2] * most(v->call.in, v->call.out);
    const int64_t positions = v->call.y.n[0] * most(conv_elements(&v->call.x), conv_elements(&v->call.y));
    v->most_columns =
        least(CONV_BLOCKS, (most(weights, positions) + v->type->columns - 1) / v->type->columns) * v->type->columns;
    v->most_summed = least(CONV_SUMMED, most(weights, v->most_columns));
    const int64_t rows = rounded_up(least(CONV_ROWS, most(v->call.in, v->call.out)), BLOCK_ROWS);
    int64_t places = 0;
    for (int d = 0; d < CONV_SPACE; d++)
        places += v->call.w.space[d];
    const size_t numbers = v->type->size * (size_t)v->most_columns;
    char *all = scratch_take(&v->memory, 0, numbers * (size_t)(v->most_summed + rows));
    const int64_t runs = most(v->most_columns, v->most_summed);
    v->runs =
        scratch_take(&v->memory, 1,
                     (size_t)runs * sizeof *v->runs + ((size_t)places * 2 + (size_t)v->most_columns) * sizeof(int64_t));
    if (!all || !v->runs)
        return false;
    v->b = all;
    v->c = all + numbers * (size_t)v->most_summed;
    memset(v->b, 0, numbers * (size_t)v->most_summed);
    int64_t *next = (int64_t *)(v->runs + runs);
    for (int d = 0; d < CONV_SPACE; d++) {
        v->taps[d].at = take_numbers(&next, v->call.w.space[d]);
        v->taps[d].offset = take_numbers(&next, v->call.w.space[d]);
    }
    v->place = take_numbers(&next, v->most_columns);
    return true;
}

void conv_end(conv *v)
{
    scratch_free(&v->memory);
}

bool conv_take(conv *v, int64_t numbers)
{
    v->a = scratch_take(&v->memory, 2, v->type->size * (size_t)(numbers > 0 ? numbers : 1));
    return v->a;
}

/* ---- Positions and places ---- */

int64_t conv_positions(const conv_grid *grid)
{
    return grid->images * grid->n[0] * grid->n[1] * grid->n[2];
}

int64_t conv_runs(const conv *v, const conv_grid *grid, int64_t from, int64_t n)
{
    int64_t runs = 0;
    for (int64_t at = 0; at < n; runs++) {
        conv_run *r = &v->runs[runs];
        int64_t rest = from + at;
        for (int d = CONV_SPACE - 1; d >= 0; rest /= grid->n[d--])
            r->i[d] = rest % grid->n[d];
        r->image = rest;
        r->at = at;
        r->count = grid->n[2] - r->i[2] < n - at ? grid->n[2] - r->i[2] : n - at;
        at += r->count;
    }
    return runs;
}

int64_t conv_places(const conv *v)
{
    return v->taps[0].n * v->taps[1].n * v->taps[2].n;
}

conv_at conv_from(const conv *v, int64_t i)
{
    conv_at at = {.channel = i / conv_places(v)};
    i %= conv_places(v);
    for (int d = CONV_SPACE - 1; d >= 0; i /= v->taps[d--].n)
        at.t[d] = i % v->taps[d].n;
    return at;
}

void conv_next(const conv *v, conv_at *at)
{
    for (int d = CONV_SPACE - 1; d >= 0; d--) {
        if (++at->t[d] < v->taps[d].n)
            return;
        at->t[d] = 0;
    }
    at->channel++;
}

/* ---- Products ---- */

void conv_multiply(const conv *v, int64_t rows, int64_t columns, int64_t k, const void *a, int64_t a_step)
{
    block_add *add = v->type->add();
    const int64_t size = (int64_t)v->type->size, ld = v->most_columns;
    const int64_t part = v->type->columns / BLOCK_PARTS;
    for (int64_t row = 0; row < rows; row += BLOCK_ROWS)
        for (int64_t column = 0; column < columns; column += v->type->columns)
            add((int)least(BLOCK_PARTS, (columns - column + part - 1) / part), k,
                (const char *)a + row / BLOCK_ROWS * a_step * size, (const char *)v->b + column * size, ld,
                (char *)v->c + (row * ld + column) * size, ld);
}

void conv_clear(const conv *v, int64_t rows)
{
    rows = rounded_up(rows, BLOCK_ROWS);
    memset(v->c, 0, (size_t)(rows * v->most_columns) * v->type->size);
}
