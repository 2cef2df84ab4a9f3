/* SPDX-License-Identifier: Apache-2.0 */
/* Sorting and the first k in every element type: equal elements, NaN, zeros of both signs, long lines. */
#include "views.h"

/* Whether element i of a line is before element j. */
static bool is_before(const tensor *x, int64_t row, int64_t i, int64_t j, bool descending)
{
    const double a = AT(x, row, i), b = AT(x, row, j);
    const bool less = a < b || (isnan(b) && !isnan(a)), more = a > b || (isnan(a) && !isnan(b));
    return (descending ? more : less) || (!less && !more && i < j);
}

static void check(const tensor *x, int64_t k, bool descending, order how)
{
    const int64_t rows = x->view.extent[0], n = x->view.extent[1];
    const trama_attributes attributes = {.integer = {1, descending, k}};
    tensor values = tensor_new(x->view.dtype, how, TRAMA_SHAPE(rows, k)),
           places = tensor_new(TRAMA_I64, how, TRAMA_SHAPE(rows, k));
    run_op(k == n ? "sort" : "top_k", &attributes, 2, 1, (tensor *[]){&values, &places, (tensor *)x});
    for (int64_t row = 0; row < rows; row++)
        for (int64_t i = 0; i < n; i++) {
            int64_t to = 0;
            for (int64_t j = 0; j < n; j++)
                to += is_before(x, row, j, i, descending);
            if (to >= k)
                continue;
            ck_assert_msg((int64_t)AT(&places, row, to) == i, "%s: place %lld", trama_dtype_name(x->view.dtype),
                          (long long)to);
            const double is = AT(&values, row, to), due = AT(x, row, i);
            ck_assert(memcmp(&is, &due, sizeof is) == 0 || isnan(due));
        }
    ck_assert(outside_untouched(&values) && outside_untouched(&places));
    tensor_free(&values);
    tensor_free(&places);
}

static void check_all(const tensor *x)
{
    const int64_t n = x->view.extent[1];
    for (int descending = 0; descending < 2; descending++)
        for (int how = 0; how < N_ORDERS; how++) {
            check(x, n, descending, (order)how);
            check(x, n / 9, descending, (order)how);
            check(x, n > 0, descending, (order)how);
        }
}

/* Few different numbers, so that most are equal to others. */
START_TEST(equal_elements_keep_their_order_in_every_type)
{
    for (int dtype = 0; dtype < N_REAL_DTYPES; dtype++)
        for (int64_t n = 0; n < 700; n = n * 3 + 1) {
            tensor x = tensor_random((trama_dtype)dtype, (order)(n % N_ORDERS), TRAMA_SHAPE(2, n), (uint64_t)n + 1);
            check_all(&x);
            tensor_free(&x);
        }
}
END_TEST

START_TEST(nan_is_the_largest_and_both_zeros_are_equal)
{
    const double odd[] = {-0.0, NAN, INFINITY, 0.0, -INFINITY, -NAN, 1, -1, 0x1p-14, -0x1p-14};
    for (int dtype = 0; dtype < TRAMA_N_DTYPES; dtype = next_float(dtype)) {
        tensor x = tensor_new((trama_dtype)dtype, PACKED, TRAMA_SHAPE(1, 90));
        FOR_EACH(&x, i)
        put(&x, i, odd[i[1] * 7 % 10]);
        check_all(&x);
        tensor_free(&x);
    }
}
END_TEST

/* Every element is a candidate for the first k: those that come later are smaller. */
START_TEST(the_worst_order_for_candidates_gives_the_first_k)
{
    for (int dtype = TRAMA_F32; dtype < N_REAL_DTYPES; dtype++) {
        if (trama_dtype_size((trama_dtype)dtype) < 4)
            continue;
        tensor x = tensor_new((trama_dtype)dtype, PACKED, TRAMA_SHAPE(1, 1500));
        FOR_EACH(&x, i)
        put(&x, i, (double)(i[1] * 1001));
        check(&x, 64, true, PACKED);
        check(&x, 64, false, PACKED);
        tensor_free(&x);
    }
}
END_TEST

RUN_TESTS("sort", equal_elements_keep_their_order_in_every_type, nan_is_the_largest_and_both_zeros_are_equal,
          the_worst_order_for_candidates_gives_the_first_k)
