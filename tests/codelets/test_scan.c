/* SPDX-License-Identifier: Apache-2.0 */
/* Scans against naive loops in every element type: many lines, few lines, both directions. */
#include "views.h"

/* The sum, or product, of the first k elements of the line through i, in the order of the scan. */
static double naive(const tensor *x, const int64_t *i, const int64_t *flags, bool product)
{
    const int axis = (int)flags[SCAN_AXIS];
    const int64_t n = x->view.extent[axis], at_axis = flags[SCAN_REVERSE] ? n - 1 - i[axis] : i[axis];
    int64_t k[TRAMA_MAX_NDIM];
    double all = product;
    memcpy(k, i, sizeof k);
    for (int64_t j = 0; j < at_axis + !flags[SCAN_EXCLUSIVE]; j++) {
        k[axis] = flags[SCAN_REVERSE] ? n - 1 - j : j;
        all = product ? all * at(x, k) : all + at(x, k);
    }
    return all;
}

static void check(const char *op, trama_dtype dtype, order how, trama_shape shape, const int64_t *flags)
{
    const trama_attributes attributes = {.integer = {flags[0], flags[1], flags[2]}};
    const bool product = !strcmp(op, "cumprod");
    tensor x = tensor_new(dtype, how, shape), out = tensor_new(dtype, (order)((how + 1) % N_ORDERS), shape);
    int64_t next = 0;
    FOR_EACH(&x, i)
    put(&x, i, product ? (double)(1 + (++next % 5 == 0)) : (double)(++next * 7 % 11) - !is_unsigned(dtype) * 4);
    run_unary(op, &attributes, &out, &x);
    FOR_EACH(&out, i)
    {
        const double want = naive(&x, i, flags, product);
        ck_near(dtype, at(&out, i), trama_dtype_is_float(dtype) ? want : element_wrapped(dtype, want), 1);
    }
    ck_assert(outside_untouched(&out));
    tensor_free(&x);
    tensor_free(&out);
}

static void check_all(const char *op)
{
    for (int dtype = 0; dtype < N_REAL_DTYPES; dtype++)
        for (int how = 0; how < N_ORDERS && dtype != TRAMA_BOOL; how++)
            for (int flags = 0; flags < 4; flags++) {
                const int64_t first[] = {0, flags & 1, flags >> 1}, last[] = {1, flags & 1, flags >> 1};
                check(op, (trama_dtype)dtype, (order)how, TRAMA_SHAPE(13, 530), first);
                check(op, (trama_dtype)dtype, (order)how, TRAMA_SHAPE(11, 37), last);
                check(op, (trama_dtype)dtype, (order)how, TRAMA_SHAPE(3, 5, 2), last);
                check(op, (trama_dtype)dtype, (order)how, TRAMA_SHAPE(3, 0, 2), last);
            }
}

START_TEST(cumsum_holds_in_every_type_and_direction)
{
    check_all("cumsum");
}
END_TEST

START_TEST(cumprod_holds_in_every_type_and_direction)
{
    check_all("cumprod");
}
END_TEST

/* 2^24 + 1 is no float: sums kept in f32 would stay at 2^24. */
START_TEST(a_cumulative_sum_of_f32_loses_nothing_to_small_terms)
{
    tensor x = tensor_new(TRAMA_F32, PACKED, TRAMA_SHAPE(5001)), out = tensor_new(TRAMA_F32, PACKED, TRAMA_SHAPE(5001));
    FOR_EACH(&x, i)
    put(&x, i, i[0] ? 1 : 0x1p24);
    run_unary("cumsum", NULL, &out, &x);
    ck_assert(AT(&out, 5000) == 0x1p24 + 5000);
    tensor_free(&x);
    tensor_free(&out);
}
END_TEST

RUN_TESTS("scan", cumsum_holds_in_every_type_and_direction, cumprod_holds_in_every_type_and_direction,
          a_cumulative_sum_of_f32_loses_nothing_to_small_terms)
