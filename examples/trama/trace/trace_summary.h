/* SPDX-License-Identifier: Apache-2.0 */
/* A trace in some sixty lines of text. */
#ifndef TRACE_SUMMARY_H
#define TRACE_SUMMARY_H

#include <stdio.h>

#include "trace_model.h"

/* With so many of the longest waits. */
void trace_summarize(const trace *t, int waits, FILE *out);

#endif
