/* SPDX-License-Identifier: Apache-2.0 */
/* The GPUs of the process, and the streams, cuBLASLt and scratch memory of StarPU's workers on them. It knows no op. */
#include "gpu.h"

#if TRAMA_HAVE_CUDA
#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <starpu.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loop.h"

enum { WORKSPACE_BYTES = 32 << 20 };

static gpu workers[STARPU_NMAXWORKERS][GPU_LANES];

/* ---- Cards ---- */

static void describe(int device, gpu_card *card)
{
    struct cudaDeviceProp p;
    *card = (gpu_card){.device = device};
    if (cudaGetDeviceProperties(&p, device))
        return;
    snprintf(card->kind, sizeof card->kind, "%.32s sm_%d%d cuBLAS %zu", p.name, p.major, p.minor, cublasLtGetVersion());
    memcpy(card->uuid, &p.uuid, sizeof card->uuid);
    card->pci[0] = p.pciDomainID;
    card->pci[1] = p.pciBusID;
    card->pci[2] = p.pciDeviceID;
    card->bytes = (int64_t)p.totalGlobalMem;
}

int gpu_list(gpu_card *cards, int most, const char **why)
{
    int n = 0;
    cudaError_t error = cudaGetDeviceCount(&n);
    if (error || n == 0) {
        cudaGetLastError(); /* clears the error */
        *why = error ? cudaGetErrorString(error) : "CUDA finds none";
        return 0;
    }
    n = n < most ? n : most;
    for (int i = 0; i < n; i++)
        describe(i, &cards[i]);
    return n;
}

typedef int context_state(int device, unsigned *flags, int *active);

/* cuDevicePrimaryCtxGetState of the driver; NULL where it has none. CUDA 13 has no cudaGetDriverEntryPoint, CUDA before
 * 12.5 has no other. */
static context_state *find_context_state(void)
{
    static const char name[] = "cuDevicePrimaryCtxGetState";
    context_state *state = NULL;
#if CUDART_VERSION >= 12050
    enum cudaDriverEntryPointQueryResult found;
    cudaError_t error = cudaGetDriverEntryPointByVersion(name, (void **)&state, 7000, 0, &found);
#elif CUDART_VERSION >= 12000
    enum cudaDriverEntryPointQueryResult found;
    cudaError_t error = cudaGetDriverEntryPoint(name, (void **)&state, 0, &found);
#else
    cudaError_t error = cudaGetDriverEntryPoint(name, (void **)&state, 0);
#endif
    return error ? NULL : state;
}

/* Whether the process has a context on a device: cudaSetDevice would open one, of some 400 MB. */
static bool has_context(int device)
{
    context_state *state = find_context_state();
    unsigned flags = 0;
    int active = 0;
    return !state || (!state(device, &flags, &active) && active);
}

/* Makes a device the thread's again that was so before, unless that would open a context on it. */
static void go_back(int device)
{
    if (has_context(device))
        cudaSetDevice(device);
}

const char *gpu_open(int device)
{
    int before = 0;
    cudaGetDevice(&before);
    const bool hosts = has_context(before);
    cudaError_t error = cudaSetDevice(device);
    if (!error)
        error = cudaFree(NULL); /* CUDA 11 opens a context here */
    if (hosts)
        cudaSetDevice(before);
    cudaGetLastError();
    return error ? cudaGetErrorString(error) : NULL;
}

int64_t gpu_free_bytes(int device)
{
    size_t left = 0, all = 0;
    int before = 0;
    cudaGetDevice(&before);
    if (cudaSetDevice(device) || cudaMemGetInfo(&left, &all))
        left = 0;
    go_back(before);
    cudaGetLastError();
    return (int64_t)left;
}

/* ---- Workers ---- */

static struct starting {
    bool tf32;
    _Atomic(const char *) failed;
} starting;

static void start_worker(void *argument)
{
    struct starting *s = argument;
    gpu *g = workers[starpu_worker_get_id()];
    int device = 0;
    cublasLtHandle_t blas = NULL;
    cudaError_t error;
    *g = (gpu){.stream = starpu_cuda_get_local_stream(), .workspace_bytes = WORKSPACE_BYTES, .tf32 = s->tf32};
    cudaGetDevice(&device);
    if ((error = cudaDeviceGetAttribute(&g->multiprocessors, cudaDevAttrMultiProcessorCount, device)) ||
        (error = cudaMalloc(&g->workspace, g->workspace_bytes)))
        s->failed = cudaGetErrorString(error);
    else if (cublasLtCreate(&blas))
        s->failed = "cuBLASLt does not start";
    g->blas = blas;
}

static void stop_worker(void *argument)
{
    gpu *g = workers[starpu_worker_get_id()];
    (void)argument;
    cudaStreamSynchronize(g->stream);
    if (g->blas)
        cublasLtDestroy(g->blas);
    for (int k = 1; k < GPU_LANES; k++)
        if (g[k].stream && g[k].stream != g->stream) {
            cudaFree(g[k].workspace);
            cudaStreamDestroy(g[k].stream);
        }
    cudaFree(g->workspace);
    memset(g, 0, GPU_LANES * sizeof *g);
}

bool gpu_start(bool tf32, const char **why)
{
    starting.tf32 = tf32;
    starting.failed = NULL;
    if (starpu_cuda_worker_get_count())
        starpu_execute_on_each_worker(start_worker, &starting, STARPU_CUDA);
    *why = starting.failed;
    return !*why;
}

void gpu_stop(void)
{
    if (starpu_cuda_worker_get_count())
        starpu_execute_on_each_worker(stop_worker, NULL, STARPU_CUDA);
}

const gpu *gpu_here(void)
{
    return workers[starpu_worker_get_id()];
}

/* The gpu itself where there is no memory for another lane: works recorded there follow each other. */
static gpu new_lane(const gpu *g)
{
    gpu lane = *g;
    cudaStream_t stream = NULL;
    void *workspace = NULL;
    if (cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) || cudaMalloc(&workspace, g->workspace_bytes)) {
        if (stream)
            cudaStreamDestroy(stream);
        cudaGetLastError();
        return *g;
    }
    lane.stream = stream;
    lane.workspace = workspace;
    return lane;
}

const gpu *gpu_lanes(void)
{
    gpu *g = workers[starpu_worker_get_id()];
    for (int k = 1; k < GPU_LANES; k++)
        if (!g[k].stream)
            g[k] = new_lane(g);
    return g;
}

void gpu_end_graph(int device, void *graph)
{
    int before = 0;
    cudaGetDevice(&before);
    cudaSetDevice(device);
    cudaGraphExecDestroy(graph);
    go_back(before);
    cudaGetLastError();
}

/* ---- Errors ---- */

void gpu_forget_errors(void)
{
    cudaGetLastError();
}

static double megabytes(int n, const trama_view *views)
{
    double bytes = 0;
    for (int i = 0; i < n; i++)
        bytes += (double)view_count(&views[i]) * (double)trama_dtype_size(views[i].dtype);
    return bytes / (1 << 20);
}

void gpu_check(const trama_call *call)
{
    char why[512];
    size_t left = 0, all = 0;
    cudaError_t error = cudaPeekAtLastError();
    if (!error)
        return;
    const char *kernel = gpu_refused();
    cudaMemGetInfo(&left, &all);
    snprintf(why, sizeof why,
             "the GPU reports, of this op or an earlier one: %s%s%.200s; it takes %.1f MB, %zu of %zu MB are free",
             cudaGetErrorString(error), kernel ? ", of kernel " : "", kernel ? kernel : "",
             megabytes(call->n_in, call->in) + megabytes(call->n_out, call->out), left >> 20, all >> 20);
    kernel_impossible(call, why);
}

#else

int gpu_list(gpu_card *cards, int most, const char **why)
{
    (void)cards, (void)most;
    *why = "this Trama was built without CUDA";
    return 0;
}

const char *gpu_open(int device)
{
    (void)device;
    return "this Trama was built without CUDA";
}

int64_t gpu_free_bytes(int device)
{
    (void)device;
    return 0;
}

bool gpu_start(bool tf32, const char **why)
{
    (void)tf32;
    *why = NULL;
    return true;
}

void gpu_stop(void)
{
}

#endif
