/* SPDX-License-Identifier: Apache-2.0 */
/* Activations against their definitions in double, gradients against central differences of these. */
#include "views.h"

static double relu(double x)
{
    return x > 0 ? x : 0;
}
static double gelu(double x)
{
    return x / 2 * (1 + erf(x / sqrt(2)));
}
static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

static void check_activation(const char *name, bool integers, double (*expected)(double), double units)
{
    for (int dtype = 0; dtype < TRAMA_N_DTYPES; dtype = next_number(dtype))
        for (int orders = 0; orders < N_ORDERS * N_ORDERS; orders++) {
            if (!integers && !trama_dtype_is_float((trama_dtype)dtype))
                continue;
            tensor x = tensor_random((trama_dtype)dtype, (order)(orders / N_ORDERS), TRAMA_SHAPE(6, 19), 1);
            tensor y = tensor_new((trama_dtype)dtype, (order)(orders % N_ORDERS), TRAMA_SHAPE(6, 19));
            run_unary(name, NULL, &y, &x);
            FOR_EACH(&y, i)
            ck_near((trama_dtype)dtype, at(&y, i), expected(at(&x, i)), units);
            ck_assert(outside_untouched(&y));
            tensor_free(&x);
            tensor_free(&y);
        }
}

START_TEST(activations_follow_their_definitions)
{
    check_activation("relu", true, relu, 0);
    check_activation("tanh", false, tanh, 8);
    check_activation("sigmoid", false, sigmoid, 8);
    check_activation("gelu", false, gelu, 16);
}
END_TEST

/* Central differences of step h err by about h^2 and 1e-16/h: 1e-9 with h = 1e-5. Values of relu are not at 0. Halves
 * round x, of up to 9, or f(x), by 2^-8 and 2^-11 of it, and the result. */
static const double tolerances[TRAMA_N_DTYPES] = {
    [TRAMA_F32] = 2e-6, [TRAMA_F64] = 2e-9, [TRAMA_BF16] = 4e-2, [TRAMA_F16] = 5e-3};

static void check_gradient(const char *name, double (*f)(double), bool of_result)
{
    for (int dtype = 0; dtype < TRAMA_N_DTYPES; dtype = next_float(dtype))
        for (int orders = 0; orders < N_ORDERS * N_ORDERS; orders++) {
            tensor g = tensor_random((trama_dtype)dtype, (order)(orders / N_ORDERS), TRAMA_SHAPE(4, 23), 2);
            tensor x = tensor_random(TRAMA_F64, PACKED, TRAMA_SHAPE(4, 23), 3);
            tensor known = tensor_new((trama_dtype)dtype, (order)(orders % N_ORDERS), TRAMA_SHAPE(4, 23));
            tensor out = tensor_new((trama_dtype)dtype, SPARSE, TRAMA_SHAPE(4, 23));
            FOR_EACH(&x, i)
            {
                put(&x, i, at(&x, i) == 0 ? 0.5 : at(&x, i));
                put(&known, i, of_result ? f(at(&x, i)) : at(&x, i));
            }
            run_binary(name, NULL, &out, &g, &known);
            FOR_EACH(&out, i)
            {
                const double h = 1e-5, slope = (f(at(&x, i) + h) - f(at(&x, i) - h)) / (2 * h);
                const double want = at(&g, i) * slope, tolerance = tolerances[dtype];
                ck_assert_double_eq_tol(at(&out, i), want, tolerance * (1 + fabs(at(&g, i))));
            }
            ck_assert(outside_untouched(&out));
            tensor_free(&g);
            tensor_free(&x);
            tensor_free(&known);
            tensor_free(&out);
        }
}

START_TEST(gradients_are_the_slopes)
{
    check_gradient("relu_grad", relu, true);
    check_gradient("gelu_grad", gelu, false);
    check_gradient("tanh_grad", tanh, true);
    check_gradient("sigmoid_grad", sigmoid, true);
}
END_TEST

static double silu_slope(double x)
{
    const double s = 1 / (1 + exp(-x)), rest = 1 / (1 + exp(x));
    return s * (1 + x * rest);
}

static double mish_slope(double x)
{
    const double above = log1p(exp(x)), t = tanh(above), cosh_inverse = 1 / cosh(above);
    return t + x * cosh_inverse * cosh_inverse / (1 + exp(-x));
}

/* Where the sigmoid or tanh rounds to nearly 1, x times what is missing to 1 still counts. */
START_TEST(slopes_far_out_have_all_digits)
{
    static const struct {
        const char *name;
        double (*slope)(double);
    } slopes[] = {{"silu_grad", silu_slope}, {"mish_grad", mish_slope}};
    enum { POINTS = 4001 };
    tensor x = tensor_new(TRAMA_F32, PACKED, TRAMA_SHAPE(POINTS)),
           g = tensor_new(TRAMA_F32, PACKED, TRAMA_SHAPE(POINTS));
    for (int of = 0; of < 2; of++) {
        for (int i = 0; i < POINTS; i++)
            PUT(&x, (i - POINTS / 2) * 0.01, i), PUT(&g, 1, i);
        run_binary(slopes[of].name, NULL, &g, &g, &x);
        for (int i = 0; i < POINTS; i++)
            ck_near(TRAMA_F32, AT(&g, i), slopes[of].slope(AT(&x, i)), 6);
    }
    tensor_free(&x);
    tensor_free(&g);
}
END_TEST

START_TEST(relu_keeps_nan_and_its_gradient_blocks_what_is_not_positive)
{
    for (int dtype = 0; dtype < TRAMA_N_DTYPES; dtype = next_float(dtype)) {
        tensor x = tensor_new((trama_dtype)dtype, PACKED, TRAMA_SHAPE(4)),
               g = tensor_new((trama_dtype)dtype, PACKED, TRAMA_SHAPE(4));
        const double values[] = {NAN, -0.0, INFINITY, -INFINITY};
        for (int i = 0; i < 4; i++)
            PUT(&x, values[i], i), PUT(&g, i == 3 ? NAN : 7, i);
        run_binary("relu_grad", NULL, &g, &g, &x);
        ck_assert(AT(&g, 0) == 0 && AT(&g, 1) == 0 && AT(&g, 2) == 7 && AT(&g, 3) == 0);
        run_unary("relu", NULL, &x, &x);
        ck_assert(isnan(AT(&x, 0)) && AT(&x, 1) == 0 && !signbit(AT(&x, 1)) && AT(&x, 2) == INFINITY && AT(&x, 3) == 0);
        tensor_free(&x);
        tensor_free(&g);
    }
}
END_TEST

START_TEST(relu_grad_holds_in_integer_types)
{
    for (int dtype = 0; dtype < TRAMA_N_DTYPES; dtype = next_number(dtype)) {
        tensor g = tensor_random((trama_dtype)dtype, TURNED, TRAMA_SHAPE(5, 6), 1);
        tensor y = tensor_random((trama_dtype)dtype, BLOCK, TRAMA_SHAPE(5, 6), 2);
        tensor out = tensor_new((trama_dtype)dtype, PACKED, TRAMA_SHAPE(5, 6));
        run_binary("relu_grad", NULL, &out, &g, &y);
        FOR_EACH(&out, i)
        ck_assert(at(&out, i) == (at(&y, i) > 0 ? at(&g, i) : 0));
        tensor_free(&g);
        tensor_free(&y);
        tensor_free(&out);
    }
}
END_TEST

START_TEST(activations_do_not_overflow_far_out)
{
    for (int dtype = 0; dtype < TRAMA_N_DTYPES; dtype = next_float(dtype)) {
        tensor x = tensor_new((trama_dtype)dtype, PACKED, TRAMA_SHAPE(5)),
               y = tensor_new((trama_dtype)dtype, PACKED, TRAMA_SHAPE(5));
        const double values[] = {1e4, -1e4, INFINITY, -INFINITY, NAN};
        for (int i = 0; i < 5; i++)
            PUT(&x, values[i], i);
        run_unary("sigmoid", NULL, &y, &x);
        ck_assert(AT(&y, 0) == 1 && AT(&y, 1) == 0 && AT(&y, 2) == 1 && AT(&y, 3) == 0 && isnan(AT(&y, 4)));
        run_unary("tanh", NULL, &y, &x);
        ck_assert(AT(&y, 0) == 1 && AT(&y, 1) == -1 && AT(&y, 2) == 1 && AT(&y, 3) == -1 && isnan(AT(&y, 4)));
        run_unary("gelu", NULL, &y, &x);
        ck_assert(AT(&y, 0) == AT(&x, 0) && AT(&y, 1) == 0 && AT(&y, 2) == INFINITY && isnan(AT(&y, 4)));
        tensor_free(&x);
        tensor_free(&y);
    }
}
END_TEST

RUN_TESTS("activation", activations_follow_their_definitions, gradients_are_the_slopes, slopes_far_out_have_all_digits,
          relu_keeps_nan_and_its_gradient_blocks_what_is_not_positive, relu_grad_holds_in_integer_types,
          activations_do_not_overflow_far_out)
