/* SPDX-License-Identifier: Apache-2.0 */
/* Softmax and cross entropy on a GPU of lines that are longer than what a team of threads holds, against naive loops in
 * double. */
#define TESTS_ON_GPU
#include "views.h"

static double naive_sum(const tensor *x, int axis, const int64_t *index, double *top)
{
    int64_t i[TRAMA_MAX_NDIM];
    double sum = 0;
    memcpy(i, index, sizeof i);
    *top = -INFINITY;
    for (i[axis] = 0; i[axis] < x->view.extent[axis]; i[axis]++)
        *top = fmax(*top, at(x, i));
    for (i[axis] = 0; i[axis] < x->view.extent[axis]; i[axis]++)
        sum += exp(at(x, i) - *top);
    return sum;
}

/* The sum along the axis of g y. */
static double naive_dot(const tensor *g, const tensor *y, int axis, const int64_t *index)
{
    int64_t i[TRAMA_MAX_NDIM];
    double sum = 0;
    memcpy(i, index, sizeof i);
    for (i[axis] = 0; i[axis] < g->view.extent[axis]; i[axis]++)
        sum += at(g, i) * at(y, i);
    return sum;
}

static void check(trama_dtype dtype, order how, trama_shape shape, int axis)
{
    const trama_attributes attributes = {.integer = {[SOFTMAX_AXIS] = axis}};
    const int lines = (int)shape.dim[!axis];
    const double unit = dtype == TRAMA_F64 ? 1e-13 : dtype == TRAMA_F32 ? 1e-6 : 8e-3;
    const double least = dtype == TRAMA_F16 ? 0x1p-24 : 0; /* the smallest that it has */
    tensor x = tensor_random(dtype, how, shape, 1), y = tensor_new(dtype, how, shape),
           d = tensor_new(dtype, how, shape);
    run_unary("softmax", &attributes, &y, &x);
    run_binary("softmax_grad", &attributes, &d, &x, &y);
    for (int line = 0; line < lines; line++) {
        int64_t i[TRAMA_MAX_NDIM] = {0};
        double top;
        i[!axis] = line;
        const double sum = naive_sum(&x, axis, i, &top), dot = naive_dot(&x, &y, axis, i);
        for (i[axis] = 0; i[axis] < shape.dim[axis]; i[axis]++) {
            const double want = exp(at(&x, i) - top) / sum, slope = at(&y, i) * (at(&x, i) - dot);
            ck_assert_msg(fabs(at(&y, i) - want) <= unit * want + least, "%s order %d [%d,%d] axis %d: %g, not %g",
                          trama_dtype_name(dtype), (int)how, (int)shape.dim[0], (int)shape.dim[1], axis, at(&y, i),
                          want);
            ck_assert(fabs(at(&d, i) - slope) <= unit * at(&y, i) * (fabs(at(&x, i)) + fabs(dot)) + least);
        }
    }
    ck_assert(outside_untouched(&y) && outside_untouched(&d));
    tensor_free(&x);
    tensor_free(&y);
    tensor_free(&d);
}

START_TEST(lines_of_several_warps_hold_along_both_dims)
{
    for (int dtype = 0; dtype < TRAMA_N_DTYPES; dtype++)
        if (trama_dtype_is_float((trama_dtype)dtype)) {
            check((trama_dtype)dtype, PACKED, TRAMA_SHAPE(5, 700), 1); /* several teams of several warps in a block */
            check((trama_dtype)dtype, PACKED, TRAMA_SHAPE(3, 1501), 1);
            check((trama_dtype)dtype, PACKED, TRAMA_SHAPE(2, 8192), 1);
            check((trama_dtype)dtype, PACKED, TRAMA_SHAPE(2, 12344), 1);
            check((trama_dtype)dtype, PACKED, TRAMA_SHAPE(1, 16384), 1);
            check((trama_dtype)dtype, BLOCK, TRAMA_SHAPE(1, 16387), 1);
            check((trama_dtype)dtype, PACKED, TRAMA_SHAPE(2, 20000), 1);
            check((trama_dtype)dtype, BLOCK, TRAMA_SHAPE(2, 8193), 1);
            check((trama_dtype)dtype, SPARSE, TRAMA_SHAPE(3, 2500), 1);
            check((trama_dtype)dtype, PACKED, TRAMA_SHAPE(128, 35), 0);
            check((trama_dtype)dtype, BLOCK, TRAMA_SHAPE(301, 35), 0);
        }
}
END_TEST

/* Lines of more than 16,500 elements. */
static void check_special_values(trama_dtype dtype, int64_t n)
{
    tensor x = tensor_new(dtype, PACKED, TRAMA_SHAPE(4, n)), y = tensor_new(dtype, PACKED, TRAMA_SHAPE(4, n));
    FOR_EACH(&x, i)
    put(&x, i, i[0] == 0 ? -INFINITY : i[1] < 12000 ? -INFINITY : i[1] < 12002 ? 1e4 : -1e4);
    PUT(&x, NAN, 2, 16500);
    PUT(&x, INFINITY, 3, 17);
    run_unary("softmax", &(trama_attributes){.integer = {[SOFTMAX_AXIS] = 1}}, &y, &x);
    FOR_EACH(&y, i)
    if (i[0] == 1)
        ck_assert(at(&y, i) == (i[1] == 12000 || i[1] == 12001 ? 0.5 : 0));
    else
        ck_assert(isnan(at(&y, i)));
    tensor_free(&x);
    tensor_free(&y);
}

START_TEST(long_lines_know_infinities_and_nan)
{
    static const trama_dtype dtypes[] = {TRAMA_F32, TRAMA_BF16, TRAMA_F16};
    for (int i = 0; i < 3; i++) {
        check_special_values(dtypes[i], 17000);
        check_special_values(dtypes[i], 16501);
    }
}
END_TEST

START_TEST(cross_entropy_of_long_rows_and_its_gradient_hold)
{
    for (int i = 0; i < 4; i++) {
        const bool bad = i & 1;
        const int64_t n = i < 2 ? 8205 : 705;
        tensor z = tensor_random(TRAMA_F32, BLOCK, TRAMA_SHAPE(3, n), 1),
               loss = tensor_new(TRAMA_F32, PACKED, TRAMA_SCALAR);
        tensor labels = tensor_new(TRAMA_I32, SPARSE, TRAMA_SHAPE(3)), g = tensor_new(TRAMA_F32, PACKED, TRAMA_SCALAR);
        tensor d = tensor_new(TRAMA_F32, PACKED, TRAMA_SHAPE(3, n));
        double want = 0, top;
        PUT(&labels, n - 1, 0);
        PUT(&labels, bad ? n : 0, 1);
        PUT(&labels, n / 2, 2);
        PUT(&g, 1.5, 0);
        run_binary("cross_entropy", NULL, &loss, &z, &labels);
        run_op("cross_entropy_grad", NULL, 1, 3, (tensor *[]){&d, &z, &labels, &g});
        for (int64_t row = 0; row < 3; row++) {
            const int64_t label = (int64_t)AT(&labels, row);
            const double sum = naive_sum(&z, 1, (int64_t[TRAMA_MAX_NDIM]){row}, &top);
            want += label < n ? log(sum) + top - AT(&z, row, label) : NAN;
            for (int64_t j = 0; j < n; j++) {
                const double slope = label < n ? 0.5 * (exp(AT(&z, row, j) - top) / sum - (j == label)) : NAN;
                ck_assert(label < n ? fabs(AT(&d, row, j) - slope) <= 1e-6 * fabs(slope) : isnan(AT(&d, row, j)));
            }
        }
        ck_near(TRAMA_F32, AT(&loss, 0), want / 3, 2);
        tensor *all[] = {&z, &loss, &labels, &g, &d};
        for (int t = 0; t < 5; t++)
            tensor_free(all[t]);
    }
}
END_TEST

RUN_TESTS("cuda_softmax", lines_of_several_warps_hold_along_both_dims, long_lines_know_infinities_and_nan,
          cross_entropy_of_long_rows_and_its_gradient_hold)
