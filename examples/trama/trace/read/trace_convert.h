/* SPDX-License-Identifier: Apache-2.0 */
/* Has StarPU's own tool, starpu_fxt_tool, merge the ranks' events into the files that StarVZ reads. */
#ifndef TRACE_CONVERT_H
#define TRACE_CONVERT_H

#include "trace_folder.h"

/* Makes paje.trace, trimmed for StarVZ, tasks.rec, data.rec, comms.rec, dag.dot and the other files of the tool in
 * the folder `into`. A rank whose events the tool cannot read is left out and noted; complaints of the tool are noted,
 * too. Adds the workers that the trace holds, and drops those of ranks that are not read. Returns the rank where only
 * one was read (then the files name no ranks), or -1. Ends the program where nothing can be read, or `into` does
 * not hold it. */
int trace_convert(const trace_folder *folder, const char *into, trace *t);

#endif
