/* SPDX-License-Identifier: Apache-2.0 */
/* What becomes of a launch that was refused. */
#include "launch.cuh"

#include <stdio.h>
#include <stdlib.h>

/* A query of an event leaves "not ready" behind, which is no failure. */
void gpu_launched(const char *kernel)
{
    const cudaError_t error = cudaGetLastError();
    if (error == cudaSuccess || error == cudaErrorNotReady)
        return;
    fprintf(stderr, "trama: kernel %s could not start: %s\n", kernel, cudaGetErrorString(error));
    abort();
}
