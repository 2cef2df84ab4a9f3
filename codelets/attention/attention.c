/* SPDX-License-Identifier: Apache-2.0 */
/* Attention: blocks of queries go over blocks of keys, and keep the maximum and the sum of each query up to date
 * (Milakov and Gimelshein 2018, Dao et al. 2022). Memory does not grow with n times m. Scores are turned: queries lie
 * side by side, so that all of softmax vectorises, and the probabilities are the next product's operand as they lie. */
#include "attention.h"

#include "ops.h"

enum { OUT, LSE, Q, K, V, MASK, N_ARRAYS };
enum { QUERIES, KEYS, VALUES, SCORES, RESULT, N_PARTS };

typedef struct forward {
    attention a;
    attention_array at[N_ARRAYS];
    void *part[N_PARTS]; /* scratch memory: turned queries, panels of keys and of values, scores, a turned result */
    block_add *add;
    int64_t lanes, ld; /* queries of a part, and of all parts */
} forward;

/* Some queries of a head. */
typedef struct queries {
    int64_t head, i, n, width;
    double top[ATTENTION_QUERIES], sum[ATTENTION_QUERIES]; /* maxima of scores, and sums of exp(score - top) */
} queries;

/* c [panels * BLOCK_ROWS, width] += the panels' products with b [k, width] */
static void add_products(const forward *f, int64_t panels, int64_t k, const void *a, int64_t a_step, const void *b,
                         void *c, int64_t width)
{
    const int64_t size = (int64_t)f->a.type->size;
    for (int64_t from = 0; from < width; from += BLOCK_PARTS * f->lanes) {
        const int64_t parts = min_i64(BLOCK_PARTS, (width - from) / f->lanes);
        for (int64_t p = 0; p < panels; p++)
            f->add((int)parts, k, (const char *)a + p * a_step * size, (const char *)b + from * size, f->ld,
                   (char *)c + (p * BLOCK_ROWS * f->ld + from) * size, f->ld);
    }
}

/* Starts queries; those that earlier calls left are over their sums, whose maximum is then lse. */
static void take_up(const forward *f, queries *q)
{
    const attention_type *t = f->a.type;
    const attention_matrix query = attention_at(&f->at[Q], q->head, q->i, 0);
    t->pack(f->part[QUERIES], query, q->n, f->a.d, f->ld, f->a.scale);
    memset(f->part[RESULT], 0, (size_t)(rounded_up(f->a.e, BLOCK_ROWS) * f->ld) * t->size);
    for (int64_t c = 0; c < q->width; c++)
        q->top[c] = -INFINITY;
    if (f->a.goes_on) {
        t->pack(f->part[RESULT], attention_at(&f->at[OUT], q->head, q->i, 0), q->n, f->a.e, f->ld, 1);
        t->recall(q->top, attention_at(&f->at[LSE], q->head, q->i, 0), q->n);
    }
    for (int64_t c = 0; c < q->width; c++)
        q->sum[c] = q->top[c] == -INFINITY ? 0 : 1;
}

static void keep(const forward *f, const queries *q)
{
    double factor[ATTENTION_QUERIES], lse[ATTENTION_QUERIES];
    for (int64_t c = 0; c < q->n; c++) {
        factor[c] = q->sum[c] == 0 ? 0 : 1 / q->sum[c];
        lse[c] = q->top[c] + log(q->sum[c]);
    }
    f->a.type->unpack(attention_at(&f->at[OUT], q->head, q->i, 0), f->part[RESULT], q->n, f->a.e, f->ld, factor);
    f->a.type->keep(attention_at(&f->at[LSE], q->head, q->i, 0), lse, q->n);
}

/* Queries go over `keys` keys from j on, which some of them see. */
static void attend(const forward *f, queries *q, int64_t j, int64_t keys)
{
    const attention *a = &f->a;
    const attention_type *t = a->type;
    const int64_t hidden = j + 1 - q->i - a->ahead; /* so many queries do not see key j, one more the next key */
    void *scores = f->part[SCORES];
    memset(scores, 0, (size_t)(rounded_up(keys, BLOCK_ROWS) * f->ld) * t->size);
    add_products(f, rounded_up(keys, BLOCK_ROWS) / BLOCK_ROWS, a->d,
                 (char *)f->part[KEYS] + (size_t)(j * a->d) * t->size, a->d * BLOCK_ROWS, f->part[QUERIES], scores,
                 q->width);
    attention_apply_mask(a, &f->at[MASK], q->head, q->i, j, q->n, keys, scores, 1, f->ld);
    if (hidden + keys > 1)
        t->cover(scores, keys, q->width, f->ld, hidden);
    t->soften(scores, keys, q->width, f->ld, q->top, q->sum, f->part[RESULT], a->e);
    add_products(f, rounded_up(a->e, BLOCK_ROWS) / BLOCK_ROWS, keys,
                 (char *)f->part[VALUES] + (size_t)(j * BLOCK_ROWS) * t->size, a->m * BLOCK_ROWS, scores,
                 f->part[RESULT], q->width);
}

static void run_queries(const forward *f, int64_t head, int64_t i)
{
    queries q = {.head = head, .i = i, .n = min_i64(f->a.n - i, f->ld)};
    q.width = rounded_up(q.n, f->lanes);
    const int64_t visible = attention_visible(&f->a, i + q.n);
    if (f->a.goes_on && !visible)
        return;
    take_up(f, &q);
    for (int64_t j = 0; j < visible; j += ATTENTION_KEYS)
        attend(f, &q, j, min_i64(visible - j, ATTENTION_KEYS));
    keep(f, &q);
}

/* The matrix with rows and columns exchanged. */
static attention_matrix turned(attention_matrix m)
{
    return (attention_matrix){m.data, m.size, m.column, m.row};
}

ROW_SIGNATURE(run_groups)
{
    forward f = *(const forward *)with;
    const attention *a = &f.a;
    for (int64_t i = 0; i < n; i++) {
        for (int t = 0; t < (a->masked ? N_ARRAYS : MASK); t++)
            f.at[t].first.data = (char *)data[t] + i * step[t] * (int64_t)f.at[t].first.size;
        a->type->pack(f.part[KEYS], f.at[K].first, a->m, a->d, BLOCK_ROWS, 1);
        a->type->pack(f.part[VALUES], turned(f.at[V].first), a->e, a->m, BLOCK_ROWS, 1);
        for (int64_t head = 0; head < a->heads; head++)
            for (int64_t row = 0; row < a->n; row += f.ld)
                run_queries(&f, head, row);
    }
}

static void run(const trama_call *call, bool masked)
{
    forward f = {.a = attention_of(call, masked)};
    const trama_view *arrays[N_ARRAYS] = {&call->out[0], &call->out[1], &call->in[0],
                                          &call->in[1],  &call->in[2],  &call->in[3]},
                     *view[N_ARRAYS];
    const int64_t e = rounded_up(f.a.e, BLOCK_ROWS);
    f.add = f.a.type->add();
    f.lanes = BLOCK_BYTES / (int64_t)f.a.type->size;
    f.ld = ATTENTION_PARTS * f.lanes;
    const int64_t numbers[N_PARTS] = {f.ld * f.a.d, rounded_up(f.a.m, BLOCK_ROWS) * f.a.d, f.a.m * e,
                                      f.ld * ATTENTION_KEYS, f.ld * e};
    const int n = masked ? N_ARRAYS : MASK;
    trama_view groups[N_ARRAYS];
    scratch memory = {0};
    for (int t = 0; t < n; t++) {
        f.at[t] = attention_array_of(&f.a, arrays[t], t == LSE ? 1 : 2, &groups[t]);
        view[t] = &groups[t];
    }
    if (attention_take(&f.a, &memory, N_PARTS, numbers, f.part))
        loop_run(n, view, run_groups, &f);
    scratch_free(&memory);
}

void cpu_attention(const trama_call *call)
{
    run(call, false);
}

void cpu_attention_masked(const trama_call *call)
{
    run(call, true);
}
