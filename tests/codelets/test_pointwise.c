/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic, casts and comparison against naive loops in double. */
#include "views.h"

static double plus(double x, double y)
{
    return x + y;
}
static double minus(double x, double y)
{
    return x - y;
}
static double times(double x, double y)
{
    return x * y;
}
static double over(double x, double y)
{
    return x / y;
}
static double whole_over(double x, double y)
{
    return y == 0 ? 0 : trunc(x / y);
}

static const struct {
    int out, x, y; /* ndim */
    int64_t out_dim[4], x_dim[4], y_dim[4];
} broadcasts[] = {
    {0, 0, 0, {0}, {0}, {0}},
    {1, 1, 1, {37}, {37}, {37}},
    {1, 1, 0, {5}, {5}, {0}},
    {2, 2, 1, {7, 33}, {7, 33}, {33}},
    {2, 1, 2, {7, 33}, {33}, {7, 33}},
    {2, 2, 2, {7, 33}, {7, 33}, {7, 1}},
    {2, 2, 2, {7, 33}, {1, 33}, {7, 1}},
    {3, 3, 2, {3, 1, 5}, {3, 1, 5}, {1, 5}},
    {4, 3, 4, {2, 3, 4, 5}, {3, 1, 5}, {2, 1, 4, 1}},
    {2, 2, 1, {0, 5}, {0, 5}, {5}},
    {2, 2, 2, {5, 0}, {5, 0}, {1, 0}},
    {1, 2, 1, {19}, {1, 19}, {19}},
};
enum { N_BROADCASTS = sizeof broadcasts / sizeof broadcasts[0] };

static void check_binary(const char *name, trama_dtype dtype, int b, int orders, double (*expected)(double, double))
{
    const trama_shape out_shape = trama_shape_of(broadcasts[b].out, broadcasts[b].out_dim);
    tensor out = tensor_new(dtype, (order)(orders % N_ORDERS), out_shape);
    tensor x = tensor_random(dtype, (order)(orders / N_ORDERS % N_ORDERS),
                             trama_shape_of(broadcasts[b].x, broadcasts[b].x_dim), 1);
    tensor y = tensor_random(dtype, (order)(orders / N_ORDERS / N_ORDERS),
                             trama_shape_of(broadcasts[b].y, broadcasts[b].y_dim), 2);

    run_binary(name, NULL, &out, &x, &y);
    FOR_EACH(&out, i)
    ck_near(dtype, at(&out, i), element_wrapped(dtype, expected(at_broadcast(&x, &out, i), at_broadcast(&y, &out, i))),
            1);
    ck_assert(outside_untouched(&out));
    tensor_free(&out);
    tensor_free(&x);
    tensor_free(&y);
}

static void check_binary_everywhere(const char *name, double (*real)(double, double), double (*whole)(double, double))
{
    for (int dtype = 0; dtype < TRAMA_N_DTYPES; dtype = next_number(dtype))
        for (int b = 0; b < N_BROADCASTS; b++)
            for (int orders = 0; orders < N_ORDERS * N_ORDERS * N_ORDERS; orders += 3)
                check_binary(name, (trama_dtype)dtype, b, orders,
                             trama_dtype_is_float((trama_dtype)dtype) ? real : whole);
}

START_TEST(add_broadcasts_in_every_type_and_memory_order)
{
    check_binary_everywhere("add", plus, plus);
}
END_TEST

START_TEST(sub_broadcasts_in_every_type_and_memory_order)
{
    check_binary_everywhere("sub", minus, minus);
}
END_TEST

START_TEST(mul_broadcasts_in_every_type_and_memory_order)
{
    check_binary_everywhere("mul", times, times);
}
END_TEST

START_TEST(div_broadcasts_and_integers_truncate_and_give_0_by_0)
{
    check_binary_everywhere("div", over, whole_over);
}
END_TEST

START_TEST(integers_wrap_on_overflow)
{
    tensor a = tensor_new(TRAMA_I32, PACKED, TRAMA_SHAPE(1)), b = tensor_new(TRAMA_I32, PACKED, TRAMA_SHAPE(1));
    PUT(&a, INT32_MIN, 0);
    PUT(&b, -1, 0);
    run_binary("div", NULL, &a, &a, &b);
    ck_assert(AT(&a, 0) == INT32_MIN);
    run_binary("add", NULL, &a, &a, &b);
    ck_assert(AT(&a, 0) == INT32_MAX);
    run_binary("mul", NULL, &a, &a, &a);
    ck_assert(AT(&a, 0) == 1); /* (2^31-1)^2 = 2^62 - 2^32 + 1 */
    PUT(&a, INT32_MIN, 0);
    run_unary("abs", NULL, &a, &a);
    ck_assert(AT(&a, 0) == INT32_MIN);
    tensor_free(&a);
    tensor_free(&b);
}
END_TEST

static double opposite(double x)
{
    return -x;
}
static double sign_of(double x)
{
    return isnan(x) ? x : (x > 0) - (x < 0);
}
static double squared(double x)
{
    return x * x;
}

static void check_unary(const char *name, bool floats_only, bool positive, double (*expected)(double), double units)
{
    const trama_shape shapes[] = {TRAMA_SCALAR, TRAMA_SHAPE(41), TRAMA_SHAPE(5, 7), TRAMA_SHAPE(3, 2, 9),
                                  TRAMA_SHAPE(4, 0, 2)};
    for (int dtype = 0; dtype < TRAMA_N_DTYPES; dtype = next_number(dtype))
        for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++)
            for (int orders = 0; orders < N_ORDERS * N_ORDERS; orders++) {
                if (floats_only && !trama_dtype_is_float((trama_dtype)dtype))
                    continue;
                tensor x = tensor_random((trama_dtype)dtype, (order)(orders / N_ORDERS), shapes[s], 3);
                tensor out = tensor_new((trama_dtype)dtype, (order)(orders % N_ORDERS), shapes[s]);
                if (positive)
                    FOR_EACH(&x, i)
                put(&x, i, fabs(at(&x, i)));
                run_unary(name, NULL, &out, &x);
                FOR_EACH(&out, i)
                ck_near((trama_dtype)dtype, at(&out, i), element_wrapped((trama_dtype)dtype, expected(at(&x, i))),
                        units);
                ck_assert(outside_untouched(&out));
                tensor_free(&x);
                tensor_free(&out);
            }
}

START_TEST(unary_arithmetic_holds_in_every_type_and_memory_order)
{
    check_unary("neg", false, false, opposite, 0);
    check_unary("abs", false, false, fabs, 0);
    check_unary("sign", false, false, sign_of, 0);
    check_unary("square", false, false, squared, 1);
    check_unary("sqrt", true, true, sqrt, 1);
}
END_TEST

/* libm promises no bound; glibc stays within 2 units in the last place, that is 4 roundings */
START_TEST(exp_and_log_are_those_of_double)
{
    check_unary("exp", true, false, exp, 4);
    check_unary("log", true, true, log, 4);
}
END_TEST

START_TEST(special_values_follow_ieee)
{
    for (int dtype = 0; dtype < TRAMA_N_DTYPES; dtype = next_float(dtype)) {
        tensor x = tensor_new((trama_dtype)dtype, PACKED, TRAMA_SHAPE(5)),
               y = tensor_new((trama_dtype)dtype, PACKED, TRAMA_SHAPE(5));
        const double values[] = {0, -0.0, INFINITY, -INFINITY, NAN};
        for (int i = 0; i < 5; i++)
            PUT(&x, values[i], i);
        run_unary("sign", NULL, &y, &x);
        ck_assert(AT(&y, 0) == 0 && AT(&y, 1) == 0 && AT(&y, 2) == 1 && AT(&y, 3) == -1 && isnan(AT(&y, 4)));
        run_unary("exp", NULL, &y, &x);
        ck_assert(AT(&y, 0) == 1 && AT(&y, 1) == 1 && isinf(AT(&y, 2)) && AT(&y, 3) == 0 && isnan(AT(&y, 4)));
        run_unary("log", NULL, &y, &x);
        ck_assert(AT(&y, 0) == -INFINITY && AT(&y, 2) == INFINITY && isnan(AT(&y, 3)) && isnan(AT(&y, 4)));
        run_unary("abs", NULL, &y, &x);
        ck_assert(!signbit(AT(&y, 1)) && AT(&y, 3) == INFINITY && isnan(AT(&y, 4)));
        tensor_free(&x);
        tensor_free(&y);
    }
}
END_TEST

START_TEST(clamp_holds_to_the_range_and_keeps_nan)
{
    static const double in[] = {-INFINITY, -2, -1, 0.5, 3, 4, INFINITY}, wanted[] = {-1, -1, -1, 0.5, 3, 3, 3};
    const trama_attributes range = {.real = {[CLAMP_LOW] = -1, [CLAMP_HIGH] = 3}};
    for (int dtype = 0; dtype < TRAMA_N_DTYPES; dtype = next_float(dtype)) {
        tensor x = tensor_new((trama_dtype)dtype, PACKED, TRAMA_SHAPE(8)),
               y = tensor_new(x.view.dtype, PACKED, TRAMA_SHAPE(8));
        for (int i = 0; i < 7; i++)
            PUT(&x, in[i], i);
        PUT(&x, NAN, 7);
        run_unary("clamp", &range, &y, &x);
        for (int i = 0; i < 7; i++)
            ck_assert(AT(&y, i) == wanted[i]);
        ck_assert(isnan(AT(&y, 7)));
        tensor_free(&x);
        tensor_free(&y);
    }
}
END_TEST

START_TEST(scale_multiplies_and_truncates_integers)
{
    const trama_attributes by = {.real = {[SCALE_FACTOR] = -0.75}};
    for (int dtype = 0; dtype < TRAMA_N_DTYPES; dtype = next_number(dtype)) {
        tensor x = tensor_random((trama_dtype)dtype, SPARSE, TRAMA_SHAPE(3, 21), 4);
        tensor y = tensor_new((trama_dtype)dtype, TURNED, TRAMA_SHAPE(3, 21));
        run_unary("scale", &by, &y, &x);
        FOR_EACH(&y, i)
        {
            const double want = at(&x, i) * -0.75;
            ck_near((trama_dtype)dtype, at(&y, i), element_held((trama_dtype)dtype, want), 1);
        }
        tensor_free(&x);
        tensor_free(&y);
    }
}
END_TEST

/* Numbers that are added are exact in every type, so that x - 3 and 5 - x are to the bit those of two tensors. */
START_TEST(affine_is_a_product_and_a_sum_in_the_operands_type)
{
    static const double numbers[][2] = {{1, 3}, {1, -3}, {-1, 5}, {0, 2}, {3, -2}};
    for (size_t n = 0; n < sizeof numbers / sizeof *numbers; n++)
        for (int dtype = 0; dtype < TRAMA_N_DTYPES; dtype = next_number(dtype))
            for (int how = 0; how < N_ORDERS; how++) {
                const trama_attributes with = {
                    .real = {[SCALE_FACTOR] = numbers[n][0], [AFFINE_OFFSET] = numbers[n][1]}};
                tensor x = tensor_random((trama_dtype)dtype, (order)how, TRAMA_SHAPE(3, 21), 4);
                tensor y = tensor_new((trama_dtype)dtype, TURNED, TRAMA_SHAPE(3, 21));
                run_unary("affine", &with, &y, &x);
                FOR_EACH(&y, i)
                {
                    const double want = numbers[n][0] * at(&x, i) + numbers[n][1];
                    ck_near((trama_dtype)dtype, at(&y, i), element_wrapped((trama_dtype)dtype, want), 1);
                }
                ck_assert(outside_untouched(&y));
                tensor_free(&x);
                tensor_free(&y);
            }
}
END_TEST

START_TEST(affine_of_integers_wraps_around)
{
    const trama_attributes with = {.real = {[SCALE_FACTOR] = 2, [AFFINE_OFFSET] = 1}};
    tensor x = tensor_new(TRAMA_I64, PACKED, TRAMA_SHAPE(2)), y = tensor_new(TRAMA_I64, PACKED, TRAMA_SHAPE(2));
    ((int64_t *)x.view.data)[0] = INT64_MAX;
    ((int64_t *)x.view.data)[1] = (INT64_C(1) << 60) + 1; /* which no double is */
    run_unary("affine", &with, &y, &x);
    ck_assert(((int64_t *)y.view.data)[0] == -1);
    ck_assert(((int64_t *)y.view.data)[1] == (INT64_C(1) << 61) + 3);
    tensor_free(&x);
    tensor_free(&y);
}
END_TEST

/* As correctly rounded as C's division of two numbers of the type; 1 / 0 included. */
START_TEST(numbers_divide_and_are_divided)
{
    for (int dtype = 0; dtype < TRAMA_N_DTYPES; dtype = next_float(dtype))
        for (int how = 0; how < N_ORDERS; how++) {
            const trama_attributes three = {.real = {[SCALAR_NUMBER] = 3}};
            tensor x = tensor_random((trama_dtype)dtype, (order)how, TRAMA_SHAPE(3, 21), 4);
            tensor y = tensor_new((trama_dtype)dtype, PACKED, TRAMA_SHAPE(3, 21));
            PUT(&x, 0, 1, 1);
            run_unary("div_scalar", &three, &y, &x);
            FOR_EACH(&y, i)
            ck_near((trama_dtype)dtype, at(&y, i), at(&x, i) / 3, 1);
            run_unary("scalar_div", &three, &y, &x);
            FOR_EACH(&y, i)
            ck_near((trama_dtype)dtype, at(&y, i), 3 / at(&x, i), 1);
            ck_assert(AT(&y, 1, 1) == INFINITY);
            tensor_free(&x);
            tensor_free(&y);
        }
}
END_TEST

START_TEST(cast_goes_between_all_types)
{
    for (int from = 0; from < N_REAL_DTYPES; from++)
        for (int to = 0; to < N_REAL_DTYPES; to++) {
            tensor x = tensor_random((trama_dtype)from, TURNED, TRAMA_SHAPE(5, 9), 5);
            tensor y = tensor_new((trama_dtype)to, BLOCK, TRAMA_SHAPE(5, 9));
            run_unary("cast", NULL, &y, &x);
            FOR_EACH(&y, i)
            {
                const double want = at(&x, i);
                ck_near((trama_dtype)to, at(&y, i),
                        trama_dtype_is_float((trama_dtype)from) ? element_held((trama_dtype)to, want)
                                                                : element_wrapped((trama_dtype)to, want),
                        1);
            }
            ck_assert(outside_untouched(&y));
            tensor_free(&x);
            tensor_free(&y);
        }
}
END_TEST

START_TEST(cast_of_reals_holds_to_the_range_and_nan_is_0)
{
    static const double values[] = {1e30, -1e30, INFINITY, -INFINITY, NAN, 30.75};
    for (int from = 0; from < TRAMA_N_DTYPES; from = next_float(from))
        for (int to = TRAMA_I32; to < TRAMA_N_DTYPES; to = next_number(to)) {
            tensor x = tensor_new((trama_dtype)from, PACKED, TRAMA_SHAPE(6)),
                   y = tensor_new((trama_dtype)to, PACKED, TRAMA_SHAPE(6));
            for (int i = 0; i < 6; i++)
                PUT(&x, values[i], i);
            run_unary("cast", NULL, &y, &x);
            for (int i = 0; i < 6 && !trama_dtype_is_float((trama_dtype)to); i++)
                ck_assert_double_eq(AT(&y, i), element_held((trama_dtype)to, values[i])); /* INT64_MAX reads as 2^63 */
            tensor_free(&x);
            tensor_free(&y);
        }
}
END_TEST

START_TEST(equal_gives_1_where_operands_agree_and_nan_never_does)
{
    for (int dtype = 0; dtype < N_REAL_DTYPES; dtype++) {
        tensor x = tensor_random((trama_dtype)dtype, TURNED, TRAMA_SHAPE(6, 8), 6);
        tensor y = tensor_random((trama_dtype)dtype, PACKED, TRAMA_SHAPE(8), 7);
        tensor out = tensor_new(TRAMA_BOOL, BLOCK, TRAMA_SHAPE(6, 8));
        for (int i = 0; i < 8; i += 3)
            PUT(&x, AT(&y, i), 2, i);
        if (dtype == TRAMA_F64)
            PUT(&x, NAN, 2, 0), PUT(&y, NAN, 0);
        run_binary("equal", NULL, &out, &x, &y);
        FOR_EACH(&out, i)
        ck_assert(at(&out, i) == (at(&x, i) == at_broadcast(&y, &out, i)));
        ck_assert(AT(&out, 2, 3) == 1);
        tensor_free(&x);
        tensor_free(&y);
        tensor_free(&out);
    }
}
END_TEST

START_TEST(a_result_may_take_the_place_of_an_operand)
{
    tensor x = tensor_random(TRAMA_F32, PACKED, TRAMA_SHAPE(9, 31), 8),
           y = tensor_random(TRAMA_F32, PACKED, TRAMA_SHAPE(31), 9);
    tensor want = tensor_new(TRAMA_F32, PACKED, TRAMA_SHAPE(9, 31));
    run_binary("mul", NULL, &want, &x, &y);
    run_binary("mul", NULL, &x, &x, &y);
    FOR_EACH(&want, i)
    ck_assert(at(&want, i) == at(&x, i));
    tensor_free(&x);
    tensor_free(&y);
    tensor_free(&want);
}
END_TEST

START_TEST(stop_gradient_copies)
{
    tensor x = tensor_random(TRAMA_I64, TURNED, TRAMA_SHAPE(3, 4), 8),
           y = tensor_new(TRAMA_I64, SPARSE, TRAMA_SHAPE(3, 4));
    run_unary("stop_gradient", NULL, &y, &x);
    FOR_EACH(&y, i)
    ck_assert(at(&y, i) == at(&x, i));
    tensor_free(&x);
    tensor_free(&y);
}
END_TEST

/* Functions that GPUs compute for halves may be off by so much before they are rounded. */
#ifdef TESTS_ON_GPU
static const double off = 0x1p-14;
#else
static const double off = 0;
#endif

static bool rounds_to(trama_dtype dtype, double want, double got)
{
    return near(dtype, got, half_round(dtype, want), 0) ||
           (got >= half_round(dtype, want - off * fabs(want)) && got <= half_round(dtype, want + off * fabs(want)));
}

/* Every value of a half in each op of one real operand, beside the op of f32. */
START_TEST(ops_of_halves_are_those_of_f32_rounded_once)
{
    static const char *const names[] = {"neg",      "abs",       "sign",   "square",     "sqrt",       "exp",
                                        "log",      "scale",     "affine", "div_scalar", "scalar_div", "clamp",
                                        "relu",     "gelu",      "tanh",   "sigmoid",    "silu",       "erf",
                                        "softplus", "gelu_tanh", "log1p",  "expm1"};
    const trama_attributes attributes = {.real = {-0.75, 3}};
    for (int dtype = TRAMA_BF16; dtype <= TRAMA_F16; dtype++)
        for (size_t op = 0; op < sizeof names / sizeof *names; op++) {
            tensor x = tensor_new((trama_dtype)dtype, PACKED, TRAMA_SHAPE(1 << 16)),
                   y = tensor_new((trama_dtype)dtype, PACKED, TRAMA_SHAPE(1 << 16));
            tensor wide = tensor_new(TRAMA_F32, PACKED, TRAMA_SHAPE(1 << 16));
            for (int64_t i = 0; i < 1 << 16; i++) {
                ((uint16_t *)x.view.data)[i] = (uint16_t)i;
                PUT(&wide, AT(&x, i), i);
            }
            run_unary(names[op], &attributes, &y, &x);
            run_unary(names[op], &attributes, &wide, &wide);
            for (int64_t i = 0; i < 1 << 16; i++)
                if (!rounds_to((trama_dtype)dtype, AT(&wide, i), AT(&y, i)))
                    ck_abort_msg("%s %s of %a: %a of %a", names[op], trama_dtype_name((trama_dtype)dtype), AT(&x, i),
                                 AT(&y, i), AT(&wide, i));
            tensor_free(&x);
            tensor_free(&y);
            tensor_free(&wide);
        }
}
END_TEST

/* Halfway between two halves, give or take less than a float shows. */
START_TEST(cast_from_doubles_and_integers_rounds_once)
{
    static const double values[] = {1 + 0x1p-8 + 0x1p-40, 1 + 0x1p-8 - 0x1p-40, 1 + 0x1p-8, 1 + 0x1p-11 + 0x1p-40,
                                    1 + 0x1p-11 - 0x1p-40};
    static const double whole[] = {(1 << 24) + (1 << 16) + 1, (1 << 24) + (1 << 16), 2049, 2047, 2051};
    for (int to = TRAMA_BF16; to <= TRAMA_F16; to++)
        for (int integer = 0; integer < 3; integer++) {
            const trama_dtype from = ((const trama_dtype[]){TRAMA_F64, TRAMA_I32, TRAMA_I64})[integer];
            tensor x = tensor_new(from, PACKED, TRAMA_SHAPE(5)),
                   y = tensor_new((trama_dtype)to, PACKED, TRAMA_SHAPE(5));
            for (int i = 0; i < 5; i++)
                PUT(&x, (integer ? whole : values)[i], i);
            run_unary("cast", NULL, &y, &x);
            for (int i = 0; i < 5; i++)
                ck_assert(AT(&y, i) == half_round((trama_dtype)to, AT(&x, i)));
            tensor_free(&x);
            tensor_free(&y);
        }
}
END_TEST

RUN_TESTS("pointwise", ops_of_halves_are_those_of_f32_rounded_once, cast_from_doubles_and_integers_rounds_once,
          add_broadcasts_in_every_type_and_memory_order, sub_broadcasts_in_every_type_and_memory_order,
          mul_broadcasts_in_every_type_and_memory_order, div_broadcasts_and_integers_truncate_and_give_0_by_0,
          integers_wrap_on_overflow, unary_arithmetic_holds_in_every_type_and_memory_order,
          exp_and_log_are_those_of_double, special_values_follow_ieee, clamp_holds_to_the_range_and_keeps_nan,
          scale_multiplies_and_truncates_integers, affine_is_a_product_and_a_sum_in_the_operands_type,
          affine_of_integers_wraps_around, numbers_divide_and_are_divided, cast_goes_between_all_types,
          cast_of_reals_holds_to_the_range_and_nan_is_0, equal_gives_1_where_operands_agree_and_nan_never_does,
          a_result_may_take_the_place_of_an_operand, stop_gradient_copies)
