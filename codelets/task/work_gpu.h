/* SPDX-License-Identifier: Apache-2.0 */
/* Kinds of work on GPUs. */
#ifndef CODELETS_WORK_GPU_H
#define CODELETS_WORK_GPU_H

#include "work.h"

/* For work_kind, with views that lie in the memory of the GPU. */
void work_cuda_compute(const work *w, const gpu *g);
void work_cuda_copy(const work *w, const gpu *g);
void work_cuda_reduce(const work *w, const gpu *g);
void work_cuda_fill(const work *w, const gpu *g);
void work_cuda_collective(const work *w, const gpu *g); /* gpu_collective.c */

#endif
