/* SPDX-License-Identifier: Apache-2.0 */
/* The walk over strided views: rows are as long as memory allows and cover the space once. */
#include "views.h"

typedef struct seen {
    int rows;
    int64_t elements;
} seen;

static void count_row(int64_t n, void *const *data, const int64_t *step, const void *with)
{
    seen *s = *(seen *const *)with;
    s->rows++;
    s->elements += n;
    for (int64_t i = 0; i < n; i++)
        ((float *)data[0])[i * step[0]] += 1;
}

static seen walk(tensor *x, tensor *y)
{
    seen s = {0}, *to = &s;
    loop_run(y ? 2 : 1, (const trama_view *[]){&x->view, y ? &y->view : NULL}, count_row, &to);
    return s;
}

START_TEST(contiguous_memory_is_one_row_in_any_order_of_dims)
{
    for (int how = PACKED; how <= TURNED; how++) {
        tensor x = tensor_new(TRAMA_F32, (order)how, TRAMA_SHAPE(3, 4, 5)),
               y = tensor_new(TRAMA_F64, (order)how, TRAMA_SHAPE(3, 4, 5));
        kernel_fill(&x.view, 0);
        ck_assert_int_eq(walk(&x, &y).rows, 1);
        FOR_EACH(&x, i)
        ck_assert(at(&x, i) == 1);
        tensor_free(&x);
        tensor_free(&y);
    }
}
END_TEST

START_TEST(a_repeated_operand_cuts_rows_where_it_must)
{
    tensor x = tensor_new(TRAMA_F32, PACKED, TRAMA_SHAPE(3, 4, 5)), row = tensor_new(TRAMA_F32, PACKED, TRAMA_SHAPE(5));
    tensor column = tensor_new(TRAMA_F32, PACKED, TRAMA_SHAPE(3, 1, 1)),
           scalar = tensor_new(TRAMA_F32, PACKED, TRAMA_SCALAR);
    kernel_fill(&x.view, 0);
    ck_assert_int_eq(walk(&x, &row).rows, 12);
    ck_assert_int_eq(walk(&x, &column).rows, 3);
    ck_assert_int_eq(walk(&x, &scalar).rows, 1);
    FOR_EACH(&x, i)
    ck_assert(at(&x, i) == 3);
    tensor_free(&x);
    tensor_free(&row);
    tensor_free(&column);
    tensor_free(&scalar);
}
END_TEST

START_TEST(every_element_is_visited_once)
{
    for (int how = 0; how < N_ORDERS; how++) {
        tensor x = tensor_new(TRAMA_F32, (order)how, TRAMA_SHAPE(2, 3, 1, 4, 5, 1, 2, 3));
        kernel_fill(&x.view, 0);
        ck_assert(walk(&x, NULL).elements == 720);
        FOR_EACH(&x, i)
        ck_assert(at(&x, i) == 1);
        ck_assert(outside_untouched(&x));
        tensor_free(&x);
    }
}
END_TEST

START_TEST(an_empty_space_has_no_row_and_a_scalar_one)
{
    tensor empty = tensor_new(TRAMA_F32, PACKED, TRAMA_SHAPE(3, 0)),
           scalar = tensor_new(TRAMA_F32, PACKED, TRAMA_SCALAR);
    PUT(&scalar, 1, 0);
    ck_assert_int_eq(walk(&empty, NULL).rows, 0);
    ck_assert_int_eq(walk(&scalar, NULL).rows, 1);
    ck_assert(AT(&scalar, 0) == 2);
    tensor_free(&empty);
    tensor_free(&scalar);
}
END_TEST

START_TEST(view_without_drops_one_dim)
{
    tensor x = tensor_new(TRAMA_F32, PACKED, TRAMA_SHAPE(3, 4, 5));
    x.view.offset[2] = 9;
    const trama_view v = view_without(&x.view, 1);
    ck_assert_int_eq(v.ndim, 2);
    ck_assert(v.extent[0] == 3 && v.extent[1] == 5 && v.stride[0] == 20 && v.stride[1] == 1 && v.offset[1] == 9 &&
              v.global[1] == 5);
    ck_assert(view_count(&v) == 15 && view_count(&x.view) == 60);
    tensor_free(&x);
}
END_TEST

static void product_row(int64_t n, void *const *data, const int64_t *step, const void *with)
{
    ck_assert(step[0] == 1 && step[1] == 1 && step[2] == 1);
    for (int64_t i = 0; i < n; i++)
        ((trama_c128 *)data[0])[i] = ((trama_c128 *)data[1])[i] * ((double *)data[2])[i];
}

static trama_view line_of(trama_dtype dtype, void *data, int64_t n, int64_t step)
{
    return (trama_view){.data = data, .dtype = dtype, .ndim = 1, .extent = {n}, .stride = {step}, .global = {n}};
}

/* 600 elements are several parts, the last a short one. */
START_TEST(elements_with_gaps_are_packed_part_by_part)
{
    enum { N = 600 };
    static trama_c128 x[3 * N], out[3 * N];
    const int64_t steps[][2] = {{3, -1}, {1, 2}, {-2, 1}, {2, 2}};
    double factor = 3;
    for (int k = 0; k < 4; k++)
        for (int in_place = k == 3; in_place >= 0; in_place--) {
            const int64_t to = steps[k][0], from = steps[k][1];
            for (int i = 0; i < 3 * N; i++) {
                x[i] = CMPLX(i, -i);
                out[i] = -1;
            }
            trama_c128 *all = in_place ? x : out, *first = all + (to < 0 ? -to * (N - 1) : 0),
                       *source = x + (from < 0 ? -from * (N - 1) : 0);
            const trama_view view[] = {line_of(TRAMA_C128, first, N, to), line_of(TRAMA_C128, source, N, from),
                                       line_of(TRAMA_F64, &factor, 1, 1)};
            loop_dense(1, 3, (const trama_view *[]){&view[0], &view[1], &view[2]}, product_row, STEPS_1, NULL);
            for (int64_t i = 0; i < 3 * N; i++) {
                const int64_t element = (&all[i] - first) / to, read = (source - x) + element * from;
                if ((&all[i] - first) % to || element < 0 || element >= N)
                    ck_assert(all[i] == (in_place ? CMPLX((double)i, -(double)i) : -1));
                else
                    ck_assert(all[i] == CMPLX(3 * (double)read, -3 * (double)read));
            }
        }
}
END_TEST

/* Elements with gaps are packed, and the ends of vectors are compiled apart. */
START_TEST(the_bits_of_a_result_do_not_depend_on_memory_order)
{
    static const char *const unary[] = {"exp", "log", "sqrt", "tanh", "sigmoid", "gelu", "square"};
    static const char *const binary[] = {"mul", "div", "gelu_grad", "tanh_grad", "sigmoid_grad", "sgd"};
    const trama_attributes attributes = {.real = {[UPDATE_LR] = 0.1}};
    for (int dtype = 0; dtype < 2; dtype++)
        for (int how = 1; how < N_ORDERS; how++)
            for (int op = 0; op < 7 + 6; op++) {
                tensor x[2], y[2], out[2];
                for (int v = 0; v < 2; v++) {
                    x[v] = tensor_new((trama_dtype)dtype, v ? (order)how : PACKED, TRAMA_SHAPE(5, 29));
                    y[v] = tensor_new((trama_dtype)dtype, v ? (order)how : PACKED, TRAMA_SHAPE(5, 29));
                    out[v] = tensor_new((trama_dtype)dtype, v ? (order)how : PACKED, TRAMA_SHAPE(5, 29));
                    FOR_EACH(&x[v], i)
                    {
                        put(&x[v], i, 1.7 + sin((double)(i[0] * 29 + i[1])));
                        put(&y[v], i, cos((double)(i[0] * 29 + i[1])));
                    }
                    if (op < 7)
                        run_unary(unary[op], &attributes, &out[v], &x[v]);
                    else
                        run_binary(binary[op - 7], &attributes, &out[v], &x[v], &y[v]);
                }
                FOR_EACH(&out[0], i)
                ck_assert(at(&out[0], i) == at(&out[1], i));
                for (int v = 0; v < 2; v++) {
                    tensor_free(&x[v]);
                    tensor_free(&y[v]);
                    tensor_free(&out[v]);
                }
            }
}
END_TEST

RUN_TESTS("loop", contiguous_memory_is_one_row_in_any_order_of_dims, a_repeated_operand_cuts_rows_where_it_must,
          every_element_is_visited_once, an_empty_space_has_no_row_and_a_scalar_one,
          elements_with_gaps_are_packed_part_by_part, the_bits_of_a_result_do_not_depend_on_memory_order,
          view_without_drops_one_dim)
