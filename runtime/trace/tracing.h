/* SPDX-License-Identifier: Apache-2.0 */
/* Traces: StarPU's FxT records them; here it is told to, and each rank leaves beside its events a text, about_RANK,
 * that says what they do not: which program, which ranks and places, and how much there should be. */
#ifndef TRACING_H
#define TRACING_H

#include "state.h"

/* Collective, before StarPU starts; so_far is this rank's status, and an error of any is one of all where config.trace
 * is given. Names c->trace.folder and makes the folder, from which an earlier trace goes; where the host runs StarPU on
 * some rank there is a warning and no trace. E_SYSTEM, E_ARGUMENT, E_UNSUPPORTED. */
trama_status trace_start(trama_context *c, trama_status so_far);

/* What the environment tells StarPU, whether or not there is a trace: pairs of a variable and its value, up to NULL. */
typedef struct trace_variable {
    const char *name, *value;
    bool ours; /* whatever the user has there, which comes back at stop */
} trace_variable;
const trace_variable *trace_variables(const trama_context *c);

/* Collective, at the beginning and at the end: notes how far this rank's clock is ahead of rank 0's. */
void trace_clock(trama_context *c);

/* Where StarPU has started, before it ends, and where it has ended; all do nothing without c->trace.folder. Closing
 * warns where the file of events is shorter than what was recorded. */
void trace_open(trama_context *c);
void trace_expect(const trama_context *c);
void trace_close(trama_context *c);

/* Keeps what was recorded where the process ends before StarPU does. */
void trace_save(void);

/* What is submitted from now on belongs to it; -1: to none. */
void trace_step(int64_t step, int64_t micro_step);

#endif
