/* SPDX-License-Identifier: Apache-2.0 */
/* The stand-in for CUDA's threads: every thread runs once, barriers and shuffles do what CUDA's do, and mistakes
 * fatal to a GPU are found. Kernels are written as those of codelets are, and started as they are. */
#include "simt.h"

#include <check.h>
#include <signal.h>
#include <vector>

#include "walk.cuh"

static int launched;

/* There is no GPU around them: kernels run at once, on the host's memory. */
void simt_enqueue(void *, std::function<void()> work)
{
    work();
}

void simt_check_argument(const char *, int, uintptr_t)
{
}

extern "C" void gpu_launched(const char *kernel)
{
    launched += strlen(kernel) > 0;
}

static const gpu card = {nullptr, nullptr, nullptr, 0, 4, false};
static const unsigned orders[] = {SIMT_FORWARD, SIMT_REVERSE, 7, 8};

/* ---- Threads and blocks ---------------------------------------------------------------------- */

static __global__ void __launch_bounds__(256) count(int *times, dim3 grid, dim3 block)
{
    const dim3 all(grid.x * block.x, grid.y * block.y, grid.z * block.z);
    const unsigned x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y,
                   z = blockIdx.z * blockDim.z + threadIdx.z;
    if (gridDim.x == grid.x && blockDim.z == block.z)
        times[(z * all.y + y) * all.x + x]++;
}

START_TEST(every_thread_runs_once_in_any_order)
{
    const dim3 grid(5, 3, 2), block(7, 2, 3);
    for (unsigned order : orders) {
        std::vector<int> times(5 * 3 * 2 * 7 * 2 * 3);
        simt_order(order);
        GPU_LAUNCH(count, grid, block, &card, times.data(), grid, block);
        for (int n : times)
            ck_assert_int_eq(n, 1);
    }
    ck_assert_int_eq(launched, 4);
}
END_TEST

static __global__ void note(int *first_thread, int *first_block)
{
    if (*first_block < 0)
        *first_block = (int)blockIdx.x;
    if (*first_thread < 0)
        *first_thread = (int)threadIdx.x;
}

START_TEST(the_order_is_as_asked)
{
    const int expected[2] = {0, 9};
    for (unsigned order : {SIMT_FORWARD, SIMT_REVERSE}) {
        int thread = -1, block = -1;
        simt_order(order);
        GPU_LAUNCH(note, 10, 10, &card, &thread, &block);
        ck_assert_int_eq(thread, expected[order]);
        ck_assert_int_eq(block, expected[order]);
    }
}
END_TEST

START_TEST(without_a_launcher_a_lambda_runs_too)
{
    int sum = 0;
    simt_launch(3, 4, [&] { sum += (int)(blockIdx.x * blockDim.x + threadIdx.x); });
    ck_assert_int_eq(sum, 66);
}
END_TEST

/* ---- Barriers -------------------------------------------------------------------------------- */

/* Sums a block by a tree in shared memory. */
template <typename T, int THREADS> static __global__ void tree(const T *from, T *to, int64_t n)
{
    __shared__ T part[THREADS];
    const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    part[threadIdx.x] = i < n ? __ldg(&from[i]) : T(0);
    for (int half = THREADS / 2; half > 0; half /= 2) {
        __syncthreads();
        if ((int)threadIdx.x < half)
            part[threadIdx.x] += part[threadIdx.x + half];
    }
    if (threadIdx.x == 0)
        to[blockIdx.x] = part[0];
}

template <typename T> static void check_tree()
{
    std::vector<T> from(1000), to(4);
    for (size_t i = 0; i < from.size(); i++)
        from[i] = T(i);
    for (unsigned order : orders) {
        simt_order(order);
        GPU_LAUNCH((tree<T, 256>), 4u, 256u, &card, from.data(), to.data(), 1000);
        for (int b = 0; b < 4; b++) {
            double sum = 0;
            for (int i = b * 256; i < (b + 1) * 256 && i < 1000; i++)
                sum += i;
            ck_assert_double_eq((double)to[(size_t)b], sum);
        }
    }
}

START_TEST(a_barrier_waits_for_all_threads_of_the_block)
{
    check_tree<float>();
    check_tree<int64_t>();
}
END_TEST

static __global__ void neighbours(const int *from, int *to)
{
    __shared__ int all[64];
    all[threadIdx.x] = from[threadIdx.x];
    to[threadIdx.x] = all[(threadIdx.x + 1) % 64]; /* a barrier is missing */
}

START_TEST(another_order_shows_a_race)
{
    int from[64], forward[64], reverse[64];
    for (int i = 0; i < 64; i++)
        from[i] = i + 100;
    simt_order(SIMT_FORWARD);
    GPU_LAUNCH(neighbours, 1, 64, &card, from, forward);
    simt_order(SIMT_REVERSE);
    GPU_LAUNCH(neighbours, 1, 64, &card, from, reverse);
    ck_assert(memcmp(forward, reverse, sizeof forward));
}
END_TEST

/* ---- Shuffles -------------------------------------------------------------------------------- */

enum shuffle { TO, UP, DOWN, XOR };

template <typename T> static __global__ void shuffled(shuffle how, int by, int width, const T *from, T *to)
{
    const unsigned thread = threadIdx.y * blockDim.x + threadIdx.x;
    const T mine = from[thread];
    T got = 0;
    for (int again = 0; again < 2; again++) { /* the second exchange must not see values of the first */
        const T value = again ? mine : T(-1);
        if (how == TO)
            got = __shfl_sync(0xffffffffu, value, by, width);
        else if (how == UP)
            got = __shfl_up_sync(0xffffffffu, value, (unsigned)by, width);
        else if (how == DOWN)
            got = __shfl_down_sync(0xffffffffu, value, (unsigned)by, width);
        else
            got = __shfl_xor_sync(0xffffffffu, value, by, width);
    }
    to[thread] = got;
}

/* The table of CUDA's programming guide: which lane of its part a lane reads from; its own where there is none. */
static int source(shuffle how, int lane, int by, int width)
{
    const int part = lane / width * width, own = lane % width;
    if (how == TO)
        return part + (by % width + width) % width;
    if (how == UP)
        return own - by < 0 ? lane : lane - by;
    if (how == DOWN)
        return own + by >= width ? lane : lane + by;
    return (lane ^ by) / width > lane / width ? lane : lane ^ by;
}

template <typename T> static void check_shuffles()
{
    T from[96], to[96];
    for (int i = 0; i < 96; i++)
        from[i] = T(1000 + i);
    for (int round = 0; round < 4 * 6 * 34; round++) {
        const shuffle how = shuffle(round % 4);
        const int width = 1 << round / 4 % 6, by = round / 24 % 34;
        simt_order((unsigned)round);
        GPU_LAUNCH(shuffled<T>, 1, dim3(8, 12), &card, how, by, width, from, to);
        if (how == XOR && by >= 32)
            continue;
        for (int i = 0; i < 96; i++)
            ck_assert(to[i] == from[i / 32 * 32 + source(how, i % 32, by, width)]);
    }
}

START_TEST(shuffles_read_the_lane_that_cuda_reads)
{
    check_shuffles<int>();
    check_shuffles<float>();
    check_shuffles<double>();
    check_shuffles<uint64_t>();
}
END_TEST

static __global__ void warps_alone(int *rounds)
{
    for (int i = 0; i < (int)threadIdx.x / 32 + 1; i++) { /* each warp waits as often as it likes */
        __syncwarp();
        rounds[threadIdx.x]++;
    }
    __syncthreads();
    rounds[threadIdx.x] += rounds[127];
}

START_TEST(warps_wait_for_themselves)
{
    int rounds[128] = {0};
    simt_order(3);
    GPU_LAUNCH(warps_alone, 1, 128, &card, rounds);
    ck_assert_int_ge(rounds[0], 5);
    ck_assert_int_eq(rounds[64], 3 + 4);
}
END_TEST

/* ---- Mistakes fatal to a GPU ----------------------------------------------------------------- */

static __global__ void some_skip_the_barrier(int n)
{
    if ((int)threadIdx.x < n)
        __syncthreads();
}

static __global__ void two_barriers(int n)
{
    if ((int)threadIdx.x < n)
        __syncthreads();
    else
        __syncthreads();
}

static __global__ void a_lane_is_lacking(int *to)
{
    if (threadIdx.x != 5)
        to[threadIdx.x] = __shfl_sync(0xffffffffu, 1, 0);
}

static __global__ void from_outside_of_the_mask(int *to)
{
    if (threadIdx.x < 16)
        to[threadIdx.x] = __shfl_sync(0xffffu, 1, 20);
}

static __global__ void nothing(void)
{
}

START_TEST(a_barrier_that_some_never_reach_aborts)
{
    GPU_LAUNCH(some_skip_the_barrier, 1, 64, &card, 63);
}
END_TEST

START_TEST(threads_at_two_barriers_abort)
{
    GPU_LAUNCH(two_barriers, 1, 64, &card, 32);
}
END_TEST

START_TEST(a_shuffle_that_a_lane_never_reaches_aborts)
{
    int to[32];
    GPU_LAUNCH(a_lane_is_lacking, 1, 32, &card, to);
}
END_TEST

START_TEST(a_shuffle_in_half_a_warp_aborts)
{
    int to[16];
    GPU_LAUNCH(a_lane_is_lacking, 1, 16, &card, to);
}
END_TEST

START_TEST(a_shuffle_from_a_lane_without_part_aborts)
{
    int to[32];
    GPU_LAUNCH(from_outside_of_the_mask, 1, 32, &card, to);
}
END_TEST

START_TEST(a_block_of_too_many_threads_aborts)
{
    simt_launch(1, 1025, nothing);
}
END_TEST

START_TEST(a_grid_of_no_block_aborts)
{
    simt_launch(0, 32, nothing);
}
END_TEST

/* ---- As codelets use it ---------------------------------------------------------------------- */

static __global__ void negate(const grid_walk<2> w)
{
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < w.count;
         i += (int64_t)gridDim.x * blockDim.x) {
        int64_t at[2];
        grid_walk_at(w, i, at);
        ((float *)w.data[0])[at[0]] = -((const float *)w.data[1])[at[1]];
    }
}

START_TEST(a_walk_over_strided_views_finds_every_element)
{
    float from[7 * 5], to[5 * 7] = {0};
    trama_view source = {from, TRAMA_F32, 2, {5, 7}, {1, 5}, {0}, {5, 7}}, result = source;
    const trama_view *views[2] = {&result, &source};
    grid_walk<2> w;

    for (int i = 0; i < 35; i++)
        from[i] = (float)i;
    result.data = to;
    result.stride[0] = 7;
    result.stride[1] = 1;
    ck_assert(grid_walk_of(&w, views));
    GPU_LAUNCH(negate, gpu_blocks(w.count, 8, &card), 8, &card, w);
    for (int i = 0; i < 5; i++)
        for (int j = 0; j < 7; j++)
            ck_assert_float_eq(to[i * 7 + j], -from[j * 5 + i]);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("simt");
    TCase *all = tcase_create("all");
    tcase_add_test(all, every_thread_runs_once_in_any_order);
    tcase_add_test(all, the_order_is_as_asked);
    tcase_add_test(all, without_a_launcher_a_lambda_runs_too);
    tcase_add_test(all, a_barrier_waits_for_all_threads_of_the_block);
    tcase_add_test(all, another_order_shows_a_race);
    tcase_add_test(all, shuffles_read_the_lane_that_cuda_reads);
    tcase_add_test(all, warps_wait_for_themselves);
    tcase_add_test_raise_signal(all, a_barrier_that_some_never_reach_aborts, SIGABRT);
    tcase_add_test_raise_signal(all, threads_at_two_barriers_abort, SIGABRT);
    tcase_add_test_raise_signal(all, a_shuffle_that_a_lane_never_reaches_aborts, SIGABRT);
    tcase_add_test_raise_signal(all, a_shuffle_in_half_a_warp_aborts, SIGABRT);
    tcase_add_test_raise_signal(all, a_shuffle_from_a_lane_without_part_aborts, SIGABRT);
    tcase_add_test_raise_signal(all, a_block_of_too_many_threads_aborts, SIGABRT);
    tcase_add_test_raise_signal(all, a_grid_of_no_block_aborts, SIGABRT);
    tcase_add_test(all, a_walk_over_strided_views_finds_every_element);
    suite_add_tcase(suite, all);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
