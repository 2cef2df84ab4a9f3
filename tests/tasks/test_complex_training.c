/* SPDX-License-Identifier: Apache-2.0 */
/* Optimizers on complex parameters against PyTorch, and norms and powers of complex numbers against C's own. */
#include <complex.h>

#include "eager_harness.h"
#include "torch_optimizers.h"
#include "trama_complex.h"
#include "trama_composed.h"

typedef double _Complex z128;

enum { ROWS = 12, IN = 7, OUT = 5 };

/* The numbers of torch_optimizers.py: real parts first. */
static void draw_numbers(z128 *to, int n, uint64_t seed, double size)
{
    for (int part = 0; part < 2; part++)
        for (int i = 0; i < n; i++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            const double x = size * ((double)(seed >> 50) / 8192 - 1);
            to[i] = part ? CMPLX(creal(to[i]), x) : x;
        }
}

/* ---- Optimizers ---- */

typedef struct complex_fit {
    trama_program *p;
    trama_mesh *mesh;
    trama_value *w, *b, *loss;
} complex_fit;

/* mean(|x w + b - y|^2), x split by x_layout and w by w_layout on dp=2,mp=2. */
static complex_fit complex_fit_new(const char *x_layout, const char *w_layout)
{
    complex_fit f = {.p = trama_program_create(), .mesh = mesh_of("dp=2,mp=2")};
    z128 x[ROWS * IN], y[ROWS * OUT], w[IN * OUT], b[OUT];
    draw_numbers(x, ROWS * IN, 1, 1);
    draw_numbers(y, ROWS * OUT, 2, 4);
    for (int i = 0; i < IN * OUT; i++)
        w[i] = CMPLX(0.5, -0.125);
    for (int i = 0; i < OUT; i++)
        b[i] = CMPLX(-0.25, 0.5);
    f.w = trama_initial(trama_parameter(f.p, "w", TRAMA_C128, TRAMA_SHAPE(IN, OUT), NULL), w);
    f.b = trama_initial(trama_parameter(f.p, "b", TRAMA_C128, TRAMA_SHAPE(OUT), NULL), b);
    trama_value *in = trama_constant(f.p, TRAMA_C128, TRAMA_SHAPE(ROWS, IN), x),
                *wanted = trama_constant(f.p, TRAMA_C128, TRAMA_SHAPE(ROWS, OUT), y);
    trama_value *far = trama_sub(trama_add(trama_matmul(in, f.w), f.b), wanted);
    f.loss = trama_scale(trama_sum_square(far), 1.0 / (ROWS * OUT));
    trama_shard(in, f.mesh, x_layout);
    trama_shard(f.w, f.mesh, w_layout);
    return f;
}

static void check_numbers(const char *name, const z128 *is, int n, const double *wanted)
{
    for (int i = 0; i < n; i++) {
        const z128 z = CMPLX(wanted[2 * i], wanted[2 * i + 1]);
        demand(cabs(is[i] - z) <= 1e-9, "%s: parameter %d is %.12g%+.12gi, of PyTorch %.12g%+.12gi", name, i,
               creal(is[i]), cimag(is[i]), creal(z), cimag(z));
    }
}

/* micro: micro-steps of one step, each with all samples. */
static void follow(const trama_optimizer *o, const double *table, int micro)
{
    static const char *const splits[][2] = {{"R,R", "R,R"}, {"S(0),R", "R,S(1)"}, {"S(0),S(1)", "R,S(0)"}};
    for (size_t l = 0; l < sizeof splits / sizeof *splits; l++) {
        complex_fit f = complex_fit_new(splits[l][0], splits[l][1]);
        z128 w[IN * OUT], b[OUT];
        trama_executable *e = NULL;
        trama_target *train = trama_target_create(f.p, "train", trama_minimize(f.loss, o));
        if (micro > 1)
            train = trama_gradient_merge(train, micro, TRAMA_MERGE_AVG);
        demand(!trama_program_status(f.p), "%s: %s", o->name, trama_program_error(f.p));
        must(trama_compile(ctx, f.p, &e));
        for (int step = 0; step < TORCH_STEPS * micro; step++)
            must(trama_run(e, train));
        must(trama_read(e, f.w, w, sizeof w));
        must(trama_read(e, f.b, b, sizeof b));
        check_numbers(o->name, w, IN * OUT, table);
        check_numbers(o->name, b, OUT, table + 2 * IN * OUT);
        must(trama_executable_destroy(&e));
        trama_program_destroy(&f.p);
        trama_mesh_destroy(&f.mesh);
    }
}

START_TEST(complex_parameters_are_trained_as_by_pytorch)
{
    trama_optimizer sgd = trama_sgd(0.05), momentum = sgd, adam = trama_adam(0.05), adamw = trama_adamw(0.05);
    trama_optimizer by_norm = sgd;
    momentum.momentum = 0.9;
    momentum.nesterov = true;
    momentum.weight_decay = 0.01;
    adam.weight_decay = 0.1;
    adamw.weight_decay = 0.1;
    adamw.beta1 = 0.8;
    adamw.beta2 = 0.95;
    by_norm.clip_norm = 0.5;
    start();
    follow(&sgd, torch_complex_sgd, 1);
    follow(&momentum, torch_complex_momentum, 1);
    follow(&adam, torch_complex_adam, 1);
    follow(&adamw, torch_complex_adamw, 1);
    follow(&by_norm, torch_complex_clip_norm, 1);
    stop();
}
END_TEST

START_TEST(complex_gradients_accumulate)
{
    trama_optimizer adam = trama_adam(0.05);
    adam.weight_decay = 0.1;
    start();
    follow(&adam, torch_complex_adam, 2);
    stop();
}
END_TEST

/* ---- Norms and powers ---- */

enum { M = 5, K = 7 };
static z128 x_at[M * K];

static double norm_in_c(void)
{
    double sum = 0;
    for (int i = 0; i < M * K; i++)
        sum += creal(x_at[i]) * creal(x_at[i]) + cimag(x_at[i]) * cimag(x_at[i]);
    return sqrt(sum);
}

static trama_value *norm_of(trama_value *x)
{
    return trama_norm_2(x);
}

/* |sum of z^conj(z) and z^(2 z)|: both operands of each power depend on z. */
static double powers_in_c(void)
{
    z128 sum = 0;
    for (int i = 0; i < M * K; i++)
        sum += cexp(conj(x_at[i]) * clog(x_at[i])) + cexp(2 * x_at[i] * clog(x_at[i]));
    return cabs(sum);
}

static trama_value *powers_of(trama_value *x)
{
    return trama_abs(trama_sum(trama_add(trama_pow(x, trama_conj(x)), trama_pow(x, trama_scale(x, 2)))));
}

/* The function and its gradient, dL/da + i dL/db by differences. */
static void check_function(const char *form, double (*in_c)(void), trama_value *(*of)(trama_value *x))
{
    const double h = 1e-6;
    eager g = eager_begin();
    trama_mesh *mesh = mesh_of("dp=2,mp=2");
    z128 is[M * K];
    double value;
    draw_numbers(x_at, M * K, 5, 1.25);
    trama_value *x = trama_tensor(g.p, TRAMA_C128, TRAMA_SHAPE(M, K), x_at, mesh, form), *y = of(x);
    trama_value *gradient = trama_gradient(y, x);
    must(trama_program_status(g.p));
    must(trama_read(g.e, y, &value, sizeof value));
    must(trama_read(g.e, gradient, is, sizeof is));
    demand(fabs(value - in_c()) <= 1e-12 * fabs(value), "%.17g instead of %.17g", value, in_c());
    for (int i = 0; i < M * K; i++) {
        const z128 z = x_at[i];
        double side[4];
        for (int d = 0; d < 4; d++) {
            x_at[i] = z + (d % 2 ? -h : h) * (d < 2 ? 1 : I);
            side[d] = in_c();
        }
        x_at[i] = z;
        const z128 wanted = CMPLX((side[0] - side[1]) / (2 * h), (side[2] - side[3]) / (2 * h));
        demand(cabs(is[i] - wanted) <= 1e-6 * fmax(1, cabs(wanted)), "gradient %d is %g%+gi, the slopes are %g%+gi", i,
               creal(is[i]), cimag(is[i]), creal(wanted), cimag(wanted));
    }
    eager_end_now(&g);
    trama_mesh_destroy(&mesh);
}

START_TEST(norms_and_powers_and_their_gradients_are_those_of_c)
{
    static const char *const forms[] = {"R,R", "S(0),S(1)", "S(1),S(0)"};
    start();
    for (int f = 0; f < 3; f++) {
        check_function(forms[f], norm_in_c, norm_of);
        check_function(forms[f], powers_in_c, powers_of);
    }
    stop();
}
END_TEST

TESTS(complex_parameters_are_trained_as_by_pytorch, complex_gradients_accumulate,
      norms_and_powers_and_their_gradients_are_those_of_c)
