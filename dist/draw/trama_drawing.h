/* SPDX-License-Identifier: Apache-2.0 */
/* Layouts drawn: the grid of a tensor's first two dims, and who holds each cell of it. No context is needed. Errors as
 * trama_layout_describe's, whose lines go well above a picture and are the legend of an SVG. */
#ifndef TRAMA_DRAWING_H
#define TRAMA_DRAWING_H

#include "trama_layout.h"

TRAMA_API_BEGIN

/* In characters, with offsets at the borders; ids stand with commas between equal copies, "+" between the terms of a
 * partial value. An empty text where the tensor has neither one nor two dims, where an extent is 0, and where 80
 * columns and some 24 rows do not suffice. trama_text_free frees it. */
trama_status trama_layout_picture(const trama_mesh *mesh, const trama_layout *layout, trama_shape shape, char **text);

/* As SVG, of any tensor: a cell has a stripe for each holder, in the colour that the holder has in the legend. It is freed
 * by trama_text_free. */
trama_status trama_layout_svg(const trama_mesh *mesh, const trama_layout *layout, trama_shape shape, const char *title,
                              char **svg);

TRAMA_API_END
#endif
