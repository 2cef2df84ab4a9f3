/* SPDX-License-Identifier: Apache-2.0 */
/* The results of a rehearsal: figures, the memory of each rank, the critical path. */
#ifndef REHEARSAL_H
#define REHEARSAL_H

#include "simulate.h"

/* An op, or kind of message: its share of the critical path, and its tasks in a run on all ranks. */
typedef struct path_entry {
    char *name;
    double seconds, busy; /* on the path; of its tasks */
    int64_t tasks;
} path_entry;

struct trama_rehearsal {
    trama_rehearsal_report report;
    int64_t *memory; /* [ranks] */
    ARRAY(path_entry) path; /* those on the path first, report.path of them */
    double path_seconds;
};

trama_rehearsal *rehearsal_new(const trama_rehearsal_options *o);

/* Counts the plan of a rank of which so many runs are in flight. */
void rehearsal_count(trama_rehearsal *r, int rank, const plan *p, const step_graph *g, int in_flight);

/* Takes the times and the critical path of a simulation that has ended. */
void rehearsal_take(trama_rehearsal *r, const simulated *s);

#endif
