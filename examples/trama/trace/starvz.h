/* SPDX-License-Identifier: Apache-2.0 */
/* StarVZ: a configuration for it, and running it. */
#ifndef STARVZ_H
#define STARVZ_H

#include <stdio.h>

#include "trace_model.h"

/* Writes starvz.yaml: a colour for each name, and the panels that a trace of its number of ranks has data for. */
void starvz_configure(const trace *t, FILE *out);

/* Lets StarVZ, where it is installed, draw the files of `folder` into starvz.png in `scratch`. Prints the outcome as one line
 * on out; returns whether the picture is there. */
bool starvz_draw(const trace *t, const char *folder, const char *scratch, FILE *out);

#endif
