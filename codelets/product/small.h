/* SPDX-License-Identifier: Apache-2.0 */
/* Products that leave most of a GPU idle in cuBLASLt's tiles. */
#ifndef CODELETS_SMALL_H
#define CODELETS_SMALL_H

#include "blas_gpu.h"

/* Enqueues the job in one kernel, and the calls behind it, which alone read its result, *product, so that it is not
 * written (`inner` [n_more]: as in kernel_chain). Returns false and does nothing where the job is no small one of f32,
 * or a kernel cannot compute the calls on the way. */
bool small_run(const blas_job *job, int n_more, const trama_call *more, const trama_view *product,
               const unsigned *inner, const gpu *g);

#endif
