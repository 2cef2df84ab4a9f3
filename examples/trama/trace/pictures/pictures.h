/* SPDX-License-Identifier: Apache-2.0 */
/* A trace as others can look at it: a timeline for any browser, a file for Perfetto. Both only look at the trace; both
 * are false where out could not be written (errno says why), and end the program where there is no memory. */
#ifndef PICTURES_H
#define PICTURES_H

#include <stdbool.h>
#include <stdio.h>

#include "trace_model.h"

typedef struct trace_picture {
    long first_step, last_step; /* -1: chosen by itself */
} trace_picture;

/* One row a worker, lanes of messages, steps marked, a legend: of the steps asked for or, where the trace has none of
 * them or none is asked for, of so many whole ones from the middle of the run that a bar can be seen; without steps of
 * so much of its time. */
bool trace_write_svg(const trace *t, const trace_picture *options, FILE *out);

/* Trace events in JSON, for ui.perfetto.dev and chrome://tracing: the whole trace, with waits as flows.
 * A process is a rank, its id one more than the rank, since viewers take process 0 and thread 0 for the kernel's.
 * They refuse times before 0: a trace that has some is shown later by so much, which otherData.time_0_at_ms tells. */
bool trace_write_chrome(const trace *t, FILE *out);

#endif
