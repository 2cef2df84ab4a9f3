/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of views, and runs that are compared. */
#include "on_gpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cublasLt.h>
#include <cuda_runtime_api.h>

enum { WORKSPACE = 4 << 20, MOST_VIEWS = 256, MOST_KEPT = 256, VECTOR = 16 };

void simt_order(unsigned order) __attribute__((weak)); /* of what stands in for a GPU */

typedef struct block {
    void *at;
    size_t bytes;
} block;
static block memory[MOST_VIEWS]; /* in use */
static int n_memory;
/* Given back: a GPU is slow to give and take memory. The stand-in watches what is freed. */
static block kept[MOST_KEPT];
static int n_kept, oldest;

static void must(cudaError_t error, const char *what)
{
    if (error) {
        fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
        abort();
    }
}
#define MUST(call) must(call, #call)

const gpu *on_gpu(void)
{
    static gpu g;
    int n = 0;
    if (g.stream)
        return &g;
    if (cudaGetDeviceCount(&n) || n == 0)
        return NULL;
    MUST(cudaStreamCreateWithFlags((cudaStream_t *)&g.stream, cudaStreamNonBlocking));
    MUST(cudaMalloc(&g.workspace, WORKSPACE));
    g.workspace_bytes = WORKSPACE;
    MUST(cudaDeviceGetAttribute(&g.multiprocessors, cudaDevAttrMultiProcessorCount, 0));
    if (cublasLtCreate((cublasLtHandle_t *)&g.blas)) {
        fprintf(stderr, "cuBLASLt does not start\n");
        abort();
    }
    return &g;
}

void on_gpu_or_skip(void)
{
    if (on_gpu())
        return;
    fprintf(stderr, "skipped: there is no GPU\n");
    exit(77);
}

void on_gpu_wait(void)
{
    MUST(cudaStreamSynchronize((cudaStream_t)on_gpu()->stream));
}

static block new_block(size_t bytes)
{
    for (int i = 0; i < n_kept; i++)
        if (kept[i].bytes == bytes) {
            const block found = kept[i];
            kept[i] = kept[--n_kept];
            return found;
        }
    block b = {.bytes = bytes};
    MUST(cudaMalloc(&b.at, bytes));
    return b;
}

static void end_block(block b)
{
    if (simt_order) {
        MUST(cudaFree(b.at));
    } else if (n_kept < MOST_KEPT) {
        kept[n_kept++] = b;
    } else {
        oldest = (oldest + 1) % MOST_KEPT;
        MUST(cudaFree(kept[oldest].at));
        kept[oldest] = b;
    }
}

void on_gpu_forget(void)
{
    while (n_memory > 0)
        end_block(memory[--n_memory]);
}

/* The bytes from the first element in memory to the end of the last. */
static char *first_byte(const trama_view *v, size_t *bytes)
{
    const int64_t size = (int64_t)trama_dtype_size(v->dtype);
    int64_t low = 0, high = 0;
    for (int d = 0; d < v->ndim; d++) {
        if (v->extent[d] == 0) {
            *bytes = 0;
            return v->data;
        }
        const int64_t last = (v->extent[d] - 1) * v->stride[d];
        low += last < 0 ? last : 0;
        high += last > 0 ? last : 0;
    }
    *bytes = (size_t)((high - low + 1) * size);
    return (char *)v->data + low * size;
}

/* From pageable memory cudaMemcpy returns before the last bytes are on the GPU, and the stream of the kernels, which is
 * non-blocking, does not wait for it: the caller does, by cudaDeviceSynchronize. */
static void begin_upload(const trama_view *device, const trama_view *host)
{
    size_t bytes;
    const char *from = first_byte(host, &bytes);
    if (host->data && bytes)
        MUST(cudaMemcpy(first_byte(device, &bytes), from, bytes, cudaMemcpyHostToDevice));
}

/* Aligned as the host's is, with its end where the allocation ends. */
static trama_view room_for(const trama_view *host)
{
    trama_view v = *host;
    size_t bytes;
    char *first = first_byte(host, &bytes);
    const size_t shift = (uintptr_t)first % VECTOR;
    if (!host->data)
        return v;
    if (n_memory == MOST_VIEWS) {
        fprintf(stderr, "on_gpu: more than %d views without on_gpu_forget\n", MOST_VIEWS);
        abort();
    }
    memory[n_memory] = new_block(shift + bytes + (bytes == 0));
    v.data = (char *)memory[n_memory++].at + shift + ((char *)host->data - first);
    return v;
}

trama_view on_gpu_view(const trama_view *host)
{
    const trama_view v = room_for(host);
    begin_upload(&v, host);
    MUST(cudaDeviceSynchronize());
    return v;
}

static void download(void *to, const trama_view *device)
{
    size_t bytes;
    const char *from = first_byte(device, &bytes);
    if (bytes)
        MUST(cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToHost));
}

void on_gpu_back(const trama_view *host, const trama_view *device)
{
    size_t bytes;
    on_gpu_wait();
    if (host->data)
        download(first_byte(host, &bytes), device);
}

/* One run on what the host holds; its results are added to the end of what is returned. */
static char *run_once(int n, int n_out, const trama_view *host, const trama_view *device,
                      void (*work)(const trama_view *, const gpu *, void *), void *with, size_t *bytes)
{
    char *results = NULL;
    *bytes = 0;
    for (int i = 0; i < n; i++)
        begin_upload(&device[i], &host[i]);
    MUST(cudaDeviceSynchronize());
    work(device, on_gpu(), with);
    MUST(cudaPeekAtLastError());
    on_gpu_wait();
    for (int i = 0; i < n_out; i++) {
        size_t more;
        first_byte(&device[i], &more);
        results = realloc(results, *bytes + more + 1);
        download(results + *bytes, &device[i]);
        *bytes += more;
    }
    return results;
}

static void compare(const char *first, const char *now, size_t bytes, unsigned run)
{
    for (size_t i = 0; i < bytes; i++)
        if (first[i] != now[i]) {
            fprintf(stderr, "on_gpu: byte %zu of the results is not the same in run %u: %s\n", i, run,
                    simt_order ? "threads run in another order" : "it is not deterministic");
            abort();
        }
}

void on_gpu_run(int n, int n_out, const trama_view *host, void (*work)(const trama_view *, const gpu *, void *),
                void *with)
{
    const unsigned runs = simt_order ? 3 : 2; /* forward, reverse, shuffled */
    trama_view device[MOST_VIEWS];
    size_t bytes;
    char *first = NULL;

    for (int i = 0; i < n; i++) {
        int same = 0;
        while (same < i && (!host[i].data || host[same].data != host[i].data))
            same++;
        device[i] = same < i ? host[i] : room_for(&host[i]);
        if (same < i)
            device[i].data = device[same].data;
    }
    for (unsigned run = 0; run < runs; run++) {
        if (simt_order)
            simt_order(run);
        char *now = run_once(n, n_out, host, device, work, with, &bytes);
        if (first)
            compare(first, now, bytes, run);
        else
            first = now;
        if (now != first)
            free(now);
    }
    for (int i = 0; i < n_out; i++)
        on_gpu_back(&host[i], &device[i]);
    free(first);
    on_gpu_forget();
}

static void run_call(const trama_view *device, const gpu *g, void *with)
{
    trama_call call = *(const trama_call *)with;
    call.out = device;
    call.in = device + call.n_out;
    kernel_of(call.op)->cuda(&call, g);
}

bool on_gpu_call(const trama_call *call)
{
    trama_view views[2 * TRAMA_MAX_OPERANDS];
    bool complex = false; /* GPUs compute no complex numbers */
    for (int i = 0; i < call->n_out; i++)
        views[i] = call->out[i];
    for (int i = 0; i < call->n_in; i++)
        views[call->n_out + i] = call->in[i];
    for (int i = 0; i < call->n_out + call->n_in; i++)
        complex |= trama_dtype_kind_of(views[i].dtype) == TRAMA_KIND_COMPLEX;
    if (complex || !kernel_of(call->op)->cuda)
        return false;
    on_gpu_run(call->n_out + call->n_in, call->n_out, views, run_call, (void *)call);
    return true;
}
