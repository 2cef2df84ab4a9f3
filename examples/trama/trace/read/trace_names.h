/* SPDX-License-Identifier: Apache-2.0 */
/* The name of a task gives its role, and a colour of that role's family. */
#ifndef TRACE_NAMES_H
#define TRACE_NAMES_H

#include "trace_model.h"

/* A step of this name only orders others: it runs on no worker. */
bool trace_only_orders(const char *name);

/* The role that a name speaks of. */
trace_role trace_role_of(const char *name);

const char *trace_role_text(trace_role role);

/* Colours for all names of the trace. */
void trace_color_names(trace *t);

#endif
