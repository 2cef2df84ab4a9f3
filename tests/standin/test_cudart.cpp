/* SPDX-License-Identifier: Apache-2.0 */
/* The stand-in for CUDA's run time: memory that only the GPU's own work can touch, copies, streams and events in
 * their order, and failures on demand. Mistakes that a real GPU may forgive end the process. */
#include "simt.h"
#include "standin.h"

#include <check.h>
#include <signal.h>
#include <vector>

#include "launch.cuh"

extern "C" void gpu_launched(const char *)
{
}

static gpu card;

static void begin(const char *gpus, const char *async)
{
    setenv("TRAMA_STANDIN_GPUS", gpus, 1);
    setenv("TRAMA_STANDIN_ASYNC", async, 1);
    setenv("TRAMA_STANDIN_MEMORY", "1000000", 1);
    unsetenv("TRAMA_STANDIN_FAIL");
    unsetenv("CUDA_VISIBLE_DEVICES");
    card = {nullptr, nullptr, nullptr, 0, 4, false};
}

static float *floats(size_t n)
{
    float *pointer = nullptr;
    ck_assert_int_eq(cudaMalloc(&pointer, n * sizeof *pointer), cudaSuccess);
    return pointer;
}

/* From its start, so that what was missed shows: later threads write later. */
static __global__ void add(float *to, const float *from, int n, float factor)
{
    for (int i = (int)(blockIdx.x * blockDim.x + threadIdx.x); i < n; i += (int)(gridDim.x * blockDim.x))
        to[i] += factor * from[i];
}

static __global__ void write_at(float *to, int at)
{
    to[at] = 1;
}

/* ---- Right uses ------------------------------------------------------------------------------ */

static void check_round_trip(const char *async)
{
    enum { N = 1001 };
    std::vector<float> x(N), y(N);
    begin("1", async);
    for (int i = 0; i < N; i++) {
        x[(size_t)i] = (float)i;
        y[(size_t)i] = 1;
    }
    float *a = floats(N), *b = floats(N);
    cudaStream_t s;
    ck_assert_int_eq(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking), cudaSuccess);
    card.stream = s;
    cudaMemcpyAsync(a, x.data(), N * sizeof(float), cudaMemcpyHostToDevice, s);
    x.assign(N, -1); /* not pinned: it was read when it was handed over */
    cudaMemcpyAsync(b, y.data(), N * sizeof(float), cudaMemcpyHostToDevice, s);
    GPU_LAUNCH(add, 3, 64, &card, b, a, N, 2.0f);
    cudaMemcpyAsync(y.data(), b, N * sizeof(float), cudaMemcpyDeviceToHost, s);
    ck_assert_int_eq(cudaStreamSynchronize(s), cudaSuccess);
    for (int i = 0; i < N; i++)
        ck_assert_float_eq(y[(size_t)i], 1 + 2 * (float)i);
    ck_assert_int_eq(cudaFree(a), cudaSuccess);
    ck_assert_int_eq(cudaFree(b), cudaSuccess);
    ck_assert_int_eq(cudaStreamDestroy(s), cudaSuccess);
}

START_TEST(a_kernel_computes_what_was_copied_there)
{
    check_round_trip("0");
}
END_TEST

START_TEST(streams_keep_their_order_in_threads_of_their_own)
{
    check_round_trip("1");
}
END_TEST

START_TEST(fresh_memory_is_nan)
{
    float x[3];
    begin("1", "0");
    cudaMemcpy(x, floats(3), sizeof x, cudaMemcpyDeviceToHost);
    for (float f : x)
        ck_assert_float_nan(f);
}
END_TEST

START_TEST(copies_take_boxes)
{
    const int from[4 * 5] = {0, 1, 2, 3, 4, 10, 11, 12, 13, 14, 20, 21, 22, 23, 24, 30, 31, 32, 33, 34};
    int back[2 * 3] = {0};
    void *d;
    begin("1", "0");
    cudaMalloc(&d, 4 * 7 * sizeof(int));
    cudaMemset(d, 0, 4 * 7 * sizeof(int));
    cudaMemcpy2D(d, 7 * sizeof(int), from, 5 * sizeof(int), 5 * sizeof(int), 4, cudaMemcpyHostToDevice);
    cudaMemcpy2D(back, 3 * sizeof(int), (int *)d + 7 + 2, 14 * sizeof(int), 3 * sizeof(int), 2, cudaMemcpyDefault);
    const int expected[6] = {12, 13, 14, 32, 33, 34};
    ck_assert_mem_eq(back, expected, sizeof expected);
}
END_TEST

START_TEST(copies_between_gpus_take_cubes)
{
    const short from[2 * 3 * 4] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11,
                                   12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23};
    short back[2 * 2 * 2];
    void *a, *b;
    begin("2", "1");
    cudaMalloc(&a, sizeof from);
    cudaMemcpy(a, from, sizeof from, cudaMemcpyHostToDevice);
    cudaSetDevice(1);
    cudaMalloc(&b, sizeof back);
    cudaMemcpy3DPeerParms p = {};
    p.srcPtr = {a, 4 * sizeof(short), 4 * sizeof(short), 3};
    p.srcPos = {1 * sizeof(short), 1, 0};
    p.dstPtr = {b, 2 * sizeof(short), 2 * sizeof(short), 2};
    p.dstDevice = 1;
    p.extent = {2 * sizeof(short), 2, 2};
    ck_assert_int_eq(cudaMemcpy3DPeer(&p), cudaSuccess);
    ck_assert_int_eq(cudaMemcpyPeer(a, 0, b, 1, sizeof back), cudaSuccess);
    cudaMemcpy(back, a, sizeof back, cudaMemcpyDeviceToHost);
    const short expected[8] = {5, 6, 9, 10, 17, 18, 21, 22};
    ck_assert_mem_eq(back, expected, sizeof expected);
}
END_TEST

START_TEST(a_missing_wait_between_streams_shows)
{
    float x = 1, y = 5;
    cudaStream_t s[2];
    cudaEvent_t e;
    begin("1", "1");
    float *d = floats(1), *one = floats(1);
    cudaMemcpy(one, &x, sizeof x, cudaMemcpyHostToDevice);
    cudaStreamCreateWithFlags(&s[0], cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&s[1], cudaStreamNonBlocking);
    cudaEventCreateWithFlags(&e, cudaEventDisableTiming);
    ck_assert_int_eq(cudaEventQuery(e), cudaSuccess);
    int right[2] = {0}; /* without a wait, with it */
    for (int i = 0; i < 100; i++) {
        cudaMemset(d, 0, sizeof *d);
        for (int k = 0; k < 10; k++) {
            card.stream = s[0];
            GPU_LAUNCH(add, 1, 1, &card, d, one, 1, 1.0f);
        }
        if (i % 2) {
            cudaEventRecord(e, s[0]);
            cudaStreamWaitEvent(s[1], e, 0);
        }
        cudaMemcpyAsync(&y, d, sizeof y, cudaMemcpyDeviceToHost, s[1]);
        cudaStreamSynchronize(s[1]);
        right[i % 2] += y == 10;
        cudaDeviceSynchronize();
    }
    ck_assert_int_eq(right[1], 50);
    ck_assert_int_lt(right[0], 50);
}
END_TEST

START_TEST(an_event_is_ready_when_its_stream_came_there)
{
    cudaEvent_t from, to;
    float milliseconds = -1;
    begin("1", "1");
    cudaEventCreate(&from);
    cudaEventCreate(&to);
    float *d = floats(4);
    cudaEventRecord(from, nullptr);
    cudaMemsetAsync(d, 0, 16, nullptr);
    cudaEventRecord(to, nullptr);
    const cudaError_t early = cudaEventQuery(to);
    if (early) { /* as with CUDA, it stays the last error */
        ck_assert_int_eq(early, cudaErrorNotReady);
        ck_assert_int_eq(cudaGetLastError(), cudaErrorNotReady);
    }
    ck_assert_int_eq(cudaEventSynchronize(to), cudaSuccess);
    ck_assert_int_eq(cudaEventElapsedTime(&milliseconds, from, to), cudaSuccess);
    ck_assert(milliseconds >= 0);
}
END_TEST

START_TEST(the_null_stream_waits_for_blocking_ones)
{
    float x = 1, y;
    cudaStream_t s;
    begin("1", "1");
    float *d = floats(1), *one = floats(1);
    cudaMemcpy(one, &x, sizeof x, cudaMemcpyHostToDevice);
    cudaStreamCreate(&s);
    card.stream = s;
    for (int i = 0; i < 50; i++) {
        cudaMemset(d, 0, sizeof *d);
        for (int k = 0; k < 5; k++)
            GPU_LAUNCH(add, 1, 1, &card, d, one, 1, 1.0f);
        cudaMemcpy(&y, d, sizeof y, cudaMemcpyDeviceToHost);
        ck_assert_float_eq(y, 5);
    }
}
END_TEST

/* ---- Machines and failures ------------------------------------------------------------------- */

START_TEST(the_machine_is_what_the_environment_says)
{
    int n;
    cudaDeviceProp p;
    size_t free, total;
    void *d;
    begin("5", "0");
    setenv("TRAMA_STANDIN_TAKEN", "300000", 1);
    setenv("CUDA_VISIBLE_DEVICES", "3,1,9,2", 1);
    ck_assert_int_eq(cudaGetDeviceCount(&n), cudaSuccess);
    ck_assert_int_eq(n, 2);
    cudaGetDeviceProperties(&p, 0);
    ck_assert_int_eq(p.pciBusID, 0x83);
    ck_assert_uint_eq(p.totalGlobalMem, 1000000);
    ck_assert_int_eq(cudaSetDevice(2), cudaErrorInvalidDevice);
    cudaMalloc(&d, 100000);
    cudaMemGetInfo(&free, &total);
    ck_assert_uint_eq(total, 1000000);
    ck_assert_uint_le(free, 600000);
    ck_assert_uint_gt(free, 590000);
    ck_assert_int_eq(cudaMalloc(&d, 650000), cudaErrorMemoryAllocation);
    ck_assert_ptr_null(d);
    ck_assert_int_eq(cudaMalloc(&d, 590000), cudaSuccess);
}
END_TEST

START_TEST(without_gpus_it_says_so)
{
    int n = -1;
    begin("0", "0");
    ck_assert_int_eq(cudaGetDeviceCount(&n), cudaErrorNoDevice);
    ck_assert_int_eq(n, 0);
}
END_TEST

START_TEST(what_is_to_fail_fails)
{
    void *d;
    begin("1", "0");
    setenv("TRAMA_STANDIN_FAIL", "malloc:2,launch:3", 1);
    float *a = floats(1);
    ck_assert_int_eq(cudaMalloc(&d, 4), cudaErrorMemoryAllocation);
    ck_assert_int_eq(cudaMalloc(&d, 4), cudaSuccess);
    for (int i = 0; i < 2; i++)
        GPU_LAUNCH(write_at, 1, 1, &card, a, 0);
    ck_assert_int_eq(cudaDeviceSynchronize(), cudaSuccess);
    GPU_LAUNCH(write_at, 1, 1, &card, a, 0);
    ck_assert_int_eq(cudaDeviceSynchronize(), cudaErrorLaunchFailure);
    ck_assert_int_eq(cudaMalloc(&d, 4), cudaErrorLaunchFailure);
    ck_assert_int_eq(cudaGetLastError(), cudaErrorLaunchFailure);
    ck_assert_str_eq(cudaGetErrorName(cudaErrorLaunchFailure), "cudaErrorLaunchFailure");
}
END_TEST

/* ---- Graphs ---------------------------------------------------------------------------------- */

/* The card's stream is new. */
static cudaGraphExec_t record(float *a, float *b, int n)
{
    cudaStream_t s;
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t made = nullptr;
    void *more;
    cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);
    card.stream = s;
    ck_assert_int_eq(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal), cudaSuccess);
    GPU_LAUNCH(add, 1, 64, &card, b, a, n, 1.0f);
    GPU_LAUNCH(add, 1, 64, &card, a, b, n, 1.0f);
    ck_assert_int_eq(cudaMalloc(&more, 4), cudaErrorStreamCaptureUnsupported);
    ck_assert_int_eq(cudaStreamSynchronize(s), cudaErrorStreamCaptureUnsupported);
    ck_assert_int_eq(cudaStreamEndCapture(s, &graph), cudaSuccess);
    ck_assert_int_eq(cudaStreamEndCapture(s, &graph), cudaErrorIllegalState);
    ck_assert_int_eq(cudaGraphInstantiateWithFlags(&made, graph, 0), cudaSuccess);
    ck_assert_int_eq(cudaGraphDestroy(graph), cudaSuccess);
    return made;
}

static void check_graph(const char *async)
{
    begin("1", async);
    const float ones[2] = {1, 1};
    float got[2], *a = floats(2), *b = floats(2);
    cudaMemcpy(a, ones, sizeof ones, cudaMemcpyHostToDevice);
    cudaMemcpy(b, ones, sizeof ones, cudaMemcpyHostToDevice);
    cudaGraphExec_t graph = record(a, b, 2);
    const auto s = (cudaStream_t)card.stream;
    cudaStreamSynchronize(s);
    cudaMemcpy(got, a, sizeof got, cudaMemcpyDeviceToHost);
    ck_assert_float_eq(got[1], 1); /* recorded, not run */
    for (int i = 0; i < 2; i++)    /* b, a: 2, 3; 5, 8 */
        ck_assert_int_eq(cudaGraphLaunch(graph, s), cudaSuccess);
    GPU_LAUNCH(add, 1, 64, &card, b, a, 2, 1.0f);
    cudaStreamSynchronize(s);
    cudaMemcpy(got, b, sizeof got, cudaMemcpyDeviceToHost);
    ck_assert_float_eq(got[1], 13);
    ck_assert_int_eq(cudaGraphExecDestroy(graph), cudaSuccess);
}

START_TEST(a_graph_does_what_was_recorded_each_time)
{
    check_graph("0");
    check_graph("1");
}
END_TEST

/* x on the first stream, then y + x on the first and x + z on a second one, then the sum of both; `joins` and `waits`
 * are what binds the streams. */
static cudaError_t record_fork(float *x, float *y, float *z, bool waits, bool joins, cudaGraph_t *graph)
{
    cudaStream_t s[2];
    cudaEvent_t e[2];
    gpu side = card;
    for (int i = 0; i < 2; i++) {
        cudaStreamCreateWithFlags(&s[i], cudaStreamNonBlocking);
        cudaEventCreateWithFlags(&e[i], cudaEventDisableTiming);
    }
    card.stream = s[0];
    side.stream = s[1];
    ck_assert_int_eq(cudaStreamBeginCapture(s[0], cudaStreamCaptureModeThreadLocal), cudaSuccess);
    if (!waits)
        cudaEventRecord(e[0], s[0]);
    GPU_LAUNCH(add, 1, 64, &card, x, x, 1, 1.0f);
    if (waits)
        cudaEventRecord(e[0], s[0]);
    cudaStreamWaitEvent(s[1], e[0], 0);
    GPU_LAUNCH(add, 1, 64, &card, y, x, 1, 1.0f);
    GPU_LAUNCH(add, 1, 64, &side, z, x, 1, 1.0f);
    cudaEventRecord(e[1], s[1]);
    if (joins)
        cudaStreamWaitEvent(s[0], e[1], 0);
    GPU_LAUNCH(add, 1, 64, &card, y, z, 1, 1.0f);
    const cudaError_t error = cudaStreamEndCapture(s[0], graph);
    for (int i = 0; i < 2; i++) {
        cudaEventDestroy(e[i]);
        cudaStreamDestroy(s[i]);
    }
    return error;
}

/* Without a wait, some of many launches take an order with another result. */
START_TEST(streams_that_join_a_capture_are_branches_of_its_graph)
{
    begin("1", "0");
    float *x = floats(1), *y = floats(1), *z = floats(1);
    cudaStream_t s;
    cudaGraph_t graph;
    ck_assert_int_eq(record_fork(x, y, z, true, false, &graph), cudaErrorStreamCaptureUnjoined);
    cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);
    for (int waits = 0; waits < 2; waits++) {
        cudaGraphExec_t made;
        int others = 0;
        ck_assert_int_eq(record_fork(x, y, z, waits, true, &graph), cudaSuccess);
        ck_assert_int_eq(cudaGraphInstantiateWithFlags(&made, graph, 0), cudaSuccess);
        cudaGraphDestroy(graph);
        for (int i = 0; i < 20; i++) {
            const float one = 1;
            float got;
            for (float *at : {x, y, z})
                cudaMemcpy(at, &one, sizeof one, cudaMemcpyHostToDevice);
            ck_assert_int_eq(cudaGraphLaunch(made, s), cudaSuccess);
            cudaStreamSynchronize(s);
            cudaMemcpy(&got, y, sizeof got, cudaMemcpyDeviceToHost);
            others += got != 6; /* x = 2, y = 1 + 2, z = 1 + 2 */
        }
        ck_assert(waits ? others == 0 : others > 0);
        cudaGraphExecDestroy(made);
    }
}
END_TEST

/* ---- Ends of the process --------------------------------------------------------------------- */

static void the_host_reads_device_memory(void)
{
    volatile float *d = floats(1);
    fprintf(stderr, "%g\n", (double)d[0]);
}

static void a_kernel_writes_far_behind(void)
{
    GPU_LAUNCH(write_at, 1, 1, &card, floats(64), 64);
}

static void a_kernel_writes_just_behind(void)
{
    float *d = floats(63);
    GPU_LAUNCH(write_at, 1, 1, &card, d, 63);
    cudaFree(d);
}

static void a_kernel_writes_before(void)
{
    float *d = floats(64);
    GPU_LAUNCH(write_at, 1, 1, &card, d, -1);
    cudaFree(d);
}

static void a_kernel_writes_to_freed_memory(void)
{
    float *d = floats(64);
    cudaFree(d);
    GPU_LAUNCH(write_at, 1, 1, &card, d, 0);
}

static void a_kernel_gets_a_host_pointer(void)
{
    float x;
    GPU_LAUNCH(write_at, 1, 1, &card, &x, 0);
}

static void a_kernel_writes_to_another_gpu(void)
{
    float *d = floats(64);
    cudaSetDevice(1);
    GPU_LAUNCH(write_at, 1, 1, &card, d, 0);
}

static void a_copy_says_device_of_host_memory(void)
{
    float x, *d = floats(1);
    cudaMemcpy(d, &x, sizeof x, cudaMemcpyDeviceToDevice);
}

static void a_copy_says_host_of_device_memory(void)
{
    float *d = floats(1);
    cudaMemcpy(d, d, sizeof *d, cudaMemcpyHostToDevice);
}

static void a_copy_is_too_long(void)
{
    float x[2], *d = floats(1);
    cudaMemcpy(x, d, sizeof x, cudaMemcpyDeviceToHost);
}

static void a_kernel_goes_to_another_gpus_stream(void)
{
    cudaStream_t s;
    cudaStreamCreate(&s);
    card.stream = s;
    cudaSetDevice(1);
    GPU_LAUNCH(write_at, 1, 1, &card, floats(1), 0);
}

static void memory_is_freed_twice(void)
{
    float *d = floats(1);
    cudaFree(d);
    cudaFree(d);
}

static void a_graph_reads_freed_memory(void)
{
    float *a = floats(64), *b = floats(64);
    cudaGraphExec_t graph = record(a, b, 64);
    cudaFree(b);
    cudaGraphLaunch(graph, (cudaStream_t)card.stream);
}

static void a_graph_is_launched_after_its_end(void)
{
    cudaGraphExec_t graph = record(floats(64), floats(64), 64);
    cudaGraphExecDestroy(graph);
    cudaGraphLaunch(graph, (cudaStream_t)card.stream);
}

static const struct {
    void (*mistake)(void);
    int signal;
} mistakes[] = {
    {the_host_reads_device_memory, SIGSEGV},         {a_kernel_writes_far_behind, SIGSEGV},
    {a_kernel_writes_just_behind, SIGABRT},          {a_kernel_writes_before, SIGABRT},
    {a_kernel_writes_to_freed_memory, SIGSEGV},      {a_kernel_gets_a_host_pointer, SIGABRT},
    {a_kernel_writes_to_another_gpu, SIGSEGV},       {a_copy_says_device_of_host_memory, SIGABRT},
    {a_copy_says_host_of_device_memory, SIGABRT},    {a_copy_is_too_long, SIGABRT},
    {a_kernel_goes_to_another_gpus_stream, SIGABRT}, {memory_is_freed_twice, SIGABRT},
    {a_graph_reads_freed_memory, SIGSEGV},           {a_graph_is_launched_after_its_end, SIGABRT},
};

template <int signal> static void make(int i)
{
    begin("2", "0");
    mistakes[i].mistake();
}

START_TEST(a_mistake_aborts)
{
    make<SIGABRT>(_i);
}
END_TEST

START_TEST(a_stray_access_faults)
{
    make<SIGSEGV>(_i);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cudart");
    TCase *all = tcase_create("all");
    tcase_add_test(all, a_kernel_computes_what_was_copied_there);
    tcase_add_test(all, streams_keep_their_order_in_threads_of_their_own);
    tcase_add_test(all, fresh_memory_is_nan);
    tcase_add_test(all, copies_take_boxes);
    tcase_add_test(all, copies_between_gpus_take_cubes);
    tcase_add_test(all, a_missing_wait_between_streams_shows);
    tcase_add_test(all, an_event_is_ready_when_its_stream_came_there);
    tcase_add_test(all, the_null_stream_waits_for_blocking_ones);
    tcase_add_test(all, the_machine_is_what_the_environment_says);
    tcase_add_test(all, without_gpus_it_says_so);
    tcase_add_test(all, what_is_to_fail_fails);
    tcase_add_test(all, a_graph_does_what_was_recorded_each_time);
    tcase_add_test(all, streams_that_join_a_capture_are_branches_of_its_graph);
    for (int i = 0; i < (int)(sizeof mistakes / sizeof mistakes[0]); i++)
        if (mistakes[i].signal == SIGSEGV)
            tcase_add_loop_test_raise_signal(all, a_stray_access_faults, SIGSEGV, i, i + 1);
        else
            tcase_add_loop_test_raise_signal(all, a_mistake_aborts, SIGABRT, i, i + 1);
    suite_add_tcase(suite, all);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
