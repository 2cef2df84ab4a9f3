/* SPDX-License-Identifier: Apache-2.0 */
/* The work of one task, ready to run: kernels with their views. It knows no plan; tasks fills it in. */
#ifndef CODELETS_WORK_H
#define CODELETS_WORK_H

#include <starpu.h>

#include "fused.h"
#include "kernel.h"

/* A kernel has failed, on this thread. */
typedef void work_failed(void *arg, trama_where where, const trama_op *op, trama_status status, const char *message);

/* A buffer of the task in memory: rows of `run` bytes, `ld` bytes apart. */
typedef struct work_buffer {
    char *from;
    int64_t run, rows, ld;
} work_buffer;

/* As one of StarPU's interfaces says, a vector or a matrix. */
work_buffer work_buffer_of(const void *interface);

typedef struct work work;

/* One exchange of a group of GPUs, in NCCL's terms; each GPU has its part in it. n members; count elements. */
typedef enum {
    COLLECTIVE_ALL_GATHER,     /* count of each, in the order of members, become n * count on each */
    COLLECTIVE_ALL_TO_ALL,     /* of n * count on each, part i goes to member i, which has part j from member j */
    COLLECTIVE_BROADCAST,      /* count of the root become the same on each */
    COLLECTIVE_REDUCE_SCATTER, /* of n * count on each, member i gets the sum, maximum or minimum of the parts i */
    COLLECTIVE_ALL_REDUCE      /* count on each become their sum, maximum or minimum on each */
} collective_kind;
typedef struct collective {
    collective_kind kind;
    struct ncclComm *comm;
    int n, root;
    int64_t count;
} collective;

/* A kind of work: how it is done on a CPU, and how on a GPU, whose memory the views of w point into. */
typedef struct work_kind {
    void (*cpu)(const work *w);
    void (*cuda)(const work *w, const gpu *g);
} work_kind;
extern const work_kind work_compute, work_copy, work_reduce, work_fill, work_nothing, work_collective;

struct work {
    const work_kind *kind;
    int n_calls;
    trama_call *calls;            /* work_compute */
    const trama_kernel **kernels; /* [n_calls] */
    trama_where *where;           /* [n_calls] in the user's source */
    work_failed *failed;          /* is told of kernels that fail; NULL: nobody is */
    void *failed_arg;
    unsigned *inner;      /* [n_calls] bit o: result o is for later calls alone, so that a GPU need not write it */
    char *const *scratch; /* [StarPU's workers] their scratch memories; NULL: nothing lies there, as on GPUs */
    unsigned *in_scratch; /* [n_calls] bit i: operand i, bit TRAMA_MAX_OPERANDS + o: result o lies in the scratch memory
                             of the worker that runs the task; data is its offset there */
    fused_run *fused;     /* [n_calls] with calls behind it; of a FUSED_ADDITION out[0] is that of the call behind it */
    int n_views;
    trama_view *views; /* work_copy: pairs of destination, source; work_reduce: destination, sources; work_fill: one;
                          work_collective: destination, source, both without gaps */
    collective *collective;  /* work_collective */
    int n_terms;             /* work_compute: before the calls, sum is reduced from terms, as a work_reduce; 0: not */
    trama_view *sum, *terms; /* the sum lies in scratch memory where there is one */
    kernel_combine combine;  /* work_reduce, sum, work_collective */
    double scale;            /* work_reduce, sum: factor; work_fill: value */
    int64_t chunk; /* work_compute: elements of a chunk if its calls walk a contiguous tile chunk by chunk; 0 */
};

/* Sets chunk of calls that keep the order of elements, as fused says, where their views are contiguous, or scalars. */
void work_find_chunk(work *w);

/* Whether a GPU can do all of it. */
bool work_on_gpu(const work *w);

/* The codelet of tasks on CPUs: cl_arg is a work. Buffers are only for StarPU's coherence and order. Tasks on GPUs are
 * segments (segment.h). */
extern struct starpu_codelet work_codelet;

#endif
