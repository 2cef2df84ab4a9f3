/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA's and cuBLASLt's calls alone: what Trama on a GPU is compared with. They work on the first GPU that is visible.
 * Usage: raw_gpu matmul [--n 8192] [--dtype f32|tf32|bf16]   one unit is one product C = A B, row-major
 *        raw_gpu memcpy [--megabytes 2048]                   one unit is a copy on the card: half is read, half written
 *        raw_gpu launches [--ops 1000] [--elements 16]       one unit is a chain of adds, a kernel launch each
 *        raw_gpu graph [--ops 1000] [--elements 16]          the same chain as one CUDA graph
 *        raw_gpu about                                       prints the card, the versions, its memory's speed */
#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "raw_gpu.h"

static void must(cudaError_t error, const char *what)
{
    if (error)
        bench_fail("%s: %s", what, cudaGetErrorString(error));
}

static void must_blas(cublasStatus_t status, const char *what)
{
    if (status)
        bench_fail("%s: cuBLASLt's status %d", what, (int)status);
}

static cudaStream_t stream;

static void *on_device(size_t bytes)
{
    void *data;
    must(cudaMalloc(&data, bytes), "cudaMalloc");
    must(cudaMemset(data, 0, bytes), "cudaMemset");
    return data;
}

static void wait(void)
{
    must(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
}

/* ---- Products ---- */

enum { WORKSPACE = 32 << 20 }; /* as much as Trama gives it */

static const struct precision {
    const char *name;
    cudaDataType_t type;
    size_t size;
    cublasComputeType_t compute;
} precisions[] = {
    {"f32", CUDA_R_32F, 4, CUBLAS_COMPUTE_32F},
    {"tf32", CUDA_R_32F, 4, CUBLAS_COMPUTE_32F_FAST_TF32},
    {"bf16", CUDA_R_16BF, 2, CUBLAS_COMPUTE_32F},
};

typedef struct product {
    cublasLtHandle_t blas;
    cublasLtMatmulDesc_t how;
    cublasLtMatrixLayout_t layout;
    cublasLtMatmulHeuristicResult_t found;
    void *a, *b, *c, *workspace;
} product;

static const struct precision *precision_of(const char *name)
{
    for (size_t i = 0; i < sizeof precisions / sizeof *precisions; i++)
        if (!strcmp(name, precisions[i].name))
            return &precisions[i];
    bench_fail("--dtype takes f32, tf32 or bf16");
}

/* Zeros would make the card faster than data do. bf16 is the upper half of f32. */
static void *random_matrix(const struct precision *p, size_t count)
{
    char *host = malloc(count * p->size);
    uint32_t state = 1;
    for (size_t i = 0; i < count; i++) {
        state = state * 1664525u + 1013904223u;
        float x = (float)(state >> 8) * 0x1p-23f - 1;
        uint32_t bits;
        memcpy(&bits, &x, sizeof bits);
        uint16_t upper = (uint16_t)(bits >> 16);
        memcpy(host + i * p->size, p->size == 2 ? (void *)&upper : (void *)&x, p->size);
    }
    void *data = on_device(count * p->size);
    must(cudaMemcpy(data, host, count * p->size, cudaMemcpyHostToDevice), "cudaMemcpy");
    free(host);
    return data;
}

static void choose_algorithm(product *m)
{
    cublasLtMatmulPreference_t preference;
    size_t bytes = WORKSPACE;
    int n = 0;
    must_blas(cublasLtMatmulPreferenceCreate(&preference), "preference");
    must_blas(cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &bytes,
                                                   sizeof bytes),
              "workspace");
    must_blas(cublasLtMatmulAlgoGetHeuristic(m->blas, m->how, m->layout, m->layout, m->layout, m->layout, preference, 1,
                                             &m->found, &n),
              "cublasLtMatmulAlgoGetHeuristic");
    if (n == 0)
        bench_fail("cuBLASLt knows no way for this product");
    must_blas(cublasLtMatmulPreferenceDestroy(preference), "preference");
}

static product product_of(const struct precision *p, int n)
{
    product m = {.workspace = on_device(WORKSPACE)};
    size_t count = (size_t)n * (size_t)n;
    m.a = random_matrix(p, count);
    m.b = random_matrix(p, count);
    m.c = on_device(count * p->size);
    must_blas(cublasLtCreate(&m.blas), "cublasLtCreate");
    must_blas(cublasLtMatmulDescCreate(&m.how, p->compute, CUDA_R_32F), "description");
    must_blas(cublasLtMatrixLayoutCreate(&m.layout, p->type, (uint64_t)n, (uint64_t)n, n), "layout");
    choose_algorithm(&m);
    return m;
}

/* Its matrices are column-major: it computes C' = B' A'. */
static void multiply(void *arg, int n)
{
    const product *m = arg;
    const float one = 1, zero = 0;
    for (int i = 0; i < n; i++)
        must_blas(cublasLtMatmul(m->blas, m->how, &one, m->b, m->layout, m->a, m->layout, &zero, m->c, m->layout, m->c,
                                 m->layout, &m->found.algo, m->workspace, WORKSPACE, stream),
                  "cublasLtMatmul");
    wait();
}

/* ---- Copies ---- */

typedef struct copies {
    size_t bytes;
    void *from, *to;
} copies;

static void copy(void *arg, int n)
{
    const copies *c = arg;
    for (int i = 0; i < n; i++)
        must(cudaMemcpyAsync(c->to, c->from, c->bytes, cudaMemcpyDeviceToDevice, stream), "cudaMemcpyAsync");
    wait();
}

/* ---- Chains of tiny kernels ---- */

typedef struct chain {
    int ops, elements;
    float *b, *x[2];
    cudaGraphExec_t graph;
} chain;

static void enqueue_chain(const chain *c)
{
    for (int i = 0; i < c->ops; i++)
        raw_gpu_add(c->elements, c->x[i % 2], c->b, c->x[1 - i % 2], stream);
}

static void launch(void *arg, int n)
{
    for (int i = 0; i < n; i++)
        enqueue_chain(arg);
    must(cudaGetLastError(), "launch");
    wait();
}

static void launch_graph(void *arg, int n)
{
    const chain *c = arg;
    for (int i = 0; i < n; i++)
        must(cudaGraphLaunch(c->graph, stream), "cudaGraphLaunch");
    wait();
}

static void record_graph(chain *c)
{
    cudaGraph_t graph;
    must(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
    enqueue_chain(c);
    must(cudaStreamEndCapture(stream, &graph), "cudaStreamEndCapture");
    must(cudaGraphInstantiate(&c->graph, graph, 0), "cudaGraphInstantiate");
    must(cudaGraphDestroy(graph), "cudaGraphDestroy");
}

/* ---- The program ---- */

/* Two transfers a clock. */
static void tell_about(void)
{
    struct cudaDeviceProp p;
    int driver = 0, runtime = 0, kilohertz = 0, bits = 0;
    must(cudaGetDeviceProperties(&p, 0), "cudaGetDeviceProperties");
    must(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
    must(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion");
    must(cudaDeviceGetAttribute(&kilohertz, cudaDevAttrMemoryClockRate, 0), "the memory's clock");
    must(cudaDeviceGetAttribute(&bits, cudaDevAttrGlobalMemoryBusWidth, 0), "the memory's width");
    printf("%s, %zu MB, %.0f GB/s in theory, CUDA %d.%d (driver's %d.%d), cuBLASLt %zu\n", p.name,
           p.totalGlobalMem >> 20, 2e-6 * kilohertz * bits / 8, runtime / 1000, runtime % 1000 / 10, driver / 1000,
           driver % 1000 / 10, cublasLtGetVersion());
}

static void serve_product(int argc, char **argv)
{
    product m = product_of(precision_of(bench_option(argc, argv, "dtype", "f32")), bench_number(argc, argv, "n", 8192));
    bench_serve(0, 1, multiply, &m);
}

static void serve_copies(int argc, char **argv)
{
    copies c = {.bytes = (size_t)bench_number(argc, argv, "megabytes", 2048) << 19};
    c.from = on_device(c.bytes);
    c.to = on_device(c.bytes);
    bench_serve(0, 1, copy, &c);
}

static void serve_chain(int argc, char **argv, bool as_graph)
{
    chain c = {.ops = bench_number(argc, argv, "ops", 1000), .elements = bench_number(argc, argv, "elements", 16)};
    size_t bytes = (size_t)c.elements * sizeof(float);
    c.b = on_device(bytes);
    c.x[0] = on_device(bytes);
    c.x[1] = on_device(bytes);
    if (as_graph)
        record_graph(&c);
    bench_serve(0, 1, as_graph ? launch_graph : launch, &c);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    must(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "a stream");
    if (!strcmp(what, "matmul"))
        serve_product(argc, argv);
    else if (!strcmp(what, "memcpy"))
        serve_copies(argc, argv);
    else if (!strcmp(what, "launches") || !strcmp(what, "graph"))
        serve_chain(argc, argv, !strcmp(what, "graph"));
    else if (!strcmp(what, "about"))
        tell_about();
    else
        bench_fail("usage: raw_gpu matmul|memcpy|launches|graph|about");
    return 0;
}
