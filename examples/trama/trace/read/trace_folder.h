/* SPDX-License-Identifier: Apache-2.0 */
/* The folder of a trace holds per rank the file about_R, which Trama writes, and prof_file_*R, StarPU's events.
 * A folder of the latter alone is a trace of some StarPU program. */
#ifndef TRACE_FOLDER_H
#define TRACE_FOLDER_H

#include "trace_model.h"

typedef struct trace_rank {
    char *events;          /* the path of its events, NULL where there are none */
    bool described, ended; /* it has an about file, and that says that the trace was closed */
    bool cut;              /* or that not all of its events could be written */
    int n_clocks;
    int64_t clock[2]; /* ns that its clock is ahead of rank 0's, at the beginning and at the end */
    int64_t tasks;    /* that it submitted; -1: not said */
} trace_rank;

typedef struct trace_folder {
    const char *path;
    bool plain; /* no about files */
    int n_ranks;
    trace_rank *ranks;
} trace_folder;

/* At the beginning (0) or at the end (1); the last that is known. */
static inline int64_t trace_rank_clock(const trace_rank *r, int i)
{
    return r->clock[r->n_clocks > 1 ? i : 0];
}

/* Fills the trace's program, ranks and workers, and notes missing files. Ends the program where the folder
 * cannot be read, holds no trace, or is of another version. The path is borrowed. */
void trace_folder_read(trace_folder *folder, const char *path, trace *t);

/* Notes each rank whose number of tasks in the trace differs from the number that it submitted. */
void trace_folder_compare(const trace_folder *folder, trace *t);

void trace_folder_destroy(trace_folder *folder);

#endif
