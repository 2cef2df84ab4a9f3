/* SPDX-License-Identifier: Apache-2.0 */
/* A task's work beyond calling kernels: sums before the calls, chunks, products that are computed into a state. */
#include "views.h"
#include "work.h"

enum { N = 10007 }; /* several chunks, and a rest */

static trama_view line(float *data, int64_t n)
{
    return (trama_view){.data = data, .dtype = TRAMA_F32, .ndim = 1, .extent = {n}, .stride = {1}, .global = {n}};
}

/* w -= 0.5 (a + b) / 2, with the sum in a buffer that is not written where chunks are. kept: said to be fused */
static void check_sum(int64_t n, int64_t step, bool kept, bool chunked)
{
    static float data[4][2 * N];
    trama_view w = line(data[0], n), sum = line(data[1], n), terms[] = {line(data[2], n), line(data[3], n)};
    const trama_attributes attributes = {.real = {[UPDATE_LR] = 0.5}};
    trama_view in[] = {w, sum};
    trama_call call = {&trama_op_sgd, &attributes, 2, 1, in, &w, false};
    const trama_kernel *kernel = kernel_of(call.op);
    fused_run how = {kept ? FUSED_CHUNKS : FUSED_NOT, 1};
    work job = {.n_calls = 1,
                .calls = &call,
                .kernels = &kernel,
                .fused = &how,
                .n_terms = 2,
                .sum = &sum,
                .terms = terms,
                .combine = COMBINE_SUM,
                .scale = 0.5};
    terms[0].stride[0] = step;
    for (int64_t i = 0; i < 2 * N; i++) {
        data[0][i] = (float)i;
        data[1][i] = -7;
        data[2][i] = (float)(i % 64);
        data[3][i] = (float)(i % 32);
    }
    work_find_chunk(&job);
    ck_assert_int_eq(job.chunk > 0, chunked);
    work_compute.cpu(&job);
    for (int64_t i = 0; i < n; i++)
        ck_assert_float_eq(data[0][i], (float)i - 0.25f * (float)(i * step % 64 + i % 32));
    ck_assert_float_eq(data[0][n], (float)n);
    ck_assert_int_eq(data[1][0] == -7, chunked || n == 0);
}

START_TEST(a_sum_goes_before_the_calls_chunk_by_chunk_or_whole)
{
    check_sum(N, 1, true, true);
    check_sum(N, 1, false, false);
    check_sum(N, 2, true, false);
    check_sum(4096, 1, true, false); /* one chunk alone is none */
    check_sum(4097, 1, true, true);
    check_sum(1, 1, true, false);
}
END_TEST

START_TEST(a_product_that_is_subtracted_is_computed_into_the_state)
{
    float x[] = {1, 2, 3}, g[] = {4, 5}, d[6] = {0}, w[6] = {0, 10, 20, 30, 40, 50};
    const trama_view vx = {x, TRAMA_F32, 2, {3, 1}, {1, 1}, {0}, {3, 1}},
                     vg = {g, TRAMA_F32, 2, {1, 2}, {2, 1}, {0}, {1, 2}};
    const trama_view vd = {d, TRAMA_F32, 2, {3, 2}, {2, 1}, {0}, {3, 2}},
                     vw = {w, TRAMA_F32, 2, {3, 2}, {2, 1}, {0}, {3, 2}};
    const trama_view factors[] = {vx, vg}, update[] = {vw, vd};
    const trama_attributes none = {.integer = {0}}, sgd = {.real = {[UPDATE_LR] = 2}};
    trama_call calls[] = {{&trama_op_matmul, &none, 2, 1, factors, &vw, false},
                          {&trama_op_sgd, &sgd, 2, 1, update, &vw, false}};
    const trama_kernel *kernels[] = {kernel_of(calls[0].op), kernel_of(calls[1].op)};
    fused_run how[2] = {{FUSED_ADDITION, 2}};
    work job = {.n_calls = 2, .calls = calls, .kernels = kernels, .fused = how};
    work_compute.cpu(&job);
    static const float wanted[] = {-8, 0, 4, 10, 16, 20}; /* w - 2 x g */
    for (int i = 0; i < 6; i++) {
        ck_assert_float_eq(w[i], wanted[i]);
        ck_assert_float_eq(d[i], 0);
    }
}
END_TEST

/* How it is added is read when it runs. */
START_TEST(a_product_that_is_accumulated_is_computed_into_the_buffer)
{
    float x[] = {1, 2, 3}, g[] = {4, 5}, d[6] = {0}, m[6] = {NAN, NAN, NAN, NAN, NAN, NAN};
    double keep = 0, weight = 1;
    const trama_view vx = {x, TRAMA_F32, 2, {3, 1}, {1, 1}, {0}, {3, 1}},
                     vg = {g, TRAMA_F32, 2, {1, 2}, {2, 1}, {0}, {1, 2}};
    const trama_view vd = {d, TRAMA_F32, 2, {3, 2}, {2, 1}, {0}, {3, 2}},
                     vm = {m, TRAMA_F32, 2, {3, 2}, {2, 1}, {0}, {3, 2}}, vkeep = {.data = &keep, .dtype = TRAMA_F64},
                     vweight = {.data = &weight, .dtype = TRAMA_F64};
    const trama_view factors[] = {vx, vg}, update[] = {vm, vd, vkeep, vweight};
    const trama_attributes none = {.integer = {0}};
    trama_call calls[] = {{&trama_op_matmul, &none, 2, 1, factors, &vm, false},
                          {&trama_op_accumulate, &none, 4, 1, update, &vm, false}};
    const trama_kernel *kernels[] = {kernel_of(calls[0].op), kernel_of(calls[1].op)};
    fused_run how[2] = {{FUSED_ADDITION, 2}};
    work job = {.n_calls = 2, .calls = calls, .kernels = kernels, .fused = how};
    static const float product[] = {4, 5, 8, 10, 12, 15};
    for (int step = 0; step < 3; step++) {
        static const double weights[] = {1, 0.5, 2};
        double sum = 0;
        keep = step > 0;
        weight = weights[step];
        work_compute.cpu(&job);
        for (int s = 0; s <= step; s++)
            sum += weights[s];
        for (int i = 0; i < 6; i++)
            ck_assert_double_eq(m[i], sum * (double)product[i]);
    }
}
END_TEST

RUN_TESTS("work", a_sum_goes_before_the_calls_chunk_by_chunk_or_whole,
          a_product_that_is_subtracted_is_computed_into_the_state,
          a_product_that_is_accumulated_is_computed_into_the_buffer)
