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

/* The first rows of a tensor [rows, ..], counted from `from`. */
static tensor rows_of(trama_dtype dtype, order how, trama_shape whole, int64_t from, int64_t n)
{
    trama_shape shape = whole;
    shape.dim[0] = n;
    tensor t = tensor_random(dtype, how, shape, 1);
    t.view.offset[0] = from;
    t.view.global[0] = whole.dim[0];
    return t;
}

/* The place of an element in the whole tensor. */
static int64_t number_of(const trama_view *v, const int64_t *index)
{
    int64_t number = 0;
    for (int d = 0; d < v->ndim; d++)
        number = number * v->global[d] + v->offset[d] + index[d];
    return number;
}

/* Rows of the result, from rows of the operand that begin before them and end behind them. */
static void check_rows(trama_dtype dtype, order from, order to, trama_shape in, trama_shape out_shape)
{
    const int64_t n_in = trama_shape_count(in) / in.dim[0], n_out = trama_shape_count(out_shape) / out_shape.dim[0];
    for (int64_t lo = 0; lo < out_shape.dim[0]; lo += 2)
        for (int64_t hi = lo; hi <= out_shape.dim[0]; hi += 3) {
            const int64_t first = lo * n_out / n_in, end = hi > lo ? (hi * n_out - 1) / n_in + 1 : first;
            tensor x = rows_of(dtype, from, in, first, end - first), out = rows_of(dtype, to, out_shape, lo, hi - lo);
            run_unary("reshape", NULL, &out, &x);
            FOR_EACH(&out, o)
            {
                int64_t at_x[TRAMA_MAX_NDIM], number = number_of(&out.view, o);
                for (int d = in.ndim - 1; d >= 0; d--) {
                    at_x[d] = number % in.dim[d] - x.view.offset[d];
                    number /= in.dim[d];
                }
                ck_assert(at(&out, o) == at(&x, at_x));
            }
            ck_assert(outside_untouched(&out));
            tensor_free(&x);
            tensor_free(&out);
        }
}

START_TEST(reshape_takes_rows_of_another_size)
{
    const trama_shape pairs[][2] = {
        {TRAMA_SHAPE(7, 16), TRAMA_SHAPE(112)},         {TRAMA_SHAPE(7, 4, 3), TRAMA_SHAPE(28, 3)},
        {TRAMA_SHAPE(6, 35), TRAMA_SHAPE(10, 21)},      {TRAMA_SHAPE(9, 8, 2), TRAMA_SHAPE(12, 12)},
        {TRAMA_SHAPE(5, 1, 32), TRAMA_SHAPE(20, 2, 4)},
    };
    for (int i = 0; i < TRAMA_N_DTYPES * N_ORDERS * N_ORDERS; i++) { /* element types and orders in turn */
        const trama_shape *pair = pairs[i % (int)(sizeof pairs / sizeof pairs[0])];
        const order from = (order)(i % N_ORDERS), to = (order)(i / N_ORDERS % N_ORDERS);
        check_rows((trama_dtype)(i % TRAMA_N_DTYPES), from, to, pair[0], pair[1]);
        check_rows((trama_dtype)(i % TRAMA_N_DTYPES), from, to, pair[1], pair[0]);
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

RUN_TESTS("shape", transpose_moves_dim_perm_d_to_dim_d, reshape_keeps_the_row_major_order,
          reshape_takes_rows_of_another_size, reshard_copies)
