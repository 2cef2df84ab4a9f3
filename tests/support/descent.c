/* SPDX-License-Identifier: Apache-2.0 */
/* The fit. */
#include "descent.h"
#include "trama_ops.h"

#include <check.h>
#include <math.h>
#include <string.h>

const fit_layout fit_layouts[] = {
    {NULL, NULL, NULL, NULL, NULL},
    {"1", "R", "R", NULL, "R"},
    {"2", "S(0)", "R", NULL, "R"},
    {"2", "R", "S(1)", NULL, "S(0)"},
    {"3", "S(0)", "S(0)", NULL, "R"},
    {"2,2", "S(0),R", "R,S(1)", NULL, "R,S(0)"},
    {"2,3", "S(0),S(1)", "S(1),S(0)", NULL, "R,R"},
    {"4", "S(0)", "S(0)", "2", "S(0)"},
    {"3", "S(0)", "R mask{0,1,0}", NULL, "R mask{1,0,1}"},
    {"2,2", "S(0),R", "R,S(1) mask{1,1,0,0}", NULL, "R,S(0) mask{0,1,1,0}"},
    {"2,3", "S(0),S(1)", "R,S(0) mask{0,1,1,1,0,1}", NULL, "R,R mask{0,0,0,0,1,0}"},
};
const int n_fit_layouts = sizeof fit_layouts / sizeof *fit_layouts;

/* ---- Plain ---- */

static void some_numbers(double *to, int n, uint64_t seed, double size)
{
    for (int i = 0; i < n; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        to[i] = size * ((double)(seed >> 50) / 8192 - 1);
    }
}

plain_fit plain_fit_new(void)
{
    plain_fit p = {.parameter = {{.n = FIT_IN * FIT_OUT}, {.n = FIT_OUT}}};
    some_numbers(p.x, FIT_ROWS * FIT_IN, 1, 1);
    some_numbers(p.y, FIT_ROWS * FIT_OUT, 2, 4);
    for (int i = 0; i < p.parameter[0].n; i++)
        p.parameter[0].value[i] = 0.5;
    for (int i = 0; i < p.parameter[1].n; i++)
        p.parameter[1].value[i] = -0.25;
    return p;
}

double plain_fit_gradients(plain_fit *p)
{
    plain_tensor *w = &p->parameter[0], *b = &p->parameter[1];
    double loss = 0;
    memset(w->gradient, 0, sizeof w->gradient);
    memset(b->gradient, 0, sizeof b->gradient);
    for (int r = 0; r < FIT_ROWS; r++)
        for (int c = 0; c < FIT_OUT; c++) {
            double z = b->value[c] - p->y[r * FIT_OUT + c];
            for (int k = 0; k < FIT_IN; k++)
                z += p->x[r * FIT_IN + k] * w->value[k * FIT_OUT + c];
            loss += z * z / (FIT_ROWS * FIT_OUT);
            b->gradient[c] += 2 * z / (FIT_ROWS * FIT_OUT);
            for (int k = 0; k < FIT_IN; k++)
                w->gradient[k * FIT_OUT + c] += 2 * z / (FIT_ROWS * FIT_OUT) * p->x[r * FIT_IN + k];
        }
    return loss;
}

/* torch.optim.SGD, without dampening */
static void plain_sgd(const trama_optimizer *o, double lr, int64_t t, plain_tensor *q)
{
    (void)t;
    for (int i = 0; i < q->n; i++) {
        double g = q->gradient[i] + o->weight_decay * q->value[i];
        q->first[i] = o->momentum * q->first[i] + g;
        q->value[i] -= lr * (o->nesterov ? g + o->momentum * q->first[i] : q->first[i]);
    }
}

/* Updates the moments by gradient g of element i; Adam's step. */
static double plain_moments(const trama_optimizer *o, int64_t t, plain_tensor *q, int i, double g)
{
    q->first[i] = o->beta1 * q->first[i] + (1 - o->beta1) * g;
    q->second[i] = o->beta2 * q->second[i] + (1 - o->beta2) * g * g;
    double m = q->first[i] / (1 - pow(o->beta1, (double)t)), v = q->second[i] / (1 - pow(o->beta2, (double)t));
    return m / (sqrt(v) + o->eps);
}

/* Kingma and Ba 2015, algorithm 1; the decay is part of the gradient */
static void plain_adam(const trama_optimizer *o, double lr, int64_t t, plain_tensor *q)
{
    for (int i = 0; i < q->n; i++)
        q->value[i] -= lr * plain_moments(o, t, q, i, q->gradient[i] + o->weight_decay * q->value[i]);
}

/* Loshchilov and Hutter 2019, algorithm 2 */
static void plain_adamw(const trama_optimizer *o, double lr, int64_t t, plain_tensor *q)
{
    for (int i = 0; i < q->n; i++)
        q->value[i] -= lr * (plain_moments(o, t, q, i, q->gradient[i]) + o->weight_decay * q->value[i]);
}

/* You et al. 2020, algorithm 2, with phi(z) = z */
static void plain_lamb(const trama_optimizer *o, double lr, int64_t t, plain_tensor *q)
{
    double u[FIT_IN * FIT_OUT], w_norm = 0, u_norm = 0;
    for (int i = 0; i < q->n; i++) {
        u[i] = plain_moments(o, t, q, i, q->gradient[i]) + o->weight_decay * q->value[i];
        w_norm += q->value[i] * q->value[i];
        u_norm += u[i] * u[i];
    }
    double ratio = w_norm > 0 && u_norm > 0 ? sqrt(w_norm) / sqrt(u_norm) : 1;
    for (int i = 0; i < q->n; i++)
        q->value[i] -= lr * ratio * u[i];
}

void plain_update(const trama_optimizer *o, double lr, int64_t t, plain_tensor *q)
{
    static const struct {
        const char *name;
        void (*update)(const trama_optimizer *o, double lr, int64_t t, plain_tensor *q);
    } known[] = {{"sgd", plain_sgd}, {"adam", plain_adam}, {"adamw", plain_adamw}, {"lamb", plain_lamb}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strcmp(known[i].name, o->name))
            known[i].update(o, lr, t, q);
}

double plain_norm(int n, const plain_tensor *p)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        for (int k = 0; k < p[i].n; k++)
            sum += p[i].gradient[k] * p[i].gradient[k];
    return sqrt(sum);
}

/* torch.nn.utils.clip_grad_value_, then clip_grad_norm_ */
void plain_clip(const trama_optimizer *o, int n, plain_tensor *p)
{
    for (int i = 0; i < n; i++)
        for (int k = 0; k < p[i].n; k++)
            p[i].gradient[k] = fmin(fmax(p[i].gradient[k], -o->clip_value), o->clip_value);
    double factor = fmin(1, o->clip_norm / (plain_norm(n, p) + 1e-6));
    for (int i = 0; i < n; i++)
        for (int k = 0; k < p[i].n; k++)
            p[i].gradient[k] *= factor;
}

void plain_fit_step(const trama_optimizer *o, double lr, plain_fit *p)
{
    plain_fit_gradients(p);
    plain_clip(o, FIT_PARAMETERS, p->parameter);
    p->steps++;
    for (int i = 0; i < FIT_PARAMETERS; i++)
        plain_update(o, lr, p->steps, &p->parameter[i]);
}

void plain_scale_step(const trama_loss_scale *o, plain_scale *s, bool finite)
{
    s->good = finite ? s->good + 1 : 0;
    s->scale *= !finite ? o->backoff : s->good == o->interval ? o->growth : 1;
    s->good = s->good == o->interval ? 0 : s->good;
}

/* ---- Through Trama ---- */

fit fit_new(const fit_layout *l, trama_dtype dtype)
{
    return fit_of_rows(l, dtype, FIT_ROWS);
}

fit fit_of_rows(const fit_layout *l, trama_dtype dtype, int64_t rows)
{
    fit f = {.program = trama_program_create()};
    trama_init half = {0.5, 0.5, 0, 0}, below = {-0.25, -0.25, 0, 0};
    f.x = trama_input(f.program, "x", dtype, TRAMA_SHAPE(rows, FIT_IN));
    f.y = trama_input(f.program, "y", dtype, TRAMA_SHAPE(rows, FIT_OUT));
    f.parameter[0] = trama_parameter(f.program, "w", dtype, TRAMA_SHAPE(FIT_IN, FIT_OUT), &half);
    f.parameter[1] = trama_parameter(f.program, "b", dtype, TRAMA_SHAPE(FIT_OUT), &below);
    trama_value *z = trama_matmul(f.x, f.parameter[0]);
    if (l->mesh) {
        f.mesh = trama_mesh_create(l->mesh);
        f.b_mesh = l->b_mesh ? trama_mesh_create(l->b_mesh) : NULL;
        trama_shard(f.x, f.mesh, l->x);
        trama_shard(f.parameter[0], f.mesh, l->w);
        trama_shard(f.parameter[1], f.b_mesh ? f.b_mesh : f.mesh, l->b);
        if (f.b_mesh)
            z = trama_reshard(trama_shard(z, f.mesh, "S(0)"), f.b_mesh, "S(1)");
    }
    f.loss = trama_mean(trama_square(trama_sub(trama_add(z, f.parameter[1]), f.y)));
    return f;
}

void fit_free(fit *f)
{
    trama_program_destroy(&f->program);
    trama_mesh_destroy(&f->mesh);
    trama_mesh_destroy(&f->b_mesh);
}

/* ---- Simulated ---- */

static dense dense_from(trama_shape shape, const double *from)
{
    dense d = dense_new(shape);
    memcpy(d.at, from, (size_t)trama_shape_count(shape) * sizeof *from);
    return d;
}

static void feed(fit_run *r, const trama_value *input, const double *from)
{
    dense d = dense_from(input->shape, from);
    simulation_feed(r->s, input, &d);
    dense_free(&d);
}

fit_run fit_run_new(fit f, trama_target *train, const plain_fit *data, int ranks, int variant)
{
    fit_run r = {.f = f, .train = train};
    ck_assert_msg(!trama_program_status(r.f.program), "%s", trama_program_error(r.f.program));
    r.machine = machine_uniform(ranks, 2);
    machine_vary(r.machine, variant);
    r.s = simulation_new(r.f.program, r.machine, &(simulation_options){.plan = {2, 1, 1, false, .sum_tile = 24}});
    feed(&r, r.f.x, data->x);
    feed(&r, r.f.y, data->y);
    return r;
}

void fit_run_free(fit_run *r)
{
    simulation_destroy(&r->s);
    machine_destroy(&r->machine);
    fit_free(&r->f);
}

void fit_compare(fit_run *r, const plain_fit *plain, const char *name, int step, double tolerance)
{
    for (int i = 0; i < FIT_PARAMETERS; i++) {
        dense got = simulation_value(r->s, r->f.parameter[i]);
        for (int k = 0; k < plain->parameter[i].n; k++)
            ck_assert_msg(fabs(got.at[k] - plain->parameter[i].value[k]) <= tolerance,
                          "%s: element %d of %s is %.17g after step %d, not %.17g", name, k, r->f.parameter[i]->name,
                          got.at[k], step, plain->parameter[i].value[k]);
        dense_free(&got);
    }
}

void heavy_ball(const trama_update *u)
{
    trama_value *b = trama_update_slot(u, "b");
    trama_value *next = trama_add(trama_scale(b, 0.9), trama_update_gradient(u));
    trama_update_set(u, b, next);
    trama_update_set(u, u->parameter, trama_sub(u->parameter, trama_mul(trama_update_lr(u), next)));
}
