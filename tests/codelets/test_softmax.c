/* SPDX-License-Identifier: Apache-2.0 */
/* Softmax and its gradient along each dim against loops in double. */
#include "views.h"

static double naive_softmax(const tensor *x, const int64_t *index, int axis)
{
    int64_t i[TRAMA_MAX_NDIM];
    double sum = 0;
    memcpy(i, index, sizeof i);
    for (i[axis] = 0; i[axis] < x->view.extent[axis]; i[axis]++)
        sum += exp(at(x, i) - at(x, index));
    return 1 / sum;
}

static double naive_gradient(const tensor *g, const tensor *y, const int64_t *index, int axis)
{
    int64_t i[TRAMA_MAX_NDIM];
    double sum = 0;
    memcpy(i, index, sizeof i);
    for (i[axis] = 0; i[axis] < y->view.extent[axis]; i[axis]++)
        sum += at(g, i) * at(y, i);
    return at(y, index) * (at(g, index) - sum);
}

static const int64_t shapes[][3] = {{5, 7, 37}, {1, 1, 1}, {3, 1, 2}, {2, 0, 3}, {33, 2, 5}};
enum { N_SHAPES = sizeof shapes / sizeof shapes[0] };

START_TEST(softmax_holds_along_each_dim)
{
    for (int dtype = 0; dtype < TRAMA_N_DTYPES; dtype = next_float(dtype))
        for (int s = 0; s < N_SHAPES; s++)
            for (int axis = 0; axis < 3; axis++)
                for (int orders = 0; orders < N_ORDERS * N_ORDERS; orders++) {
                    const trama_attributes attributes = {.integer = {[SOFTMAX_AXIS] = axis}};
                    tensor x =
                        tensor_random((trama_dtype)dtype, (order)(orders / N_ORDERS), trama_shape_of(3, shapes[s]), 1);
                    tensor y = tensor_new((trama_dtype)dtype, (order)(orders % N_ORDERS), trama_shape_of(3, shapes[s]));
                    run_unary("softmax", &attributes, &y, &x);
                    FOR_EACH(&y, i)
                    ck_near((trama_dtype)dtype, at(&y, i), naive_softmax(&x, i, axis), 8);
                    ck_assert(outside_untouched(&y));
                    tensor_free(&x);
                    tensor_free(&y);
                }
}
END_TEST

START_TEST(the_order_in_memory_does_not_change_bits)
{
    const trama_shape shape = TRAMA_SHAPE(37, 3, 70);
    for (int dtype = 0; dtype < TRAMA_N_DTYPES; dtype = next_float(dtype))
        for (int axis = 0; axis < 3; axis++)
            for (int o = 1; o < N_ORDERS; o++) {
                const trama_attributes attributes = {.integer = {[SOFTMAX_AXIS] = axis}};
                tensor x = tensor_random((trama_dtype)dtype, PACKED, shape, 1), packed = x;
                tensor moved = tensor_new((trama_dtype)dtype, (order)o, shape);
                tensor y = tensor_new((trama_dtype)dtype, PACKED, shape),
                       other = tensor_new((trama_dtype)dtype, (order)o, shape);
                kernel_copy(&moved.view, &packed.view);
                run_unary("softmax", &attributes, &y, &x);
                run_unary("softmax", &attributes, &other, &moved);
                FOR_EACH(&y, i)
                ck_assert(at(&y, i) == at(&other, i));
                tensor_free(&x);
                tensor_free(&moved);
                tensor_free(&y);
                tensor_free(&other);
            }
}
END_TEST

START_TEST(softmax_grad_holds_along_each_dim)
{
    for (int dtype = 0; dtype < TRAMA_N_DTYPES; dtype = next_float(dtype))
        for (int s = 0; s < N_SHAPES; s++)
            for (int axis = 0; axis < 3; axis++)
                for (int orders = 0; orders < N_ORDERS * N_ORDERS; orders++) {
                    const trama_attributes attributes = {.integer = {[SOFTMAX_AXIS] = axis}};
                    tensor g =
                        tensor_random((trama_dtype)dtype, (order)(orders / N_ORDERS), trama_shape_of(3, shapes[s]), 1);
                    tensor y = tensor_random((trama_dtype)dtype, PACKED, trama_shape_of(3, shapes[s]), 2);
                    tensor out =
                        tensor_new((trama_dtype)dtype, (order)(orders % N_ORDERS), trama_shape_of(3, shapes[s]));
                    run_binary("softmax_grad", &attributes, &out, &g, &y);
                    FOR_EACH(&out, i)
                    ck_near((trama_dtype)dtype, at(&out, i), naive_gradient(&g, &y, i, axis), 64);
                    ck_assert(outside_untouched(&out));
                    tensor_free(&g);
                    tensor_free(&y);
                    tensor_free(&out);
                }
}
END_TEST

START_TEST(softmax_of_large_numbers_does_not_overflow_and_knows_minus_infinity)
{
    for (int dtype = 0; dtype < TRAMA_N_DTYPES; dtype = next_float(dtype)) {
        tensor x = tensor_new((trama_dtype)dtype, PACKED, TRAMA_SHAPE(3));
        PUT(&x, 30000, 0), PUT(&x, 30000, 1), PUT(&x, -INFINITY, 2);
        run_unary("softmax", NULL, &x, &x);
        ck_assert(AT(&x, 0) == 0.5 && AT(&x, 1) == 0.5 && AT(&x, 2) == 0);
        PUT(&x, NAN, 1);
        run_unary("softmax", NULL, &x, &x);
        ck_assert(isnan(AT(&x, 0)) && isnan(AT(&x, 1)) && isnan(AT(&x, 2)));
        tensor_free(&x);
    }
}
END_TEST

RUN_TESTS("softmax", softmax_holds_along_each_dim, the_order_in_memory_does_not_change_bits,
          softmax_grad_holds_along_each_dim, softmax_of_large_numbers_does_not_overflow_and_knows_minus_infinity)
