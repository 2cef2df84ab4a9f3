/* SPDX-License-Identifier: Apache-2.0 */
/* What a kernel on a GPU is given beside its call. C files see it without CUDA's headers. */
#ifndef CODELETS_GPU_H
#define CODELETS_GPU_H

#include <stddef.h>

/* Of one worker, which runs one kernel after the other on one stream. A kernel enqueues and never waits. */
typedef struct gpu {
    void *stream; /* cudaStream_t */
    void *blas;   /* cublasLtHandle_t */
    void *
        workspace; /* [workspace_bytes] on the device, aligned to 256: scratch of one call, next used by the next one */
    size_t workspace_bytes;
    int multiprocessors;
} gpu;

#endif
