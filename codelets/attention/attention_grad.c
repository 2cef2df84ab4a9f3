/* SPDX-License-Identifier: Apache-2.0 */
/* The gradient of attention. Scores are computed again, block by block, and lse makes them probabilities: with
 * p = exp(s - lse), where s = scale q k' + mask, and slopes ds = p (g v' - delta), dv = p' g, dk = scale ds' q, and
 * dq = scale ds k (Dao et al. 2022). */
#include "attention.h"

#include "ops.h"

enum { DK, DV, DQ, Q, K, V, LSE, DELTA, G, MASK, N_ARRAYS };
enum { QUERIES, KEYS, VALUES, GRADIENTS, SCORES, SLOPES, D_QUERIES, D_KEYS, D_VALUES, N_PARTS };

typedef struct backward {
    attention a;
    attention_array at[N_ARRAYS];
    void *part[N_PARTS]; /* scratch memory */
    const void *k, *v;   /* of the group, as numbers */
    int64_t ldk, ldv;
} backward;

/* Queries i to i + rows and keys j to j + columns. */
typedef struct attention_block {
    int64_t i, j, rows, columns, ldq, ldk;
    const void *q, *k;              /* numbers, from query i and key j on */
    int64_t length[ATTENTION_ROWS]; /* the number of these keys that each query sees */
} attention_block;

static char *number_at(const attention *a, const void *numbers, int64_t i)
{
    return (char *)(uintptr_t)numbers + (size_t)i * a->type->size;
}

/* Adds one block to the gradients; g: of its queries. */
static void run_block(const backward *f, attention_block *b, int64_t head, const void *g, int64_t ldg)
{
    const attention *a = &f->a;
    const attention_type *t = a->type;
    void *scores = f->part[SCORES], *slopes = f->part[SLOPES];
    const int64_t ld = ATTENTION_COLUMNS;
    t->multiply(false, true, b->rows, b->columns, a->d, a->scale, b->q, b->ldq, b->k, b->ldk, true, scores, ld);
    attention_apply_mask(a, &f->at[MASK], head, b->i, b->j, b->rows, b->columns, scores, ld, 1);
    for (int64_t r = 0; r < b->rows; r++)
        b->length[r] = max_i64(0, min_i64(b->columns, b->i + r + a->ahead - b->j));
    t->multiply(false, true, b->rows, b->columns, a->e, 1, g, ldg, number_at(a, f->v, b->j * f->ldv), f->ldv, true,
                slopes, ld);
    t->derive(scores, slopes, b->rows, b->columns, b->length, attention_at(&f->at[LSE], head, b->i, 0),
              attention_at(&f->at[DELTA], head, b->i, 0));
    t->multiply(true, false, b->columns, a->e, b->rows, 1, scores, ld, g, ldg, false,
                number_at(a, f->part[D_VALUES], b->j * a->e), a->e);
    t->multiply(true, false, b->columns, a->d, b->rows, a->scale, slopes, ld, b->q, b->ldq, false,
                number_at(a, f->part[D_KEYS], b->j * a->d), a->d);
    t->multiply(false, false, b->rows, a->d, b->columns, a->scale, slopes, ld, b->k, b->ldk, false, f->part[D_QUERIES],
                a->d);
}

/* A block of queries from i on, of one head. */
static void run_rows(const backward *f, int64_t head, int64_t i)
{
    const attention *a = &f->a;
    attention_block b = {.i = i, .rows = min_i64(a->n - i, ATTENTION_ROWS), .ldk = f->ldk};
    int64_t ldg;
    const int64_t visible = attention_visible(a, i + b.rows);
    if (a->goes_on && !visible)
        return;
    b.q = attention_numbers(a, attention_at(&f->at[Q], head, i, 0), b.rows, a->d, f->part[QUERIES], &b.ldq);
    const void *g = attention_numbers(a, attention_at(&f->at[G], head, i, 0), b.rows, a->e, f->part[GRADIENTS], &ldg);
    if (a->goes_on)
        a->type->load(f->part[D_QUERIES], attention_at(&f->at[DQ], head, i, 0), b.rows, a->d);
    else
        memset(f->part[D_QUERIES], 0, (size_t)(b.rows * a->d) * a->type->size);
    for (b.j = 0; b.j < visible; b.j += ATTENTION_COLUMNS) {
        b.columns = min_i64(visible - b.j, ATTENTION_COLUMNS);
        b.k = number_at(a, f->k, b.j * f->ldk);
        run_block(f, &b, head, g, ldg);
    }
    a->type->store(attention_at(&f->at[DQ], head, i, 0), f->part[D_QUERIES], b.rows, a->d);
}

ROW_SIGNATURE(run_groups)
{
    backward f = *(const backward *)with;
    const attention *a = &f.a;
    for (int64_t i = 0; i < n; i++) {
        for (int t = 0; t < (a->masked ? N_ARRAYS : MASK); t++)
            f.at[t].first.data = (char *)data[t] + i * step[t] * (int64_t)f.at[t].first.size;
        f.k = attention_numbers(a, f.at[K].first, a->m, a->d, f.part[KEYS], &f.ldk);
        f.v = attention_numbers(a, f.at[V].first, a->m, a->e, f.part[VALUES], &f.ldv);
        memset(f.part[D_KEYS], 0, (size_t)(a->m * a->d) * a->type->size);
        memset(f.part[D_VALUES], 0, (size_t)(a->m * a->e) * a->type->size);
        for (int64_t head = 0; head < a->heads; head++)
            for (int64_t row = 0; row < a->n; row += ATTENTION_ROWS)
                run_rows(&f, head, row);
        a->type->store(f.at[DK].first, f.part[D_KEYS], a->m, a->d);
        a->type->store(f.at[DV].first, f.part[D_VALUES], a->m, a->e);
    }
}

static void run(const trama_call *call, bool masked)
{
    backward f = {.a = attention_of(call, masked)};
    const attention *a = &f.a;
    const int last = call->n_in - 1, n = masked ? N_ARRAYS : MASK;
    const trama_view *arrays[N_ARRAYS] = {&call->out[1],   &call->out[2], &call->out[0],       &call->in[0],
                                          &call->in[1],    &call->in[2],  &call->in[last - 2], &call->in[last - 1],
                                          &call->in[last], &call->in[3]},
                     *view[N_ARRAYS];
    const int64_t scores = ATTENTION_ROWS * ATTENTION_COLUMNS;
    const int64_t numbers[N_PARTS] = {ATTENTION_ROWS * a->d, a->m * a->d, a->m * a->e,
                                      ATTENTION_ROWS * a->e, scores,      scores,
                                      ATTENTION_ROWS * a->d, a->m * a->d, a->m * a->e};
    trama_view groups[N_ARRAYS];
    scratch memory = {0};
    for (int t = 0; t < n; t++) {
        f.at[t] = attention_array_of(a, arrays[t], t == LSE || t == DELTA ? 1 : 2, &groups[t]);
        view[t] = &groups[t];
    }
    if (attention_take(a, &memory, N_PARTS, numbers, f.part))
        loop_run(n, view, run_groups, &f);
    scratch_free(&memory);
}

void cpu_attention_grad(const trama_call *call)
{
    run(call, false);
}

void cpu_attention_masked_grad(const trama_call *call)
{
    run(call, true);
}
