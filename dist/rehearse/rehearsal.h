/* SPDX-License-Identifier: Apache-2.0 */
/* The results of a rehearsal: figures, the memory of each rank, the critical path. */
#ifndef REHEARSAL_H
#define REHEARSAL_H

#include "simulate.h"

typedef struct path_entry {
    char *name;
    double seconds;
} path_entry;

struct trama_rehearsal {
    trama_rehearsal_report report;
    int64_t *memory; /* [ranks] */
    ARRAY(path_entry) path;
    double path_seconds;
};

trama_rehearsal *rehearsal_new(const trama_rehearsal_options *o);

/* Counts the plan of a rank of which so many runs are in flight. */
void rehearsal_count(trama_rehearsal *r, int rank, const plan *p, const step_graph *g, int in_flight);

/* Takes the times and the critical path of a simulation that has ended. */
void rehearsal_take(trama_rehearsal *r, const simulated *s);

#endif
