/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions, argmax and expand against naive loops in double, over every set of dims. */
#include "views.h"

static bool in_mask(int64_t mask, int d)
{
    return mask >> d & 1;
}

/* The index of a result element that an operand element falls into. */
static void result_index(const tensor *x, int64_t mask, bool keep_dim, const int64_t *index, int64_t *result)
{
    for (int d = 0, to = 0; d < x->view.ndim; d++)
        if (!in_mask(mask, d) || keep_dim)
            result[to++] = in_mask(mask, d) ? 0 : index[d];
}

static trama_shape result_shape(const tensor *x, int64_t mask, bool keep_dim)
{
    trama_shape shape = {0};
    for (int d = 0; d < x->view.ndim; d++)
        if (!in_mask(mask, d) || keep_dim)
            shape.dim[shape.ndim++] = in_mask(mask, d) ? 1 : x->view.extent[d];
    return shape;
}

typedef enum { SUM, MEAN, SQUARE, MAX, MIN } kind;
static const char *const names[] = {"sum", "mean", "sum_square", "max", "min"};

static double nothing(kind what, trama_dtype dtype)
{
    return what == MAX ? lowest_of(dtype) : what == MIN ? highest_of(dtype) : 0;
}

static double join(kind what, double a, double b)
{
    return what == MAX ? fmax(a, b) : what == MIN ? fmin(a, b) : a + (what == SQUARE ? b * b : b);
}

static void check_reduction(kind what, tensor *x, int64_t mask, bool keep_dim, order how)
{
    const trama_dtype dtype = x->view.dtype;
    const trama_attributes attributes = {.integer = {[REDUCE_AXES] = mask, [REDUCE_KEEP_DIM] = keep_dim}};
    tensor out = tensor_new(what == SQUARE ? TRAMA_F64 : dtype, how, result_shape(x, mask, keep_dim));
    tensor want = tensor_new(TRAMA_F64, PACKED, result_shape(x, mask, keep_dim));
    double global = 1;

    FOR_EACH(&want, i)
    put(&want, i, nothing(what, dtype));
    FOR_EACH(x, i)
    {
        int64_t to[TRAMA_MAX_NDIM];
        result_index(x, mask, keep_dim, i, to);
        put(&want, to, join(what, at(&want, to), at(x, i)));
    }
    for (int d = 0; d < x->view.ndim; d++)
        global *= in_mask(mask, d) ? (double)x->view.global[d] : 1;
    run_unary(names[what], &attributes, &out, x);
    FOR_EACH(&want, i)
    {
        double value = at(&want, i) / (what == MEAN ? global : 1);
        if (what == SUM)
            value = element_wrapped(dtype, value);
        ck_near(out.view.dtype, at(&out, i), value, 4);
    }
    ck_assert(outside_untouched(&out));
    tensor_free(&out);
    tensor_free(&want);
}

static void check_shape_of_reduction(kind what, trama_dtype dtype, trama_shape shape)
{
    for (int how = 0; how < N_ORDERS; how++) {
        tensor x = tensor_random(dtype, (order)how, shape, 1);
        for (int d = 0; d < shape.ndim; d++)
            x.view.global[d] += 3 * d + 1; /* a piece of something larger */
        for (int64_t mask = 0; mask < (int64_t)1 << shape.ndim; mask++)
            for (int keep = 0; keep < 2; keep++)
                check_reduction(what, &x, mask, keep, (order)((how + mask) % N_ORDERS));
        tensor_free(&x);
    }
}

static void check_kind(kind what, bool integers)
{
    for (int dtype = 0; dtype < N_REAL_DTYPES; dtype++) {
        if (!integers && !trama_dtype_is_float((trama_dtype)dtype))
            continue;
        check_shape_of_reduction(what, (trama_dtype)dtype, TRAMA_SCALAR);
        check_shape_of_reduction(what, (trama_dtype)dtype, TRAMA_SHAPE(67));
        check_shape_of_reduction(what, (trama_dtype)dtype, TRAMA_SHAPE(7, 530));
        check_shape_of_reduction(what, (trama_dtype)dtype, TRAMA_SHAPE(5, 1, 17));
        check_shape_of_reduction(what, (trama_dtype)dtype, TRAMA_SHAPE(3, 4, 2, 5));
        check_shape_of_reduction(what, (trama_dtype)dtype, TRAMA_SHAPE(3, 0, 2));
    }
}

START_TEST(sum_holds_over_any_dims)
{
    check_kind(SUM, true);
}
END_TEST

START_TEST(mean_divides_by_the_global_extents)
{
    check_kind(MEAN, false);
}
END_TEST

START_TEST(sum_square_is_f64)
{
    check_kind(SQUARE, false);
    tensor x = tensor_new(TRAMA_F32, PACKED, TRAMA_SHAPE(2)), out = tensor_new(TRAMA_F64, PACKED, TRAMA_SCALAR);
    PUT(&x, 0x1p100, 0);
    PUT(&x, 1, 1);
    run_unary("sum_square", &(trama_attributes){.integer = {[REDUCE_AXES] = 1}}, &out, &x);
    ck_assert(AT(&out, 0) == 0x1p200);
    tensor_free(&x);
    tensor_free(&out);
}
END_TEST

START_TEST(max_and_min_hold_over_any_dims_and_of_nothing_are_the_extremes)
{
    check_kind(MAX, true);
    check_kind(MIN, true);
}
END_TEST

START_TEST(max_and_min_propagate_nan_from_anywhere)
{
    for (int dtype = 0; dtype < TRAMA_N_DTYPES; dtype = next_float(dtype))
        for (int64_t nan_at = 0; nan_at < 35; nan_at++)
            for (int mask = 1; mask < 4; mask++) {
                tensor x = tensor_random((trama_dtype)dtype, PACKED, TRAMA_SHAPE(35, 35), 1);
                const trama_attributes attributes = {.integer = {[REDUCE_AXES] = mask}};
                tensor out = tensor_new((trama_dtype)dtype, PACKED, result_shape(&x, mask, false));
                PUT(&x, NAN, nan_at, nan_at);
                run_unary("max", &attributes, &out, &x);
                ck_assert(isnan(AT(&out, mask == 3 ? 0 : nan_at)));
                run_unary("min", &attributes, &out, &x);
                ck_assert(isnan(AT(&out, mask == 3 ? 0 : nan_at)));
                tensor_free(&x);
                tensor_free(&out);
            }
}
END_TEST

/* 2^24 + 1 is no float: a float accumulator would stay at 2^24 */
START_TEST(sums_of_f32_lose_nothing_to_small_terms)
{
    tensor x = tensor_new(TRAMA_F32, PACKED, TRAMA_SHAPE(5001, 3)), out = tensor_new(TRAMA_F32, PACKED, TRAMA_SHAPE(3));
    const trama_attributes first = {.integer = {[REDUCE_AXES] = 1}};
    FOR_EACH(&x, i)
    put(&x, i, i[0] ? 1 : 0x1p24);
    run_unary("sum", &first, &out, &x);
    for (int j = 0; j < 3; j++)
        ck_assert(AT(&out, j) == 0x1p24 + 5000);
    tensor_free(&x);
    tensor_free(&out);
}
END_TEST

/* Sums of a part of the kept dim, in another memory order, have the bits of the whole. */
START_TEST(the_bits_of_a_sum_do_not_depend_on_how_kept_dims_are_cut)
{
    for (int dtype = 0; dtype < TRAMA_N_DTYPES; dtype = next_float(dtype))
        for (int reduced = 0; reduced < 2; reduced++)
            for (int how = 0; how < N_ORDERS; how++) {
                const trama_attributes attributes = {.integer = {[REDUCE_AXES] = 1 << reduced}};
                tensor x = tensor_new((trama_dtype)dtype, (order)how, TRAMA_SHAPE(83, 83));
                tensor whole = tensor_new((trama_dtype)dtype, PACKED, TRAMA_SHAPE(83));
                FOR_EACH(&x, i)
                put(&x, i, sin((double)(i[0] * 83 + i[1])) * exp((double)(i[0] % 17) - 8));
                run_unary("sum", &attributes, &whole, &x);
                for (int64_t from = 0, n = 1; from < 83; from += n, n = n + 1 < 83 - from ? n + 1 : 83 - from) {
                    tensor part = tensor_new((trama_dtype)dtype, SPARSE, TRAMA_SHAPE(n)), cut = x;
                    cut.view.extent[1 - reduced] = n;
                    cut.view.data = element(&x.view, reduced ? (int64_t[]){from, 0} : (int64_t[]){0, from});
                    run_unary("sum", &attributes, &part, &cut);
                    for (int64_t i = 0; i < n; i++)
                        ck_assert(AT(&part, i) == AT(&whole, from + i));
                    tensor_free(&part);
                    if (from + n == 83)
                        break;
                }
                tensor_free(&x);
                tensor_free(&whole);
            }
}
END_TEST

/* flags: least, last. */
static int64_t place_of(const tensor *x, int64_t row, int dim, int flags)
{
    int64_t best = 0;
    for (int64_t j = 1; j < x->view.extent[dim]; j++) {
        const double now = AT(x, dim ? row : j, dim ? j : row), before = AT(x, dim ? row : best, dim ? best : row);
        if ((flags & 1 ? now < before : now > before) || (flags & 2 && now == before))
            best = j;
    }
    return best;
}

static void check_places(trama_dtype dtype, order how, int dim, int keep, int flags)
{
    const trama_attributes attributes = {
        .integer = {[REDUCE_AXES] = 1 << dim, [REDUCE_KEEP_DIM] = keep, [ARGMAX_LAST] = flags >> 1}};
    tensor x = tensor_random(dtype, how, TRAMA_SHAPE(141, 29), 3);
    tensor out = tensor_new(TRAMA_I64, dim ? BLOCK : PACKED, result_shape(&x, 1 << dim, keep));
    run_unary(flags & 1 ? "argmin" : "argmax", &attributes, &out, &x);
    FOR_EACH(&out, i)
    ck_assert(at(&out, i) == (double)place_of(&x, keep ? i[1 - dim] : i[0], dim, flags));
    ck_assert(outside_untouched(&out));
    tensor_free(&x);
    tensor_free(&out);
}

START_TEST(argmax_and_argmin_give_the_first_or_the_last_of_equals_along_any_dim)
{
    for (int dtype = 0; dtype < N_REAL_DTYPES; dtype++)
        for (int how = 0; how < N_ORDERS; how++)
            for (int dim = 0; dim < 2; dim++)
                for (int flags = 0; flags < 8; flags++)
                    check_places((trama_dtype)dtype, (order)how, dim, flags >> 2, flags & 3);
}
END_TEST

START_TEST(argmax_and_argmin_take_the_first_or_last_nan)
{
    const double values[] = {1, INFINITY, NAN, INFINITY, NAN, -INFINITY};
    for (int dtype = 0; dtype < TRAMA_N_DTYPES; dtype = next_float(dtype))
        for (int flags = 0; flags < 4; flags++)
            for (int dim = 0; dim < 2; dim++) {
                const trama_attributes attributes = {
                    .integer = {[REDUCE_AXES] = 1 << dim, [ARGMAX_LAST] = flags >> 1}};
                tensor x = tensor_new((trama_dtype)dtype, PACKED, dim ? TRAMA_SHAPE(2, 6) : TRAMA_SHAPE(6, 2)),
                       out = tensor_new(TRAMA_I64, PACKED, TRAMA_SHAPE(2));
                FOR_EACH(&x, i)
                put(&x, i, values[i[dim]]);
                run_unary(flags & 1 ? "argmin" : "argmax", &attributes, &out, &x);
                for (int i = 0; i < 2; i++)
                    ck_assert(AT(&out, i) == (flags & 2 ? 4 : 2));
                tensor_free(&x);
                tensor_free(&out);
            }
}
END_TEST

START_TEST(expand_repeats_and_averages_over_the_global_repetitions)
{
    for (int dtype = 0; dtype < N_REAL_DTYPES; dtype++)
        for (int64_t mask = 0; mask < 8; mask++)
            for (int flags = 0; flags < 4 * N_ORDERS; flags++) {
                const bool keep = flags & 1, average = (flags & 2) && dtype != TRAMA_BOOL;
                const trama_attributes attributes = {
                    .integer = {[REDUCE_AXES] = mask, [REDUCE_KEEP_DIM] = keep, [EXPAND_AVERAGE] = average}};
                tensor out = tensor_new((trama_dtype)dtype, (order)(flags / 4), TRAMA_SHAPE(3, 17, 5));
                tensor g = tensor_random((trama_dtype)dtype, TURNED, result_shape(&out, mask, keep), 1);
                tensor like = {.view = out.view};
                double repeats = 1;
                like.view.data = NULL;
                for (int d = 0; d < 3; d++) {
                    out.view.global[d] = 2 * out.view.extent[d] + 1;
                    repeats *= in_mask(mask, d) ? (double)out.view.global[d] : 1;
                }
                for (int d = 0, to = 0; d < 3; d++)
                    if (!in_mask(mask, d) || keep)
                        g.view.global[to++] = in_mask(mask, d) ? 1 : out.view.global[d];
                run_binary("expand", &attributes, &out, &g, &like);
                FOR_EACH(&out, i)
                {
                    int64_t from[TRAMA_MAX_NDIM];
                    result_index(&out, mask, keep, i, from);
                    double want = at(&g, from) / (average ? repeats : 1);
                    ck_near((trama_dtype)dtype, at(&out, i),
                            trama_dtype_is_float((trama_dtype)dtype) ? want : trunc(want), 1);
                }
                ck_assert(outside_untouched(&out));
                tensor_free(&out);
                tensor_free(&g);
            }
}
END_TEST

RUN_TESTS("reduce", sum_holds_over_any_dims, mean_divides_by_the_global_extents, sum_square_is_f64,
          max_and_min_hold_over_any_dims_and_of_nothing_are_the_extremes, max_and_min_propagate_nan_from_anywhere,
          sums_of_f32_lose_nothing_to_small_terms, the_bits_of_a_sum_do_not_depend_on_how_kept_dims_are_cut,
          argmax_and_argmin_give_the_first_or_the_last_of_equals_along_any_dim, argmax_and_argmin_take_the_first_or_last_nan,
          expand_repeats_and_averages_over_the_global_repetitions)
