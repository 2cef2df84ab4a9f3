/* SPDX-License-Identifier: Apache-2.0 */
/* Remembers the first launch that CUDA has refused. */
#include "launch.cuh"

static thread_local const char *refused; /* the first kernel */

void gpu_launched(const char *kernel)
{
    if (!refused && cudaPeekAtLastError() != cudaSuccess)
        refused = kernel;
}

const char *gpu_refused(void)
{
    return refused;
}
