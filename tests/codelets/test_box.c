/* SPDX-License-Identifier: Apache-2.0 */
/* Copying, combining and filling boxes in every type and memory order. */
#include <complex.h>

#include "views.h"
#ifdef TESTS_ON_GPU
#include "on_gpu_boxes.h"
#endif

START_TEST(copies_are_exact_between_any_strides)
{
    const trama_shape shapes[] = {TRAMA_SCALAR,           TRAMA_SHAPE(43),        TRAMA_SHAPE(37, 33),
                                  TRAMA_SHAPE(3, 17, 16), TRAMA_SHAPE(17, 3, 33), TRAMA_SHAPE(1, 64),
                                  TRAMA_SHAPE(6, 0)};
    for (int dtype = 0; dtype < TRAMA_N_DTYPES; dtype++)
        for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++)
            for (int orders = 0; orders < N_ORDERS * N_ORDERS; orders++) {
                tensor from = tensor_random((trama_dtype)dtype, (order)(orders / N_ORDERS), shapes[s], 1);
                tensor to = tensor_new((trama_dtype)dtype, (order)(orders % N_ORDERS), shapes[s]);
                kernel_copy(&to.view, &from.view);
                FOR_EACH(&to, i)
                ck_assert(at(&to, i) == at(&from, i));
                ck_assert(outside_untouched(&to));
                tensor_free(&from);
                tensor_free(&to);
            }
}
END_TEST

START_TEST(a_source_with_strides_of_0_is_repeated)
{
    for (int repeated = 0; repeated < 2; repeated++)
        for (int how = 0; how < N_ORDERS; how++) {
            tensor from = tensor_random(TRAMA_F32, TURNED, TRAMA_SHAPE(33, 35), 1),
                   to = tensor_new(TRAMA_F32, (order)how, TRAMA_SHAPE(33, 35));
            from.view.stride[repeated] = 0;
            kernel_copy(&to.view, &from.view);
            FOR_EACH(&to, i)
            ck_assert(at(&to, i) == at(&from, i));
            tensor_free(&from);
            tensor_free(&to);
        }
}
END_TEST

START_TEST(copies_sums_and_fills_of_complex_numbers_keep_both_parts)
{
    for (int how = 0; how < N_ORDERS; how++) {
        tensor terms[3], sum = tensor_new(TRAMA_C64, (order)how, TRAMA_SHAPE(33, 35)),
                         copy = tensor_new(TRAMA_C64, TURNED, TRAMA_SHAPE(33, 35));
        trama_view views[3];
        for (int s = 0; s < 3; s++) {
            terms[s] = tensor_new(TRAMA_C64, (order)((how + s) % N_ORDERS), TRAMA_SHAPE(33, 35));
            FOR_EACH(&terms[s], i)
            *(trama_c64 *)element(&terms[s].view, i) = CMPLXF((float)i[0], (float)(s - i[1]));
            views[s] = terms[s].view;
        }
        kernel_reduce(&sum.view, 3, views, COMBINE_SUM, 0.5);
        kernel_copy(&copy.view, &sum.view);
        FOR_EACH(&copy, i)
        {
            const trama_c64 z = *(trama_c64 *)element(&copy.view, i);
            ck_assert(crealf(z) == 1.5F * (float)i[0] && cimagf(z) == 1.5F * (float)(1 - i[1]));
        }
        kernel_fill(&copy.view, 7);
        FOR_EACH(&copy, i)
        ck_assert(*(trama_c64 *)element(&copy.view, i) == 7);
        ck_assert(outside_untouched(&sum) && outside_untouched(&copy));
        for (int s = 0; s < 3; s++)
            tensor_free(&terms[s]);
        tensor_free(&sum);
        tensor_free(&copy);
    }
}
END_TEST

static bool is_complex(int dtype)
{
    return trama_dtype_kind_of((trama_dtype)dtype) == TRAMA_KIND_COMPLEX;
}

static double joined(kernel_combine combine, double a, double b)
{
    return combine == COMBINE_SUM ? a + b : combine == COMBINE_MAX ? fmax(a, b) : fmin(a, b);
}

static void check_reduce(trama_dtype dtype, int n, kernel_combine combine, double scale, int variant)
{
    tensor *terms = calloc((size_t)n, sizeof *terms);
    trama_view *views = calloc((size_t)n, sizeof *views);
    tensor out = tensor_new(dtype, (order)(variant % N_ORDERS), TRAMA_SHAPE(2, 530));
    for (int s = 0; s < n; s++) {
        terms[s] = tensor_random(dtype, (order)((variant + s) % N_ORDERS), TRAMA_SHAPE(2, 530), (uint64_t)s + 1);
        views[s] = terms[s].view;
    }
    kernel_reduce(&out.view, n, views, combine, scale);
    FOR_EACH(&out, i)
    {
        double want = at(&terms[0], i);
        for (int s = 1; s < n; s++)
            want = joined(combine, want, at(&terms[s], i));
        want *= scale;
        want = scale == 1 ? element_wrapped(dtype, want) : element_held(dtype, want);
        ck_near(dtype, at(&out, i), want, 1);
    }
    ck_assert(outside_untouched(&out));
    for (int s = 0; s < n; s++)
        tensor_free(&terms[s]);
    tensor_free(&out);
    free(terms);
    free(views);
}

START_TEST(reduce_combines_any_number_of_sources)
{
    static const int counts[] = {1, 2, 3, 15, 16, 40};
    for (int dtype = 0; dtype < TRAMA_N_DTYPES; dtype++)
        for (int c = 0; c < 6; c++)
            for (int combine = COMBINE_SUM; combine <= (is_complex(dtype) ? COMBINE_SUM : COMBINE_MIN); combine++)
                for (int variant = 0; variant < N_ORDERS; variant++) {
                    check_reduce((trama_dtype)dtype, counts[c], (kernel_combine)combine, 1, variant);
                    check_reduce((trama_dtype)dtype, counts[c], (kernel_combine)combine, 0.25, variant);
                }
}
END_TEST

START_TEST(the_destination_may_be_any_of_the_sources)
{
    for (int which = 0; which < 3; which++) {
        tensor terms[3];
        trama_view views[3];
        tensor want = tensor_new(TRAMA_F32, PACKED, TRAMA_SHAPE(5, 300));
        for (int s = 0; s < 3; s++) {
            terms[s] = tensor_random(TRAMA_F32, BLOCK, TRAMA_SHAPE(5, 300), (uint64_t)s);
            views[s] = terms[s].view;
        }
        kernel_reduce(&want.view, 3, views, COMBINE_SUM, 0.5);
        kernel_reduce(&views[which], 3, views, COMBINE_SUM, 0.5);
        FOR_EACH(&want, i)
        ck_assert(at(&terms[which], i) == at(&want, i));
        for (int s = 0; s < 3; s++)
            tensor_free(&terms[s]);
        tensor_free(&want);
    }
}
END_TEST

/* 1e30 + 1 - 1e30 is 0 in this order only */
START_TEST(terms_are_taken_in_the_order_of_the_sources)
{
    const double values[][3] = {{1e30, 1, -1e30}, {1e30, -1e30, 1}};
    for (int v = 0; v < 2; v++) {
        tensor terms[3], out = tensor_new(TRAMA_F64, TURNED, TRAMA_SHAPE(4, 9));
        trama_view views[3];
        for (int s = 0; s < 3; s++) {
            terms[s] = tensor_new(TRAMA_F64, (order)s, TRAMA_SHAPE(4, 9));
            FOR_EACH(&terms[s], i)
            put(&terms[s], i, values[v][s]);
            views[s] = terms[s].view;
        }
        kernel_reduce(&out.view, 3, views, COMBINE_SUM, 1);
        FOR_EACH(&out, i)
        ck_assert(at(&out, i) == v);
        for (int s = 0; s < 3; s++)
            tensor_free(&terms[s]);
        tensor_free(&out);
    }
}
END_TEST

START_TEST(extremes_propagate_nan_from_any_source)
{
    for (int combine = COMBINE_MAX; combine <= COMBINE_MIN; combine++)
        for (int which = 0; which < 3; which++) {
            tensor terms[3], out = tensor_new(TRAMA_F32, PACKED, TRAMA_SHAPE(20));
            trama_view views[3];
            for (int s = 0; s < 3; s++) {
                terms[s] = tensor_random(TRAMA_F32, PACKED, TRAMA_SHAPE(20), (uint64_t)s);
                views[s] = terms[s].view;
            }
            PUT(&terms[which], NAN, 7);
            kernel_reduce(&out.view, 3, views, (kernel_combine)combine, 1);
            for (int64_t i = 0; i < 20; i++)
                ck_assert(isnan(AT(&out, i)) == (i == 7));
            for (int s = 0; s < 3; s++)
                tensor_free(&terms[s]);
            tensor_free(&out);
        }
}
END_TEST

START_TEST(fill_converts_the_value_and_keeps_to_the_box)
{
    for (int dtype = 0; dtype < TRAMA_N_DTYPES; dtype++)
        for (int how = 0; how < N_ORDERS; how++) {
            tensor x = tensor_new((trama_dtype)dtype, (order)how, TRAMA_SHAPE(3, 1, 7));
            kernel_fill(&x.view, 7);
            FOR_EACH(&x, i)
            ck_assert(at(&x, i) == (dtype == TRAMA_BOOL ? 1 : 7));
            kernel_fill(&x.view, NAN);
            FOR_EACH(&x, i)
            ck_assert(trama_dtype_is_float((trama_dtype)dtype) || is_complex(dtype)
                          ? isnan(at(&x, i))
                          : at(&x, i) == (dtype == TRAMA_BOOL));
            ck_assert(outside_untouched(&x));
            tensor_free(&x);
        }
}
END_TEST

RUN_TESTS("box", copies_sums_and_fills_of_complex_numbers_keep_both_parts, copies_are_exact_between_any_strides,
          a_source_with_strides_of_0_is_repeated, reduce_combines_any_number_of_sources,
          the_destination_may_be_any_of_the_sources, terms_are_taken_in_the_order_of_the_sources,
          extremes_propagate_nan_from_any_source, fill_converts_the_value_and_keeps_to_the_box)
