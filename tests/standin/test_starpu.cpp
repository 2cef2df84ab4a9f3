/* SPDX-License-Identifier: Apache-2.0 */
/* A StarPU that was built with CUDA runs on what stands in for CUDA: plain StarPU, nothing of Trama but launch.cuh. The
 * functions that StarPU calls must be the stand-in's, not those of NVIDIA's libraries, which it brings along. */
#include "simt.h"
#include "standin.h"

#include <check.h>
#include <dlfcn.h>
#include <string>
#include <vector>

#include <starpu.h>

#include "launch.cuh"

extern "C" void gpu_launched(const char *)
{
}

enum { N = 1000, ROUNDS = 20 };

static __global__ void axpy(float *y, const float *x, int n)
{
    const int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < n)
        y[i] = 2 * y[i] + x[i];
}

static int ran[8]; /* per device */

static void on_gpu(void *buffers[], void *)
{
    float *y = (float *)STARPU_VECTOR_GET_PTR(buffers[0]);
    const float *x = (const float *)STARPU_VECTOR_GET_PTR(buffers[1]);
    int device;
    gpu card = {};
    card.stream = starpu_cuda_get_local_stream();
    cudaGetDevice(&device);
    __atomic_fetch_add(&ran[device], 1, __ATOMIC_RELAXED);
    GPU_LAUNCH(axpy, (N + 63) / 64, 64, &card, y, x, (int)STARPU_VECTOR_GET_NX(buffers[0]));
}

static void on_cpu(void *buffers[], void *)
{
    float *y = (float *)STARPU_VECTOR_GET_PTR(buffers[0]);
    const float *x = (const float *)STARPU_VECTOR_GET_PTR(buffers[1]);
    for (unsigned i = 0; i < STARPU_VECTOR_GET_NX(buffers[0]); i++)
        y[i] = 2 * y[i] + x[i];
}

static void begin(const char *gpus, const char *memory, const char *async)
{
    setenv("TRAMA_STANDIN_GPUS", gpus, 1);
    setenv("TRAMA_STANDIN_MEMORY", memory, 1);
    setenv("TRAMA_STANDIN_ASYNC", async, 1);
    setenv("STARPU_HOME", (std::string(getenv("STARPU_HOME") ? getenv("STARPU_HOME") : ".") + "-gpus-" + gpus).c_str(),
           1);
    setenv("STARPU_SUBALLOCATOR", "0", 1); /* every buffer has an end of its own */
}

/* Runs chains of tasks on vectors, anywhere if mixed, and compares with a loop. */
static void run_chains(int vectors, bool mixed)
{
    std::vector<std::vector<float>> y((size_t)vectors, std::vector<float>(N));
    std::vector<float> x(N);
    std::vector<starpu_data_handle_t> handles((size_t)vectors);
    starpu_data_handle_t of_x;
    starpu_conf conf;
    starpu_codelet cl;

    starpu_conf_init(&conf);
    conf.ncpus = 1;
    conf.nopencl = 0;
    ck_assert_int_eq(starpu_init(&conf), 0);
    ck_assert_uint_eq(starpu_cuda_worker_get_count(), (unsigned)atoi(getenv("TRAMA_STANDIN_GPUS")));
    starpu_codelet_init(&cl);
    cl.cuda_funcs[0] = on_gpu;
    cl.cuda_flags[0] = STARPU_CUDA_ASYNC;
    if (mixed)
        cl.cpu_funcs[0] = on_cpu;
    cl.nbuffers = 2;
    cl.modes[0] = STARPU_RW;
    cl.modes[1] = STARPU_R;
    for (int i = 0; i < N; i++)
        x[(size_t)i] = (float)(i % 7);
    starpu_vector_data_register(&of_x, STARPU_MAIN_RAM, (uintptr_t)x.data(), N, sizeof(float));
    for (int v = 0; v < vectors; v++) {
        for (int i = 0; i < N; i++)
            y[(size_t)v][(size_t)i] = (float)(i + v);
        starpu_vector_data_register(&handles[(size_t)v], STARPU_MAIN_RAM, (uintptr_t)y[(size_t)v].data(), N,
                                    sizeof(float));
    }
    for (int round = 0; round < ROUNDS; round++)
        for (int v = 0; v < vectors; v++)
            ck_assert_int_eq(starpu_task_insert(&cl, STARPU_RW, handles[(size_t)v], STARPU_R, of_x, 0), 0);
    for (starpu_data_handle_t handle : handles)
        starpu_data_unregister(handle);
    starpu_data_unregister(of_x);
    starpu_shutdown();

    for (int v = 0; v < vectors; v++)
        for (int i = 0; i < N; i++) {
            float expected = (float)(i + v);
            for (int round = 0; round < ROUNDS; round++)
                expected = 2 * expected + (float)(i % 7);
            ck_assert_float_eq(y[(size_t)v][(size_t)i], expected);
        }
}

START_TEST(starpu_calls_the_stand_in)
{
    for (const char *name : {"cudaMalloc", "cudaMemcpy3DPeerAsync", "cudaEventQuery", "cublasLtCreate"}) {
        Dl_info info;
        ck_assert(dladdr(dlsym(RTLD_DEFAULT, name), &info));
        ck_assert_msg(strstr(info.dli_fname, "standin"), "%s is that of %s", name, info.dli_fname);
    }
}
END_TEST

START_TEST(a_codelet_computes_on_one_gpu)
{
    begin("1", "10000000", "0");
    run_chains(5, false);
    ck_assert_int_eq(ran[0], 5 * ROUNDS);
}
END_TEST

START_TEST(and_when_work_is_late)
{
    begin("1", "10000000", "1");
    run_chains(5, true);
}
END_TEST

START_TEST(several_gpus_and_a_cpu_share_the_work)
{
    begin("3", "10000000", "1");
    run_chains(20, true);
}
END_TEST

START_TEST(data_beyond_the_memory_of_the_card_are_evicted)
{
    begin("1", "50000", "1"); /* 12 vectors */
    run_chains(40, false);
    ck_assert_int_eq(ran[0], 40 * ROUNDS);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("starpu");
    TCase *all = tcase_create("all");
    tcase_add_test(all, starpu_calls_the_stand_in);
    tcase_add_test(all, a_codelet_computes_on_one_gpu);
    tcase_add_test(all, and_when_work_is_late);
    tcase_add_test(all, several_gpus_and_a_cpu_share_the_work);
    tcase_add_test(all, data_beyond_the_memory_of_the_card_are_evicted);
    suite_add_tcase(suite, all);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
