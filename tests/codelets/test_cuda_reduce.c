/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions on a GPU whose terms are of several segments, against naive loops in double. */
#define TESTS_ON_GPU
#include "views.h"

static bool in_mask(int64_t mask, int d)
{
    return mask >> d & 1;
}

static trama_shape kept_shape(const tensor *x, int64_t mask)
{
    trama_shape shape = {0};
    for (int d = 0; d < x->view.ndim; d++)
        if (!in_mask(mask, d))
            shape.dim[shape.ndim++] = x->view.extent[d];
    return shape;
}

static void kept_index(const tensor *x, int64_t mask, const int64_t *index, int64_t *kept)
{
    for (int d = 0, to = 0; d < x->view.ndim; d++)
        if (!in_mask(mask, d))
            kept[to++] = index[d];
}

static tensor naive(const tensor *x, int64_t mask, int what)
{
    tensor want = tensor_new(TRAMA_F64, PACKED, kept_shape(x, mask));
    FOR_EACH(&want, i)
    put(&want, i, what ? -INFINITY : 0);
    FOR_EACH(x, i)
    {
        int64_t to[TRAMA_MAX_NDIM];
        kept_index(x, mask, i, to);
        put(&want, to, what ? fmax(at(&want, to), at(x, i)) : at(&want, to) + at(x, i));
    }
    return want;
}

/* what: 0 the sum, 1 the maximum */
static void check(trama_dtype dtype, order how, trama_shape shape, int64_t mask, int what)
{
    const trama_attributes attributes = {.integer = {[REDUCE_AXES] = mask}};
    tensor x = tensor_random(dtype, how, shape, 1), out = tensor_new(dtype, how, kept_shape(&x, mask));
    tensor want = naive(&x, mask, what);
    run_unary(what ? "max" : "sum", &attributes, &out, &x);
    FOR_EACH(&want, i)
    {
        const double value = at(&want, i);
        ck_near(dtype, at(&out, i), what ? value : element_wrapped(dtype, value), 1);
    }
    ck_assert(outside_untouched(&out));
    tensor_free(&x);
    tensor_free(&out);
    tensor_free(&want);
}

START_TEST(lines_of_several_segments_are_summed)
{
    for (int dtype = 0; dtype < TRAMA_N_DTYPES; dtype = next_number(dtype))
        for (int what = 0; what < 2; what++) {
            check((trama_dtype)dtype, PACKED, TRAMA_SHAPE(9, 1500), 2, what); /* several teams in a block */
            check((trama_dtype)dtype, PACKED, TRAMA_SHAPE(2, 8192), 2, what);
            check((trama_dtype)dtype, PACKED, TRAMA_SHAPE(3, 16400), 2, what);
            check((trama_dtype)dtype, BLOCK, TRAMA_SHAPE(3, 8193), 2, what);
            check((trama_dtype)dtype, SPARSE, TRAMA_SHAPE(7, 3, 1201), 5, what);
            check((trama_dtype)dtype, TURNED, TRAMA_SHAPE(131, 67), 3, what);
        }
}
END_TEST

START_TEST(columns_of_several_segments_are_summed)
{
    for (int dtype = 0; dtype < TRAMA_N_DTYPES; dtype = next_number(dtype))
        for (int what = 0; what < 2; what++) {
            check((trama_dtype)dtype, PACKED, TRAMA_SHAPE(300, 72), 1, what);
            check((trama_dtype)dtype, PACKED, TRAMA_SHAPE(257, 37), 1, what);
            check((trama_dtype)dtype, BLOCK, TRAMA_SHAPE(19, 23, 3, 8), 3, what);
            check((trama_dtype)dtype, TURNED, TRAMA_SHAPE(2, 129, 33), 2, what);
            check((trama_dtype)dtype, PACKED, TRAMA_SHAPE(4801, 1, 3), 1, what);
        }
}
END_TEST

/* A card with less scratch memory, or of another size; 0: as it is. */
typedef struct other_card {
    const trama_call *call;
    size_t workspace;
    int multiprocessors;
} other_card;

static void run_on_other(const trama_view *device, const gpu *g, void *with)
{
    const other_card *o = with;
    trama_call call = *o->call;
    gpu card = *g;
    if (o->workspace)
        card.workspace_bytes = o->workspace;
    if (o->multiprocessors)
        card.multiprocessors = o->multiprocessors;
    call.out = device;
    call.in = device + 1;
    kernel_of(call.op)->cuda(&call, &card);
}

START_TEST(a_small_workspace_gives_the_same_bits)
{
    static const trama_op op = {.name = "sum"};
    for (int lines = 0; lines < 2; lines++) {
        const trama_shape shape = lines ? TRAMA_SHAPE(9, 9001) : TRAMA_SHAPE(400, 72);
        const trama_attributes attributes = {.integer = {[REDUCE_AXES] = lines ? 2 : 1}};
        tensor x = tensor_random(TRAMA_F64, PACKED, shape, 1);
        tensor usual = tensor_new(TRAMA_F64, PACKED, TRAMA_SHAPE(lines ? 9 : 72)),
               small = tensor_new(TRAMA_F64, PACKED, TRAMA_SHAPE(lines ? 9 : 72));
        const trama_view views[] = {small.view, x.view};
        const trama_call call = {&op, &attributes, 1, 1, views + 1, views, false};
        FOR_EACH(&x, i)
        put(&x, i, sin(1000 * at(&x, i) + (double)(i[0] + i[1])));
        run_unary("sum", &attributes, &usual, &x);
        on_gpu_run(2, 1, views, run_on_other, &(other_card){&call, 256, 0});
        ck_assert(!memcmp(usual.memory, small.memory, usual.bytes));
        tensor_free(&x);
        tensor_free(&usual);
        tensor_free(&small);
    }
}
END_TEST

/* A small card reads neighbouring columns in packs, a large one alone, so that all of it works. */
START_TEST(columns_have_the_same_bits_on_any_card)
{
    static const trama_op op = {.name = "sum"};
    for (int dtype = 0; dtype < TRAMA_N_DTYPES; dtype = next_number(dtype))
        for (int dims = 2; dims <= 3; dims++) { /* terms along one dim, and along two */
            const trama_shape shape = dims == 2 ? TRAMA_SHAPE(401, 512) : TRAMA_SHAPE(3, 401, 512);
            const trama_attributes attributes = {.integer = {[REDUCE_AXES] = dims == 2 ? 1 : 3}};
            tensor x = tensor_random((trama_dtype)dtype, PACKED, shape, 1);
            tensor want = naive(&x, attributes.integer[REDUCE_AXES], 0), sum[2];
            for (int large = 0; large < 2; large++) {
                sum[large] = tensor_new((trama_dtype)dtype, PACKED, TRAMA_SHAPE(512));
                const trama_view views[] = {sum[large].view, x.view};
                const trama_call call = {&op, &attributes, 1, 1, views + 1, views, false};
                on_gpu_run(2, 1, views, run_on_other, &(other_card){&call, 0, large ? 1 << 20 : 1});
            }
            ck_assert(!memcmp(sum[0].memory, sum[1].memory, sum[0].bytes));
            FOR_EACH(&want, i)
            ck_near((trama_dtype)dtype, at(&sum[0], i), element_wrapped((trama_dtype)dtype, at(&want, i)), 1);
            tensor_free(&x);
            tensor_free(&want);
            for (int large = 0; large < 2; large++)
                tensor_free(&sum[large]);
        }
}
END_TEST

START_TEST(argmax_takes_the_first_of_equals_and_of_nans_over_segments)
{
    for (int along = 0; along < 2; along++)
        for (int nan = 0; nan < 2; nan++) {
            const int64_t n = along ? 20000 : 700;
            const trama_attributes attributes = {.integer = {[REDUCE_AXES] = along ? 2 : 1}};
            tensor x = tensor_new(TRAMA_F32, PACKED, along ? TRAMA_SHAPE(3, n) : TRAMA_SHAPE(n, 3));
            tensor out = tensor_new(TRAMA_I64, PACKED, TRAMA_SHAPE(3));
            FOR_EACH(&x, i)
            {
                const int64_t place = i[along], line = i[!along];
                const bool top = place % 300 == 299 && place > 100 * line;
                put(&x, i, top ? nan ? NAN : 7 : line == 2 ? -INFINITY : (double)(place % 5));
            }
            run_unary("argmax", &attributes, &out, &x);
            for (int64_t line = 0; line < 3; line++)
                ck_assert_int_eq((int)at(&out, &line), 299);
            tensor_free(&x);
            tensor_free(&out);
        }
}
END_TEST

RUN_TESTS("cuda_reduce", lines_of_several_segments_are_summed, columns_of_several_segments_are_summed,
          a_small_workspace_gives_the_same_bits, columns_have_the_same_bits_on_any_card,
          argmax_takes_the_first_of_equals_and_of_nans_over_segments)
