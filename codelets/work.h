/* SPDX-License-Identifier: Apache-2.0 */
/* What one task does, ready to run: kernels with their views. It knows no plan; tasks fills it in. */
#ifndef CODELETS_WORK_H
#define CODELETS_WORK_H

#include <starpu.h>

#include "kernel.h"

typedef struct work work;
struct work {
    void (*run)(const work *w);
    int n_calls;
    trama_call *calls;            /* work_compute; their views are among views */
    const trama_kernel **kernels; /* [n_calls] */
    int n_views;
    trama_view *views;      /* work_copy: destination, source; work_reduce: destination, sources; work_fill: one */
    kernel_combine combine; /* work_reduce */
    double scale;           /* work_reduce: factor; work_fill: value */
    int64_t chunk; /* work_compute: elements of a chunk if its calls may walk a contiguous tile chunk by chunk; 0 */
};

void work_compute(const work *w);
void work_copy(const work *w);
void work_reduce(const work *w);
void work_fill(const work *w);

/* Sets chunk where all calls are pointwise over equal contiguous views (or scalars), so that a chain of them stays in
 * cache. */
void work_find_chunk(work *w);

/* The codelet of every task: cl_arg is a work, buffers are only for StarPU's coherence and order. */
extern struct starpu_codelet work_codelet;

#endif
