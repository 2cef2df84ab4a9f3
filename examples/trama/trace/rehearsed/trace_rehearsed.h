/* SPDX-License-Identifier: Apache-2.0 */
/* A rehearsal as a trace: trama trace shows it as it shows a run. */
#ifndef TRACE_REHEARSED_H
#define TRACE_REHEARSED_H

#include "trama.h"

typedef struct rehearsed rehearsed;

rehearsed *rehearsed_new(int ranks, int runs); /* at most so many ranks */
void rehearsed_free(rehearsed *r);             /* NULL is allowed */

/* Take the steps and events of trama_rehearsal_options. The program ends where there will be more than 4,000,000 tasks
 * and messages. */
void rehearsed_take_step(rehearsed *r, const trama_rehearsed_step *step);
void rehearsed_take_event(rehearsed *r, const trama_rehearsed *event);

/* Prints the summary, and writes the files of trama trace into the folder, which is made where there is none. Once,
 * behind the last event. Ends the program where they cannot be written. */
void rehearsed_show(rehearsed *r, const char *folder, bool no_starvz);

#endif
