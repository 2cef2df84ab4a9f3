/* SPDX-License-Identifier: Apache-2.0 */
/* The stand-in for NCCL: collective calls of several GPUs give what they should, and every mistake of order, kind,
 * count, type, root or buffer ends the process, as does waiting for each other. */
#include "standin.h"

#include <check.h>
#include <chrono>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include <nccl.h>

namespace
{
enum { GPUS = 4, N = 37 };

ncclComm_t comm[GPUS];
cudaStream_t in[GPUS];
char *from[GPUS], *to[GPUS]; /* room for GPUS * N numbers of 8 bytes */

void begin(void)
{
    setenv("TRAMA_STANDIN_GPUS", "4", 1);
    setenv("TRAMA_STANDIN_PATIENCE", "60", 0); /* on a busy machine members come late */
    unsetenv("TRAMA_STANDIN_FAIL");
    ck_assert_int_eq(ncclCommInitAll(comm, GPUS, nullptr), ncclSuccess);
    for (int g = 0; g < GPUS; g++) {
        cudaSetDevice(g);
        cudaStreamCreateWithFlags(&in[g], cudaStreamNonBlocking);
        cudaMalloc((void **)&from[g], GPUS * N * 8);
        cudaMalloc((void **)&to[g], GPUS * N * 8);
        cudaMemset(from[g], 1, GPUS * N * 8);
    }
}

template <typename T> void fill(char *const *where, size_t n)
{
    for (int g = 0; g < GPUS; g++) {
        std::vector<T> x(n);
        for (size_t i = 0; i < n; i++)
            x[i] = (T)((int)(i * 7 + (size_t)g * 5) % 11 + 1);
        cudaMemcpy(where[g], x.data(), n * sizeof(T), cudaMemcpyHostToDevice);
    }
}
int filled(int g, size_t i)
{
    return (int)(i * 7 + (size_t)g * 5) % 11 + 1;
}

template <typename T> std::vector<T> result(int g, size_t n)
{
    std::vector<T> x(n);
    cudaSetDevice(g);
    ck_assert_int_eq(cudaStreamSynchronize(in[g]), cudaSuccess);
    cudaMemcpy(x.data(), to[g], n * sizeof(T), cudaMemcpyDeviceToHost);
    return x;
}

template <typename F> void in_group(F each)
{
    ncclGroupStart();
    for (int g = 0; g < GPUS; g++)
        ck_assert_int_eq(each(g), ncclSuccess);
    ck_assert_int_eq(ncclGroupEnd(), ncclSuccess);
}

double reduced(ncclRedOp_t op, size_t i)
{
    double x = filled(0, i);
    for (int g = 1; g < GPUS; g++) {
        const double y = filled(g, i);
        x = op == ncclProd ? x * y : op == ncclMax ? (x > y ? x : y) : op == ncclMin ? (x < y ? x : y) : x + y;
    }
    return op == ncclAvg ? x / GPUS : x;
}

template <typename T> void check_type(ncclDataType_t type)
{
    fill<T>(from, GPUS * N);
    for (ncclRedOp_t op : {ncclSum, ncclProd, ncclMax, ncclMin, ncclAvg}) {
        in_group([=](int g) { return ncclAllReduce(from[g], to[g], N, type, op, comm[g], in[g]); });
        for (int g = 0; g < GPUS; g++)
            for (size_t i = 0; i < N; i++)
                ck_assert(result<T>(g, N)[i] == (T)reduced(op, i));
        in_group([=](int g) { return ncclReduceScatter(from[g], to[g], N, type, op, comm[g], in[g]); });
        for (int g = 0; g < GPUS; g++)
            for (size_t i = 0; i < N; i++)
                ck_assert(result<T>(g, N)[i] == (T)reduced(op, (size_t)g * N + i));
    }
    in_group([=](int g) { return ncclAllGather(from[g], to[g], N, type, comm[g], in[g]); });
    for (int g = 0; g < GPUS; g++)
        for (size_t i = 0; i < GPUS * N; i++)
            ck_assert(result<T>(g, GPUS * N)[i] == (T)filled((int)(i / N), i % N));
    in_group([=](int g) { return ncclBroadcast(from[g], to[g], N, type, 2, comm[g], in[g]); });
    for (int g = 0; g < GPUS; g++)
        for (size_t i = 0; i < N; i++)
            ck_assert(result<T>(g, N)[i] == (T)filled(2, i));
}
} // namespace

/* ---- Right uses ------------------------------------------------------------------------------ */

START_TEST(collective_calls_in_all_types)
{
    begin();
    check_type<float>(ncclFloat32);
    check_type<double>(ncclFloat64);
    check_type<int32_t>(ncclInt32);
    check_type<int64_t>(ncclInt64);
    check_type<uint8_t>(ncclUint8);
}
END_TEST

START_TEST(halves_are_summed)
{
    begin();
    for (int g = 0; g < GPUS; g++) { /* bf16 1.5, f16 2 */
        const uint16_t x[2] = {0x3fc0, 0x4000};
        cudaMemcpy(from[g], x, sizeof x, cudaMemcpyHostToDevice);
    }
    in_group([](int g) { return ncclAllReduce(from[g], to[g], 1, ncclBfloat16, ncclSum, comm[g], in[g]); });
    in_group([](int g) { return ncclAllReduce(from[g] + 2, to[g] + 2, 1, ncclFloat16, ncclSum, comm[g], in[g]); });
    ck_assert_uint_eq(result<uint16_t>(3, 2)[0], 0x40c0);
    ck_assert_uint_eq(result<uint16_t>(3, 2)[1], 0x4800);
}
END_TEST

START_TEST(results_may_lie_in_place)
{
    begin();
    fill<float>(to, GPUS * N);
    in_group([](int g) {
        char *part = to[g] + (size_t)g * N * sizeof(float);
        return ncclAllGather(part, to[g], N, ncclFloat32, comm[g], in[g]);
    });
    for (size_t i = 0; i < GPUS * N; i++)
        ck_assert_float_eq(result<float>(1, GPUS * N)[i], (float)filled((int)(i / N), i));
    fill<float>(to, GPUS * N);
    in_group([](int g) { return ncclAllReduce(to[g], to[g], N, ncclFloat32, ncclSum, comm[g], in[g]); });
    ck_assert_float_eq(result<float>(1, N)[5], (float)reduced(ncclSum, 5));
}
END_TEST

START_TEST(all_to_all_by_sends_and_receives)
{
    begin();
    fill<float>(from, GPUS * N);
    ncclGroupStart();
    for (int g = 0; g < GPUS; g++)
        for (int peer = 0; peer < GPUS; peer++) {
            ncclSend(from[g] + (size_t)peer * N * 4, N, ncclFloat32, peer, comm[g], in[g]);
            ncclRecv(to[g] + (size_t)peer * N * 4, N, ncclFloat32, peer, comm[g], in[g]);
        }
    ncclGroupEnd();
    for (int g = 0; g < GPUS; g++)
        for (size_t i = 0; i < GPUS * N; i++)
            ck_assert_float_eq(result<float>(g, GPUS * N)[i], (float)filled((int)(i / N), (size_t)g * N + i % N));
}
END_TEST

START_TEST(ranks_may_be_threads)
{
    std::vector<std::thread> threads;
    ncclUniqueId id;
    int wrong = 0;
    begin();
    fill<float>(from, N);
    ncclGetUniqueId(&id);
    for (int g = 0; g < GPUS; g++)
        threads.emplace_back([g, id, &wrong] {
            ncclComm_t mine;
            int rank = -1, n = 0, gpu = -1;
            cudaSetDevice(g);
            std::this_thread::sleep_for(std::chrono::milliseconds(20 * g));
            wrong += ncclCommInitRank(&mine, GPUS, id, GPUS - 1 - g) != ncclSuccess;
            ncclCommUserRank(mine, &rank);
            ncclCommCount(mine, &n);
            ncclCommCuDevice(mine, &gpu);
            wrong += rank != GPUS - 1 - g || n != GPUS || gpu != g;
            for (int k = 0; k < 5; k++)
                ncclBroadcast(from[g], to[g], N, ncclFloat32, k % GPUS, mine, in[g]);
            cudaStreamSynchronize(in[g]);
            wrong += ncclCommDestroy(mine) != ncclSuccess;
        });
    for (std::thread &t : threads)
        t.join();
    ck_assert_int_eq(wrong, 0);
    ck_assert_float_eq(result<float>(1, N)[3], (float)filled(3, 3));
}
END_TEST

/* Rank `rank` of two processes, with half of the GPUs; 0 where all is well. */
static int half_of_the_ranks(int rank, const ncclUniqueId &id)
{
    const int first = rank * GPUS / 2, end = first + GPUS / 2;
    ncclComm_t own[GPUS];
    begin();
    fill<float>(from, GPUS * N);
    ncclGroupStart();
    for (int g = first; g < end; g++) {
        cudaSetDevice(g);
        if (ncclCommInitRank(&own[g], GPUS, id, g))
            return 1;
    }
    if (ncclGroupEnd())
        return 2;
    for (int round = 0; round < 3; round++) {
        ncclGroupStart();
        for (int g = first; g < end; g++)
            ncclAllReduce(from[g], to[g], N, ncclFloat32, ncclSum, own[g], in[g]);
        ncclGroupEnd();
        for (int g = first; g < end; g++)
            for (size_t i = 0; i < N; i++)
                if (result<float>(g, N)[i] != (float)reduced(ncclSum, i))
                    return 3;
        ncclGroupStart();
        for (int g = first; g < end; g++)
            for (int peer = 0; peer < GPUS; peer++) {
                ncclSend(from[g] + (size_t)peer * N * 4, N, ncclFloat32, peer, own[g], in[g]);
                ncclRecv(to[g] + (size_t)peer * N * 4, N, ncclFloat32, peer, own[g], in[g]);
            }
        ncclGroupEnd();
        for (int g = first; g < end; g++)
            for (size_t i = 0; i < GPUS * N; i++)
                if (result<float>(g, GPUS * N)[i] != (float)filled((int)(i / N), (size_t)g * N + i % N))
                    return 4;
    }
    for (int g = first; g < end; g++)
        ncclCommDestroy(own[g]);
    return 0;
}

/* How a process ends that is the other half of ours. */
static int other_half(int (*act)(int, const ncclUniqueId &))
{
    ncclUniqueId id;
    int status;
    ncclGetUniqueId(&id);
    const pid_t child = fork();
    if (!child)
        _exit(act(1, id));
    ck_assert_int_eq(half_of_the_ranks(0, id), 0);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    return status;
}

START_TEST(ranks_may_be_processes)
{
    ck_assert_int_eq(other_half(half_of_the_ranks), 0);
}
END_TEST

START_TEST(a_process_that_ends_is_missed)
{
    setenv("TRAMA_STANDIN_PATIENCE", "1", 1);
    other_half([](int, const ncclUniqueId &) { return 0; });
}
END_TEST

START_TEST(a_group_makes_communicators)
{
    ncclUniqueId id[2];
    ncclComm_t pair[GPUS];
    begin();
    fill<float>(from, N);
    ncclGetUniqueId(&id[0]);
    ncclGetUniqueId(&id[1]);
    ncclGroupStart();
    for (int g = 0; g < GPUS; g++) {
        cudaSetDevice(g);
        ck_assert_int_eq(ncclCommInitRank(&pair[g], 2, id[g % 2], g / 2), ncclSuccess);
    }
    ck_assert_int_eq(ncclGroupEnd(), ncclSuccess);
    in_group([&](int g) { return ncclAllReduce(from[g], to[g], N, ncclFloat32, ncclSum, pair[g], in[g]); });
    ck_assert_float_eq(result<float>(3, N)[4], (float)(filled(1, 4) + filled(3, 4)));
}
END_TEST

START_TEST(one_gpu_cannot_be_two_ranks)
{
    const int twice[2] = {1, 1};
    ncclComm_t two[2];
    begin();
    ck_assert_int_eq(ncclCommInitAll(two, 2, twice), ncclInvalidUsage);
}
END_TEST

START_TEST(a_failed_communicator_can_be_aborted)
{
    ncclResult_t error;
    begin();
    setenv("TRAMA_STANDIN_FAIL", "nccl:6", 1);
    in_group([](int g) { return ncclAllReduce(from[g], to[g], N, ncclFloat32, ncclSum, comm[g], in[g]); });
    cudaStreamSynchronize(in[3]);
    ncclCommGetAsyncError(comm[0], &error);
    ck_assert_int_eq(error, ncclSuccess);
    in_group([](int g) { return ncclAllReduce(from[g], to[g], N, ncclFloat32, ncclSum, comm[g], in[g]); });
    ncclCommGetAsyncError(comm[0], &error);
    ck_assert_int_eq(error, ncclRemoteError);
    ck_assert_int_eq(cudaStreamQuery(in[2]), cudaErrorNotReady);
    for (int g = 0; g < GPUS; g++)
        ck_assert_int_eq(ncclCommAbort(comm[g]), ncclSuccess);
    ck_assert_int_eq(cudaStreamSynchronize(in[2]), cudaSuccess);
}
END_TEST

/* ---- Mistakes -------------------------------------------------------------------------------- */

static void another_kind(void)
{
    in_group([](int g) {
        return g == 2 ? ncclAllGather(from[g], to[g], N, ncclFloat32, comm[g], in[g])
                      : ncclAllReduce(from[g], to[g], N, ncclFloat32, ncclSum, comm[g], in[g]);
    });
}

static void another_count(void)
{
    in_group(
        [](int g) { return ncclAllReduce(from[g], to[g], g == 1 ? N : N - 1, ncclFloat32, ncclSum, comm[g], in[g]); });
}

static void another_type(void)
{
    in_group([](int g) {
        return ncclAllReduce(from[g], to[g], N, g == 1 ? ncclInt32 : ncclFloat32, ncclSum, comm[g], in[g]);
    });
}

static void another_operation(void)
{
    in_group([](int g) {
        return ncclAllReduce(from[g], to[g], N, ncclFloat32, g == 1 ? ncclMax : ncclSum, comm[g], in[g]);
    });
}

static void another_root(void)
{
    in_group([](int g) { return ncclBroadcast(from[g], to[g], N, ncclFloat32, g / 2, comm[g], in[g]); });
}

static void another_order(void)
{
    in_group([](int g) {
        if (g == 3)
            ncclBroadcast(from[g], to[g], N, ncclFloat32, 0, comm[g], in[g]);
        ncclAllReduce(from[g], to[g], N, ncclFloat32, ncclSum, comm[g], in[g]);
        return g == 3 ? ncclSuccess : ncclBroadcast(from[g], to[g], N, ncclFloat32, 0, comm[g], in[g]);
    });
}

static void a_member_does_not_call(void)
{
    in_group([](int g) {
        return g == 3 ? ncclSuccess : ncclAllReduce(from[g], to[g], N, ncclFloat32, ncclSum, comm[g], in[g]);
    });
}

static void two_communicators_in_opposite_orders(void)
{
    ncclComm_t other[GPUS];
    ncclCommInitAll(other, GPUS, nullptr);
    in_group([&](int g) {
        ncclAllReduce(from[g], to[g], N, ncclFloat32, ncclSum, g % 2 ? comm[g] : other[g], in[g]);
        return ncclAllReduce(from[g], to[g], N, ncclFloat32, ncclSum, g % 2 ? other[g] : comm[g], in[g]);
    });
}

static void nobody_receives(void)
{
    ncclSend(from[0], N, ncclFloat32, 1, comm[0], in[0]);
}

static void sends_before_receives_without_a_group(void)
{
    for (int g = 0; g < 2; g++) {
        ncclSend(from[g], N, ncclFloat32, 1 - g, comm[g], in[g]);
        ncclRecv(to[g], N, ncclFloat32, 1 - g, comm[g], in[g]);
    }
}

static void receives_less_than_is_sent(void)
{
    ncclSend(from[0], N, ncclFloat32, 1, comm[0], in[0]);
    ncclRecv(to[1], N - 1, ncclFloat32, 0, comm[1], in[1]);
}

static void a_buffer_of_another_gpu(void)
{
    in_group([](int g) { return ncclAllReduce(from[0], to[g], N, ncclFloat32, ncclSum, comm[g], in[g]); });
}

static void a_buffer_that_is_too_short(void)
{
    in_group([](int g) { return ncclAllGather(from[g], to[g], 3 * N, ncclFloat64, comm[g], in[g]); });
}

static void a_buffer_of_the_host(void)
{
    static float x[N];
    in_group([](int g) { return ncclAllReduce(x, to[g], N, ncclFloat32, ncclSum, comm[g], in[g]); });
}

static void a_stream_of_another_gpu(void)
{
    in_group([](int g) { return ncclAllReduce(from[g], to[g], N, ncclFloat32, ncclSum, comm[g], in[0]); });
}

static void buffers_that_overlap(void)
{
    in_group([](int g) { return ncclAllReduce(to[g] + 4, to[g], N, ncclFloat32, ncclSum, comm[g], in[g]); });
}

static void a_member_does_not_come(void)
{
    ncclUniqueId id;
    ncclComm_t mine;
    ncclGetUniqueId(&id);
    ncclCommInitRank(&mine, 2, id, 0);
}

static void a_failure_without_abort(void)
{
    setenv("TRAMA_STANDIN_FAIL", "nccl:1", 1);
    in_group([](int g) { return ncclAllReduce(from[g], to[g], N, ncclFloat32, ncclSum, comm[g], in[g]); });
}

static void (*const mistakes[])(void) = {
    another_kind,
    another_count,
    another_type,
    another_operation,
    another_root,
    another_order,
    a_member_does_not_call,
    two_communicators_in_opposite_orders,
    nobody_receives,
    sends_before_receives_without_a_group,
    receives_less_than_is_sent,
    a_buffer_of_another_gpu,
    a_buffer_that_is_too_short,
    a_buffer_of_the_host,
    a_stream_of_another_gpu,
    buffers_that_overlap,
    a_member_does_not_come,
    a_failure_without_abort,
};

START_TEST(a_mistake_aborts)
{
    setenv("TRAMA_STANDIN_PATIENCE", "1", 1);
    begin();
    mistakes[_i]();
    for (int g = 0; g < GPUS; g++) {
        cudaSetDevice(g);
        cudaDeviceSynchronize();
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("nccl");
    TCase *all = tcase_create("all");
    tcase_add_test(all, collective_calls_in_all_types);
    tcase_add_test(all, halves_are_summed);
    tcase_add_test(all, results_may_lie_in_place);
    tcase_add_test(all, all_to_all_by_sends_and_receives);
    tcase_add_test(all, ranks_may_be_threads);
    tcase_add_test(all, a_group_makes_communicators);
    tcase_add_test(all, one_gpu_cannot_be_two_ranks);
    tcase_add_test(all, ranks_may_be_processes);
    tcase_add_test_raise_signal(all, a_process_that_ends_is_missed, SIGABRT);
    tcase_add_test(all, a_failed_communicator_can_be_aborted);
    tcase_add_loop_test_raise_signal(all, a_mistake_aborts, SIGABRT, 0, (int)(sizeof mistakes / sizeof mistakes[0]));
    suite_add_tcase(suite, all);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
