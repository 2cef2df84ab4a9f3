/* SPDX-License-Identifier: Apache-2.0 */
/* Traces: StarPU's FxT records them. This room starts that, and each rank writes a text about_RANK to the folder of the
 * events. It has facts that the events lack: the program, the ranks and places, and the expected amount of events. */
#ifndef TRACING_H
#define TRACING_H

#include "state.h"

/* Collective, before StarPU starts. so_far is this rank's status; where config.trace is given, all ranks get an error
 * of any. Sets c->trace.folder, makes the folder and removes an earlier trace from it. Where the host runs StarPU on
 * some rank, it warns and there is no trace. E_SYSTEM, E_ARGUMENT, E_UNSUPPORTED. */
trama_status trace_start(trama_context *c, trama_status so_far);

/* The variables for StarPU, with or without a trace; the list ends with a NULL name. */
typedef struct trace_variable {
    const char *name, *value;
    bool ours; /* set even where the user has set it; the user's value comes back at the stop */
} trace_variable;
const trace_variable *trace_variables(const trama_context *c);

/* Collective, at the beginning and at the end: writes how far this rank's clock is ahead of rank 0's. */
void trace_clock(trama_context *c);

/* Called after StarPU's start, before its end, and after its end; they do nothing without c->trace.folder. trace_close
 * warns where the file of events is shorter than the recorded events. */
void trace_open(trama_context *c);
void trace_expect(const trama_context *c);
void trace_close(trama_context *c);

/* Writes the recorded events where the process ends before StarPU does. */
void trace_save(void);

/* Sets the step and micro-step of the tasks submitted from now on; -1: none. */
void trace_step(int64_t step, int64_t micro_step);

#endif
