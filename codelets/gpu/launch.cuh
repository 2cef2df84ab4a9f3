/* SPDX-License-Identifier: Apache-2.0 */
/* Launches for .cu files. These use threads, blocks, __shared__ arrays of fixed size, __syncthreads and the
 * __shfl_*_sync family, and no more. So each also compiles as C++, and tests run it on a processor, thread by
 * thread. */
#ifndef CODELETS_LAUNCH_CUH
#define CODELETS_LAUNCH_CUH

#include <cuda_runtime.h>

#include "gpu.h"
#include "trama_op.h"

/* GPU_LAUNCH(kernel, grid, block, g, arguments...); kernels with template arguments stand in parentheses. */
#ifdef __CUDACC__
#define GPU_LAUNCH(kernel, grid, block, g, ...)                                                                        \
    do {                                                                                                               \
        (kernel)<<<(grid), (block), 0, (cudaStream_t)(g)->stream>>>(__VA_ARGS__);                                      \
        gpu_launched(#kernel);                                                                                         \
    } while (0)
#else /* the stand-in for CUDA is included before this file */
#define GPU_LAUNCH(kernel, grid, block, g, ...)                                                                        \
    do {                                                                                                               \
        const auto each_thread = [=](const auto &...with) { (kernel)(with...); };                                      \
        simt_launch_on((g)->stream, #kernel, (grid), (block), each_thread, __VA_ARGS__);                               \
        gpu_launched(#kernel);                                                                                         \
    } while (0)
#endif

/* Keeps the name of the first kernel after which CUDA reports an error, for gpu_check. */
extern "C" void gpu_launched(const char *kernel);

/* Blocks of a one-dimensional grid in which each thread takes every (blocks * threads)th item: enough to fill the
 * card, and no more than there are items. */
static inline unsigned gpu_blocks(int64_t items, int threads, const gpu *g)
{
    const int64_t wanted = (items + threads - 1) / threads, most = (int64_t)g->multiprocessors * 16;
    return (unsigned)(wanted < 1 ? 1 : wanted < most ? wanted : most);
}

#endif
