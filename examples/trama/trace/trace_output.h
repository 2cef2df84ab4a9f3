/* SPDX-License-Identifier: Apache-2.0 */
/* Results are made in a scratch folder beside their final names, and get those when all are complete. The
 * scratch folder goes away however the work ends. */
#ifndef TRACE_OUTPUT_H
#define TRACE_OUTPUT_H

#include <stdio.h>

#include "pictures.h"

/* Makes a scratch folder in `folder`, has a child process do the work in it, removes it, and returns the exit status of
 * the work; ends as the work does where a signal ends it. Ends the program where the folder cannot be written. */
int trace_output_work(const char *folder, int (*work)(const char *scratch, void *closure), void *closure);

/* A new file of the scratch folder; trace_output_close ends the program where not all of it could be written. */
FILE *trace_output_open(const char *scratch, const char *name);
void trace_output_close(FILE *file, const char *scratch, const char *name);

/* Writes timeline.svg and trace.json into the scratch folder. */
void trace_output_pictures(const char *scratch, const trace *t, const trace_picture *picture);

/* Moves those of the n files that are there to their final place; old files of all n names are gone then. */
void trace_output_publish(const char *scratch, const char *folder, int n, const char *const *names);

#endif
