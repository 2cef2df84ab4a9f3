/* SPDX-License-Identifier: Apache-2.0 */
/* What one task does, ready to run: kernels with their views. It knows no plan; tasks fills it in. */
#ifndef CODELETS_WORK_H
#define CODELETS_WORK_H

#include <starpu.h>

#include "kernel.h"

/* A kernel has failed, on this thread. */
typedef void work_failed(void *arg, trama_where where, const trama_op *op, trama_status status, const char *message);

typedef struct work work;
struct work {
    void (*run)(const work *w);
    int n_calls;
    trama_call *calls;            /* work_compute; their views are among views */
    const trama_kernel **kernels; /* [n_calls] */
    trama_where *where;           /* [n_calls] in the user's source */
    work_failed *failed;          /* is told of kernels that fail; NULL: nobody is */
    void *failed_arg;
    trama_call *additions; /* [n_calls] op NULL, or what adds the result of a call to state, which is its out[0] */
    int n_views;
    trama_view *views; /* work_copy: pairs of destination, source; work_reduce: destination, sources; work_fill: one */
    int n_terms;       /* work_compute: before the calls, sum is reduced from terms, as a work_reduce; 0: not */
    trama_view *sum, *terms;
    kernel_combine combine; /* work_reduce, sum */
    double scale;           /* the same: factor; work_fill: value */
    int64_t chunk; /* work_compute: elements of a chunk if its calls may walk a contiguous tile chunk by chunk; 0 */
};

void work_compute(const work *w);
void work_nothing(const work *w);
void work_copy(const work *w);
void work_reduce(const work *w);
void work_fill(const work *w);

/* Joins call i, whose result nobody but call i + 1 reads, with it if that adds it to a state: computed right into the
 * state, it is never written out. Returns whether it did; then there is one call less. */
bool work_join_addition(work *w, int i);

/* Sets chunk where the sum and all calls are pointwise over equal contiguous views (or scalars), so that a chain of
 * them stays in cache. */
void work_find_chunk(work *w);

/* The codelet of every task: cl_arg is a work, buffers are only for StarPU's coherence and order. */
extern struct starpu_codelet work_codelet;

#endif
