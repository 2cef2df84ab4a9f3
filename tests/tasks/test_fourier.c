/* SPDX-License-Identifier: Apache-2.0 */
/* Fourier transforms of all lengths and dims in several layouts on four processes, against their definition; and the
 * bytes that a split dim costs. */
#include <complex.h>

#include "eager_harness.h"
#include "trama_complex.h"
#include "trama_fourier.h"

typedef double _Complex z128;

static const char *const forms[] = {"R,R", "S(0),S(1)", "S(1),S(2)", "S(2)[1],S(2)[0]"};

/* A tensor of [n0, n1, n2] numbers and its transform along some dims. */
typedef struct grid {
    int64_t n[3];
    z128 *at;
} grid;

static int64_t count(const grid *g)
{
    return g->n[0] * g->n[1] * g->n[2];
}

static grid grid_new(int64_t n0, int64_t n1, int64_t n2)
{
    grid g = {{n0, n1, n2}, NULL};
    g.at = calloc((size_t)count(&g) + 1, sizeof *g.at);
    return g;
}

static grid random_grid(int64_t n0, int64_t n1, int64_t n2, bool real)
{
    grid g = grid_new(n0, n1, n2);
    uint64_t seed = (uint64_t)(n0 + 100 * n1 + 10000 * n2);
    for (int64_t i = 0; i < count(&g); i++) {
        const double re = (double)(random_bits(&seed) >> 11) * 0x1p-53 - 0.5;
        g.at[i] = CMPLX(re, real ? 0 : (double)(random_bits(&seed) >> 11) * 0x1p-53 - 0.5);
    }
    return g;
}

/* By the definition along dim d: sign -1, or +1 for the inverse without its factor. */
static void transform(grid *g, int d, int sign)
{
    const int64_t n = g->n[d], step = d == 2 ? 1 : d == 1 ? g->n[2] : g->n[1] * g->n[2];
    z128 *line = calloc((size_t)n + 1, sizeof *line);
    for (int64_t first = 0; first < count(g); first++) {
        if (first / step % n)
            continue;
        for (int64_t k = 0; k < n; k++) {
            line[k] = 0;
            for (int64_t j = 0; j < n; j++) {
                const double angle = sign * 2 * acos(-1) * (double)(j * k % n) / (double)n;
                line[k] += g->at[first + j * step] * CMPLX(cos(angle), sin(angle));
            }
        }
        for (int64_t k = 0; k < n; k++)
            g->at[first + k * step] = line[k];
    }
    free(line);
}

static void compare(eager *g, trama_value *v, const grid *wanted, double tolerance, const char *what)
{
    z128 *is = calloc((size_t)count(wanted) + 1, sizeof *is);
    must(trama_program_status(g->p));
    const trama_shape shape = trama_value_shape(v);
    for (int d = 0; d < 3; d++)
        demand(shape.dim[d] == wanted->n[d], "%s: dim %d has %" PRId64 " elements, not %" PRId64, what, d, shape.dim[d],
               wanted->n[d]);
    must(trama_read(g->e, trama_cast(v, TRAMA_C128), is, (size_t)count(wanted) * sizeof *is));
    for (int64_t i = 0; i < count(wanted); i++)
        demand(cabs(is[i] - wanted->at[i]) <= tolerance * fmax(1, cabs(wanted->at[i])),
               "%s: element %" PRId64 " is %g%+gi instead of %g%+gi", what, i, creal(is[i]), cimag(is[i]),
               creal(wanted->at[i]), cimag(wanted->at[i]));
    free(is);
}

static trama_value *tensor_of(eager *g, const grid *x, trama_dtype dtype, const trama_mesh *mesh, const char *form)
{
    trama_shape shape = trama_shape_of(3, x->n);
    trama_value *z = trama_tensor(g->p, TRAMA_C128, shape, x->at, mesh, form);
    return dtype == TRAMA_F32 || dtype == TRAMA_F64 ? trama_cast(trama_real(z), dtype) : trama_cast(z, dtype);
}

/* Every length to 70, and longer ones of small factors, of a large prime, and of both. */
START_TEST(transforms_of_any_length_are_those_of_the_definition)
{
    static const int64_t more[] = {1, 97, 101, 120, 128, 210, 243, 256, 343, 509, 512, 1001, 1024, 1021};
    start();
    if (n_ranks > 1) { /* they are of one process */
        stop();
        return;
    }
    trama_mesh *mesh = mesh_of("1");
    for (int64_t k = 1; k < 70 + (int64_t)(sizeof more / sizeof *more); k++) {
        const int64_t n = k < 70 ? k : more[k - 70];
        for (int narrow = 0; narrow < 2; narrow++) {
            eager g = eager_begin();
            grid x = random_grid(2, n, 3, false);
            const double tolerance = (narrow ? 0x1p-24 : 0x1p-53) * 16 * (1 + log2((double)n)) * sqrt((double)n);
            trama_value *z = tensor_of(&g, &x, narrow ? TRAMA_C64 : TRAMA_C128, mesh, "R");
            trama_value *y = trama_fft(z, 1, (int[]){1}, TRAMA_FOURIER_BACKWARD);
            compare(&g, trama_ifft(y, 1, (int[]){-2}, TRAMA_FOURIER_BACKWARD), &x, tolerance, "there and back");
            transform(&x, 1, -1);
            compare(&g, y, &x, tolerance, "a transform");
            eager_end_now(&g);
            free(x.at);
        }
    }
    trama_mesh_destroy(&mesh);
    stop();
}
END_TEST

static grid half_of(const grid *x, int d)
{
    grid h = grid_new(d == 0 ? x->n[0] / 2 + 1 : x->n[0], d == 1 ? x->n[1] / 2 + 1 : x->n[1],
                      d == 2 ? x->n[2] / 2 + 1 : x->n[2]);
    for (int64_t i = 0, at = 0; i < h.n[0]; i++)
        for (int64_t j = 0; j < h.n[1]; j++)
            for (int64_t k = 0; k < h.n[2]; k++)
                h.at[at++] = x->at[(i * x->n[1] + j) * x->n[2] + k];
    return h;
}

START_TEST(real_transforms_are_halves_of_complex_ones)
{
    static const int64_t lengths[] = {1, 2, 3, 4, 5, 6, 7, 8, 12, 15, 26, 34, 37, 64, 74, 101, 202, 1024};
    start();
    if (n_ranks > 1) { /* they are of one process */
        stop();
        return;
    }
    trama_mesh *mesh = mesh_of("1");
    for (size_t k = 0; k < sizeof lengths / sizeof *lengths; k++)
        for (int narrow = 0; narrow < 2; narrow++) {
            const int64_t n = lengths[k];
            const double tolerance = (narrow ? 0x1p-24 : 0x1p-53) * 16 * (1 + log2((double)n)) * sqrt((double)n);
            eager g = eager_begin();
            grid x = random_grid(3, n, 2, true);
            trama_value *y = trama_rfft(tensor_of(&g, &x, narrow ? TRAMA_F32 : TRAMA_F64, mesh, "R"), 1, (int[]){1},
                                        TRAMA_FOURIER_BACKWARD);
            compare(&g, trama_irfft(y, n, 1, (int[]){1}, TRAMA_FOURIER_BACKWARD), &x, tolerance, "there and back");
            transform(&x, 1, -1);
            grid half = half_of(&x, 1);
            compare(&g, y, &half, tolerance, "a real transform");
            eager_end_now(&g);
            free(half.at);
            free(x.at);
        }
    trama_mesh_destroy(&mesh);
    stop();
}
END_TEST

START_TEST(transforms_of_several_dims_hold_in_every_layout)
{
    static int dims[] = {2, 0, 1};
    start();
    for (size_t f = 0; f < sizeof forms / sizeof *forms; f++)
        for (int n = 1; n <= 3; n++)
            for (int norm = TRAMA_FOURIER_BACKWARD; norm <= TRAMA_FOURIER_FORWARD; norm++) {
                trama_mesh *mesh = mesh_of("dp=2,mp=2");
                eager g = eager_begin();
                grid x = random_grid(6, 5, 8, false);
                trama_value *z = tensor_of(&g, &x, TRAMA_C128, mesh, forms[f]);
                trama_value *y = trama_fft(z, n, dims, (trama_fourier_norm)norm);
                compare(&g, trama_ifft(y, n, dims, (trama_fourier_norm)norm), &x, 1e-13, "there and back");
                double joined = 1;
                for (int i = 0; i < n; i++) {
                    transform(&x, dims[i], -1);
                    joined *= (double)x.n[dims[i]];
                }
                for (int64_t i = 0; i < count(&x); i++)
                    x.at[i] /= norm == TRAMA_FOURIER_ORTHO ? sqrt(joined) : norm == TRAMA_FOURIER_FORWARD ? joined : 1;
                compare(&g, y, &x, 1e-13, "dims");
                eager_end_now(&g);
                trama_mesh_destroy(&mesh);
                free(x.at);
            }
    stop();
}
END_TEST

START_TEST(real_transforms_of_several_dims_hold_in_every_layout)
{
    static int dims[] = {0, 2, 1};
    start();
    for (size_t f = 0; f < sizeof forms / sizeof *forms; f++)
        for (int64_t n = 6; n <= 7; n++) {
            trama_mesh *mesh = mesh_of("dp=2,mp=2");
            eager g = eager_begin();
            grid x = random_grid(4, n, 5, true);
            trama_value *y = trama_rfft(tensor_of(&g, &x, TRAMA_F64, mesh, forms[f]), 3, dims, TRAMA_FOURIER_BACKWARD);
            compare(&g, trama_irfft(y, n, 3, dims, TRAMA_FOURIER_BACKWARD), &x, 1e-13, "there and back");
            for (int d = 0; d < 3; d++)
                transform(&x, d, -1);
            grid half = half_of(&x, 1);
            compare(&g, y, &half, 1e-13, "real dims");
            eager_end_now(&g);
            trama_mesh_destroy(&mesh);
            free(half.at);
            free(x.at);
        }
    stop();
}
END_TEST

/* The slope of a loss along x by differences, where the loss is computed with the same ops. */
static double loss_at(const grid *x, bool real, int64_t n)
{
    static int dims[] = {0, 1};
    eager g = eager_begin();
    trama_mesh *mesh = mesh_of("1");
    trama_value *v = tensor_of(&g, x, real ? TRAMA_F64 : TRAMA_C128, mesh, "R");
    trama_value *y =
        real ? trama_rfft(v, 2, dims, TRAMA_FOURIER_BACKWARD) : trama_irfft(v, n, 2, dims, TRAMA_FOURIER_BACKWARD);
    trama_value *loss = trama_sum(trama_mul(trama_square(trama_abs(y)), trama_abs(y)));
    double is;
    must(trama_program_status(g.p));
    must(trama_read(g.e, loss, &is, sizeof is));
    eager_end_now(&g);
    trama_mesh_destroy(&mesh);
    return is;
}

START_TEST(gradients_of_real_transforms_are_slopes)
{
    static int dims[] = {0, 1};
    const double h = 1e-5;
    start();
    for (int real = 0; real < 2; real++)
        for (int64_t n = 4; n <= 5; n++) {
            eager g = eager_begin();
            trama_mesh *mesh = mesh_of("dp=2,mp=2");
            grid x = random_grid(3, real ? n : n / 2 + 1, 2, real);
            z128 *is = calloc((size_t)count(&x), sizeof *is);
            trama_value *v = tensor_of(&g, &x, real ? TRAMA_F64 : TRAMA_C128, mesh, "S(2),S(0)");
            trama_value *y = real ? trama_rfft(v, 2, dims, TRAMA_FOURIER_BACKWARD)
                                  : trama_irfft(v, n, 2, dims, TRAMA_FOURIER_BACKWARD);
            trama_value *loss = trama_sum(trama_mul(trama_square(trama_abs(y)), trama_abs(y)));
            must(trama_read(g.e, trama_cast(trama_gradient(loss, v), TRAMA_C128), is, (size_t)count(&x) * sizeof *is));
            for (int64_t i = 0; i < count(&x); i++)
                for (int part = 0; part < (real ? 1 : 2); part++) {
                    const z128 z = x.at[i];
                    x.at[i] = z + h * (part ? I : 1);
                    const double above = loss_at(&x, real, n);
                    x.at[i] = z - h * (part ? I : 1);
                    const double slope = (above - loss_at(&x, real, n)) / (2 * h);
                    x.at[i] = z;
                    demand(fabs((part ? cimag(is[i]) : creal(is[i])) - slope) < 1e-6 * fmax(1, fabs(slope)),
                           "gradient %" PRId64 " of %s is %g%+gi, slope %d is %g", i, real ? "rfft" : "irfft",
                           creal(is[i]), cimag(is[i]), part, slope);
                }
            eager_end_now(&g);
            trama_mesh_destroy(&mesh);
            free(is);
            free(x.at);
        }
    stop();
}
END_TEST

/* A line has the same bits alone, beside others, and in any layout. */
START_TEST(a_line_has_the_same_bits_in_every_layout)
{
    static int dims[] = {1};
    static const int64_t lengths[] = {60, 64, 37};
    start();
    for (int k = 0; k < 3; k++) {
        const int64_t n = lengths[k];
        grid x = random_grid(7, n, 5, false);
        const size_t bytes = (size_t)count(&x) * sizeof(z128);
        z128 *first = calloc(1, bytes), *is = calloc(1, bytes);
        for (size_t f = 0; f < sizeof forms / sizeof *forms; f++) {
            trama_mesh *mesh = mesh_of("dp=2,mp=2");
            eager g = eager_begin();
            must(trama_read(g.e,
                            trama_fft(tensor_of(&g, &x, TRAMA_C128, mesh, forms[f]), 1, dims, TRAMA_FOURIER_BACKWARD),
                            f ? is : first, bytes));
            demand(!f || !memcmp(is, first, bytes), "%s: other bits", forms[f]);
            eager_end_now(&g);
            trama_mesh_destroy(&mesh);
        }
        free(first);
        free(is);
        free(x.at);
    }
    stop();
}
END_TEST

/* All dims of a tensor that is split along the first, and so is its transform: each process exchanges its share twice
 * but for the part that it keeps. */
START_TEST(a_split_dim_costs_two_exchanges)
{
    start();
    const int ranks = trama_context_ranks(ctx);
    char spec[16];
    snprintf(spec, sizeof spec, "%d", ranks);
    trama_mesh *mesh = mesh_of(spec);
    trama_program *p = trama_program_create();
    grid x = random_grid(8, 12, 4, false);
    const size_t bytes = (size_t)count(&x) * sizeof(z128);
    z128 *is = calloc(1, bytes);
    trama_value *z = trama_shard(trama_input(p, "z", TRAMA_C128, trama_shape_of(3, x.n)), mesh, "S(0)");
    trama_value *y = trama_shard(trama_fft(z, 0, NULL, TRAMA_FOURIER_BACKWARD), mesh, "S(0)");
    trama_target *t = trama_target_create(p, "t", y);
    trama_executable *e = compile(p);
    must(trama_feed(e, z, x.at, trama_shape_of(3, x.n)));
    must(trama_run(e, t));
    trama_traffic traffic = {0};
    must(trama_target_traffic(e, t, &traffic));
    const int64_t due = 2 * (int64_t)bytes * (ranks - 1) / ranks / ranks;
    demand(traffic.bytes_received == due, "%" PRId64 " bytes are received, not %" PRId64, traffic.bytes_received, due);
    must(trama_read(e, y, is, bytes));
    for (int d = 0; d < 3; d++)
        transform(&x, d, -1);
    for (int64_t i = 0; i < count(&x); i++)
        demand(cabs(is[i] - x.at[i]) < 1e-12, "element %" PRId64 " differs", i);
    must(trama_executable_destroy(&e));
    trama_program_destroy(&p);
    trama_mesh_destroy(&mesh);
    free(is);
    free(x.at);
    stop();
}
END_TEST

TESTS(transforms_of_any_length_are_those_of_the_definition, real_transforms_are_halves_of_complex_ones,
      transforms_of_several_dims_hold_in_every_layout, real_transforms_of_several_dims_hold_in_every_layout,
      gradients_of_real_transforms_are_slopes, a_line_has_the_same_bits_in_every_layout,
      a_split_dim_costs_two_exchanges)
