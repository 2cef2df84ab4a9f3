/* SPDX-License-Identifier: Apache-2.0 */
/* Draws the cells of a tensor's grid in characters. */
#ifndef EXAMPLES_LAYOUT_PICTURE_H
#define EXAMPLES_LAYOUT_PICTURE_H

#include "layout_cells.h"

/* Prints the grid on stdout, offsets at its borders; false, and nothing printed, where it has no cells or does not fit
 * 80 columns and some 24 rows beside its lines. */
bool layout_picture(const cells *c);

#endif
