/* SPDX-License-Identifier: Apache-2.0 */
#include "own_ops.h"

#include <check.h>
#include <math.h>
#include <stdio.h>

const trama_op *own[N_OWN];

/* x w + w w, element by element. */
trama_status gate_cpu(const trama_call *call)
{
    const trama_view *out = call->out;
    int64_t i[TRAMA_MAX_NDIM];
    for (bool more = trama_first(out, i); more; more = trama_next(out, i)) {
        double x = *number(&call->in[0], out->ndim, i), w = *number(&call->in[1], out->ndim, i);
        *number(out, out->ndim, i) = x * w + w * w;
    }
    return TRAMA_OK;
}

static void gate_gradient(const trama_op_gradient *g)
{
    trama_value *x = trama_op_operand(g, 0), *w = trama_op_operand(g, 1), *d = trama_op_result_gradient(g, 0);
    if (trama_op_wants(g, 0))
        trama_op_set_gradient(g, 0, trama_mul(d, w));
    if (trama_op_wants(g, 1))
        trama_op_set_gradient(g, 1, trama_mul(d, trama_add(x, trama_scale(w, 2))));
}

/* Rows divided by their sums, and the sums. */
trama_status rows_cpu(const trama_call *call)
{
    const trama_view *x = &call->in[0], *sums = &call->out[1];
    if (x->extent[1] != x->global[1])
        return trama_kernel_fail("a row of %d elements comes in pieces", (int)x->global[1]);
    for (int64_t b = 0; b < sums->extent[0]; b++) {
        double sum = 0;
        for (int64_t k = 0; k < x->extent[1]; k++)
            sum += *number(x, 2, (int64_t[]){b, k});
        for (int64_t k = 0; k < x->extent[1]; k++)
            *number(&call->out[0], 2, (int64_t[]){b, k}) = *number(x, 2, (int64_t[]){b, k}) / sum;
        *number(sums, 1, &b) = sum;
    }
    return TRAMA_OK;
}

static trama_value *column(trama_value *v, int64_t n)
{
    return trama_reshape(v, TRAMA_SHAPE(n, 1));
}

/* dx = (dy - sum(dy y)) / s + ds */
static void rows_gradient(const trama_op_gradient *g)
{
    trama_value *y = trama_op_result(g, 0), *s = trama_op_result(g, 1);
    trama_value *dy = trama_op_result_gradient(g, 0), *ds = trama_op_result_gradient(g, 1);
    int64_t n = trama_value_shape(y).dim[0];
    trama_value *mean = trama_sum_over(trama_mul(dy, y), 1, (int[]){1}, true);
    trama_value *dx = trama_div(trama_sub(dy, mean), column(s, n));
    trama_op_set_gradient(g, 0, trama_add(dx, column(ds, n)));
}

/* Sum over k of x [b, k] w [k]. */
trama_status dot_cpu(const trama_call *call)
{
    for (int64_t b = 0; b < call->out->extent[0]; b++) {
        double sum = 0;
        for (int64_t k = 0; k < call->in[1].extent[0]; k++)
            sum += *number(&call->in[0], 2, (int64_t[]){b, k}) * *number(&call->in[1], 1, &k);
        *number(call->out, 1, &b) = sum;
    }
    return TRAMA_OK;
}

static void dot_gradient(const trama_op_gradient *g)
{
    trama_value *x = trama_op_operand(g, 0), *w = trama_op_operand(g, 1);
    trama_value *d = column(trama_op_result_gradient(g, 0), trama_value_shape(x).dim[0]);
    trama_op_set_gradient(g, 0, trama_mul(d, w));
    trama_op_set_gradient(g, 1, trama_sum_over(trama_mul(d, x), 1, (int[]){0}, false));
}

/* How many elements of a row are positive. */
static trama_status positive_cpu(const trama_call *call)
{
    for (int64_t b = 0; b < call->out->extent[0]; b++) {
        int64_t n = 0;
        for (int64_t k = 0; k < call->in->extent[1]; k++)
            n += *number(call->in, 2, (int64_t[]){b, k}) > 0;
        *(int64_t *)trama_element(call->out, 1, &b) = n;
    }
    return TRAMA_OK;
}

static trama_status is_i64(const trama_op_use *use, trama_dtype *result)
{
    *result = TRAMA_I64;
    return use->dtype[0] == TRAMA_F64 ? TRAMA_OK : trama_op_refuse(use, TRAMA_E_DTYPE, "it takes f64");
}

/* x^1, x^2, ... in a new last dim, as many as the attribute says; a piece of it knows its offset. */
static trama_status powers_rule(const trama_op_use *use, char *rule, size_t room)
{
    snprintf(rule, room, "b->bk=%d", (int)use->attributes->integer[0]);
    return TRAMA_OK;
}

static trama_status powers_cpu(const trama_call *call)
{
    int64_t i[TRAMA_MAX_NDIM];
    for (bool more = trama_first(call->out, i); more; more = trama_next(call->out, i))
        *number(call->out, 2, i) = pow(*number(call->in, 1, i), (double)(1 + i[1] + call->out->offset[1]));
    return TRAMA_OK;
}

/* s = s / 2 + x, over s. */
static trama_status blend_cpu(const trama_call *call)
{
    int64_t i[TRAMA_MAX_NDIM];
    for (bool more = trama_first(call->out, i); more; more = trama_next(call->out, i)) {
        double *s = number(call->out, call->out->ndim, i);
        *s = *s / 2 + *number(&call->in[1], call->out->ndim, i);
    }
    return TRAMA_OK;
}

void define_own(void)
{
    const trama_op_definition all[N_OWN] = {
        [GATE] = {.name = "gate",
                  .n_in = 2,
                  .n_out = 1,
                  .rule = "...,...->...",
                  .partial = "-,-",
                  .cpu = gate_cpu,
                  .gradient = gate_gradient,
                  .flops = 3,
                  .pointwise = true},
        [ROWS] = {.name = "rows",
                  .n_in = 1,
                  .n_out = 2,
                  .rule = "b[k]->b[k],b",
                  .cpu = rows_cpu,
                  .gradient = rows_gradient,
                  .flops = 2},
        [DOT] = {.name = "dot",
                 .n_in = 2,
                 .n_out = 1,
                 .rule = "bk,k->b",
                 .partial = "linear,linear",
                 .cpu = dot_cpu,
                 .gradient = dot_gradient,
                 .flops = 2},
        [POSITIVE] = {.name = "positive", .n_in = 1, .n_out = 1, .rule = "bk->b", .dtype = is_i64, .cpu = positive_cpu},
        [POWERS] =
            {.name = "powers", .n_in = 1, .n_out = 1, .rule_of = powers_rule, .cpu = powers_cpu, .attributes = "n"},
        [BLEND] = {.name = "blend",
                   .n_in = 2,
                   .n_out = 1,
                   .rule = "...,...->...",
                   .cpu = blend_cpu,
                   .updates = 1,
                   .pointwise = true},
    };
    for (int i = 0; i < N_OWN; i++)
        ck_assert_msg(!trama_op_define(&all[i], &own[i]), "%s", trama_error());
}

void destroy_own(void)
{
    for (int i = 0; i < N_OWN; i++)
        trama_op_destroy(&own[i]);
}

trama_status picky_cpu(const trama_call *call)
{
    int64_t i[TRAMA_MAX_NDIM];
    for (bool more = trama_first(call->out, i); more; more = trama_next(call->out, i)) {
        double x = *number(call->in, call->out->ndim, i);
        if (x == 13)
            return trama_kernel_fail("%g is no number to work with", x);
        *number(call->out, call->out->ndim, i) = x;
    }
    return TRAMA_OK;
}
