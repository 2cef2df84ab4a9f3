/* SPDX-License-Identifier: Apache-2.0 */
/* What a kernel on a GPU is given beside its call. C files see it without CUDA's headers. */
#ifndef CODELETS_GPU_H
#define CODELETS_GPU_H

#include <stddef.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Of one worker, which runs one kernel after the other on one stream. A kernel enqueues and never waits. */
typedef struct gpu {
    void *stream;    /* cudaStream_t */
    void *blas;      /* cublasLtHandle_t */
    void *workspace; /* [workspace_bytes] on the device, aligned to 256: scratch of one call, next used by the next one */
    size_t workspace_bytes;
    int multiprocessors;
    bool tf32; /* products of f32 may be computed in TF32 */
} gpu;

/* A GPU that this process may use: CUDA_VISIBLE_DEVICES counts. */
typedef struct gpu_card {
    int device;       /* as CUDA numbers them */
    char kind[64];    /* what computes equal bits: "NVIDIA H200 sm_90 cuBLAS 130000" */
    uint8_t uuid[16]; /* the same for every process of the node */
    int pci[3];       /* domain, bus, device */
    int64_t bytes;    /* of its memory */
} gpu_card;

/* At most `most` of them; returns how many. *why, static, says why there is none. Without CUDA there is none. */
int gpu_list(gpu_card *cards, int most, const char **why);

/* Bytes that are free on a device now. */
int64_t gpu_free_bytes(int device);

/* What kernels on GPU workers need, made and freed on each of StarPU's. Workers are awake. False, and *why, where
 * memory or the library lacks. */
bool gpu_start(bool tf32, const char **why);
void gpu_stop(void);

/* Of the worker that calls it. */
const gpu *gpu_here(void);

/* Before a worker's kernels: what StarPU's calls have left on the thread is forgotten, a failed allocation that it copes
 * with, an event that is not ready. What a device cannot recover from comes again. */
void gpu_forget_errors(void);

/* The first kernel of this thread after whose launch there was an error (launch.cu); NULL. */
const char *gpu_refused(void);

#ifdef __cplusplus
}
#endif
#endif
