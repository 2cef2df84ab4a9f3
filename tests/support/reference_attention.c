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

/* scale q k' + mask; -infinity where a query does not see the key. */
static double score(const head_call *h, int64_t i, int64_t j)
{
    const trama_call *call = h->call;
    const trama_view *q = &call->in[QUERY];
    const int64_t d = q->global[q->ndim - 1];
    double sum = 0;
    if (integer(call, ATTENTION_CAUSAL) && j > i)
        return -INFINITY;
    for (int64_t l = 0; l < d; l++) {
        point a = at(h, false, i, l), b = at(h, true, j, l);
        sum += get(call, QUERY, &a) * get(call, KEY, &b);
    }
    sum *= h->scale;
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
    const int64_t e = call->out[0].global[call->out[0].ndim - 1], first = k->offset[k->ndim - 2];
    double sum = before;
    for (int64_t l = 0; l < e; l++) {
        point o = at(h, false, i, l);
        *element(call, &call->out[0], &o) *= before;
    }
    for (int64_t j = first; j < first + k->extent[k->ndim - 2]; j++) {
        const double p = exp(score(h, i, j));
        sum += p;
        for (int64_t l = 0; l < e; l++) {
            point o = at(h, false, i, l), v = at(h, true, j, l);
            *element(call, &call->out[0], &o) += p * get(call, VALUE, &v);
        }
    }
    for (int64_t l = 0; l < e && sum != 0; l++) {
        point o = at(h, false, i, l);
        *element(call, &call->out[0], &o) /= sum;
    }
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

/* The gradient adds p g[i] to row j of dv, and ds times scale to rows of dk and dq. */
static void add_pair(const head_call *h, int64_t i, int64_t j)
{
    const trama_call *call = h->call;
    const int lse = call->n_in - 3, delta = call->n_in - 2, g = call->n_in - 1;
    const trama_view *q = &call->in[QUERY], *v = &call->in[VALUE];
    point row = at(h, false, i, -1);
    const double p = get(call, lse, &row) == -INFINITY ? 0 : exp(score(h, i, j) - get(call, lse, &row));
    double slope = -get(call, delta, &row);
    for (int64_t l = 0; l < v->global[v->ndim - 1]; l++) {
        point a = at(h, false, i, l), b = at(h, true, j, l);
        slope += get(call, g, &a) * get(call, VALUE, &b);
        *element(call, &call->out[2], &b) += p * get(call, g, &a);
    }
    for (int64_t l = 0; l < q->global[q->ndim - 1]; l++) {
        point a = at(h, false, i, l), b = at(h, true, j, l);
        *element(call, &call->out[0], &a) += p * slope * h->scale * get(call, KEY, &b);
        *element(call, &call->out[1], &b) += p * slope * h->scale * get(call, QUERY, &a);
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
        for (int64_t j = first_key; j < first_key + keys; j++)
            add_pair(&h, i.at[i.ndim - 1], j);
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
