/* SPDX-License-Identifier: Apache-2.0 */
/* Ops of one's own on one rank and on several: forward, gradients, tiles, eager mode, results of several types. */
#include "harness.h"
#include "own_ops.h"

/* ---- A program of them: loss = sum_b d_b^2 + s_b, with y, s = rows(gate(x, w)), d = dot(y, w) ---- */

enum { B = 7, K = 5, N_POWERS = 4 };

typedef struct plain_own {
    double y[B * K], s[B], d[B], loss;
    int64_t positive[B];
} plain_own;

static double start_x(int i)
{
    return 0.3 + 0.1 * (i % 11) - (i % 3 == 0 ? 0.7 : 0);
}

static plain_own plainly(const double *x, const double *w)
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

static double slope_of(double *x, double *w, double *at)
{
    double before = *at, h = 1e-5, high, low;
    *at = before + h;
    high = plainly(x, w).loss;
    *at = before - h;
    low = plainly(x, w).loss;
    *at = before;
    return (high - low) / (2 * h);
}

static void demand_near(const char *mesh, const char *layout, const char *what, int n, const double *got,
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
static void own_program(const char *spec, const char *layout, bool eager)
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

static void own_programs(bool eager)
{
    for (int i = 0; i < N_OWN_LAYOUTS; i++)
        own_program(own_layouts[i].mesh, own_layouts[i].layout, eager);
}

/* Ranks compare their calls, and plans are verified, the second time. */
START_TEST(own_ops_give_what_plain_loops_give_in_every_layout)
{
    for (int checked = 0; checked < 2; checked++) {
        start_with(&(trama_config){.check_calls = checked, .verify = checked});
        own_programs(false);
        stop();
    }
}
END_TEST

START_TEST(own_ops_give_what_plain_loops_give_in_the_smallest_tiles)
{
    start_with(&(trama_config){.max_tiles = 3, .workers = 2, .grain_flops = 1, .grain_bytes = 1});
    own_programs(false);
    stop();
    start_with(&(trama_config){.no_fusion = true});
    own_programs(false);
    stop();
}
END_TEST

START_TEST(own_ops_run_at_once_in_eager_mode)
{
    for (int checked = 0; checked < 2; checked++) {
        start_with(&(trama_config){.check_calls = checked, .verify = checked});
        own_programs(true);
        stop();
    }
}
END_TEST

/* ---- Results of several types ---- */

/* The largest of each row (f64) and where it stands (i32). */
static trama_status top_cpu(const trama_call *call)
{
    const trama_view *x = &call->in[0];
    for (int64_t i = 0; i < x->extent[0]; i++) {
        const double *row = (const double *)x->data + i * x->stride[0];
        int64_t best = 0;
        for (int64_t j = 1; j < x->extent[1]; j++)
            best = row[j * x->stride[1]] > row[best * x->stride[1]] ? j : best;
        ((double *)call->out[0].data)[i * call->out[0].stride[0]] = row[best * x->stride[1]];
        ((int32_t *)call->out[1].data)[i * call->out[1].stride[0]] = (int32_t)best;
    }
    return TRAMA_OK;
}

static trama_status f64_and_i32(const trama_op_use *use, trama_dtype *result)
{
    result[0] = use->dtype[0];
    result[1] = TRAMA_I32;
    return TRAMA_OK;
}

START_TEST(results_of_several_types_are_each_moved_and_read_in_their_own)
{
    static const double data[3][2] = {{1, 5}, {7, -2}, {-4, -3}};
    static const double tops[3] = {5, 7, -3};
    static const int32_t places[3] = {1, 0, 1};
    const trama_op *op = NULL;
    double top[3];
    int32_t place[3];
    start();
    must(trama_op_define(
        &(trama_op_definition){
            .name = "top", .n_in = 1, .n_out = 2, .rule = "b[n]->b,b", .dtype = f64_and_i32, .cpu = top_cpu},
        &op));
    trama_mesh *mesh = trama_mesh_create("dp=2");
    trama_program *p = trama_program_create();
    trama_value *x = trama_constant(p, TRAMA_F64, TRAMA_SHAPE(3, 2), data);
    trama_shard(x, mesh, "S(0)");
    trama_value *first = trama_apply(op, 1, &x, NULL), *second = trama_result(first, 1);
    trama_target *t = trama_target_create(p, "tops", first, second);
    demand(t != NULL, "%s", trama_program_error(p));
    trama_executable *e;
    must(trama_compile(ctx, p, &e));
    must(trama_run(e, t));
    must(trama_read(e, first, top, sizeof top));
    must(trama_read(e, second, place, sizeof place));
    demand(!memcmp(top, tops, sizeof top), "the largest are %g %g %g", top[0], top[1], top[2]);
    demand(!memcmp(place, places, sizeof place), "the places are %d %d %d", place[0], place[1], place[2]);
    must(trama_executable_destroy(&e));
    trama_program_destroy(&p);
    trama_mesh_destroy(&mesh);
    trama_op_destroy(&op);
    stop();
}
END_TEST

TESTS(own_ops_give_what_plain_loops_give_in_every_layout, own_ops_give_what_plain_loops_give_in_the_smallest_tiles,
      own_ops_run_at_once_in_eager_mode, results_of_several_types_are_each_moved_and_read_in_their_own)
