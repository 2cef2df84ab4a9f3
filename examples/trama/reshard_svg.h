/* SPDX-License-Identifier: Apache-2.0 */
/* A reshard plan as a picture. */
#ifndef RESHARD_SVG_H
#define RESHARD_SVG_H

#include "trama.h"

/* Writes a matrix of the bytes that go from each process (row) to each other (column); ends the program where the file
 * cannot be written. */
void reshard_svg(const char *path, const trama_reshard_plan *plan);

#endif
