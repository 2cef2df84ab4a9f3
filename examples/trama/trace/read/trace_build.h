/* SPDX-License-Identifier: Apache-2.0 */
/* The readers of a trace share this: lists that grow, notes of missing parts, the end. */
#ifndef TRACE_BUILD_H
#define TRACE_BUILD_H

#include <stddef.h>

#include "trace_model.h"

/* The list of n elements with room for one more, which is all zero; ends the program without memory. */
void *trace_grow(void *list, int n, size_t size);

/* A text of its own; the caller frees. */
char *trace_text(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A sentence for trace.missing. */
void trace_note(trace *t, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The same of several ranks, "ranks 0-2, 5: " and the text, where any of the n is marked. */
void trace_note_ranks(trace *t, int n, const bool *which, const char *text);

/* The index of a name, which is added where the trace has none. */
int trace_name_index(trace *t, const char *name);

/* A worker that somebody knows of; place -1: without its place. */
void trace_add_worker(trace *t, int rank, int number, int place);

/* Without those of ranks that are not marked; only before trace_finish_workers. */
void trace_drop_workers(trace *t, const bool *with);

/* Puts the workers in order, each once. */
void trace_finish_workers(trace *t);

/* The index of a worker, -1 where nobody knows it; only after trace_finish_workers. */
int trace_find_worker(const trace *t, int rank, int number);

/* Frees all but the trace itself. */
void trace_destroy(trace *t);

#endif
