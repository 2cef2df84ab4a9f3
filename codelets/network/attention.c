/* SPDX-License-Identifier: Apache-2.0 */
/* Attention: blocks of queries go over blocks of keys, and keep the maximum and the sum of each row up to date (Milakov
 * and Gimelshein 2018, Dao et al. 2022). Memory does not grow with n times m. */
#include "attention.h"

#include "ops.h"

enum { OUT, LSE, Q, K, V, MASK, N_ARRAYS };
enum { QUERIES, KEYS, VALUES, SCORES, RESULT, N_PARTS };

typedef struct forward {
    attention a;
    attention_array at[N_ARRAYS];
    void *part[N_PARTS]; /* scratch memory */
    const void *k, *v;   /* of the group, as numbers */
    int64_t ldk, ldv;
} forward;

static void keep_rows(const forward *f, int64_t head, int64_t i, int64_t rows, const double *top, const double *sum)
{
    double factor[ATTENTION_ROWS], lse[ATTENTION_ROWS];
    for (int64_t r = 0; r < rows; r++) {
        factor[r] = sum[r] == 0 ? 0 : 1 / sum[r];
        lse[r] = top[r] + log(sum[r]);
    }
    f->a.type->store(attention_at(&f->at[OUT], head, i, 0), f->part[RESULT], rows, f->a.e, factor);
    f->a.type->keep(attention_at(&f->at[LSE], head, i, 0), lse, rows);
}

/* Starts rows; those that earlier calls left are over their sums, whose maximum is then lse. */
static void take_up_rows(const forward *f, int64_t head, int64_t i, int64_t rows, double *top, double *sum)
{
    const attention_type *t = f->a.type;
    if (f->a.goes_on) {
        t->load(f->part[RESULT], attention_at(&f->at[OUT], head, i, 0), rows, f->a.e);
        t->recall(top, attention_at(&f->at[LSE], head, i, 0), rows);
    } else {
        memset(f->part[RESULT], 0, (size_t)(rows * f->a.e) * t->size);
        for (int64_t r = 0; r < rows; r++)
            top[r] = -INFINITY;
    }
    for (int64_t r = 0; r < rows; r++)
        sum[r] = top[r] == -INFINITY ? 0 : 1;
}

/* A block of queries from i on, of one head. */
static void run_rows(const forward *f, int64_t head, int64_t i)
{
    const attention *a = &f->a;
    const size_t size = a->type->size;
    attention_block b = {.i = i, .rows = min_i64(a->n - i, ATTENTION_ROWS), .ldk = f->ldk};
    double top[ATTENTION_ROWS], sum[ATTENTION_ROWS];
    const int64_t visible = attention_visible(a, i + b.rows);
    if (a->goes_on && !visible)
        return;
    take_up_rows(f, head, i, b.rows, top, sum);
    b.q = attention_numbers(a, attention_at(&f->at[Q], head, i, 0), b.rows, a->d, f->part[QUERIES], &b.ldq);
    for (b.j = 0; b.j < visible; b.j += ATTENTION_COLUMNS) {
        b.columns = min_i64(visible - b.j, ATTENTION_COLUMNS);
        b.k = (const char *)f->k + (size_t)(b.j * f->ldk) * size;
        attention_scores(a, &b, &f->at[MASK], head, f->part[SCORES]);
        a->type->soften(f->part[SCORES], b.rows, b.columns, b.length, top, sum, f->part[RESULT], a->e);
        a->type->multiply(false, false, b.rows, a->e, b.columns, 1, f->part[SCORES], ATTENTION_COLUMNS,
                          (const char *)f->v + (size_t)(b.j * f->ldv) * size, f->ldv, false, f->part[RESULT], a->e);
    }
    keep_rows(f, head, i, b.rows, top, sum);
}

ROW_SIGNATURE(run_groups)
{
    forward f = *(const forward *)with;
    for (int64_t i = 0; i < n; i++) {
        for (int t = 0; t < (f.a.masked ? N_ARRAYS : MASK); t++)
            f.at[t].first.data = (char *)data[t] + i * step[t] * (int64_t)f.at[t].first.size;
        f.k = attention_numbers(&f.a, f.at[K].first, f.a.m, f.a.d, f.part[KEYS], &f.ldk);
        f.v = attention_numbers(&f.a, f.at[V].first, f.a.m, f.a.e, f.part[VALUES], &f.ldv);
        for (int64_t head = 0; head < f.a.heads; head++)
            for (int64_t row = 0; row < f.a.n; row += ATTENTION_ROWS)
                run_rows(&f, head, row);
    }
}

static void run(const trama_call *call, bool masked)
{
    forward f = {.a = attention_of(call, masked)};
    const trama_view *arrays[N_ARRAYS] = {&call->out[0], &call->out[1], &call->in[0],
                                          &call->in[1],  &call->in[2],  &call->in[3]},
                     *view[N_ARRAYS];
    const int64_t numbers[N_PARTS] = {ATTENTION_ROWS * f.a.d, f.a.m * f.a.d, f.a.m * f.a.e,
                                      ATTENTION_ROWS * ATTENTION_COLUMNS, ATTENTION_ROWS * f.a.e};
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
