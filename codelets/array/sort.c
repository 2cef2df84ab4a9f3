/* SPDX-License-Identifier: Apache-2.0 */
/* Sorting along one whole dim, and the first k of the order. Elements become keys, integers of the same order, so that
 * one sort serves all types. */
#include <string.h>

#include "along.h"
#include "ops.h"
#include "scratch.h"

/* ---- Keys ---- */

/* NaN has the largest key, and both zeros have one. */
FORMULA uint64_t key_of_TRAMA_F32(float x)
{
    uint32_t bits;
    x += 0.0F;
    memcpy(&bits, &x, sizeof bits);
    return x != x ? UINT32_MAX : bits ^ (bits >> 31 ? UINT32_MAX : UINT32_C(1) << 31);
}
FORMULA uint64_t key_of_TRAMA_F64(double x)
{
    uint64_t bits;
    x += 0.0;
    memcpy(&bits, &x, sizeof bits);
    return x != x ? UINT64_MAX : bits ^ (bits >> 63 ? UINT64_MAX : UINT64_C(1) << 63);
}
#define KEY_REAL(dtype, x) key_of_##dtype(x)
#define KEY_HALF(dtype, x) key_of_TRAMA_F32(x)
#define KEY_SIGNED(dtype, x) ((uint64_t)(int64_t)(x) - (uint64_t)(int64_t)LOWEST_##dtype)
#define KEY_UNSIGNED(dtype, x) ((uint64_t)(x))
#define KEY_BOOL(dtype, x) ((uint64_t)(x))

/* The keys of n elements of a line, from element `from` on; flip: 0, or all ones for the reverse order. */
typedef void keys_function(uint64_t *key, const void *line, int64_t from, int64_t step, int64_t n, uint64_t flip);
#define KEYS(dtype, type, unused)                                                                                      \
    FAST static void keys_##dtype(uint64_t *key, const void *line, int64_t from, int64_t step, int64_t n,              \
                                  uint64_t flip)                                                                       \
    {                                                                                                                  \
        const type *x = (const type *)line + from * step;                                                              \
        for (int64_t i = 0; i < n; i++)                                                                                \
            key[i] = BY_KIND(KEY, dtype)(dtype, LOAD(dtype, x[i * step])) ^ flip;                                      \
    }
EACH_DTYPE(KEYS, )

/* ---- Order ---- */

typedef struct item {
    uint64_t key;
    int64_t at;
} item;

static void insertion_sort(item *a, int64_t n)
{
    for (int64_t i = 1; i < n; i++) {
        const item one = a[i];
        int64_t j = i;
        for (; j > 0 && a[j - 1].key > one.key; j--)
            a[j] = a[j - 1];
        a[j] = one;
    }
}

/* One pass by the byte of the keys at shift. */
static void by_byte(item *to, const item *from, int64_t n, int shift)
{
    int64_t place[256] = {0}, at = 0;
    for (int64_t i = 0; i < n; i++)
        place[from[i].key >> shift & 255]++;
    for (int b = 0; b < 256; b++) {
        const int64_t count = place[b];
        place[b] = at;
        at += count;
    }
    for (int64_t i = 0; i < n; i++)
        to[place[from[i].key >> shift & 255]++] = from[i];
}

/* Sorts a [n] with the help of b [n]; returns the one that has the result. Equal keys keep their order. */
static item *sorted(item *a, item *b, int64_t n)
{
    enum { FEW = 24 };
    uint64_t differ = 0;
    if (n <= FEW) {
        insertion_sort(a, n);
        return a;
    }
    for (int64_t i = 1; i < n; i++)
        differ |= a[i].key ^ a[0].key;
    for (int shift = 0; shift < 64; shift += 8)
        if (differ >> shift & 255) {
            item *other = a;
            by_byte(b, a, n, shift);
            a = b;
            b = other;
        }
    return a;
}

/* ---- The first k of a line ---- */

typedef struct sorting {
    int64_t k, room; /* the candidates that there is room for */
    item *items;     /* [2 room] */
    uint64_t flip;
} sorting;

/* The k first items in order. Candidates are collected; where there is no more room for them, the k first remain, and
 * only smaller keys are candidates from then on. */
static const item *first_items(const sorting *s, keys_function *keys, const void *x, int64_t step, int64_t n)
{
    enum { KEYS_AT_ONCE = 256 };
    uint64_t key[KEYS_AT_ONCE], limit = 0;
    bool limited = false;
    item *a = s->items, *b = s->items + s->room;
    int64_t found = 0;
    for (int64_t from = 0; from < n && s->k > 0; from += KEYS_AT_ONCE) {
        const int64_t m = n - from < KEYS_AT_ONCE ? n - from : KEYS_AT_ONCE;
        keys(key, x, from, step, m, s->flip);
        for (int64_t i = 0; i < m; i++) {
            if (found == s->room) {
                item *order = sorted(a, b, found);
                b = order == a ? b : a;
                a = order;
                found = s->k;
                limit = a[found - 1].key;
                limited = true;
            }
            a[found] = (item){key[i], from + i};
            found += !limited | (key[i] < limit);
        }
    }
    return sorted(a, b, found);
}

#define SORT_ROW(dtype, type, unused)                                                                                  \
    ROW_SIGNATURE(sort_##dtype)                                                                                        \
    {                                                                                                                  \
        const along *l = with;                                                                                         \
        const sorting *s = l->scratch;                                                                                 \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            type *values = (type *)data[0] + i * step[0];                                                              \
            int64_t *places = (int64_t *)data[1] + i * step[1];                                                        \
            const type *x = (const type *)data[2] + i * step[2];                                                       \
            const item *first = first_items(s, keys_##dtype, x, l->step[2], l->n[2]);                                  \
            for (int64_t j = 0; j < s->k; j++) {                                                                       \
                values[j * l->step[0]] = x[first[j].at * l->step[2]];                                                  \
                places[j * l->step[1]] = first[j].at;                                                                  \
            }                                                                                                          \
        }                                                                                                              \
    }
EACH_DTYPE(SORT_ROW, )
static loop_row *const sort_rows[TRAMA_N_DTYPES] = {EACH_DTYPE(ROW_ENTRY, sort)};

/* The candidates of a line: few enough for a cache, and enough that they are sorted rarely. */
static int64_t room_for(int64_t k, int64_t n)
{
    enum { LEAST = 256, TIMES = 4 };
    const int64_t most = k > n / TIMES ? n : TIMES * k > LEAST ? TIMES * k : LEAST;
    return most < n ? most : n;
}

void cpu_sort(const trama_call *call)
{
    const int axis = (int)call->attributes->integer[SORT_AXIS];
    scratch memory = {0};
    sorting s = {.k = call->out[0].extent[axis]};
    s.flip = call->attributes->integer[SORT_DESCENDING] ? UINT64_MAX : 0;
    s.room = room_for(s.k, call->in[0].extent[axis]);
    s.items = scratch_take(&memory, 0, 2 * (size_t)s.room * sizeof *s.items);
    if (s.items || s.room == 0)
        along_run(call, axis, sort_rows[call->in[0].dtype], &s);
    scratch_free(&memory);
}

void cpu_top_k(const trama_call *call)
{
    cpu_sort(call);
}
