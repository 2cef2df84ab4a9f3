/* SPDX-License-Identifier: Apache-2.0 */
/* Reference ops that sum or compare along dims. */
#include "reference_inside.h"

/* ---- matmul ---- */

/* The batch dims of an index of the result, and the operand's own two; a vector has the contracted one alone. */
static point factor_at(const point *i, int n_batch, bool vector, int64_t first, int64_t second)
{
    point p = {.ndim = vector ? 1 : n_batch + 2};
    memcpy(p.at, i->at, (size_t)n_batch * sizeof *p.at);
    p.at[p.ndim - 1] = second;
    if (!vector)
        p.at[n_batch] = first;
    return p;
}

static void agree_batch(const trama_call *call, const trama_view *x, int n_batch)
{
    for (int i = 1; i <= n_batch && i <= x->ndim - 2; i++)
        agree(call, x, x->ndim - 2 - i, &call->out[0], n_batch - i);
}

/* x [b.., k, m], y [b.., k, n] -> [m, n] */
static void run_sum_over_batch(const trama_call *call)
{
    const trama_view *x = &call->in[0], *y = &call->in[1], *out = &call->out[0];
    const int last = x->ndim - 1;
    trama_view terms = *x;
    terms.ndim = last;
    for (int d = 0; d < last; d++)
        agree(call, x, d, y, d);
    agree(call, x, last, out, 0);
    agree(call, y, last, out, 1);
    point i, k;
    FOR_EACH(out, &i)
    {
        double sum = 0;
        FOR_EACH_AS(term_, &terms, &k)
        {
            point a = k, b = k;
            a.ndim = b.ndim = last + 1;
            a.at[last] = i.at[0];
            b.at[last] = i.at[1];
            sum += get(call, 0, &a) * get(call, 1, &b);
        }
        put(call, 0, &i, sum);
    }
}

void run_matmul(const trama_call *call)
{
    if (integer(call, MATMUL_SUM_BATCH)) {
        run_sum_over_batch(call);
        return;
    }
    const trama_view *x = &call->in[0], *y = &call->in[1], *out = &call->out[0];
    bool tx = integer(call, MATMUL_TRANS_X), ty = integer(call, MATMUL_TRANS_Y);
    bool row = x->ndim == 1, column = y->ndim == 1;
    int kx = x->ndim - (tx ? 2 : 1), ky = y->ndim - (ty || column ? 1 : 2), n_batch = out->ndim - !row - !column;
    agree(call, x, kx, y, ky);
    if (!row)
        agree(call, x, x->ndim - (tx ? 1 : 2), out, n_batch);
    if (!column)
        agree(call, y, y->ndim - (ty ? 2 : 1), out, out->ndim - 1);
    agree_batch(call, x, n_batch);
    agree_batch(call, y, n_batch);
    point i;
    FOR_EACH(out, &i)
    {
        double sum = 0;
        int64_t m = row ? 0 : i.at[n_batch], n = column ? 0 : i.at[out->ndim - 1];
        for (int64_t k = x->offset[kx]; k < x->offset[kx] + x->extent[kx]; k++) {
            point a = factor_at(&i, n_batch, row, tx ? k : m, tx ? m : k);
            point b = factor_at(&i, n_batch, column, ty ? n : k, ty || column ? k : n);
            sum += get(call, 0, &a) * get(call, 1, &b);
        }
        put(call, 0, &i, sum);
    }
}

/* ---- Reductions ---- */

point reduced(const trama_call *call, const point *full)
{
    point r = {0};
    for (int d = 0; d < full->ndim; d++) {
        bool gone = integer(call, REDUCE_AXES) >> d & 1;
        if (!gone || integer(call, REDUCE_KEEP_DIM))
            r.at[r.ndim++] = gone ? 0 : full->at[d];
    }
    return r;
}

void agree_kept(const trama_call *call, const trama_view *full, const trama_view *few)
{
    for (int d = 0, k = 0; d < full->ndim; d++) {
        bool gone = integer(call, REDUCE_AXES) >> d & 1;
        if (!gone)
            agree(call, full, d, few, k);
        k += !gone || integer(call, REDUCE_KEEP_DIM);
    }
}

static double repetitions(const trama_call *call, const trama_view *full)
{
    double n = 1;
    for (int d = 0; d < full->ndim; d++)
        n *= integer(call, REDUCE_AXES) >> d & 1 ? (double)full->global[d] : 1;
    return n;
}

static void sum_scaled(const trama_call *call, double by)
{
    point i;
    agree_kept(call, &call->in[0], &call->out[0]);
    fill_result(call, 0);
    FOR_EACH(&call->in[0], &i)
    {
        point r = reduced(call, &i);
        *element(call, &call->out[0], &r) += get(call, 0, &i) / by;
    }
}

void run_sum(const trama_call *call)
{
    sum_scaled(call, 1);
}

void run_mean(const trama_call *call)
{
    sum_scaled(call, repetitions(call, &call->in[0]));
}

void run_prod(const trama_call *call)
{
    point i;
    agree_kept(call, &call->in[0], &call->out[0]);
    fill_result(call, 1);
    FOR_EACH(&call->in[0], &i)
    {
        point r = reduced(call, &i);
        *element(call, &call->out[0], &r) *= get(call, 0, &i);
    }
}

void run_sum_square(const trama_call *call)
{
    point i;
    agree_kept(call, &call->in[0], &call->out[0]);
    fill_result(call, 0);
    FOR_EACH(&call->in[0], &i)
    {
        point r = reduced(call, &i);
        double x = get(call, 0, &i);
        *element(call, &call->out[0], &r) += x * x;
    }
}

static void extremum(const trama_call *call, bool max)
{
    point i;
    agree_kept(call, &call->in[0], &call->out[0]);
    fill_result(call, max ? -INFINITY : INFINITY);
    FOR_EACH(&call->in[0], &i)
    {
        point r = reduced(call, &i);
        double *y = element(call, &call->out[0], &r), x = get(call, 0, &i);
        *y = max ? fmax(*y, x) : fmin(*y, x);
    }
}

void run_max(const trama_call *call)
{
    extremum(call, true);
}

void run_min(const trama_call *call)
{
    extremum(call, false);
}

static void run_place(const trama_call *call, bool least)
{
    const trama_view *x = &call->in[0];
    int dim = 0;
    while (!(integer(call, REDUCE_AXES) >> dim & 1))
        dim++;
    point i;
    agree_kept(call, x, &call->out[0]);
    fill_result(call, -1);
    FOR_EACH(x, &i)
    {
        point r = reduced(call, &i), best = i;
        double *y = element(call, &call->out[0], &r);
        best.at[dim] = (int64_t)*y;
        double now = get(call, 0, &i), before = *y < 0 ? NAN : get(call, 0, &best);
        if (*y < 0 || (least ? now < before : now > before) || (integer(call, ARGMAX_LAST) && now == before))
            *y = (double)i.at[dim];
    }
}

void run_argmax(const trama_call *call)
{
    run_place(call, false);
}

void run_argmin(const trama_call *call)
{
    run_place(call, true);
}

void run_expand(const trama_call *call)
{
    agree_kept(call, &call->out[0], &call->in[0]);
    double by = integer(call, EXPAND_AVERAGE) ? repetitions(call, &call->out[0]) : 1;
    point i;
    FOR_EACH(&call->out[0], &i)
    {
        point r = reduced(call, &i);
        put(call, 0, &i, get(call, 0, &r) / by);
    }
}

/* ---- softmax and cross entropy: along one dim that must be here as a whole ---- */

static int64_t whole_extent(const trama_call *call, const trama_view *v, int dim)
{
    if (v->extent[dim] != v->global[dim])
        impossible(call, "a dim that must be whole is not");
    return v->extent[dim];
}

/* log(sum(exp(x))) along dim at an index. */
static double log_sum_exp(const trama_call *call, int dim, point i)
{
    int64_t n = whole_extent(call, &call->in[0], dim);
    double most = -INFINITY, sum = 0;
    for (i.at[dim] = 0; i.at[dim] < n; i.at[dim]++)
        most = fmax(most, get(call, 0, &i));
    for (i.at[dim] = 0; i.at[dim] < n; i.at[dim]++)
        sum += exp(get(call, 0, &i) - most);
    return most + log(sum);
}

void run_softmax(const trama_call *call)
{
    point i;
    agree_all(call, &call->in[0], &call->out[0], 0);
    FOR_EACH(&call->out[0], &i)
    put(call, 0, &i, exp(get(call, 0, &i) - log_sum_exp(call, (int)integer(call, SOFTMAX_AXIS), i)));
}

/* g, y: y (g - sum(g y)) */
void run_softmax_grad(const trama_call *call)
{
    int dim = (int)integer(call, SOFTMAX_AXIS);
    point i;
    agree_all(call, &call->in[0], &call->out[0], 0);
    agree_all(call, &call->in[1], &call->out[0], 0);
    FOR_EACH(&call->out[0], &i)
    {
        double dot = 0;
        point k = i;
        for (k.at[dim] = 0; k.at[dim] < whole_extent(call, &call->in[0], dim); k.at[dim]++)
            dot += get(call, 0, &k) * get(call, 1, &k);
        put(call, 0, &i, get(call, 1, &i) * (get(call, 0, &i) - dot));
    }
}

static bool is_label(double label, int64_t n)
{
    return label >= 0 && label < (double)n && label == trunc(label);
}

void run_cross_entropy(const trama_call *call)
{
    const trama_view *z = &call->in[0], *labels = &call->in[1];
    double sum = 0;
    point b, scalar = {0};
    agree(call, z, 0, labels, 0);
    FOR_EACH(labels, &b)
    {
        double label = get(call, 1, &b);
        point i = {2, {b.at[0], 0}};
        double norm = log_sum_exp(call, 1, i);
        i.at[1] = is_label(label, z->global[1]) ? (int64_t)label : 0;
        sum += is_label(label, z->global[1]) ? norm - get(call, 0, &i) : NAN;
    }
    put(call, 0, &scalar, sum / (double)z->global[0]);
}

/* z, labels, g */
void run_cross_entropy_grad(const trama_call *call)
{
    point i, scalar = {0};
    agree_all(call, &call->in[0], &call->out[0], 0);
    agree(call, &call->in[1], 0, &call->out[0], 0);
    FOR_EACH(&call->out[0], &i)
    {
        point b = {1, {i.at[0]}};
        double label = get(call, 1, &b), hit = label == (double)i.at[1];
        double p = exp(get(call, 0, &i) - log_sum_exp(call, 1, i));
        double d = is_label(label, call->in[0].global[1]) ? p - hit : NAN;
        put(call, 0, &i, get(call, 2, &scalar) * d / (double)call->in[0].global[0]);
    }
}
