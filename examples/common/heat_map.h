/* SPDX-License-Identifier: Apache-2.0 */
/* A matrix drawn as SVG: colours for numbers, and lines between the parts that processes hold. */
#ifndef EXAMPLES_HEAT_MAP_H
#define EXAMPLES_HEAT_MAP_H

#include "trama.h"

/* Writes a map of values [rows, columns] row-major, of 64 x 64 cells at most (a cell is the mean of its elements),
 * below its title, with a scale of colours and the borders of a layout on a mesh. Ends the program where the file
 * cannot be written. */
void heat_map_write(const char *path, const char *title, int64_t rows, int64_t columns, const double *values,
                    const trama_mesh *mesh, const trama_layout *layout);

#endif
