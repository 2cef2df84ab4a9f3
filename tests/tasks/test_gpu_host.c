/* SPDX-License-Identifier: Apache-2.0 */
/* A program that uses CUDA itself, beside Trama: its memory on GPUs, its thread's device, and the GPUs on which its
 * process has contexts. */
#include "harness.h"
#include "itself.h"

#if TRAMA_HAVE_CUDA
#include <cuda_runtime_api.h>

int simt_has_context(int gpu) __attribute__((weak)); /* of what stands in for GPUs */

enum { N = 1000 };

static char home[] = "/tmp/trama-test-XXXXXX"; /* a folder without StarPU's measurements */

static void take_fresh_home(void)
{
    demand(mkdtemp(home), "no folder");
    setenv("STARPU_HOME", home, 1);
}

static void leave_home(void)
{
    char command[100];
    snprintf(command, sizeof command, "rm -r %s", home);
    demand(!system(command), "%s", command);
    strcpy(home, "/tmp/trama-test-XXXXXX");
}

static void start_on(trama_device device)
{
    const trama_config config = {.device = device};
    start_with(&config);
}

static void check_memory(trama_device device)
{
    int mine[N], back[N] = {0}, *there = NULL;
    for (int i = 0; i < N; i++)
        mine[i] = 7 * i;
    take_fresh_home();
    demand(!cudaMalloc((void **)&there, sizeof mine), "no memory");
    demand(!cudaMemcpy(there, mine, sizeof mine, cudaMemcpyHostToDevice), "no copy");
    start_on(device);
    stop();
    demand(!cudaMemcpy(back, there, sizeof back, cudaMemcpyDeviceToHost), "the memory is gone");
    demand(!memcmp(mine, back, sizeof mine), "the content is another one");
    demand(!cudaFree(there), "the memory cannot be freed");
    leave_home();
}

START_TEST(memory_of_the_program_on_a_gpu_survives_a_start_on_gpus)
{
    check_memory(TRAMA_GPU);
}
END_TEST

START_TEST(memory_of_the_program_on_a_gpu_survives_a_start_on_cores)
{
    check_memory(TRAMA_CPU);
}
END_TEST

START_TEST(a_thread_keeps_the_device_that_it_uses)
{
    int now = -1, n = 0;
    cudaGetDeviceCount(&n);
    demand(!cudaSetDevice(n - 1), "no device %d", n - 1);
    start_on(TRAMA_GPU);
    cudaGetDevice(&now);
    demand(now == n - 1, "the thread's device is %d, and was %d", now, n - 1);
    stop();
    cudaGetDevice(&now);
    demand(now == n - 1, "after the stop the thread's device is %d, and was %d", now, n - 1);
}
END_TEST

/* Two ranks divide two GPUs, and each opens its own one only. In a process of its own: this one has used all. */
static void divide(void)
{
    start_on(TRAMA_GPU);
    for (int g = 0; g < 2 && simt_has_context; g++)
        demand(simt_has_context(g) == (n_ranks == 1 || g == my_rank), "rank %d has %s context on GPU %d", my_rank,
               simt_has_context(g) ? "a" : "no", g);
    stop();
}

/* Each rank says whether it starts, and why not. */
static void attempt(void)
{
    const trama_config config = {.device = TRAMA_GPU};
    if (trama_start(&config, &ctx)) {
        printf("refused: %s\n", trama_error());
        return;
    }
    printf("started\n");
    must(trama_stop(&ctx));
}

#if TRAMA_HAVE_MPI
/* What two ranks on so many exclusive GPUs say. Returns their status. */
static int on_exclusive(int gpus, const char *argument, char *said, size_t room)
{
    char path[1024], command[2400], folder[] = "/tmp/trama-test-XXXXXX";
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    path[n > 0 ? n : 0] = 0;
    demand(mkdtemp(folder), "no folder");
    snprintf(command, sizeof command,
             "env TRAMA_STANDIN_GPUS=%d TRAMA_STANDIN_EXCLUSIVE=%s STARPU_HOME=%s OMPI_ALLOW_RUN_AS_ROOT=1 "
             "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 "
             "OMPI_MCA_hwloc_base_binding_policy=none OMPI_MCA_plm=isolated mpirun -n 2 '%s' %s 2>&1; s=$?; "
             "rm -rf %s; exit $s",
             gpus, folder, folder, path, argument, folder);
    FILE *pipe = popen(command, "r");
    said[fread(said, 1, room - 1, pipe)] = 0;
    return pclose(pipe);
}

START_TEST(each_rank_opens_its_own_gpu_only)
{
    char said[6000];
    int status = on_exclusive(2, "divide", said, sizeof said);
    demand(!status, "status %d: %s", status, said);
}
END_TEST

START_TEST(two_ranks_on_one_exclusive_gpu_are_refused)
{
    char said[6000];
    on_exclusive(1, "attempt", said, sizeof said);
    demand(strstr(said, "EXCLUSIVE_PROCESS") && !strstr(said, "started"), "they say: %s", said);
}
END_TEST
#endif

int main(int argc, char **argv)
{
    if (argc > 1) {
        (argv[1][0] == 'd' ? divide : attempt)();
        return 0;
    }
    const TTest *tests[8] = {memory_of_the_program_on_a_gpu_survives_a_start_on_gpus,
                             memory_of_the_program_on_a_gpu_survives_a_start_on_cores,
                             a_thread_keeps_the_device_that_it_uses};
    int n = 3, gpus = 0;
    setenv("TRAMA_STANDIN_GPUS", "2", 0);
    if (cudaGetDeviceCount(&gpus) || gpus == 0) {
        printf("skipped: there is no GPU\n");
        return 77;
    }
#if TRAMA_HAVE_MPI
    if (simt_has_context) { /* GPUs as many as are wanted, and exclusive ones */
        tests[n++] = each_rank_opens_its_own_gpu_only;
        tests[n++] = two_ranks_on_one_exclusive_gpu_are_refused;
    }
#endif
    return run_tests(__FILE__, tests, n);
}

#else

NO_TESTS("this Trama was built without CUDA")

#endif
