/* SPDX-License-Identifier: Apache-2.0 */
/* The argument of GPU kernels besides the call. C files see it without CUDA's headers. */
#ifndef CODELETS_GPU_H
#define CODELETS_GPU_H

#include <stddef.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The GPU as one worker uses it, or one of its lanes: one kernel after the other, on one stream. A kernel enqueues work
 * and never waits. */
typedef struct gpu {
    void *stream;    /* cudaStream_t */
    void *blas;      /* cublasLtHandle_t */
    void *workspace; /* [workspace_bytes] on the device, aligned to 256: scratch of one call, then of the next one */
    size_t workspace_bytes;
    int multiprocessors;
    bool tf32; /* products of f32 may be computed in TF32 */
} gpu;

/* Streams of a worker, on which works that need no result of each other may be recorded side by side: the first is its
 * own. */
enum { GPU_LANES = 4 };

/* A GPU that this process may use: CUDA_VISIBLE_DEVICES limits these. */
typedef struct gpu_card {
    int device;       /* as CUDA numbers them */
    char kind[64];    /* equal for GPUs that compute equal bits: "NVIDIA H200 sm_90 cuBLAS 130000" */
    uint8_t uuid[16]; /* the same for every process of the node */
    int pci[3];       /* domain, bus, device */
    int64_t bytes;    /* of its memory */
} gpu_card;

/* Lists at most `most` GPUs and returns their number. Where it is 0, as without CUDA, *why is the reason, static. */
int gpu_list(gpu_card *cards, int most, const char **why);

/* Opens the process's context on a device, and makes it the calling thread's device where the thread's own has no
 * context yet: so a process has contexts on its GPUs alone, not on GPU 0. NULL, or the reason, static: in compute mode
 * EXCLUSIVE_PROCESS another process may have the GPU. */
const char *gpu_open(int device);

/* Bytes that are free on a device now. */
int64_t gpu_free_bytes(int device);

/* Makes and frees the gpu of each of StarPU's GPU workers, which must be awake. False, with *why, where memory or
 * cuBLASLt cannot be had. */
bool gpu_start(bool tf32, const char **why);
void gpu_stop(void);

/* Ends a cudaGraphExec_t of a device, on any thread. */
void gpu_end_graph(int device, void *graph);

/* The gpu of the calling worker. */
const gpu *gpu_here(void);

/* The gpu of the calling worker as [GPU_LANES]: each lane has a stream and scratch memory of its own, which the first
 * call makes; lanes for which there is no memory are the gpu itself. */
const gpu *gpu_lanes(void);

/* Called before a worker's kernels. Clears the errors that StarPU's calls have left on the thread: a failed allocation
 * that it copes with, an event that is not ready. An error that a device cannot recover from is reported again. */
void gpu_forget_errors(void);

/* The first kernel of this thread whose launch left an error (launch.cu); NULL: none. */
const char *gpu_refused(void);

#ifdef __cplusplus
}
#endif
#endif
