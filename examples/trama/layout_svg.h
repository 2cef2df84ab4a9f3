/* SPDX-License-Identifier: Apache-2.0 */
/* Draws the cells of a tensor's grid as an SVG file. */
#ifndef EXAMPLES_LAYOUT_SVG_H
#define EXAMPLES_LAYOUT_SVG_H

#include "layout_cells.h"

/* A title, the grid coloured by holder, and a legend: the lines of `legend`, one a process in the order of the mesh.
 * Ends the program where the file cannot be written. The texts hold no characters that XML reserves. */
void layout_svg(const char *path, const cells *c, const char *title, const char *legend);

#endif
