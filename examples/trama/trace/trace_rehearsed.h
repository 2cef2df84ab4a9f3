/* SPDX-License-Identifier: Apache-2.0 */
/* The trace of a rehearsal, out of its events, and the pictures that trama trace draws of a run. */
#ifndef TRACE_REHEARSED_H
#define TRACE_REHEARSED_H

#include "trace_model.h"
#include "trama.h"

/* An empty trace; trace_destroy frees it. */
trace trace_rehearsed(int ranks);

/* Adds a task or a message, an event of trama_rehearsal_options, to the trace `closure`. Ends the program above
 * 4,000,000 of them. */
void trace_rehearsed_take(void *closure, const trama_rehearsed *event);

/* Writes timeline.svg and trace.json into the folder, which is made where there is none. Once, behind the last event.
 * Ends the program where they cannot be written. */
void trace_rehearsed_write(trace *t, const char *folder);

#endif
