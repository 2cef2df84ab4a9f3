/* SPDX-License-Identifier: Apache-2.0 */
/* Ops that are not built in, and a program of them beside plain loops. */
#ifndef OWN_OPS_H
#define OWN_OPS_H

#include "harness.h"

/* ---- Ops ---- */

static double *number(const trama_view *v, int ndim, const int64_t *index)
{
    return trama_element(v, ndim, index);
}

/* x w + w w, element by element. */
static trama_status gate_cpu(const trama_call *call)
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
static trama_status rows_cpu(const trama_call *call)
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
static trama_status dot_cpu(const trama_call *call)
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

enum { GATE, ROWS, DOT, POSITIVE, POWERS, BLEND, N_OWN };
static const trama_op *own[N_OWN];

static inline void define_own(void)
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
        must(trama_op_define(&all[i], &own[i]));
}

static inline void destroy_own(void)
{
    for (int i = 0; i < N_OWN; i++)
        trama_op_destroy(&own[i]);
}

/* ---- A program of them: loss = sum_b d_b^2 + s_b, with y, s = rows(gate(x, w)), d = dot(y, w) ---- */

enum { B = 7, K = 5, N_POWERS = 4 };

typedef struct plain_own {
    double y[B * K], s[B], d[B], loss;
    int64_t positive[B];
} plain_own;

static inline double start_x(int i)
{
    return 0.3 + 0.1 * (i % 11) - (i % 3 == 0 ? 0.7 : 0);
}

static inline plain_own plainly(const double *x, const double *w)
{
    plain_own r = {.loss = 0};
    for (int b = 0; b < B; b++) {
        for (int k = 0; k < K; k++) {
            r.y[b * K + k] = x[b * K + k] * w[k] + w[k] * w[k];
            r.s[b] += r.y[b * K + k];
            r.positive[b] += x[b * K + k] > 0;
        }
        for (int k = 0; k < K; k++)
            r.d[b] += (r.y[b * K + k] /= r.s[b]) * w[k];
        r.loss += r.d[b] * r.d[b] + r.s[b];
    }
    return r;
}

static inline double slope_of(double *x, double *w, double *at)
{
    double before = *at, h = 1e-5, high, low;
    *at = before + h;
    high = plainly(x, w).loss;
    *at = before - h;
    low = plainly(x, w).loss;
    *at = before;
    return (high - low) / (2 * h);
}

static inline void demand_near(const char *mesh, const char *layout, const char *what, int n, const double *got,
                               const double *wanted, double tolerance)
{
    for (int i = 0; i < n; i++)
        demand(fabs(got[i] - wanted[i]) <= tolerance * fmax(1, fabs(wanted[i])),
               "%s, x as %s: %s[%d] is %.15g, not %.15g", mesh, layout, what, i, got[i], wanted[i]);
}

#define read_near(value, name, wanted, tolerance)                                                                      \
    do {                                                                                                               \
        double got_[sizeof(wanted) / sizeof(double)];                                                                  \
        must(trama_read(e, value, got_, sizeof got_));                                                                 \
        demand_near(spec, layout, name, (int)(sizeof got_ / sizeof *got_), got_, wanted, tolerance);                   \
    } while (0)

/* Forward, gradients, several results, new dims, other types, an update: as plain loops. eager: at once. */
static inline void own_program(const char *spec, const char *layout, bool eager)
{
    double x0[B * K], w0[K], dx[B * K], dw[K], powers[B * N_POWERS], running[B];
    for (int i = 0; i < B * K; i++)
        x0[i] = start_x(i);
    for (int k = 0; k < K; k++)
        w0[k] = 0.5 + 0.25 * k;
    plain_own plain = plainly(x0, w0);
    for (int i = 0; i < B * K; i++)
        dx[i] = slope_of(x0, w0, &x0[i]);
    for (int k = 0; k < K; k++)
        dw[k] = slope_of(x0, w0, &w0[k]);
    for (int i = 0; i < B * N_POWERS; i++)
        powers[i] = pow(plain.s[i / N_POWERS], 1 + i % N_POWERS);
    define_own();
    trama_mesh *mesh = mesh_of(spec);
    trama_program *p = NULL;
    trama_executable *e = NULL;
    if (eager)
        must(trama_eager(ctx, &p, &e));
    else
        p = trama_program_create();
    trama_value *x = trama_constant(p, TRAMA_F64, TRAMA_SHAPE(B, K), x0);
    trama_value *w = trama_constant(p, TRAMA_F64, TRAMA_SHAPE(K), w0);
    trama_value *state = trama_state(p, "running", TRAMA_F64, TRAMA_SHAPE(B), NULL);
    trama_shard(x, mesh, layout);
    trama_value *y =
        trama_apply(own[ROWS], 1, (trama_value *[]){trama_apply(own[GATE], 2, (trama_value *[]){x, w}, NULL)}, NULL);
    trama_value *s = trama_result(y, 1), *d = trama_apply(own[DOT], 2, (trama_value *[]){y, w}, NULL);
    trama_value *loss = trama_add(trama_sum(trama_square(d)), trama_sum(s));
    trama_value *gx = trama_gradient(loss, x), *gw = trama_gradient(loss, w);
    trama_value *n = trama_apply(own[POSITIVE], 1, &x, NULL);
    trama_value *pw = trama_apply(own[POWERS], 1, &s, &(trama_attributes){.integer = {N_POWERS}});
    trama_value *update = NULL;
    for (int i = 0; i < B; i++)
        running[i] = 0;
    if (eager) {
        for (int i = 0; i < 2; i++)
            trama_apply(own[BLEND], 2, (trama_value *[]){state, s}, NULL);
    } else {
        update = trama_apply(own[BLEND], 2, (trama_value *[]){state, s}, NULL);
        trama_target *t = trama_target_create(p, "t", y, s, d, loss, gx, gw, n, pw, update);
        demand(t, "%s, x as %s: %s", spec, layout, trama_program_error(p));
        e = compile(p);
        for (int i = 0; i < 2; i++)
            must(trama_run(e, t));
    }
    for (int i = 0; i < 2; i++)
        for (int b = 0; b < B; b++)
            running[b] = running[b] / 2 + plain.s[b];
    int64_t positive[B];
    double losses[1] = {plain.loss};
    must(trama_program_status(p));
    read_near(y, "y", plain.y, 1e-12);
    read_near(s, "s", plain.s, 1e-12);
    read_near(d, "d", plain.d, 1e-12);
    read_near(loss, "loss", losses, 1e-12);
    read_near(gx, "dx", dx, 1e-7);
    read_near(gw, "dw", dw, 1e-7);
    read_near(pw, "powers", powers, 1e-12);
    read_near(state, "running", running, 1e-12);
    must(trama_read(e, n, positive, sizeof positive));
    for (int b = 0; b < B; b++)
        demand(positive[b] == plain.positive[b], "%s, x as %s: row %d has %d", spec, layout, b, (int)positive[b]);
    must(trama_executable_destroy(&e));
    trama_program_destroy(&p);
    trama_mesh_destroy(&mesh);
    destroy_own();
}

static const struct {
    const char *mesh, *layout;
} own_layouts[] = {{"1", "R"},           {"2", "S(0)"},        {"2", "S(1)"},        {"3", "R"},       {"4", "S(0)"},
                   {"2,2", "S(0),S(1)"}, {"2,2", "S(1),S(0)"}, {"2,3", "S(0),S(0)"}, {"3,2", "R,S(1)"}};
enum { N_OWN_LAYOUTS = sizeof own_layouts / sizeof *own_layouts };

static inline void own_programs(bool eager)
{
    for (int i = 0; i < N_OWN_LAYOUTS; i++)
        own_program(own_layouts[i].mesh, own_layouts[i].layout, eager);
}

/* ---- A kernel that fails: of the process whose box has a 13 ---- */

static inline trama_status picky_cpu(const trama_call *call)
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

static inline trama_status mute_cpu(const trama_call *call)
{
    return picky_cpu(call) ? TRAMA_E_MEMORY : TRAMA_OK;
}

typedef struct picky {
    remembered log;
    const trama_op *op;
    trama_mesh *mesh;
    trama_program *p;
    trama_value *x, *y, *sum;
    trama_target *t;
    trama_executable *e;
    char place[300]; /* where the op is applied */
} picky;

enum { N_PICKY = 8 };

static inline void picky_begin(picky *f, const char *spec, trama_status (*cpu)(const trama_call *call))
{
    *f = (picky){.mesh = NULL};
    start_with(&(trama_config){.log = remember, .log_data = &f->log, .max_in_flight = 3});
    must(trama_op_define(
        &(trama_op_definition){
            .name = "picky", .n_in = 1, .n_out = 1, .rule = "...->...", .cpu = cpu, .pointwise = true},
        &f->op));
    f->mesh = mesh_of(spec);
    f->p = trama_program_create();
    f->x = trama_shard(trama_input(f->p, "x", TRAMA_F64, TRAMA_SHAPE(N_PICKY)), f->mesh, "S(0)");
    snprintf(f->place, sizeof f->place, "%s:%d: the kernel of picky failed on rank ", __FILE__, __LINE__ + 1);
    f->y = trama_apply(f->op, 1, &f->x, NULL);
    f->sum = trama_sum(f->y);
    f->t = trama_target_create(f->p, "t", f->y, f->sum);
    f->e = compile(f->p);
}

/* 13 at a place, or nowhere for -1; and one run. */
static inline trama_status picky_run(picky *f, int at)
{
    double x[N_PICKY];
    for (int i = 0; i < N_PICKY; i++)
        x[i] = i == at ? 13 : i;
    trama_status status = trama_feed(f->e, f->x, x, TRAMA_SHAPE(N_PICKY));
    return status ? status : trama_run(f->e, f->t);
}

static inline void picky_end(picky *f)
{
    trama_program_destroy(&f->p);
    trama_mesh_destroy(&f->mesh);
    trama_op_destroy(&f->op);
    stop();
}

#endif
