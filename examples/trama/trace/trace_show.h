/* SPDX-License-Identifier: Apache-2.0 */
/* All that is shown of a trace: the summary, pictures, files for others. */
#ifndef TRACE_SHOW_H
#define TRACE_SHOW_H

#include "pictures.h"
#include "trace_model.h"

typedef struct trace_request {
    const char *out; /* the folder of the results */
    int longest;     /* so many of the longest waits */
    bool no_starvz;
    trace_picture picture;
} trace_request;

/* Prints the summary, and publishes the files of the scratch folder, where those of StarPU's tool lie already. */
void trace_show(const trace *t, const trace_request *r, const char *scratch);

#endif
