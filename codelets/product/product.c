/* SPDX-License-Identifier: Apache-2.0 */
/* The products of which a call of matmul consists, on CPUs and GPUs. */
#include "product.h"

#include "ops.h"

static void add_dim(trama_view *v, int at)
{
    for (int d = v->ndim++; d > at; d--) {
        v->extent[d] = v->extent[d - 1];
        v->global[d] = v->global[d - 1];
        v->offset[d] = v->offset[d - 1];
        v->stride[d] = v->stride[d - 1];
    }
    v->extent[at] = v->global[at] = v->stride[at] = 1;
    v->offset[at] = 0;
}

const trama_call *matrix_call_of(const trama_call *call, matrix_call *m)
{
    const bool row = call->in[0].ndim == 1, column = call->in[1].ndim == 1;

    m->in[0] = call->in[0];
    m->in[1] = call->in[1];
    m->out = call->out[0];
    if (column) {
        add_dim(&m->in[1], 1);
        add_dim(&m->out, m->out.ndim);
    }
    if (row) {
        add_dim(&m->in[0], 0);
        add_dim(&m->out, m->out.ndim - 1);
    }
    m->call = *call;
    m->call.in = m->in;
    m->call.out = &m->out;
    return &m->call;
}

bool product_join_rows(trama_view *v)
{
    const int last = v->ndim - 1;
    int64_t n = 1, step = 1;
    for (int d = last - 1; d >= 0; d--) {
        if (n > 1 && v->extent[d] > 1 && v->stride[d] != n * step)
            return false;
        step = n == 1 ? v->stride[d] : step;
        n *= v->extent[d];
    }
    *v = (trama_view){v->data, v->dtype, 2, {n, v->extent[last]}, {step, v->stride[last]}, {0}, {n, v->extent[last]}};
    return true;
}

static void steps_of(product *p, int array, const trama_view *view, bool transposed)
{
    const int rows = view->ndim - (transposed ? 1 : 2), columns = view->ndim - (transposed ? 2 : 1);
    p->row[array] = view->stride[rows];
    p->column[array] = view->stride[columns];
}

static int64_t batches(const trama_view *view)
{
    int64_t n = 1;
    for (int d = 0; d < view->ndim - 2; d++)
        n *= view->global[d];
    return n;
}

product product_of(const trama_call *call)
{
    const trama_view *out = &call->out[0], *x = &call->in[0];
    const bool trans_x = call->attributes->integer[MATMUL_TRANS_X], trans_y = call->attributes->integer[MATMUL_TRANS_Y];
    product p = {.alpha = 1, .m = out->extent[out->ndim - 2], .n = out->extent[out->ndim - 1]};

    p.k = x->extent[x->ndim - (trans_x ? 2 : 1)];
    steps_of(&p, 0, out, false);
    steps_of(&p, 1, x, trans_x);
    steps_of(&p, 2, &call->in[1], trans_y);
    p.conjugate[1] = call->attributes->integer[MATMUL_TRANS_X] == TRAMA_CONJ_TRANS;
    p.conjugate[2] = call->attributes->integer[MATMUL_TRANS_Y] == TRAMA_CONJ_TRANS;
    p.vector_y = out->global[out->ndim - 1] == 1;
    /* Rows that share y are the rows of one product with it. */
    p.vector_x = !p.vector_y && out->global[out->ndim - 2] == 1 && batches(out) == batches(&call->in[1]);
    return p;
}

product product_turned(const product *p)
{
    return (product){
        .m = p->n,
        .n = p->m,
        .k = p->k,
        .alpha = p->alpha,
        .beta = p->beta,
        .row = {p->column[0], p->column[2], p->column[1]},
        .column = {p->row[0], p->row[2], p->row[1]},
        .conjugate = {false, p->conjugate[2], p->conjugate[1]},
        .scratch = p->scratch,
    };
}

bool product_is_one(const product *p, int64_t n, const int64_t *step, product *whole)
{
    *whole = *p;
    whole->m = p->m * n;
    if (p->m == 1) {
        whole->row[0] = step[0];
        whole->row[1] = step[1];
    }
    if (p->vector_x && n > 1)
        return false; /* y is repeated: each row of x is a product with a vector, as beside a y of its own */
    return step[2] == 0 && step[0] == p->m * whole->row[0] && step[1] == p->m * whole->row[1];
}
