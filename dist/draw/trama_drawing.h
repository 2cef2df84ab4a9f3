/* SPDX-License-Identifier: Apache-2.0 */
/* Drawings of layouts: the grid of a tensor's first two dims with the holders of each cell. No context is needed.
 * Errors as trama_layout_describe; its lines suit as a head of a picture and are the legend of an SVG. */
#ifndef TRAMA_DRAWING_H
#define TRAMA_DRAWING_H

#include "trama_layout.h"

TRAMA_API_BEGIN

/* Draws in characters, with offsets at the borders; "," separates ids of equal copies, "+" the terms of a partial
 * value. The text is empty for a tensor of 0 or more than 2 dims, for an extent of 0, and for a picture that needs more
 * than 24 rows of cells or lines of more than 80 characters. trama_text_free frees it. */
trama_status trama_layout_picture(const trama_mesh *mesh, const trama_layout *layout, trama_shape shape, char **text);

/* Draws any tensor as SVG. A cell has a stripe for each holder, in the holder's colour of the legend. trama_text_free
 * frees it. */
trama_status trama_layout_svg(const trama_mesh *mesh, const trama_layout *layout, trama_shape shape, const char *title,
                              char **svg);

TRAMA_API_END
#endif
