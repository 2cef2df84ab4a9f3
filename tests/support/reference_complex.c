/* SPDX-License-Identifier: Apache-2.0 */
/* Reference ops of complex numbers. Those that are linear in each part run once for the real parts and once for the
 * imaginary ones, as of real numbers; the others are here. */
#include <complex.h>

#include "reference_inside.h"

typedef double _Complex z128;

enum { MOST_PRODUCTS = 1 << 14 }; /* elements of a product */

static bool is_complex(const trama_view *v)
{
    return trama_dtype_kind_of(v->dtype) == TRAMA_KIND_COMPLEX;
}

static z128 get_complex(const trama_call *call, int operand, const point *i)
{
    const double *at = element(call, &call->in[operand], i);
    return CMPLX(at[0], is_complex(&call->in[operand]) ? at[1] : 0);
}

static void put_complex(const trama_call *call, int result, const point *i, z128 z)
{
    double *at = element(call, &call->out[result], i);
    at[0] = creal(z);
    if (is_complex(&call->out[result]))
        at[1] = cimag(z);
}

/* ---- Parts ---- */

static trama_view part_of(const trama_view *v, int part)
{
    trama_view p = *v;
    if (!is_complex(v))
        return p;
    p.dtype = TRAMA_F64;
    p.data = p.data ? (double *)p.data + part : NULL;
    for (int d = 0; d < p.ndim; d++)
        p.stride[d] *= 2;
    return p;
}

static void run_on_parts(const trama_call *call, void (*run)(const trama_call *call))
{
    trama_view in[TRAMA_MAX_OPERANDS], out[TRAMA_MAX_OPERANDS];
    trama_call real = *call;
    real.in = in;
    real.out = out;
    for (int part = 0; part < 2; part++) {
        for (int i = 0; i < call->n_in; i++)
            in[i] = part_of(&call->in[i], part);
        for (int o = 0; o < call->n_out; o++)
            out[o] = part_of(&call->out[o], part);
        run(&real);
    }
}

/* ---- Pointwise ---- */

typedef z128 complex_formula(const trama_call *c, const z128 *x);

static void run_formula(const trama_call *call, complex_formula *f)
{
    point i;
    for (int t = 0; t < call->n_in; t++)
        agree_all(call, &call->in[t], &call->out[0], 0);
    FOR_EACH(&call->out[0], &i)
    {
        z128 x[TRAMA_MAX_OPERANDS] = {0};
        for (int t = 0; t < call->n_in; t++)
            x[t] = get_complex(call, t, &i);
        put_complex(call, 0, &i, f(call, x));
    }
}

#define FORMULAS(X)                                                                                                    \
    X(mul, CMPLX(creal(x[0]) * creal(x[1]) - cimag(x[0]) * cimag(x[1]),                                                \
                 creal(x[0]) * cimag(x[1]) + cimag(x[0]) * creal(x[1])))                                               \
    X(div, x[0] / x[1])                                                                                                \
    X(equal, x[0] == x[1])                                                                                             \
    X(not_equal, x[0] != x[1])                                                                                         \
    X(logical_and, cabs(x[0]) > 0 && cabs(x[1]) > 0)                                                                   \
    X(logical_or, cabs(x[0]) > 0 || cabs(x[1]) > 0)                                                                    \
    X(logical_xor, (cabs(x[0]) > 0) != (cabs(x[1]) > 0))                                                               \
    X(logical_not, creal(x[0]) == 0 && cimag(x[0]) == 0)                                                               \
    X(isnan, isnan(creal(x[0])) || isnan(cimag(x[0])))                                                                 \
    X(isinf, isinf(creal(x[0])) || isinf(cimag(x[0])))                                                                 \
    X(isfinite, isfinite(creal(x[0])) && isfinite(cimag(x[0])))                                                        \
    X(square, x[0] * x[0])                                                                                             \
    X(sqrt, csqrt(x[0]))                                                                                               \
    X(exp, exp(creal(x[0])) * CMPLX(cos(cimag(x[0])), sin(cimag(x[0]))))                                               \
    X(log, CMPLX(log(hypot(creal(x[0]), cimag(x[0]))), carg(x[0])))                                                    \
    X(sin, (cexp(I * x[0]) - cexp(-I * x[0])) / (2 * I))                                                               \
    X(cos, (cexp(I * x[0]) + cexp(-I * x[0])) / 2)                                                                     \
    X(tan, csin(x[0]) / ccos(x[0]))                                                                                    \
    X(asin, casin(x[0]))                                                                                               \
    X(acos, cacos(x[0]))                                                                                               \
    X(atan, catan(x[0]))                                                                                               \
    X(sinh, (cexp(x[0]) - cexp(-x[0])) / 2)                                                                            \
    X(cosh, (cexp(x[0]) + cexp(-x[0])) / 2)                                                                            \
    X(asinh, casinh(x[0]))                                                                                             \
    X(acosh, clog(x[0] + csqrt(x[0] + 1) * csqrt(x[0] - 1)))                                                           \
    X(tanh, 1 - 2 / (cexp(2 * x[0]) + 1))                                                                              \
    X(tanh_grad, x[0] * (1 - x[1]) * (1 + x[1]))                                                                       \
    X(sigmoid, 1 / (1 + cexp(-x[0])))                                                                                  \
    X(sigmoid_grad, x[0] * x[1] * (1 - x[1]))                                                                          \
    X(silu, x[0] / (1 + cexp(-x[0])))                                                                                  \
    X(silu_grad, x[0] * (1 + cexp(-x[1]) * (1 + x[1])) / ((1 + cexp(-x[1])) * (1 + cexp(-x[1]))))                      \
    X(exp2, cpow(2, x[0]))                                                                                             \
    X(expm1, cexp(x[0]) - 1)                                                                                           \
    X(log1p, clog(1 + x[0]))                                                                                           \
    X(log2, clog(x[0]) / log(2))                                                                                       \
    X(log10, clog(x[0]) / log(10))                                                                                     \
    X(atanh, catanh(x[0]))                                                                                             \
    X(rsqrt, 1 / csqrt(x[0]))                                                                                          \
    X(reciprocal, conj(x[0]) / (creal(x[0]) * creal(x[0]) + cimag(x[0]) * cimag(x[0])))                                \
    X(affine, x[0] * real(c, SCALE_FACTOR) + real(c, AFFINE_OFFSET))                                                   \
    X(scalar_div, real(c, SCALAR_NUMBER) / x[0])                                                                       \
    X(pow, cexp(x[1] * clog(x[0])))                                                                                    \
    X(pow_slope_x, x[1] * cexp((x[1] - 1) * clog(x[0])))                                                               \
    X(pow_slope_y, clog(x[0]) * cexp(x[1] * clog(x[0])))                                                               \
    X(increment, x[0] + 1)                                                                                             \
    X(cast, x[0])                                                                                                      \
    X(conj, CMPLX(creal(x[0]), -cimag(x[0])))                                                                          \
    X(real, creal(x[0]))                                                                                               \
    X(imag, cimag(x[0]))                                                                                               \
    X(magnitude, hypot(creal(x[0]), cimag(x[0])))                                                                      \
    X(complex_of, CMPLX(creal(x[0]), creal(x[1])))
#define FORMULA_OF(name, formula)                                                                                      \
    static z128 name##_of(const trama_call *c, const z128 *x)                                                          \
    {                                                                                                                  \
        (void)c;                                                                                                       \
        return formula;                                                                                                \
    }
FORMULAS(FORMULA_OF)

/* ---- matmul ---- */

/* One product of matrices a conjugate at a time: the real part of x y of real matrices, four times. */
static void run_product(const trama_call *call, void (*run)(const trama_call *call))
{
    const bool conjugate[2] = {integer(call, MATMUL_TRANS_X) == TRAMA_CONJ_TRANS,
                               integer(call, MATMUL_TRANS_Y) == TRAMA_CONJ_TRANS};
    int64_t n = 1;
    for (int d = 0; d < call->out[0].ndim; d++)
        n *= call->out[0].extent[d];
    static double products[4 * MOST_PRODUCTS]; /* an attempt may end in any of the four */
    if (n > MOST_PRODUCTS)
        impossible(call, "the reference has no room for it");
    for (int k = 0; k < 4; k++) { /* parts k / 2 of x and k % 2 of y */
        trama_view in[2] = {part_of(&call->in[0], k / 2), part_of(&call->in[1], k % 2)}, out = call->out[0];
        int64_t stride = 1;
        out.dtype = TRAMA_F64;
        out.data = products + k * n;
        for (int d = out.ndim - 1; d >= 0; d--) {
            out.stride[d] = stride;
            stride *= out.extent[d];
        }
        trama_call real = *call;
        real.in = in;
        real.out = &out;
        run(&real);
    }
    const double x = conjugate[0] ? -1 : 1, y = conjugate[1] ? -1 : 1;
    int64_t k = 0;
    point i;
    FOR_EACH(&call->out[0], &i)
    {
        put_complex(call, 0, &i,
                    CMPLX(products[k] - x * y * products[3 * n + k], y * products[n + k] + x * products[2 * n + k]));
        k++;
    }
}

/* ---- Fourier transforms, by their definition ---- */

/* The sum over j of x_j e^(sign 2 pi i j k / n) for the element of the result; of a half of a spectrum the conjugates
 * of its inner elements count too. */
static void run_transform(const trama_call *call, double sign, int64_t n, int64_t terms)
{
    const int axis = (int)integer(call, FOURIER_AXIS);
    const trama_view *x = &call->in[0], *out = &call->out[0];
    const bool to_real = !is_complex(out), to_half = !is_complex(x);
    if (x->extent[axis] != x->global[axis] || out->extent[axis] != out->global[axis])
        impossible(call, "the dim that is transformed is not whole");
    for (int d = 0; d < x->ndim; d++)
        if (d != axis)
            agree(call, x, d, out, d);
    point i;
    FOR_EACH(out, &i)
    {
        const int64_t k = i.at[axis];
        z128 sum = 0;
        point j = i;
        for (j.at[axis] = 0; j.at[axis] < terms; j.at[axis]++) {
            const double angle = sign * 2 * acos(-1) * (double)(j.at[axis] * k % n) / (double)n;
            const bool end = j.at[axis] == 0 || 2 * j.at[axis] == n;
            const z128 term = get_complex(call, 0, &j) * CMPLX(cos(angle), sin(angle));
            sum += to_real
                       ? (end ? creal(get_complex(call, 0, &j)) * cos(angle) : real(call, FOURIER_INNER) * creal(term))
                       : term;
        }
        const bool end = k == 0 || 2 * k == n;
        put_complex(call, 0, &i, real(call, FOURIER_FACTOR) * (to_half && !end ? real(call, FOURIER_INNER) : 1) * sum);
    }
}

static bool run_fourier(const trama_call *call)
{
    const int axis = (int)integer(call, FOURIER_AXIS);
    const int64_t terms = call->in[0].global[axis];
    if (call->op == &trama_op_fft)
        run_transform(call, integer(call, FOURIER_INVERSE) ? 1 : -1, terms, terms);
    else if (call->op == &trama_op_rfft)
        run_transform(call, -1, integer(call, FOURIER_EXTENT), terms);
    else if (call->op == &trama_op_irfft)
        run_transform(call, 1, integer(call, FOURIER_EXTENT), terms);
    else
        return false;
    return true;
}

/* ---- Products of many ---- */

/* Element number k of the line through i, in the order of the op. */
static z128 scanned_element(const trama_call *call, int operand, point i, int64_t k)
{
    const int axis = (int)integer(call, SCAN_AXIS);
    i.at[axis] = integer(call, SCAN_REVERSE) ? call->in[0].global[axis] - 1 - k : k;
    return get_complex(call, operand, &i);
}

/* y_i = b_i + a_i y_j, one after the other: with b = 0 behind y_0 = 1, a product. */
static bool run_scan(const trama_call *call)
{
    const bool product = call->op == &trama_op_cumprod, late = !product && integer(call, SCAN_LATE);
    const int axis = (int)integer(call, SCAN_AXIS);
    point i;
    if (!product && call->op != &trama_op_recurrence)
        return false;
    if (call->in[0].extent[axis] != call->in[0].global[axis])
        impossible(call, "a dim that must be whole is not");
    FOR_EACH(&call->out[0], &i)
    {
        const int64_t at = integer(call, SCAN_REVERSE) ? call->in[0].global[axis] - 1 - i.at[axis] : i.at[axis];
        z128 y = product;
        for (int64_t k = 0; k < at + !integer(call, SCAN_EXCLUSIVE); k++) {
            const z128 a = late && k == 0 ? 0 : scanned_element(call, 0, i, k - late);
            y = y * a + (product ? 0 : scanned_element(call, 1, i, k));
        }
        put_complex(call, 0, &i, y);
    }
    return true;
}

static bool run_product_over_dims(const trama_call *call)
{
    point i;
    if (call->op != &trama_op_prod)
        return false;
    agree_kept(call, &call->in[0], &call->out[0]);
    FOR_EACH(&call->out[0], &i)
    put_complex(call, 0, &i, 1);
    FOR_EACH(&call->in[0], &i)
    {
        const point r = reduced(call, &i);
        const double *at = element(call, &call->out[0], &r);
        put_complex(call, 0, &r, CMPLX(at[0], at[1]) * get_complex(call, 0, &i));
    }
    return true;
}

static bool run_square_over_dims(const trama_call *call)
{
    point i;
    if (call->op != &trama_op_sum_square)
        return false;
    agree_kept(call, &call->in[0], &call->out[0]);
    FOR_EACH(&call->out[0], &i)
    put_complex(call, 0, &i, 0);
    FOR_EACH(&call->in[0], &i)
    {
        const point r = reduced(call, &i);
        const z128 z = get_complex(call, 0, &i);
        *element(call, &call->out[0], &r) += creal(z * conj(z));
    }
    return true;
}

/* ---- Which is which ---- */

/* Ops without complex numbers in them, whatever types they are given. */
#define NEVER(name)                                                                                                    \
    void run_##name(const trama_call *call)                                                                            \
    {                                                                                                                  \
        impossible(call, "its operands are complex");                                                                  \
    }
NEVER(conj)
NEVER(real)
NEVER(imag)
NEVER(magnitude)
NEVER(complex_of)
NEVER(fft)
NEVER(rfft)
NEVER(irfft)

bool run_complex(const trama_call *call, void (*run)(const trama_call *call))
{
    static const struct {
        const trama_op *op;
        complex_formula *formula;
    } formulas[] = {
#define ROW(name, formula) {&trama_op_##name, name##_of},
        FORMULAS(ROW)};
    bool has = false;
    for (int i = 0; i < call->n_in; i++)
        has |= is_complex(&call->in[i]);
    for (int o = 0; o < call->n_out; o++)
        has |= is_complex(&call->out[o]);
    if (!has)
        return false;
    for (size_t i = 0; i < sizeof formulas / sizeof *formulas; i++)
        if (formulas[i].op == call->op)
            return run_formula(call, formulas[i].formula), true;
    if (call->op == &trama_op_matmul)
        run_product(call, run);
    else if (!run_fourier(call) && !run_scan(call) && !run_product_over_dims(call) &&
             !run_square_over_dims(call))
        run_on_parts(call, run);
    return true;
}
