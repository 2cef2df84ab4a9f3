/* SPDX-License-Identifier: Apache-2.0 */
/* The pictures and the summary of a trace share this: spans of tasks and messages that it holds by half, spans of
 * steps, lanes for overlaps, bytes that are text. Knows no format. */
#ifndef PICTURE_PARTS_H
#define PICTURE_PARTS_H

#include "trace_model.h"

typedef struct span {
    double begin, end; /* ms; NAN: nowhere */
} span;

/* The last time that the trace holds; 0 where it holds none. */
double trace_last(const trace *t);

/* A span without an end lasts until last; one that never began, or without a worker or rank, is nowhere. */
span task_span(const trace *t, const trace_task *task, double last);
span message_span(const trace *t, const trace_message *m, double last);

typedef struct trace_step {
    long number;
    span span; /* first begin to last end that the trace holds */
    int n_tasks;
} trace_step;

/* Steps of the tasks that ended, by number; with_unended: also of tasks that only began, as spans without length. The
 * caller frees them. */
trace_step *trace_steps(const trace *t, bool with_unended, int *n);

enum { MOST_WAITS = 4 };

typedef struct waited {
    const trace_task *task; /* or NULL */
    int which;              /* task or message */
    double over;
} waited;

/* The waits of a task that ended last, latest first, and after these the waits without an end; returns their number. */
int task_waits(const trace *t, const trace_task *task, waited waits[MOST_WAITS]);

/* In words, "matmul, task 3" or "w1 from rank 0". */
void wait_text(const trace *t, const waited *wait, char text[200]);

/* Spans in one lane do not overlap. */
typedef struct lanes {
    int n;
    double *end; /* [n] of the last span in each */
} lanes;

/* The first lane that is free, a new one where none is. */
int lanes_take(lanes *l, span s);

/* The bytes of the character that text begins with: 0 at the end, negative where the byte there is no character that
 * both XML and JSON may hold. */
int character_length(const char *text);

#endif
