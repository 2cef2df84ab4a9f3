/* SPDX-License-Identifier: Apache-2.0 */
/* A rehearsal as its callbacks told of it: the steps of each rank, and the tasks and messages of all runs. Each step of
 * each run is a job with an odd number, in the order of submission; the even number behind that of a send is the job
 * that waits until its data have left. */
#ifndef REHEARSED_H
#define REHEARSED_H

#include <stdint.h>

#include "trama.h"

typedef struct rehearsed_need {
    int step;
    bool before; /* of the run before */
} rehearsed_need;

typedef struct rehearsed_edge {
    int to;
    rehearsed_need need;
} rehearsed_edge;

typedef struct rehearsed_step {
    short place;
    bool sends, gpu;
} rehearsed_step;

typedef struct rehearsed_worker {
    short place; /* -1: it had no task */
    bool gpu;
} rehearsed_worker;

typedef struct rehearsed_rank {
    int n_steps, n_edges, n_workers;
    rehearsed_worker *workers;
    rehearsed_step *steps;
    rehearsed_edge *edges; /* until needs are known */
    int *first;            /* [steps + 1] */
    rehearsed_need *needs; /* of step i: first[i] to first[i + 1] */
} rehearsed_rank;

/* As trama_rehearsed, but in ms and Gflop, and the name as an index. worker: -1 of a task that only orders others. */
typedef struct rehearsed_item {
    int rank, worker, peer, run, step, received, priority, name;
    double submitted, ready, begin, end, gflop;
    int64_t bytes, tag;
} rehearsed_item;

typedef struct rehearsed {
    int n_ranks, runs, n_tasks, n_messages, n_names;
    int64_t expected; /* tasks and messages of all runs */
    rehearsed_rank *ranks;
    rehearsed_item *tasks, *messages; /* in the order of their ends */
    char **names;                     /* of tasks and of the values that messages carry */
    void *name_tree;                  /* of tsearch */
} rehearsed;

/* [names] which of them the n items have; the caller frees. */
bool *rehearsed_names_of(const rehearsed *r, int n, const rehearsed_item *items);

/* The place of a step in the order of submission of its rank, from 1, and the number of its job. */
static inline long rehearsed_order(const rehearsed *r, int rank, int run, int step)
{
    return (long)run * r->ranks[rank].n_steps + step + 1;
}
static inline long rehearsed_job(const rehearsed *r, int rank, int run, int step)
{
    return 2 * rehearsed_order(r, rank, run, step) - 1;
}

/* rehearsed_records.c: writes tasks.rec, comms.rec, data.rec and dag.dot into the folder. */
void rehearsed_write_records(const rehearsed *r, const char *folder);

/* rehearsed_paje.c: writes paje.trace, as StarVZ reads it. */
void rehearsed_write_paje(const rehearsed *r, const char *folder);

#endif
