/* SPDX-License-Identifier: Apache-2.0 */
/* StarVZ: a configuration for it, and running it. */
#ifndef STARVZ_H
#define STARVZ_H

#include <stdio.h>

#include "trace_model.h"

/* Writes starvz.yaml: a colour for each name, and the panels that a trace of its number of ranks has data for. */
void starvz_configure(const trace *t, FILE *out);

/* Has StarVZ, where it is installed, draw the files of `folder`, working in `scratch`, into starvz.png of the latter.
 * Says in one line on out what came of it; returns whether the picture is there. */
bool starvz_draw(const trace *t, const char *folder, const char *scratch, FILE *out);

#endif
