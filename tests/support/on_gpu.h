/* SPDX-License-Identifier: Apache-2.0 */
/* For tests of kernels on a GPU: a card, or what stands in for one (tests/standin). Views are copied there byte by
 * byte, with their strides, their alignment and what lies between their elements, and nothing around them can be
 * touched. */
#ifndef ON_GPU_H
#define ON_GPU_H

#include "kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Kernels get this: a stream, a handle of cuBLASLt, and 4 MiB of workspace. NULL where there is no GPU. */
const gpu *on_gpu(void);

/* For main: the process ends with 77 and says why where there is no GPU. */
void on_gpu_or_skip(void);

/* Waits for the stream. A failure ends the process with a message. */
void on_gpu_wait(void);

/* A view of the same strides in the GPU's memory, holding the same; ends with the test. data NULL stays NULL. */
trama_view on_gpu_view(const trama_view *host);

/* Copies it back, gaps between elements included. */
void on_gpu_back(const trama_view *host, const trama_view *device);

/* Gives back all memory of views. */
void on_gpu_forget(void);

/* Runs work on device copies of the views and copies those of the first n_out back, several times and, where a stand-in
 * runs the threads, in another order each time: the bits must be the same. Views with the same data share a copy. */
void on_gpu_run(int n, int n_out, const trama_view *host,
                void (*work)(const trama_view *device, const gpu *g, void *with), void *with);

/* Runs the CUDA kernel of call->op on a call whose views are the host's. False: the op has none, and nothing ran. */
bool on_gpu_call(const trama_call *call);

#ifdef __cplusplus
}
#endif
#endif
