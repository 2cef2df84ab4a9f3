/* SPDX-License-Identifier: Apache-2.0 */
/* Transpose, reshape and reshard: every element arrives where naive indexing says. */
#include "views.h"

START_TEST(transpose_moves_dim_perm_d_to_dim_d)
{
    static const int perms[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    static const int64_t shapes[][3] = {{37, 21, 50}, {2, 70, 19}, {1, 5, 1}, {4, 0, 3}};
    for (int dtype = 0; dtype < TRAMA_N_DTYPES; dtype++)
        for (int s = 0; s < 4; s++)
            for (int p = 0; p < 6; p++)
                for (int orders = 0; orders < N_ORDERS * N_ORDERS; orders++) {
                    trama_attributes attributes = {.integer = {[SHAPE_NDIM] = 3}};
                    trama_shape shape = {.ndim = 3};
                    for (int d = 0; d < 3; d++) {
                        attributes.integer[SHAPE_DIM + d] = perms[p][d];
                        shape.dim[d] = shapes[s][perms[p][d]];
                    }
                    tensor x =
                        tensor_random((trama_dtype)dtype, (order)(orders / N_ORDERS), trama_shape_of(3, shapes[s]), 1);
                    tensor out = tensor_new((trama_dtype)dtype, (order)(orders % N_ORDERS), shape);
                    run_unary("transpose", &attributes, &out, &x);
                    bool right = outside_untouched(&out);
                    FOR_EACH(&out, i)
                    {
                        int64_t from[TRAMA_MAX_NDIM];
                        for (int d = 0; d < 3; d++)
                            from[perms[p][d]] = i[d];
                        right &= at(&out, i) == at(&x, from);
                    }
                    ck_assert(right);
                    tensor_free(&x);
                    tensor_free(&out);
                }
}
END_TEST

static void check_reshape(trama_dtype dtype, order from, order to, trama_shape in, trama_shape out_shape)
{
    tensor x = tensor_random(dtype, from, in, 1), out = tensor_new(dtype, to, out_shape);
    int64_t i[TRAMA_MAX_NDIM] = {0};

    run_unary("reshape", NULL, &out, &x);
    FOR_EACH(&out, o)
    {
        ck_assert(at(&out, o) == at(&x, i));
        next_index(&x, i);
    }
    ck_assert(outside_untouched(&out));
    tensor_free(&x);
    tensor_free(&out);
}

START_TEST(reshape_keeps_the_row_major_order)
{
    const trama_shape pairs[][2] = {
        {TRAMA_SHAPE(6, 12, 4), TRAMA_SHAPE(72, 2, 2)},
        {TRAMA_SHAPE(5, 6), TRAMA_SHAPE(3, 10)},
        {TRAMA_SHAPE(30), TRAMA_SHAPE(2, 3, 5)},
        {TRAMA_SHAPE(1), TRAMA_SCALAR},
        {TRAMA_SCALAR, TRAMA_SHAPE(1, 1)},
        {TRAMA_SHAPE(4, 0), TRAMA_SHAPE(0)},
        {TRAMA_SHAPE(7, 1, 9), TRAMA_SHAPE(1, 63, 1)},
        {TRAMA_SHAPE(2, 3, 4), TRAMA_SHAPE(2, 3, 4)},
    };
    for (int dtype = 0; dtype < TRAMA_N_DTYPES; dtype++)
        for (size_t p = 0; p < sizeof pairs / sizeof pairs[0]; p++)
            for (int orders = 0; orders < N_ORDERS * N_ORDERS; orders++) {
                const order from = (order)(orders / N_ORDERS), to = (order)(orders % N_ORDERS);
                check_reshape((trama_dtype)dtype, from, to, pairs[p][0], pairs[p][1]);
                check_reshape((trama_dtype)dtype, from, to, pairs[p][1], pairs[p][0]);
            }
}
END_TEST

START_TEST(reshard_copies)
{
    for (int dtype = 0; dtype < TRAMA_N_DTYPES; dtype++) {
        tensor x = tensor_random((trama_dtype)dtype, TURNED, TRAMA_SHAPE(19, 23), 1);
        tensor out = tensor_new((trama_dtype)dtype, BLOCK, TRAMA_SHAPE(19, 23));
        run_unary("reshard", NULL, &out, &x);
        FOR_EACH(&out, i)
        ck_assert(at(&out, i) == at(&x, i));
        tensor_free(&x);
        tensor_free(&out);
    }
}
END_TEST

RUN_TESTS("shape", transpose_moves_dim_perm_d_to_dim_d, reshape_keeps_the_row_major_order, reshard_copies)
