/* SPDX-License-Identifier: Apache-2.0 */
/* Products against the triple loop in double; entries are multiples of 1/64, so that every sum here is exact. */
#include "matrices.h"

typedef struct problem {
    int64_t m, n, k;
    int out_ndim, x_ndim, y_ndim; /* batch dims */
    int64_t out_batch[2], x_batch[2], y_batch[2];
} problem;

/* variant: two bits of transposition, then three memory orders */
static void check_product(const problem *p, trama_dtype dtype, int variant)
{
    const bool tx = variant & 1, ty = variant & 2;
    const int orders = variant >> 2;
    const trama_attributes attributes = {.integer = {[MATMUL_TRANS_X] = tx, [MATMUL_TRANS_Y] = ty}};
    tensor out =
        tensor_new(dtype, (order)(orders % N_ORDERS), matrix_shape(p->out_ndim, p->out_batch, p->m, p->n, false));
    tensor x = tensor_random(dtype, (order)(orders / N_ORDERS % N_ORDERS),
                             matrix_shape(p->x_ndim, p->x_batch, p->m, p->k, tx), 1);
    tensor y = tensor_random(dtype, (order)(orders / N_ORDERS / N_ORDERS),
                             matrix_shape(p->y_ndim, p->y_batch, p->k, p->n, ty), 2);
    run_binary("matmul", &attributes, &out, &x, &y);
    FOR_EACH(&out, i)
    ck_near(dtype, at(&out, i), element_wrapped(dtype, naive_product(&x, &y, &out, i, tx, ty)), 1);
    ck_assert(outside_untouched(&out));
    void (*add)(const trama_call *, kernel_addition) = kernel_of(&trama_op_matmul)->cpu_add;
    if (trama_dtype_is_float(dtype)) { /* a quarter of the product is taken from it again; then three times the product
                                          is in its place */

        const trama_view in[] = {x.view, y.view};
        const trama_call call = {&trama_op_matmul, &attributes, 2, 1, in, &out.view, false};
        add(&call, (kernel_addition){.keep = 1, .factor = -0.25});
        FOR_EACH(&out, i)
        ck_near(dtype, at(&out, i),
                stored(dtype, naive_product(&x, &y, &out, i, tx, ty)) - 0.25 * naive_product(&x, &y, &out, i, tx, ty),
                1);
        add(&call, (kernel_addition){.keep = 0, .factor = 3});
        FOR_EACH(&out, i)
        ck_near(dtype, at(&out, i), 3 * naive_product(&x, &y, &out, i, tx, ty), 1);
        ck_assert(outside_untouched(&out));
    }
    tensor_free(&out);
    tensor_free(&x);
    tensor_free(&y);
}

static void check_all(const problem *p, bool integers)
{
    for (int dtype = 0; dtype < TRAMA_N_DTYPES; dtype = next_number(dtype))
        for (int variant = 0; variant < 4 * N_ORDERS * N_ORDERS * N_ORDERS; variant += EACH_VARIANT)
            if (integers || trama_dtype_is_float((trama_dtype)dtype))
                check_product(p, (trama_dtype)dtype, variant);
}

START_TEST(products_hold_in_every_type_memory_order_and_transposition)
{
    check_all(&(problem){.m = 5, .n = 7, .k = 11}, true);
    check_all(&(problem){.m = 17, .n = 33, .k = 19}, false);
}
END_TEST

START_TEST(extents_of_1_and_0_are_no_exception)
{
    for (int ones = 0; ones < 8; ones++)
        check_all(&(problem){.m = ones & 1 ? 1 : 3, .n = ones & 2 ? 1 : 4, .k = ones & 4 ? 1 : 5}, true);
    for (int zeros = 1; zeros < 8; zeros++)
        check_all(&(problem){.m = zeros & 1 ? 0 : 3, .n = zeros & 2 ? 0 : 4, .k = zeros & 4 ? 0 : 5}, true);
}
END_TEST

START_TEST(batch_dims_broadcast)
{
    check_all(&(problem){4, 3, 5, 1, 1, 1, {3}, {3}, {3}}, true);
    check_all(&(problem){4, 3, 5, 1, 1, 0, {3}, {3}, {0}}, true);
    check_all(&(problem){4, 3, 5, 1, 0, 1, {3}, {0}, {3}}, false);
    check_all(&(problem){1, 3, 5, 1, 1, 0, {6}, {6}, {0}}, false);
    check_all(&(problem){2, 3, 4, 2, 2, 2, {3, 2}, {3, 1}, {1, 2}}, true);
    check_all(&(problem){2, 3, 4, 2, 2, 1, {3, 2}, {1, 2}, {1}}, false);
    check_all(&(problem){2, 3, 4, 1, 1, 1, {0}, {0}, {1}}, false);
}
END_TEST

/* A product in which x has no rows, or y no columns; the matrix may be transposed, and comes n_batch 1: three times. */
typedef struct vector_problem {
    int64_t m, n, k;
    int n_batch;
    bool row, column, trans;
} vector_problem;

static double naive_vectors(const vector_problem *p, const tensor *x, const tensor *y, const int64_t *index)
{
    const int b = p->n_batch, t = p->trans;
    const int64_t m = index[b], n = index[b];
    int64_t i[TRAMA_MAX_NDIM] = {index[0]}, j[TRAMA_MAX_NDIM] = {index[0]};
    double sum = 0;

    for (int64_t l = 0; l < p->k; l++) {
        i[p->row ? 0 : b + !t] = j[p->column ? 0 : b + t] = l;
        if (!p->row)
            i[b + t] = m;
        if (!p->column)
            j[b + !t] = n;
        sum += at(x, i) * at(y, j);
    }
    return sum;
}

static void check_vectors(const vector_problem *p, trama_dtype dtype, int orders)
{
    static const int64_t batch[] = {3};
    const trama_attributes attributes = {
        .integer = {[MATMUL_TRANS_X] = p->trans && !p->row, [MATMUL_TRANS_Y] = p->trans && !p->column}};
    trama_shape vector = TRAMA_SHAPE(p->k), shape = trama_shape_of(p->n_batch, batch);
    if (!p->row || !p->column)
        shape.dim[shape.ndim++] = p->row ? p->n : p->m;
    const trama_shape rows = matrix_shape(p->n_batch, batch, p->m, p->k, p->trans),
                      columns = matrix_shape(p->n_batch, batch, p->k, p->n, p->trans);
    tensor x = tensor_random(dtype, (order)(orders % N_ORDERS), p->row ? vector : rows, 1);
    tensor y = tensor_random(dtype, (order)(orders / N_ORDERS), p->column ? vector : columns, 2);
    tensor out = tensor_new(dtype, (order)((orders + 1) % N_ORDERS), shape);
    run_binary("matmul", &attributes, &out, &x, &y);
    FOR_EACH(&out, i)
    ck_near(dtype, at(&out, i), element_wrapped(dtype, naive_vectors(p, &x, &y, i)), 1);
    ck_assert(outside_untouched(&out));
    void (*add)(const trama_call *, kernel_addition) = kernel_of(&trama_op_matmul)->cpu_add;
    if (trama_dtype_is_float(dtype)) {
        const trama_view in[] = {x.view, y.view};
        const trama_call call = {&trama_op_matmul, &attributes, 2, 1, in, &out.view, false};
        add(&call, (kernel_addition){.keep = 0, .factor = 3});
        FOR_EACH(&out, i)
        ck_near(dtype, at(&out, i), 3 * naive_vectors(p, &x, &y, i), 1);
    }
    tensor_free(&x);
    tensor_free(&y);
    tensor_free(&out);
}

START_TEST(vectors_have_the_contracted_dim_alone)
{
    static const vector_problem problems[] = {
        {1, 5, 9, 0, true, false, false},   {1, 5, 9, 0, true, false, true},  {1, 35, 67, 1, true, false, false},
        {1, 5, 9, 1, true, false, true},    {6, 1, 9, 0, false, true, false}, {6, 1, 9, 0, false, true, true},
        {35, 1, 67, 1, false, true, false}, {6, 1, 9, 1, false, true, true},  {1, 1, 9, 0, true, true, false},
        {1, 1, 100, 0, true, true, false},  {1, 1, 0, 0, true, true, false},  {1, 5, 0, 1, true, false, false},
        {0, 1, 9, 0, false, true, false},   {1, 1, 1, 0, true, false, false},
    };
    for (size_t p = 0; p < sizeof problems / sizeof *problems; p++)
        for (int dtype = 0; dtype < TRAMA_N_DTYPES; dtype = next_number(dtype))
            for (int orders = 0; orders < N_ORDERS * N_ORDERS; orders += EACH_VARIANT)
                check_vectors(&problems[p], (trama_dtype)dtype, orders);
}
END_TEST

/* More rows, columns and terms than are in f32 at once. */
START_TEST(products_of_halves_are_rounded_once_however_large)
{
    for (int dtype = TRAMA_BF16; dtype <= TRAMA_F16; dtype++)
        for (int variant = 0; variant < 4; variant += 3) {
            check_product(&(problem){.m = 1030, .n = 2, .k = 520}, (trama_dtype)dtype, variant);
            check_product(&(problem){.m = 2, .n = 1030, .k = 520}, (trama_dtype)dtype, variant);
        }
}
END_TEST

START_TEST(products_with_a_vector_hold_like_others)
{
    check_all(&(problem){.m = 35, .n = 1, .k = 67}, true);
    check_all(&(problem){.m = 1, .n = 33, .k = 67}, true);
    check_all(&(problem){.m = 1031, .n = 1, .k = 6}, false);
    check_all(&(problem){.m = 1, .n = 1031, .k = 7}, false);
    check_all(&(problem){.m = 1, .n = 1, .k = 100}, false);
    check_all(&(problem){4, 1, 35, 1, 1, 1, {3}, {3}, {3}}, false);
    check_all(&(problem){4, 1, 35, 1, 1, 0, {3}, {3}, {0}}, false);
    check_all(&(problem){1, 5, 35, 1, 1, 1, {3}, {3}, {3}}, false);
    check_all(&(problem){1, 5, 35, 1, 0, 1, {3}, {0}, {3}}, false);
}
END_TEST

/* The sum over all dims of x and y but the last. */
static double naive_sum(const tensor *x, const tensor *y, const int64_t *index)
{
    tensor terms = *x;
    const int last = --terms.view.ndim;
    double sum = 0;
    FOR_EACH(&terms, k)
    {
        int64_t i[TRAMA_MAX_NDIM], j[TRAMA_MAX_NDIM];
        memcpy(i, k, sizeof i);
        memcpy(j, k, sizeof j);
        i[last] = index[0];
        j[last] = index[1];
        sum += at(x, i) * at(y, j);
    }
    return sum;
}

/* variant: three memory orders; those of x and y decide whether the batch is one run of memory */
static void check_sum(trama_dtype dtype, trama_shape of_x, trama_shape of_y, int variant)
{
    const trama_attributes attributes = {.integer = {[MATMUL_TRANS_X] = 1, [MATMUL_SUM_BATCH] = 1}};
    const int last = of_x.ndim - 1;
    tensor out = tensor_new(dtype, (order)(variant % N_ORDERS), TRAMA_SHAPE(of_x.dim[last], of_y.dim[last]));
    tensor x = tensor_random(dtype, (order)(variant / N_ORDERS % N_ORDERS), of_x, 1);
    tensor y = tensor_random(dtype, (order)(variant / N_ORDERS / N_ORDERS), of_y, 2);
    run_binary("matmul", &attributes, &out, &x, &y);
    FOR_EACH(&out, i)
    ck_near(dtype, at(&out, i), element_wrapped(dtype, naive_sum(&x, &y, i)), 1);
    if (trama_dtype_is_float(dtype)) {
        const trama_view in[] = {x.view, y.view};
        const trama_call call = {&trama_op_matmul, &attributes, 2, 1, in, &out.view, false};
        kernel_of(&trama_op_matmul)->cpu_add(&call, (kernel_addition){.keep = 1, .factor = -0.25});
        FOR_EACH(&out, i)
        ck_near(dtype, at(&out, i), stored(dtype, naive_sum(&x, &y, i)) - 0.25 * naive_sum(&x, &y, i), 1);
    }
    ck_assert(outside_untouched(&out));
    tensor_free(&out);
    tensor_free(&x);
    tensor_free(&y);
}

START_TEST(sums_over_a_batch_are_one_product)
{
    for (int dtype = 0; dtype < TRAMA_N_DTYPES; dtype = next_number(dtype))
        for (int variant = 0; variant < N_ORDERS * N_ORDERS * N_ORDERS; variant += EACH_VARIANT) {
            check_sum((trama_dtype)dtype, TRAMA_SHAPE(3, 5, 7), TRAMA_SHAPE(3, 5, 4), variant);
            check_sum((trama_dtype)dtype, TRAMA_SHAPE(2, 3, 5, 4), TRAMA_SHAPE(2, 3, 5, 1), variant);
            check_sum((trama_dtype)dtype, TRAMA_SHAPE(3, 1, 1), TRAMA_SHAPE(3, 1, 6), variant);
            check_sum((trama_dtype)dtype, TRAMA_SHAPE(0, 5, 7), TRAMA_SHAPE(0, 5, 4), variant);
            check_sum((trama_dtype)dtype, TRAMA_SHAPE(6, 7), TRAMA_SHAPE(6, 4), variant);
        }
}
END_TEST

START_TEST(repeated_operands_with_strides_of_0_are_read_right)
{
    tensor x = tensor_random(TRAMA_F32, PACKED, TRAMA_SHAPE(1, 5), 1),
           y = tensor_random(TRAMA_F32, PACKED, TRAMA_SHAPE(5, 1), 2);
    tensor out = tensor_new(TRAMA_F32, PACKED, TRAMA_SHAPE(4, 3));
    x.view.extent[0] = 4, x.view.stride[0] = 0;
    y.view.extent[1] = 3, y.view.stride[1] = 0;
    run_binary("matmul", NULL, &out, &x, &y);
    FOR_EACH(&out, i)
    ck_assert(at(&out, i) == naive_product(&x, &y, &out, i, false, false));
    tensor_free(&x);
    tensor_free(&y);
    tensor_free(&out);
}
END_TEST

START_TEST(old_contents_of_the_result_do_not_matter)
{
    tensor x = tensor_random(TRAMA_F32, PACKED, TRAMA_SHAPE(9, 4), 1),
           y = tensor_random(TRAMA_F32, PACKED, TRAMA_SHAPE(4, 6), 2);
    tensor out = tensor_new(TRAMA_F32, PACKED, TRAMA_SHAPE(9, 6));
    FOR_EACH(&out, i)
    put(&out, i, NAN);
    run_binary("matmul", NULL, &out, &x, &y);
    FOR_EACH(&out, i)
    ck_assert(at(&out, i) == naive_product(&x, &y, &out, i, false, false));
    tensor_free(&x);
    tensor_free(&y);
    tensor_free(&out);
}
END_TEST

/* dist/README.md: the value of A B with A = [[1,2],[3,4]], B = [[5,6],[7,8]], and B's rows split over two processes */
START_TEST(the_published_case_holds_whole_and_as_partial_sums)
{
    static const double want[2][2] = {{19, 22}, {43, 50}};
    tensor a = tensor_new(TRAMA_F32, PACKED, TRAMA_SHAPE(2, 2)), b = tensor_new(TRAMA_F32, PACKED, TRAMA_SHAPE(2, 2));
    tensor terms[] = {tensor_new(TRAMA_F32, PACKED, TRAMA_SHAPE(2, 2)),
                      tensor_new(TRAMA_F32, PACKED, TRAMA_SHAPE(2, 2))};
    for (int64_t i = 0; i < 4; i++)
        PUT(&a, (double)(i + 1), i / 2, i % 2), PUT(&b, (double)(i + 5), i / 2, i % 2);
    for (int64_t process = 0; process < 2; process++) {
        tensor column = a, row = b;
        column.view.extent[1] = row.view.extent[0] = 1;
        column.view.data = element(&a.view, (int64_t[]){0, process});
        row.view.data = element(&b.view, (int64_t[]){process, 0});
        run_binary("matmul", NULL, &terms[process], &column, &row);
    }
    run_binary("add", NULL, &terms[0], &terms[0], &terms[1]);
    run_binary("matmul", NULL, &terms[1], &a, &b);
    FOR_EACH(&a, i)
    ck_assert(at(&terms[0], i) == want[i[0]][i[1]] && at(&terms[1], i) == want[i[0]][i[1]]);
    tensor_free(&a);
    tensor_free(&b);
    tensor_free(&terms[0]);
    tensor_free(&terms[1]);
}
END_TEST

RUN_TESTS("matmul", products_hold_in_every_type_memory_order_and_transposition, extents_of_1_and_0_are_no_exception,
          batch_dims_broadcast, products_of_halves_are_rounded_once_however_large,
          products_with_a_vector_hold_like_others, vectors_have_the_contracted_dim_alone,
          sums_over_a_batch_are_one_product, repeated_operands_with_strides_of_0_are_read_right,
          old_contents_of_the_result_do_not_matter, the_published_case_holds_whole_and_as_partial_sums)
