/* SPDX-License-Identifier: Apache-2.0 */
/* Figures of a trace: busy times, bounds, the hidden part of communication, waits. The trace holds
 * when a receiver took a message, which may be later than when it came. */
#ifndef TRACE_FIGURES_H
#define TRACE_FIGURES_H

#include "trace_model.h"

/* Times in ms. The workers' time is the number of workers times the makespan. */
typedef struct trace_figures {
    double makespan;  /* first begin of a task to last end */
    double busy;      /* all tasks together */
    double available; /* the workers' time */
    double idle;      /* 1 - busy / available */
    double area;      /* busy / workers: no order is faster on as many */
    double path;      /* the longest chain of tasks that need each other, over messages too, which take no time */
    double path_with_messages; /* the same, each message taking from sent to taken: no bound, it holds lateness too */
    double under_way;          /* over the ranks: the time in which some message from or to it is sent and not taken */
    double hidden;             /* of that: in which some worker of the rank runs a task */
    int64_t bytes;             /* of all messages */
} trace_figures;

trace_figures trace_measure(const trace *t);

/* A task ran, and it is known how long. */
bool trace_task_ran(const trace_task *task);

typedef enum trace_cause {
    CAUSE_UNKNOWN,
    CAUSE_TASK,      /* another task */
    CAUSE_MESSAGE,   /* one that had to arrive */
    CAUSE_SEND,      /* one that had to leave */
    CAUSE_SUBMISSION /* the program */
} trace_cause;

typedef struct trace_wait {
    int task;
    double from, to; /* when its worker was idle: since its last task, or the begin */
    trace_cause cause;
    int which;    /* task or message */
    double ready; /* when the cause was over; from here on the task could have run */
} trace_wait;

/* The n tasks at most before which their workers were idle longest, longest first, into waits; returns how many. */
int trace_longest_waits(const trace *t, int n, trace_wait *waits);

#endif
