/* SPDX-License-Identifier: Apache-2.0 */
/* Reference attention: the formulas of attention.def, one element after the other. */
#include "reference_inside.h"

enum { QUERY, KEY, VALUE, MASK };

/* The call on one head, by global indices: b has the leading dims and the head of q. */
typedef struct head_call {
    const trama_call *call;
    int mask; /* its operand; -1: none */
    point b;
    int64_t heads; /* of a group */
    double scale;
} head_call;

static head_call head_call_of(const trama_call *call)
{
    const trama_view *q = &call->in[QUERY], *k = &call->in[KEY], *v = &call->in[VALUE];
    const int64_t groups = k->global[k->ndim - 3];
    head_call h = {.call = call, .mask = call->n_in == 4 || call->n_in == 7 ? MASK : -1, .scale = real(call, 0)};
    h.heads = groups ? q->global[q->ndim - 3] / groups : 0;
    if (h.scale == 0)
        h.scale = 1 / sqrt((double)q->global[q->ndim - 1]);
    agree(call, k, k->ndim - 2, v, v->ndim - 2);
    for (int i = 4; i <= q->ndim && i <= k->ndim; i++)
        agree(call, q, q->ndim - i, k, k->ndim - i);
    for (int i = 3; i <= k->ndim && i <= v->ndim; i++)
        agree(call, k, k->ndim - i, v, v->ndim - i);
    if (groups > 1 && (q->offset[q->ndim - 3] != k->offset[k->ndim - 3] * h.heads ||
                       q->extent[q->ndim - 3] != k->extent[k->ndim - 3] * h.heads))
        impossible(call, "the heads of queries are not those of the keys");
    return h;
}

/* Row i, column j of the matrix of this head, or of its group; j -1: no such dim. */
static point at(const head_call *h, bool of_group, int64_t i, int64_t j)
{
    point p = h->b;
    if (of_group)
        p.at[p.ndim - 1] /= h->heads;
    p.at[p.ndim++] = i;
    if (j >= 0)
        p.at[p.ndim++] = j;
    return p;
}

/* A row of a matrix: n elements, `step` from one to the next. */
typedef struct row {
    double *of;
    int64_t n, step;
} row;

/* Rows of this head, or of its group, from `first` on. */
typedef struct matrix {
    row first_row;
    int64_t first, step;
} matrix;

/* All elements are there where the first and the last are. */
static matrix matrix_of(const head_call *h, const trama_view *v, bool of_group, int64_t first, int64_t rows)
{
    const int64_t n = v->global[v->ndim - 1];
    matrix m = {{NULL, n, v->stride[v->ndim - 1]}, first, v->stride[v->ndim - 2]};
    if (rows == 0 || n == 0)
        return m;
    point last = at(h, of_group, first + rows - 1, n - 1), begin = at(h, of_group, first, 0);
    element(h->call, v, &last);
    m.first_row.of = element(h->call, v, &begin);
    return m;
}

static row row_of(const matrix *m, int64_t i)
{
    row r = m->first_row;
    if (r.of)
        r.of += (i - m->first) * m->step;
    return r;
}

/* The sum of products of two rows; y += a x. */
static double dot(row x, row y)
{
    double sum = 0;
    for (int64_t l = 0; l < x.n; l++)
        sum += x.of[l * x.step] * y.of[l * y.step];
    return sum;
}
static void add_multiple(row y, double a, row x)
{
    for (int64_t l = 0; l < y.n; l++)
        y.of[l * y.step] += a * x.of[l * x.step];
}
static void multiply(row y, double a)
{
    for (int64_t l = 0; l < y.n; l++)
        y.of[l * y.step] *= a;
}

/* scale q k' + mask; -infinity where a query does not see the key. */
static double score(const head_call *h, row q, const matrix *keys, int64_t i, int64_t j)
{
    const trama_call *call = h->call;
    if (integer(call, ATTENTION_CAUSAL) && j > i)
        return -INFINITY;
    const double sum = h->scale * dot(q, row_of(keys, j));
    if (h->mask < 0)
        return sum;
    point m = at(h, false, i, j);
    const double mask = get(call, MASK, &m);
    return call->in[MASK].dtype != TRAMA_BOOL ? sum + mask : mask != 0 ? sum : -INFINITY;
}

/* Row i of the result, as a sum over keys that is divided at the end; before: such a sum over the keys of earlier
 * calls, by which their row was divided. */
static double add_values(const head_call *h, int64_t i, double before)
{
    const trama_call *call = h->call;
    const trama_view *k = &call->in[KEY];
    const int64_t first = k->offset[k->ndim - 2], n = k->extent[k->ndim - 2];
    const matrix keys = matrix_of(h, k, true, first, n), values = matrix_of(h, &call->in[VALUE], true, first, n);
    const matrix query = matrix_of(h, &call->in[QUERY], false, i, 1), result = matrix_of(h, &call->out[0], false, i, 1);
    const row q = row_of(&query, i), out = row_of(&result, i);
    double sum = before;
    multiply(out, before);
    for (int64_t j = first; j < first + n; j++) {
        const double p = exp(score(h, q, &keys, i, j));
        sum += p;
        add_multiple(out, p, row_of(&values, j));
    }
    if (sum != 0)
        multiply(out, 1 / sum);
    return sum;
}

static void run_forward(const trama_call *call)
{
    head_call h = head_call_of(call);
    const trama_view *lse = &call->out[1];
    point i;
    for (int d = 0; d < lse->ndim; d++)
        agree(call, lse, d, &call->out[0], d);
    if (!call->goes_on)
        fill_result(call, 0);
    FOR_EACH(lse, &i)
    {
        h.b = i;
        h.b.ndim--;
        const double before = call->goes_on ? exp(*element(call, lse, &i)) : 0;
        put(call, 1, &i, log(add_values(&h, i.at[i.ndim - 1], before)));
    }
}

void run_attention(const trama_call *call)
{
    run_forward(call);
}

void run_attention_masked(const trama_call *call)
{
    run_forward(call);
}

/* The gradient of row i adds p g[i] to each row j of dv, and ds times scale to rows of dk and dq. */
static void add_pairs(const head_call *h, int64_t i, int64_t first, int64_t n)
{
    const trama_call *call = h->call;
    const trama_view *out = call->out, *in = call->in;
    const matrix query = matrix_of(h, &in[QUERY], false, i, 1), keys = matrix_of(h, &in[KEY], true, first, n),
                 values = matrix_of(h, &in[VALUE], true, first, n),
                 slopes = matrix_of(h, &in[call->n_in - 1], false, i, 1), dq = matrix_of(h, &out[0], false, i, 1),
                 dk = matrix_of(h, &out[1], true, first, n), dv = matrix_of(h, &out[2], true, first, n);
    const row q = row_of(&query, i), g = row_of(&slopes, i);
    point of_row = at(h, false, i, -1);
    const double lse = get(call, call->n_in - 3, &of_row), delta = get(call, call->n_in - 2, &of_row);
    for (int64_t j = first; j < first + n; j++) {
        const double p = lse == -INFINITY ? 0 : exp(score(h, q, &keys, i, j) - lse);
        const double slope = p * (dot(g, row_of(&values, j)) - delta) * h->scale;
        add_multiple(row_of(&dv, j), p, g);
        add_multiple(row_of(&dq, i), slope, row_of(&keys, j));
        add_multiple(row_of(&dk, j), slope, q);
    }
}

static void run_backward(const trama_call *call)
{
    head_call h = head_call_of(call);
    const trama_view *k = &call->in[KEY], *lse = &call->in[call->n_in - 3];
    const int64_t first_key = k->offset[k->ndim - 2], keys = k->extent[k->ndim - 2];
    point i;
    agree_all(call, lse, &call->in[call->n_in - 2], 0);
    for (int d = 0; d < lse->ndim; d++) {
        agree(call, lse, d, &call->in[call->n_in - 1], d);
        agree(call, lse, d, &call->out[0], d);
    }
    for (int d = 1; d <= 3; d++) {
        agree(call, k, k->ndim - d, &call->out[1], call->out[1].ndim - d);
        agree(call, &call->in[VALUE], call->in[VALUE].ndim - d, &call->out[2], call->out[2].ndim - d);
    }
    for (int o = call->goes_on; o < 3; o++) /* the gradients of queries have terms of all calls */
        FOR_EACH(&call->out[o], &i)
    put(call, o, &i, 0);
    FOR_EACH(lse, &i)
    {
        h.b = i;
        h.b.ndim--;
        add_pairs(&h, i.at[i.ndim - 1], first_key, keys);
    }
}

void run_attention_grad(const trama_call *call)
{
    run_backward(call);
}

void run_attention_masked_grad(const trama_call *call)
{
    run_backward(call);
}
