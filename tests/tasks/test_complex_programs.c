/* SPDX-License-Identifier: Apache-2.0 */
/* Programs of complex numbers in several layouts on four processes: arithmetic, products, losses and their gradients,
 * against C's own complex arithmetic. */
#include <complex.h>

#include "eager_harness.h"
#include "trama_array.h"
#include "trama_complex.h"

typedef double _Complex z128;

enum { M = 5, K = 7 };
static const char *const forms[] = {"R,R", "S(0),S(1)", "S(1),S(0)", "S(0)[1],S(0)[0]"};

typedef struct setting {
    eager g;
    trama_mesh *mesh;
    trama_value *x; /* [M, K] */
} setting;

static z128 x_at[M][K];

static setting begin(const char *form)
{
    setting s = {eager_begin(), mesh_of("dp=2,mp=2"), NULL};
    for (int i = 0; i < M; i++)
        for (int k = 0; k < K; k++)
            x_at[i][k] = CMPLX((3 * i + 5 * k) % 11 - 4.5, (7 * i + 2 * k) % 9 - 3.25) / 4;
    s.x = trama_tensor(s.g.p, TRAMA_C128, TRAMA_SHAPE(M, K), x_at, s.mesh, form);
    return s;
}

static void end(setting *s)
{
    eager_end_now(&s->g);
    trama_mesh_destroy(&s->mesh);
}

static void check(setting *s, trama_value *v, int64_t n, const z128 *wanted, const char *what)
{
    z128 is[M * K * 2];
    must(trama_program_status(s->g.p));
    must(trama_read(s->g.e, trama_cast(v, TRAMA_C128), is, (size_t)n * sizeof *is));
    for (int64_t i = 0; i < n; i++)
        demand(cabs(is[i] - wanted[i]) <= 1e-12 * fmax(1, cabs(wanted[i])),
               "%s: element %" PRId64 " is %g%+gi instead of %g%+gi", what, i, creal(is[i]), cimag(is[i]),
               creal(wanted[i]), cimag(wanted[i]));
}

static void check_real(setting *s, trama_value *v, double wanted, const char *what)
{
    double is;
    must(trama_program_status(s->g.p));
    must(trama_read(s->g.e, v, &is, sizeof is));
    demand(fabs(is - wanted) <= 1e-12 * fmax(1, fabs(wanted)), "%s is %.17g instead of %.17g", what, is, wanted);
}

static int by_rows[] = {0};

START_TEST(arithmetic_parts_and_sums_are_those_of_c)
{
    start();
    for (size_t f = 0; f < sizeof forms / sizeof *forms; f++) {
        setting s = begin(forms[f]);
        z128 wanted[M][K], sum[K] = {0};
        double squares = 0;
        for (int i = 0; i < M; i++)
            for (int k = 0; k < K; k++) {
                const z128 z = x_at[i][k];
                wanted[i][k] = (z * conj(z) - 2 * z) / cexp(z / 3) + creal(z) + I * carg(z);
                sum[k] += z;
                squares += creal(z * conj(z));
            }
        trama_value *re = trama_add(trama_real(s.x), trama_scale(trama_real(s.x), 0));
        trama_value *quotient = trama_div(trama_sub(trama_mul(s.x, trama_conj(s.x)), trama_scale(s.x, 2)),
                                          trama_exp(trama_div_scalar(s.x, 3)));
        check(&s, trama_add(quotient, trama_complex(re, trama_angle(s.x))), M * K, wanted[0], "an expression");
        check(&s, trama_sum_over(s.x, 1, by_rows, false), K, sum, "the sum of rows");
        check_real(&s, trama_sum(trama_square(trama_abs(s.x))), squares, "the sum of squares");
        end(&s);
    }
    stop();
}
END_TEST

/* ---- Products ---- */

/* How the second x of a product is read, so that the inner extents agree. */
static const trama_transposition pairs[][2] = {
    {TRAMA_NO_TRANS, TRAMA_TRANS},
    {TRAMA_NO_TRANS, TRAMA_CONJ_TRANS},
    {TRAMA_TRANS, TRAMA_NO_TRANS},
    {TRAMA_CONJ_TRANS, TRAMA_NO_TRANS},
};
enum { N_PAIRS = sizeof pairs / sizeof *pairs };

/* Element [i, j] of x as `op` reads it. */
static z128 read_op(trama_transposition op, int i, int j)
{
    return op == TRAMA_NO_TRANS ? x_at[i][j] : op == TRAMA_TRANS ? x_at[j][i] : conj(x_at[j][i]);
}

/* op(x) op(x), [n, n]; returns n. */
static int product_of_pair(const trama_transposition *pair, z128 *out)
{
    const int n = pair[0] == TRAMA_NO_TRANS ? M : K, k = M + K - n;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            out[i * n + j] = 0;
            for (int l = 0; l < k; l++)
                out[i * n + j] += read_op(pair[0], i, l) * read_op(pair[1], l, j);
        }
    return n;
}

START_TEST(products_read_their_operands_in_all_ways)
{
    start();
    for (size_t f = 0; f < sizeof forms / sizeof *forms; f++)
        for (int k = 0; k < N_PAIRS; k++) {
            setting s = begin(forms[f]);
            z128 wanted[K * K];
            const int n = product_of_pair(pairs[k], wanted);
            check(&s, trama_matmul_op(s.x, s.x, pairs[k][0], pairs[k][1]), n * n, wanted, "a product");
            end(&s);
        }
    stop();
}
END_TEST

START_TEST(real_products_take_the_adjoint_as_the_transposed)
{
    start();
    setting s = begin("S(0),S(1)");
    trama_value *re = trama_real(s.x);
    z128 wanted[K * K] = {0};
    for (int i = 0; i < K; i++)
        for (int j = 0; j < K; j++)
            for (int l = 0; l < M; l++)
                wanted[i * K + j] += creal(x_at[l][i]) * creal(x_at[l][j]);
    check(&s, trama_matmul_op(re, re, TRAMA_CONJ_TRANS, TRAMA_NO_TRANS), K * K, wanted, "a real product");
    end(&s);
    stop();
}
END_TEST

/* ---- Gradients: dL/da + i dL/db by differences of C's own numbers ---- */

typedef double loss_function(const void *with);

static void check_gradient(setting *s, trama_value *loss, loss_function *of_c, const void *with, const char *what)
{
    const double h = 1e-6;
    trama_value *gradient = trama_gradient(loss, s->x);
    z128 is[M][K];
    must(trama_program_status(s->g.p));
    must(trama_read(s->g.e, gradient, is, sizeof is));
    for (int i = 0; i < M; i++)
        for (int k = 0; k < K; k++) {
            const z128 z = x_at[i][k];
            double side[4];
            for (int d = 0; d < 4; d++) {
                x_at[i][k] = z + (d % 2 ? -h : h) * (d < 2 ? 1 : I);
                side[d] = of_c(with);
            }
            x_at[i][k] = z;
            const z128 wanted = CMPLX((side[0] - side[1]) / (2 * h), (side[2] - side[3]) / (2 * h));
            demand(cabs(is[i][k] - wanted) <= 1e-6 * fmax(1, cabs(wanted)),
                   "%s: its gradient [%d, %d] is %g%+gi, the "
                   "slopes are %g%+gi",
                   what, i, k, creal(is[i][k]), cimag(is[i][k]), creal(wanted), cimag(wanted));
        }
}

static const z128 factor = 0.75 - 1.25 * I;

#define FUNCTIONS(X)                                                                                                   \
    X(1, square(v), z *z)                                                                                              \
    X(2, sqrt(v), csqrt(z))                                                                                            \
    X(3, exp(v), cexp(z))                                                                                              \
    X(4, log(v), clog(z))                                                                                              \
    X(5, sin(v), csin(z))                                                                                              \
    X(6, cos(v), ccos(z))                                                                                              \
    X(7, tan(v), ctan(z))                                                                                              \
    X(8, asin(v), casin(z))                                                                                            \
    X(9, acos(v), cacos(z))                                                                                            \
    X(10, atan(v), catan(z))                                                                                           \
    X(11, sinh(v), csinh(z))                                                                                           \
    X(12, cosh(v), ccosh(z))                                                                                           \
    X(13, asinh(v), casinh(z))                                                                                         \
    X(14, atanh(v), catanh(z))                                                                                         \
    X(15, rsqrt(v), 1 / csqrt(z))                                                                                      \
    X(16, reciprocal(v), 1 / z)                                                                                        \
    X(17, neg(v), -z)                                                                                                  \
    X(18, conj(v), conj(z))                                                                                            \
    X(19, scale(v, -1.5), -1.5 * z)                                                                                    \
    X(20, affine(v, 2, 0.5), 2 * z + 0.5)                                                                              \
    X(21, div_scalar(v, 3), z / 3)                                                                                     \
    X(22, scalar_div(3, v), 3 / z)                                                                                     \
    X(23, real(v), creal(z))                                                                                           \
    X(24, imag(v), cimag(z))                                                                                           \
    X(25, abs(v), cabs(z))                                                                                             \
    X(26, angle(v), carg(z))                                                                                           \
    X(27, mul(v, trama_conj(v)), z *conj(z))                                                                           \
    X(28, div(v, trama_exp(v)), z / cexp(z))                                                                           \
    X(29, sub(trama_mul(v, v), trama_conj(v)), z *z - conj(z))                                                         \
    X(30, complex(trama_imag(v), trama_real(v)), CMPLX(cimag(z), creal(z)))                                            \
    X(31, cast(trama_real(v), TRAMA_C128), creal(z))                                                                   \
    X(32, tanh(v), ctanh(z))                                                                                           \
    X(33, sigmoid(v), 1 / (1 + cexp(-z)))                                                                              \
    X(34, silu(v), z / (1 + cexp(-z)))                                                                                 \
    X(35, acosh(v), cacosh(z))                                                                                         \
    X(36, exp2(v), cexp(z *log(2)))                                                                                    \
    X(37, expm1(v), cexp(z) - 1)                                                                                       \
    X(38, log1p(v), clog(1 + z))                                                                                       \
    X(39, log2(v), clog(z) / log(2))                                                                                   \
    X(40, log10(v), clog(z) / log(10))

/* z -> f(z) in C, and the same as a value. */
#define OF_C(number, call, formula)                                                                                    \
    static z128 of_c_##number(z128 z)                                                                                  \
    {                                                                                                                  \
        return formula;                                                                                                \
    }                                                                                                                  \
    static trama_value *built_##number(trama_value *v)                                                                 \
    {                                                                                                                  \
        return trama_##call;                                                                                           \
    }
FUNCTIONS(OF_C)

typedef struct function {
    const char *name;
    z128 (*of_c)(z128 z);
    trama_value *(*built)(trama_value *v);
} function;
static const function functions[] = {
#define ROW(number, call, formula) {#call, of_c_##number, built_##number},
    FUNCTIONS(ROW)};

/* The real part of the sum of factor f(x). */
static double sum_in_c(const void *with)
{
    const function *f = with;
    z128 sum = 0;
    for (int i = 0; i < M; i++)
        for (int k = 0; k < K; k++)
            sum += factor * f->of_c(x_at[i][k]);
    return creal(sum);
}

START_TEST(gradients_of_functions_are_slopes_by_both_parts)
{
    start();
    for (size_t f = 0; f < sizeof functions / sizeof *functions; f++) {
        setting s = begin(forms[f % 4]);
        trama_value *y = trama_cast(functions[f].built(s.x), TRAMA_C128);
        trama_value *by = trama_tensor(s.g.p, TRAMA_C128, TRAMA_SCALAR, &factor, s.mesh, "R,R");
        check_gradient(&s, trama_sum(trama_real(trama_mul(y, by))), sum_in_c, &functions[f], functions[f].name);
        end(&s);
    }
    stop();
}
END_TEST

/* The real part of the sum of factor times cumulative sums and products, recurrences and products of rows. */
static double scans_in_c(const void *with)
{
    z128 sum = 0;
    (void)with;
    for (int i = 0; i < M; i++) {
        z128 total = 0, before = 1, y = 0;
        for (int k = 0; k < K; k++) {
            const z128 z = x_at[i][k];
            total += z;
            y = conj(z) + z * y;
            sum += factor * (total + before + y);
            before *= z;
        }
        sum += factor * before;
    }
    return creal(sum);
}

START_TEST(gradients_along_rows_are_slopes_by_both_parts)
{
    start();
    for (int form = 0; form < 4; form++) {
        setting s = begin(forms[form]);
        trama_value *by = trama_tensor(s.g.p, TRAMA_C128, TRAMA_SCALAR, &factor, s.mesh, "R,R");
        trama_value *scans = trama_add(trama_cumsum(s.x, 1), trama_cumprod_over(s.x, 1, true, false));
        trama_value *y = trama_sum(trama_add(scans, trama_recurrence(s.x, trama_conj(s.x), 1, false)));
        y = trama_add(y, trama_sum(trama_prod_over(s.x, TRAMA_DIMS(1), false)));
        check_gradient(&s, trama_real(trama_mul(y, by)), scans_in_c, NULL, "along rows");
        end(&s);
    }
    stop();
}
END_TEST

/* The sum of |op(x) op(x)|. */
static double product_in_c(const void *with)
{
    z128 product[K * K];
    const int n = product_of_pair(with, product);
    double sum = 0;
    for (int i = 0; i < n * n; i++)
        sum += cabs(product[i]);
    return sum;
}

START_TEST(gradients_of_products_are_slopes_by_both_parts)
{
    start();
    for (size_t f = 0; f < sizeof forms / sizeof *forms; f++)
        for (int k = 0; k < N_PAIRS; k++) {
            setting s = begin(forms[f]);
            trama_value *product = trama_matmul_op(s.x, s.x, pairs[k][0], pairs[k][1]);
            check_gradient(&s, trama_sum(trama_abs(product)), product_in_c, pairs[k], "a product");
            end(&s);
        }
    stop();
}
END_TEST

/* Sums, means, repetitions, choices and moves of elements. */
static double moves_in_c(const void *with)
{
    (void)with;
    z128 sum = 0;
    for (int i = 0; i < M; i++)
        for (int k = 0; k < K; k++) {
            z128 mean = 0;
            for (int l = 0; l < M; l++)
                mean += x_at[l][k] / M;
            const z128 centred = x_at[i][k] - mean;
            sum += (i + k) % 2 ? centred * x_at[M - 1 - i][k] : conj(centred);
        }
    return creal(factor * sum);
}

START_TEST(gradients_go_through_sums_choices_and_moves)
{
    bool odd[M][K];
    for (int i = 0; i < M; i++)
        for (int k = 0; k < K; k++)
            odd[i][k] = (i + k) % 2;
    start();
    for (size_t f = 0; f < sizeof forms / sizeof *forms; f++) {
        setting s = begin(forms[f]);
        trama_value *mask = trama_tensor(s.g.p, TRAMA_BOOL, TRAMA_SHAPE(M, K), odd, s.mesh, forms[f]);
        trama_value *by = trama_tensor(s.g.p, TRAMA_C128, TRAMA_SCALAR, &factor, s.mesh, "R,R");
        trama_value *centred = trama_sub(s.x, trama_mean_over(s.x, 1, by_rows, false));
        trama_value *turned = trama_transpose(trama_transpose(trama_flip(s.x, 1, by_rows), NULL), NULL);
        trama_value *y = trama_select(mask, trama_mul(centred, turned), trama_conj(centred));
        check_gradient(&s, trama_real(trama_mul(trama_sum(y), by)), moves_in_c, NULL, "sums and moves");
        end(&s);
    }
    stop();
}
END_TEST

/* ---- Moves by index, joins, shapes and pads; squares of the results are weighted by their places ---- */

enum { WIDE = K + 3 };
static const int64_t picked[] = {4, 0, 4, 2};
enum { PICKED = sizeof picked / sizeof *picked };

static z128 weight(int64_t i)
{
    return CMPLX((double)(i % 5) - 1.5, (double)(i % 3) - 0.75);
}

/* The real part of the sum of weight(i) y_i^2. */
static double weighted(int64_t n, const z128 *y)
{
    z128 sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += weight(i) * y[i] * y[i];
    return creal(sum);
}

static double gather_in_c(const void *with)
{
    z128 y[PICKED][K];
    (void)with;
    for (int i = 0; i < PICKED; i++)
        memcpy(y[i], x_at[picked[i]], sizeof y[i]);
    return weighted(PICKED * K, y[0]);
}

static double scatter_in_c(const void *with)
{
    z128 y[M][K] = {0};
    (void)with;
    for (int i = 0; i < M; i++) /* row i is added to row i % 3 of zeros */
        for (int k = 0; k < K; k++)
            y[i % 3][k] += x_at[i][k];
    return weighted(M * K, y[0]);
}

static double concat_in_c(const void *with)
{
    z128 y[2 * M][K];
    (void)with;
    for (int i = 0; i < M; i++)
        for (int k = 0; k < K; k++) {
            y[i][k] = x_at[i][k];
            y[M + i][k] = conj(x_at[i][k]);
        }
    return weighted((int64_t)2 * M * K, y[0]);
}

static double reshape_in_c(const void *with)
{
    (void)with;
    return weighted(M * K, x_at[0]);
}

/* Two columns before and one behind: `with` is the trama_pad_mode. */
static double pad_in_c(const void *with)
{
    const trama_pad_mode mode = *(const trama_pad_mode *)with;
    z128 y[M][WIDE];
    for (int i = 0; i < M; i++)
        for (int j = 0; j < WIDE; j++) {
            const int k = j - 2, edge = k < 0 ? 0 : k < K ? k : K - 1;
            const int mirrored = k < 0 ? -k : k < K ? k : 2 * (K - 1) - k;
            const int from = mode == TRAMA_PAD_WRAP ? (k + K) % K : mode == TRAMA_PAD_REFLECT ? mirrored : edge;
            y[i][j] = mode == TRAMA_PAD_CONSTANT && k != edge ? 0 : x_at[i][from];
        }
    return weighted((int64_t)M * WIDE, y[0]);
}

static void check_move(setting *s, trama_value *y, loss_function *of_c, const void *with, const char *what)
{
    z128 weights[2 * M * K];
    const int64_t n = trama_shape_count(trama_value_shape(y));
    for (int64_t i = 0; i < n; i++)
        weights[i] = weight(i);
    trama_value *w = trama_tensor(s->g.p, TRAMA_C128, trama_value_shape(y), weights, s->mesh, "R,R");
    check_gradient(s, trama_sum(trama_real(trama_mul(w, trama_square(y)))), of_c, with, what);
}

START_TEST(gradients_of_moves_are_slopes_by_both_parts)
{
    int64_t along[PICKED][K], rows[M];
    for (int i = 0; i < PICKED; i++)
        for (int k = 0; k < K; k++)
            along[i][k] = picked[i];
    for (int i = 0; i < M; i++)
        rows[i] = i % 3;
    start();
    for (int form = 0; form < 4; form++) {
        setting s = begin(forms[form]);
        trama_value *index = trama_tensor(s.g.p, TRAMA_I64, TRAMA_SHAPE(PICKED), picked, s.mesh, "R,R");
        trama_value *indices = trama_tensor(s.g.p, TRAMA_I64, TRAMA_SHAPE(PICKED, K), along, s.mesh, "R,R");
        trama_value *row = trama_tensor(s.g.p, TRAMA_I64, TRAMA_SHAPE(M), rows, s.mesh, "R,R");
        trama_value *zeros = trama_scale(trama_stop_gradient(s.x), 0), *both[] = {s.x, trama_conj(s.x)};
        check_move(&s, trama_gather(s.x, index, 0), gather_in_c, NULL, "gather");
        check_move(&s, trama_gather_along(s.x, indices, 0), gather_in_c, NULL, "gather_along");
        check_move(&s, trama_scatter(zeros, row, s.x, 0, TRAMA_SCATTER_ADD), scatter_in_c, NULL, "scatter");
        check_move(&s, trama_concat(0, 2, both), concat_in_c, NULL, "concat");
        check_move(&s, trama_reshape(s.x, TRAMA_SHAPE(K, M)), reshape_in_c, NULL, "reshape");
        for (trama_pad_mode mode = TRAMA_PAD_CONSTANT; mode <= TRAMA_PAD_WRAP; mode++)
            check_move(&s, trama_pad_with(s.x, 1, 2, 1, mode, 0), pad_in_c, &mode, "a pad");
        end(&s);
    }
    stop();
}
END_TEST

/* PyTorch 2.15: z = 3 - 4i; z.abs().backward() gives z.grad 0.6 - 0.8i, (z**2).real.backward() gives 6 + 8i, and
 * z.imag.backward() gives 1i. */
START_TEST(gradients_are_those_of_pytorch)
{
    start();
    setting s = begin("R,R");
    const z128 at = 3 - 4 * I, wanted[] = {0.6 - 0.8 * I, 6 + 8 * I, I};
    trama_value *z = trama_tensor(s.g.p, TRAMA_C128, TRAMA_SCALAR, &at, s.mesh, "R,R");
    trama_value *losses[] = {trama_abs(z), trama_real(trama_square(z)), trama_imag(z)};
    for (int i = 0; i < 3; i++)
        check(&s, trama_gradient(losses[i], z), 1, &wanted[i], "a gradient of PyTorch's");
    const z128 zero = 0;
    trama_value *o = trama_tensor(s.g.p, TRAMA_C128, TRAMA_SCALAR, &zero, s.mesh, "R,R");
    check(&s, trama_gradient(trama_abs(o), o), 1, &zero, "the gradient of |0|");
    end(&s);
    stop();
}
END_TEST

/* PyTorch 2.15: z = torch.tensor(-0.5+0.25j, dtype=torch.complex128, requires_grad=True); y = torch.tanh(z);
 * y.real.backward(); z.grad, and so on; silu as z * torch.sigmoid(z). */
static const struct {
    const char *name;
    trama_value *(*built)(trama_where where, trama_value *z);
    z128 y, gradient;
} of_torch[] = {
    {"tanh", trama_tanh_at, CMPLX(-0.4854872810241353, 0.19805544995134955),
     CMPLX(0.80352806121922382, -0.19230680377778481)},
    {"sigmoid", trama_sigmoid_at, CMPLX(0.37572483558003877, 0.059002964314508029),
     CMPLX(0.23803703330629072, -0.01466520618290118)},
    {"silu", trama_silu_at, CMPLX(-0.20261315886864639, 0.064429726737755683),
     CMPLX(0.2530400173811681, -0.11117961954963013)},
    {"acosh", trama_acosh_at, CMPLX(0.28139605624529274, 2.0724051800703975),
     CMPLX(-0.16127472062565798, 1.0725361811319973)},
    {"exp2", trama_exp2_at, CMPLX(0.69651670918278119, 0.12191994844646645),
     CMPLX(0.48278859318293615, -0.084508468519682106)},
    {"expm1", trama_expm1_at, CMPLX(-0.41232490965607732, 0.15005808662216327),
     CMPLX(0.58767509034392273, -0.15005808662216327)},
    {"log1p", trama_log1p_at, CMPLX(-0.58157540490284043, 0.46364760900080609),
     CMPLX(1.6000000000000001, 0.80000000000000004)},
    {"log2", trama_log2_at, CMPLX(-0.83903595255631891, 3.8634580356017056),
     CMPLX(-2.3083120654223412, 1.1541560327111706)},
    {"log10", trama_log10_at, CMPLX(-0.25257498915995297, 1.1630167557051545),
     CMPLX(-0.6948711710452028, 0.3474355855226014)},
};

START_TEST(functions_and_their_gradients_are_those_of_pytorch)
{
    const z128 at = -0.5 + 0.25 * I;
    start();
    setting s = begin("R,R");
    trama_value *z = trama_tensor(s.g.p, TRAMA_C128, TRAMA_SCALAR, &at, s.mesh, "R,R");
    for (size_t i = 0; i < sizeof of_torch / sizeof *of_torch; i++) {
        trama_value *y = of_torch[i].built(TRAMA_HERE, z);
        check(&s, y, 1, &of_torch[i].y, of_torch[i].name);
        check(&s, trama_gradient(trama_real(y), z), 1, &of_torch[i].gradient, of_torch[i].name);
    }
    end(&s);
    stop();
}
END_TEST

/* By their series; the sigmoid of -700 + i is e^(-700 + i), that of 800 is 1. */
START_TEST(functions_near_0_and_far_out_keep_their_digits)
{
    const z128 z = 1e-9 - 2e-9 * I, far[] = {-700 + I, 800 - I};
    const z128 less_1 = z + z * z / 2, log_1 = z - z * z / 2, far_out[] = {cexp(far[0]), 1};
    start();
    setting s = begin("R,R");
    trama_value *small = trama_tensor(s.g.p, TRAMA_C128, TRAMA_SCALAR, &z, s.mesh, "R,R");
    trama_value *large = trama_tensor(s.g.p, TRAMA_C128, TRAMA_SHAPE(2), far, s.mesh, "R,R");
    trama_value *made[] = {trama_expm1(small), trama_log1p(small)};
    const z128 wanted[] = {less_1, log_1};
    for (int i = 0; i < 2; i++) {
        z128 is;
        must(trama_read(s.g.e, made[i], &is, sizeof is));
        demand(cabs(is - wanted[i]) <= 1e-15 * cabs(wanted[i]), "%s of 1e-9 is %.17g%+.17gi", i ? "log1p" : "expm1",
               creal(is), cimag(is));
    }
    check(&s, trama_sigmoid(large), 2, far_out, "the sigmoid far out");
    end(&s);
    stop();
}
END_TEST

/* ---- Second derivatives: the real part of the sum of c conj(factor f'(z)), which is the gradient above ---- */

#define SLOPES(X)                                                                                                      \
    X(101, tanh(v), 1 / (ccosh(z) * ccosh(z)))                                                                         \
    X(102, sigmoid(v), cexp(-z) / ((1 + cexp(-z)) * (1 + cexp(-z))))                                                   \
    X(103, silu(v), (1 + cexp(-z) * (1 + z)) / ((1 + cexp(-z)) * (1 + cexp(-z))))                                      \
    X(104, acosh(v), 1 / (csqrt(z - 1) * csqrt(z + 1)))                                                                \
    X(105, log1p(v), 1 / (1 + z))                                                                                      \
    X(106, exp2(v), log(2) * cexp(z * log(2)))                                                                         \
    X(107, sqrt(v), 0.5 / csqrt(z))                                                                                    \
    X(108, sin(v), ccos(z))                                                                                            \
    X(109, mul(v, trama_exp(v)), (1 + z) * cexp(z))
SLOPES(OF_C)
static const function slopes[] = {SLOPES(ROW)};

static double slopes_in_c(const void *with)
{
    const function *f = with;
    z128 sum = 0;
    for (int i = 0; i < M; i++)
        for (int k = 0; k < K; k++)
            sum += factor * conj(factor * f->of_c(x_at[i][k]));
    return creal(sum) + cimag(sum);
}

START_TEST(second_derivatives_are_slopes_of_slopes)
{
    start();
    for (size_t f = 0; f < sizeof slopes / sizeof *slopes; f++) {
        setting s = begin(forms[f % 4]);
        trama_value *by = trama_tensor(s.g.p, TRAMA_C128, TRAMA_SCALAR, &factor, s.mesh, "R,R");
        trama_value *y = trama_sum(trama_real(trama_mul(slopes[f].built(s.x), by)));
        trama_value *sum = trama_sum(trama_mul(trama_gradient(y, s.x), by));
        check_gradient(&s, trama_add(trama_real(sum), trama_imag(sum)), slopes_in_c, &slopes[f], slopes[f].name);
        end(&s);
    }
    stop();
}
END_TEST

/* A parameter that descends along its gradient in a compiled program finds the least of |w - c|^2. */
START_TEST(a_complex_parameter_descends)
{
    start();
    trama_mesh *mesh = mesh_of("dp=2,mp=2");
    trama_program *p = trama_program_create();
    const trama_c64 target[6] = {CMPLXF(1, -2), CMPLXF(0, 3), CMPLXF(-1, -1), 2, CMPLXF(0, -1), 0};
    trama_c64 found[6];
    trama_value *w = trama_shard(trama_parameter(p, "w", TRAMA_C64, TRAMA_SHAPE(6), NULL), mesh, "S(0),R");
    trama_value *c = trama_constant(p, TRAMA_C64, TRAMA_SHAPE(6), target);
    trama_value *loss = trama_sum(trama_square(trama_abs(trama_sub(w, c))));
    trama_value *next = trama_sub(w, trama_scale(trama_gradient(loss, w), 0.25));
    trama_target *step = trama_target_create(p, "step", trama_assign(w, next), loss);
    trama_executable *e = compile(p);
    for (int i = 0; i < 30; i++)
        must(trama_run(e, step));
    must(trama_read(e, w, found, sizeof found));
    for (int i = 0; i < 6; i++)
        demand(cabsf(found[i] - target[i]) < 1e-6F, "w[%d] is %g%+gi", i, crealf(found[i]), cimagf(found[i]));
    must(trama_executable_destroy(&e));
    trama_program_destroy(&p);
    trama_mesh_destroy(&mesh);
    stop();
}
END_TEST

TESTS(arithmetic_parts_and_sums_are_those_of_c, products_read_their_operands_in_all_ways,
      real_products_take_the_adjoint_as_the_transposed, gradients_of_functions_are_slopes_by_both_parts,
      gradients_along_rows_are_slopes_by_both_parts, gradients_of_products_are_slopes_by_both_parts,
      gradients_go_through_sums_choices_and_moves, gradients_are_those_of_pytorch,
      gradients_of_moves_are_slopes_by_both_parts, functions_and_their_gradients_are_those_of_pytorch,
      functions_near_0_and_far_out_keep_their_digits, second_derivatives_are_slopes_of_slopes,
      a_complex_parameter_descends)
