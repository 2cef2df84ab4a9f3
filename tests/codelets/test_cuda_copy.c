/* SPDX-License-Identifier: Apache-2.0 */
/* Boxes on a GPU that are larger than what one tile, one kernel or the workspace takes. */
#define TESTS_ON_GPU
#include "views.h"

#include "on_gpu_boxes.h"

static void check_copy(trama_dtype dtype, order from_how, order to_how, trama_shape shape)
{
    tensor from = tensor_random(dtype, from_how, shape, 1), to = tensor_new(dtype, to_how, shape);
    on_gpu_copy(&to.view, &from.view);
    FOR_EACH(&to, i)
    ck_assert(!memcmp(element(&to.view, i), element(&from.view, i), trama_dtype_size(dtype)));
    ck_assert(outside_untouched(&to));
    tensor_free(&from);
    tensor_free(&to);
}

START_TEST(planes_of_several_tiles_are_turned_in_words_and_in_elements)
{
    const trama_shape shapes[] = {TRAMA_SHAPE(132, 260), TRAMA_SHAPE(66, 70), TRAMA_SHAPE(67, 129),
                                  TRAMA_SHAPE(3, 40, 44), TRAMA_SHAPE(2, 33, 3, 36)};
    for (int dtype = 0; dtype < TRAMA_N_DTYPES; dtype++)
        for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
            check_copy((trama_dtype)dtype, TURNED, PACKED, shapes[s]);
            check_copy((trama_dtype)dtype, PACKED, TURNED, shapes[s]);
            check_copy((trama_dtype)dtype, BLOCK, TURNED, shapes[s]);
        }
}
END_TEST

START_TEST(long_runs_are_copied_from_any_address_to_any)
{
    enum { N = 40000 };
    for (int dtype = 0; dtype < TRAMA_N_DTYPES; dtype += 2) {
        const size_t size = trama_dtype_size((trama_dtype)dtype);
        for (int shift = 0; shift < 9; shift++) {
            const int64_t n = (int64_t)(2 * N / size) + 1, start = shift % 3, skip = shift / 3;
            tensor from = tensor_random((trama_dtype)dtype, PACKED, TRAMA_SHAPE(n), 1),
                   to = tensor_new((trama_dtype)dtype, PACKED, TRAMA_SHAPE(n));
            trama_view in = from.view, out = to.view;
            in.extent[0] = out.extent[0] = n - 2;
            in.data = (char *)in.data + (size_t)start * size;
            out.data = (char *)out.data + (size_t)skip * size;
            on_gpu_copy(&out, &in);
            ck_assert(!memcmp(out.data, in.data, (size_t)(n - 2) * size));
            tensor_free(&from);
            tensor_free(&to);
        }
    }
}
END_TEST

/* Terms are summed in double, in their order, and rounded once. */
static void check_terms(trama_dtype dtype, int n, size_t workspace, bool gaps)
{
    trama_view views[41];
    tensor terms[40], out = tensor_new(dtype, gaps ? BLOCK : PACKED, TRAMA_SHAPE(3, 144));
    reduce_of_terms with = {n, COMBINE_SUM, 0.25, workspace};
    views[0] = out.view;
    for (int s = 0; s < n; s++) {
        terms[s] = tensor_random(dtype, gaps && s % 3 == 1 ? TURNED : PACKED, TRAMA_SHAPE(3, 144), (uint64_t)s + 1);
        views[s + 1] = terms[s].view;
    }
    on_gpu_run(n + 1, 1, views, run_reduce, &with);
    FOR_EACH(&out, i)
    {
        double want = 0;
        for (int s = 0; s < n; s++)
            want += at(&terms[s], i);
        want *= 0.25;
        ck_near(dtype, at(&out, i), trama_dtype_is_float(dtype) ? want : trunc(want), 1);
    }
    ck_assert(outside_untouched(&out));
    for (int s = 0; s < n; s++)
        tensor_free(&terms[s]);
    tensor_free(&out);
}

START_TEST(many_terms_find_room_in_any_workspace)
{
    for (int dtype = 0; dtype < TRAMA_N_DTYPES; dtype = next_number(dtype))
        for (int gaps = 0; gaps < 2; gaps++)
            for (int n = 4; n <= 40; n += 9)
                if (dtype != TRAMA_U8 && dtype != TRAMA_I8) { /* the sum of forty is beyond them */
                    check_terms((trama_dtype)dtype, n, 0, gaps);
                    check_terms((trama_dtype)dtype, n, 1024, gaps);
                }
}
END_TEST

RUN_TESTS("cuda_copy", planes_of_several_tiles_are_turned_in_words_and_in_elements,
          long_runs_are_copied_from_any_address_to_any, many_terms_find_room_in_any_workspace)
