/* SPDX-License-Identifier: Apache-2.0 */
/* The model of a trace out of StarPU's files: tasks.rec, comms.rec, data.rec. */
#ifndef TRACE_READ_H
#define TRACE_READ_H

#include "trace_model.h"

/* A job of StarPU, a task or one of its own: an acquisition, a synchronization. */
typedef struct trace_job {
    int rank, task; /* index into tasks, -1 for StarPU's own */
    long number;
    double submitted;
    int n_needs, received, sent; /* the messages that end in it, that begin after it: -1 for none */
    long *needs;                 /* numbers of jobs of its rank */
} trace_job;

typedef struct trace_jobs {
    int n;
    trace_job *jobs; /* by rank, then number */
} trace_jobs;

/* Reads the files of a folder as trace_convert left them; only: its result. Fills names, workers, tasks and
 * messages, and notes missing entries. Ends the program where no task ran. */
void trace_read(const char *folder, int only, trace *t);

/* Of trace_links.c: fills messages, and needs, messages and sends of each task. */
void trace_link(const char *folder, trace_jobs *jobs, trace *t);

#endif
