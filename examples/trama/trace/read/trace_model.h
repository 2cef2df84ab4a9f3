/* SPDX-License-Identifier: Apache-2.0 */
/* A run as its traces tell it: workers, tasks, messages. Read once (trace_read.c), then only looked at. */
#ifndef TRACE_MODEL_H
#define TRACE_MODEL_H

#include <stdbool.h>
#include <stdint.h>

/* The role of a task, by its name: "matmul" forward, "matmul.grad", "update.adam", "merge.add", "reshard.copy". */
typedef enum trace_role { ROLE_FORWARD, ROLE_BACKWARD, ROLE_UPDATE, ROLE_MERGE, ROLE_RESHARD, N_ROLES } trace_role;

typedef struct trace_name {
    char *text;    /* "matmul.grad" */
    trace_role role;
    char color[8]; /* "#rrggbb", the same in every picture */
} trace_name;

typedef struct trace_worker {
    int rank, number;
    int place;  /* of its rank; 0 where the traces do not say */
    char *text; /* "rank 0, worker 1" */
} trace_worker;

/* Times are in ms of the common clock, from the first begin of a task that ended: earlier times are below 0. */
/* Chains of tasks that need each other, over messages too, which take no time in the first. */
typedef enum trace_chain { CHAIN_OF_TASKS, CHAIN_WITH_MESSAGES, N_CHAINS } trace_chain;

typedef struct trace_task {
    int name;                /* index into names */
    int rank, worker;        /* worker: index into workers; -1 where it never began */
    long job;                /* StarPU's number, unique in its rank */
    double submitted, began, ended; /* NAN where the trace does not hold it */
    double gflop;
    int priority;
    long step, micro_step;   /* -1: outside any */
    /* Of its waits: those that ended last, and those that end the longest chains of tasks. */
    int n_needs, *needs;     /* tasks, in its rank */
    int n_messages, *messages; /* that had to arrive */
    int n_sends, *sends;     /* messages that had to leave before it could overwrite their data */
    double chain[N_CHAINS];    /* ms of the longest that ends with it */
} trace_task;

typedef struct trace_message {
    int from, to; /* ranks */
    double sent, arrived; /* arrived: and taken by the receiver, which may be late */
    double left;  /* when the sender was done with it, NAN where unknown */
    int64_t bytes;
    char *text;   /* name of the handle that is sent, "" where unknown */
    int made_by;  /* the task whose result it carries; -1 where unknown */
} trace_message;

typedef struct trace_missing {
    char *text; /* a sentence, e.g. "rank 1 was interrupted: ..." */
} trace_missing;

typedef struct trace {
    char *program;
    int n_ranks, n_read;     /* of the run; whose events were read: only these have workers */
    int n_names, n_workers, n_tasks, n_messages, n_missing;
    trace_name *names;
    trace_worker *workers;   /* by rank, then number */
    trace_task *tasks;       /* that began, by when; then those that never did */
    trace_message *messages; /* by when they were sent */
    trace_missing *missing;
    double began, ended;     /* first begin of a task, last end */
} trace;

#endif
