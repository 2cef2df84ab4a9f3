/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels start as codelets start them, and take views that lie on the GPU. */
#include <check.h>

#include "on_gpu.h"
#include "suite.h"
#include "walk.cuh"

static __global__ void tripled(const grid_walk<2> w)
{
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < w.count;
         i += (int64_t)gridDim.x * blockDim.x) {
        int64_t at[2];
        grid_walk_at(w, i, at);
        ((float *)w.data[0])[at[0]] = 3 * ((const float *)w.data[1])[at[1]];
    }
}

static void run_tripled(const trama_view *device, const gpu *g, void *)
{
    const trama_view *views[2] = {&device[0], &device[1]};
    grid_walk<2> w;
    if (grid_walk_of(&w, views))
        GPU_LAUNCH(tripled, gpu_blocks(w.count, 32, g), 32, g, w);
}

START_TEST(strided_views_are_read_and_written)
{
    float from[100], to[100];
    trama_view x = {from + 3, TRAMA_F32, 2, {4, 9}, {9, 1}, {0}, {4, 9}},
               y = {to + 99, TRAMA_F32, 2, {4, 9}, {-2, -10}, {0}, {4, 9}};
    for (int i = 0; i < 100; i++) {
        from[i] = (float)i;
        to[i] = -1;
    }
    const trama_view views[2] = {y, x};
    on_gpu_run(2, 1, views, run_tripled, NULL);
    int found = 0;
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 9; j++) {
            ck_assert_float_eq(to[99 - 2 * i - 10 * j], 3 * from[3 + 9 * i + j]);
            found++;
        }
    for (float f : to)
        found -= f >= 0;
    ck_assert_int_eq(found, 0);
}
END_TEST

START_TEST(views_without_elements_are_left_alone)
{
    float to = 7;
    trama_view x = {&to, TRAMA_F32, 2, {4, 0}, {9, 1}, {0}, {4, 0}};
    const trama_view views[2] = {x, x};
    on_gpu_run(2, 1, views, run_tripled, NULL);
    ck_assert_float_eq(to, 7);
}
END_TEST

int main(void)
{
    on_gpu_or_skip();
    const TTest *const tests[] = {strided_views_are_read_and_written, views_without_elements_are_left_alone};
    return suite_run("cuda_launch", NULL, NULL, tests, sizeof tests / sizeof tests[0]);
}
