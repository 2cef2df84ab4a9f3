/* SPDX-License-Identifier: Apache-2.0 */
/* Works of one GPU that follow each other, as one task of StarPU: it starts a task only after the host has seen the one
 * before end, which takes 10 us. The worker enqueues all kernels on its stream. Where it finds the buffers where they
 * lay the last two times, it records the kernels as a CUDA graph, which it launches from then on. Works that need
 * no result of each other are branches of the graph (lanes.h). */
#ifndef CODELETS_SEGMENT_H
#define CODELETS_SEGMENT_H

#include "work.h"

typedef struct segment {
    int n;
    const work **works;         /* [n] in their order; each can run on a GPU (work_on_gpu) */
    int n_buffers;              /* of the task */
    const work_buffer *buffers; /* [n_buffers] where the views of all works point to, sorted by `from` */
    struct segment_run *run;    /* as its one worker ran it last; NULL: it did not */
} segment;

/* cl_arg is a segment. Tasks of one segment have the same worker. */
extern struct starpu_codelet segment_codelet;

/* Frees all that its runs have made. None of its tasks may be in flight. */
void segment_end(segment *s);

#endif
