/* SPDX-License-Identifier: Apache-2.0 */
#include "calibrate_programs.h"

#include <math.h>
#include <string.h>

#include "must.h"

enum { LINE = 256 };

static trama_value *state(const calibration *c, trama_program *p, const char *name, int copy, trama_dtype dtype,
                          trama_shape shape, bool split)
{
    static const trama_init init = {1, 2, 1, 1};
    char own[32];
    snprintf(own, sizeof own, "%s%d", name, copy);
    trama_value *v = trama_state(p, own, dtype, shape, trama_dtype_is_float(dtype) ? &init : NULL);
    return trama_shard(v, c->mesh, split ? "S(0)" : "R");
}

/* Of `rows` rows of each rank with a square matrix. */
static trama_value *product(const calibration *c, trama_program *p, int copy, int64_t rows, int64_t n,
                            trama_dtype dtype)
{
    return trama_matmul(state(c, p, "x", copy, dtype, TRAMA_SHAPE(c->ranks * rows, n), true),
                        state(c, p, "w", copy, dtype, TRAMA_SHAPE(n, n), false));
}
trama_value *record_square_f32(const calibration *c, trama_program *p, int copy, int64_t n)
{
    return product(c, p, copy, n, n, TRAMA_F32);
}
trama_value *record_flat_f32(const calibration *c, trama_program *p, int copy, int64_t n)
{
    return product(c, p, copy, FLAT, n, TRAMA_F32);
}
trama_value *record_square_f64(const calibration *c, trama_program *p, int copy, int64_t n)
{
    return product(c, p, copy, n, n, TRAMA_F64);
}
trama_value *record_flat_f64(const calibration *c, trama_program *p, int copy, int64_t n)
{
    return product(c, p, copy, FLAT, n, TRAMA_F64);
}
/* Of pieces of a matrix that is split by rows. */
trama_value *record_by_vector(const calibration *c, trama_program *p, int copy, int64_t n)
{
    return trama_matmul(state(c, p, "x", copy, TRAMA_F64, TRAMA_SHAPE(c->ranks * n / 2, 2 * n), true),
                        state(c, p, "v", copy, TRAMA_F64, TRAMA_SHAPE(2 * n, 1), false));
}
static trama_value *vector(const calibration *c, trama_program *p, const char *name, int copy, int64_t n)
{
    return state(c, p, name, copy, TRAMA_F32, TRAMA_SHAPE(c->ranks * n), true);
}
trama_value *record_add(const calibration *c, trama_program *p, int copy, int64_t n)
{
    return trama_add(vector(c, p, "x", copy, n), vector(c, p, "y", copy, n));
}
trama_value *record_negative(const calibration *c, trama_program *p, int copy, int64_t n)
{
    return trama_neg(vector(c, p, "x", copy, n));
}
trama_value *record_joined(const calibration *c, trama_program *p, int copy, int64_t n)
{
    static const char *const names[] = {"w", "x", "y", "z"};
    trama_value *parts[4];
    for (int i = 0; i < 4; i++)
        parts[i] = state(c, p, names[i], copy, TRAMA_F32, TRAMA_SHAPE(c->ranks, n), true);
    return trama_concat(1, 4, parts);
}
trama_value *record_chain(const calibration *c, trama_program *p, int copy, int64_t n)
{
    enum { LENGTH = 16 };
    trama_value *v = state(c, p, "v", copy, TRAMA_F32, TRAMA_SHAPE(c->ranks, n), true);
    for (int i = 0; i < LENGTH; i++)
        v = trama_flip(v, TRAMA_DIMS(1)); /* is never fused */
    return v;
}
/* Tiles are cut along dim 1, the longest one, and those of its flip along dim 2, so that each reads a part of all. */
trama_value *record_turns(const calibration *c, trama_program *p, int64_t n, bool others)
{
    enum { ROWS = 32, ROW = 32 };
    trama_value *v = state(c, p, "v", 0, TRAMA_F32, TRAMA_SHAPE(c->ranks, n * c->least / ROWS / ROW, ROWS, ROW), true);
    for (int i = 0; i < TURNS; i++)
        v = trama_add(v, trama_flip(v, TRAMA_DIMS(others ? 1 : 2)));
    return v;
}
trama_value *record_exponential(const calibration *c, trama_program *p, int copy, int64_t n)
{
    return trama_exp(vector(c, p, "x", copy, n));
}
static trama_value *lines(const calibration *c, trama_program *p, int copy, int64_t n)
{
    return state(c, p, "x", copy, TRAMA_F32, TRAMA_SHAPE(c->ranks * n / LINE, LINE), true);
}
trama_value *record_norm(const calibration *c, trama_program *p, int copy, int64_t n)
{
    return trama_layer_norm(lines(c, p, copy, n), 1, NULL, NULL, 1e-5);
}
trama_value *record_transposed(const calibration *c, trama_program *p, int copy, int64_t n)
{
    return trama_transpose(lines(c, p, copy, n), ((int[]){1, 0}));
}
trama_value *record_loss(const calibration *c, trama_program *p, int copy, int64_t n)
{
    trama_value *labels = state(c, p, "labels", copy, TRAMA_I32, TRAMA_SHAPE(c->ranks * n / LINE), true);
    return trama_cross_entropy(lines(c, p, copy, n), labels);
}
static trama_value *attend(const calibration *c, trama_program *p, int copy, int64_t n, trama_value **q)
{
    const trama_shape shape = TRAMA_SHAPE(c->ranks, HEADS, n, FEATURES);
    *q = state(c, p, "q", copy, TRAMA_F32, shape, true);
    trama_value *k = state(c, p, "k", copy, TRAMA_F32, shape, true);
    return trama_attention_causal(*q, k, state(c, p, "v", copy, TRAMA_F32, shape, true));
}
trama_value *record_attention(const calibration *c, trama_program *p, int copy, int64_t n)
{
    trama_value *q;
    return attend(c, p, copy, n, &q);
}
trama_value *record_attention_gradient(const calibration *c, trama_program *p, int copy, int64_t n)
{
    trama_value *q, *result = attend(c, p, copy, n, &q);
    return trama_gradient(trama_sum(result), q);
}
/* Over lines, as gradients of broadcast operands are summed. */
trama_value *record_sum(const calibration *c, trama_program *p, int copy, int64_t n)
{
    return trama_sum_over(state(c, p, "x", copy, TRAMA_F32, TRAMA_SHAPE(c->ranks, n / LINE, LINE), true), TRAMA_DIMS(1),
                          false);
}

/* ---- An op of one's own ---- */

/* A loop over rows as programs compile it, with the same flags: u + r (the four neighbours of u - 4 u). */
#define OWN_ROW(type)                                                                                                  \
    static void own_row_##type(int64_t n, const type *u, const type *above, const type *below, type *restrict next)    \
    {                                                                                                                  \
        for (int64_t i = 1; i < n - 1; i++)                                                                            \
            next[i] = u[i] + (type)0.2 * (above[i] + below[i] + u[i - 1] + u[i + 1] - 4 * u[i]);                       \
    }
OWN_ROW(float)
OWN_ROW(double)

static trama_status own_cpu(const trama_call *call)
{
    const double begun = kernel_begins();
    const trama_view *u = &call->in[0], *next = &call->out[0];
    const int64_t size = (int64_t)trama_dtype_size(u->dtype), line = u->stride[0] * size, last = u->extent[0] - 1;
    for (int64_t row = 0; row <= last; row++) { /* at the ends a row is its own neighbour */
        char *at = (char *)u->data + row * line, *above = row > 0 ? at - line : at,
             *below = row < last ? at + line : at;
        void *to = (char *)next->data + row * next->stride[0] * size;
        if (u->dtype == TRAMA_F32)
            own_row_float(u->extent[1], (void *)at, (void *)above, (void *)below, to);
        else
            own_row_double(u->extent[1], (void *)at, (void *)above, (void *)below, to);
    }
    kernel_ends(begun);
    return TRAMA_OK;
}

static trama_status term_cpu(const trama_call *call)
{
    const trama_view *x = &call->in[0], *y = &call->out[0];
    memcpy(y->data, x->data, sizeof(float) * (size_t)y->extent[y->ndim - 1]);
    return TRAMA_OK;
}

/* next = v + the sum of x, arrays of one line; x of whole LANES. */
static trama_status pass_cpu(const trama_call *call)
{
    enum { LANES = 16 };
    const double begun = kernel_begins();
    const trama_view *v = &call->in[0], *x = &call->in[1];
    const float *from = x->data;
    float sum[LANES] = {0}, all = 0;
    for (int64_t i = 0; i + LANES <= x->extent[x->ndim - 1]; i += LANES)
        for (int lane = 0; lane < LANES; lane++)
            sum[lane] += from[i + lane];
    for (int lane = 0; lane < LANES; lane++)
        all += sum[lane];
    for (int64_t i = 0; i < v->extent[v->ndim - 1]; i++)
        ((float *)call->out[0].data)[i] = ((const float *)v->data)[i] + all;
    kernel_ends(begun);
    return TRAMA_OK;
}

static trama_status nothing_cpu(const trama_call *call)
{
    (void)call;
    return TRAMA_OK;
}

static void given_gradient(const trama_op_gradient *g)
{
    trama_op_set_gradient(g, 0, trama_op_operand(g, 1));
}

static const trama_op *own_op, *given_op, *term_op, *pass_op;

void define_ops(void)
{
    static const trama_op_definition own = {
        .name = "own", .n_in = 1, .n_out = 1, .rule = "r[n]->r[n]", .flops = OWN_FLOPS, .cpu = own_cpu};
    /* The gradient of x is g, and nothing else of it is ever computed. */
    static const trama_op_definition given = {
        .name = "given", .n_in = 2, .n_out = 1, .rule = "...,...->...", .cpu = nothing_cpu, .gradient = given_gradient};
    static const trama_op_definition pass = {
        .name = "pass", .n_in = 2, .n_out = 1, .rule = "r[m],r[n]->r[m]", .cpu = pass_cpu};
    static const trama_op_definition term = {
        .name = "term", .n_in = 1, .n_out = 1, .rule = "ab[n]->a[n]", .cpu = term_cpu};
    must(trama_op_define(&own, &own_op));
    must(trama_op_define(&given, &given_op));
    must(trama_op_define(&term, &term_op));
    must(trama_op_define(&pass, &pass_op));
}

void destroy_ops(void)
{
    trama_op_destroy(&own_op);
    trama_op_destroy(&given_op);
    trama_op_destroy(&term_op);
    trama_op_destroy(&pass_op);
}

/* A parameter, two moments and a gradient. */
int updates_of(const calibration *c, int64_t n)
{
    return (int)fmax(1, c->spread / (4 * sizeof(float) * (double)n));
}

trama_value *record_updates(const calibration *c, trama_program *p, int copy, int64_t n)
{
    const trama_optimizer adam = trama_adamw(1e-3);
    trama_value *loss = NULL;
    const int count = c->least * updates_of(c, n);
    for (int i = copy * count; i < (copy + 1) * count; i++) {
        char name[16];
        snprintf(name, sizeof name, "w%d", i);
        trama_value *w = trama_parameter(p, name, TRAMA_F32, TRAMA_SHAPE(c->ranks * n), NULL);
        trama_value *x[] = {trama_shard(w, c->mesh, "S(0)"), vector(c, p, "g", i, n)};
        trama_value *term = trama_sum(trama_apply(given_op, 2, x, NULL));
        loss = loss ? trama_add(loss, term) : term;
    }
    return trama_minimize(loss, &adam);
}

trama_value *apply_term(trama_value *x)
{
    return trama_unsqueeze(trama_apply(term_op, 1, &x, NULL), 1);
}
trama_value *record_terms(const calibration *c, trama_program *p, int copy, int64_t n)
{
    return apply_term(state(c, p, "x", copy, TRAMA_F32, TRAMA_SHAPE(c->ranks, 1, n), true));
}

trama_value *apply_pass(trama_value *v, trama_value *x)
{
    return trama_apply(pass_op, 2, (trama_value *[]){v, x}, NULL);
}
trama_value *record_passes(const calibration *c, trama_program *p, int copy, int64_t n)
{
    trama_value *v = state(c, p, "v", copy, TRAMA_F32, TRAMA_SHAPE(c->ranks, 1), true);
    for (int i = 0; i < PASSES; i++) {
        trama_value *x = state(c, p, "x", copy * PASSES + i, TRAMA_F32, TRAMA_SHAPE(c->ranks, n), true);
        v = apply_pass(v, x);
    }
    return v;
}

/* A chain of such ops, whose results take turns in two buffers. */
static trama_value *own(const calibration *c, trama_program *p, int copy, int64_t n, trama_dtype dtype, int length)
{
    trama_value *v = state(c, p, "x", copy, dtype, TRAMA_SHAPE(c->ranks * n / OWN_LINE, OWN_LINE), true);
    for (int i = 0; i < length; i++)
        v = trama_apply(own_op, 1, &v, NULL);
    return v;
}
trama_value *record_own_chain_f32(const calibration *c, trama_program *p, int copy, int64_t n)
{
    return own(c, p, copy, n, TRAMA_F32, OWN_CHAIN);
}
trama_value *record_own_chain_f64(const calibration *c, trama_program *p, int copy, int64_t n)
{
    return own(c, p, copy, n, TRAMA_F64, OWN_CHAIN);
}
trama_value *record_own_f64(const calibration *c, trama_program *p, int copy, int64_t n)
{
    return own(c, p, copy, n, TRAMA_F64, 1);
}
