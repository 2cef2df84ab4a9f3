/* SPDX-License-Identifier: Apache-2.0 */
/* The first two dims of a tensor as a grid of cells, cut at the borders of the boxes, with the holders of each cell. It
 * does not know the format of a drawing. */
#ifndef LAYOUT_CELLS_H
#define LAYOUT_CELLS_H

#include "trama_layout.h"

enum { NO_POSITION = -1 };

/* The pieces of one dim. */
typedef struct cuts {
    int n;       /* pieces that are not empty */
    int64_t *at; /* [n + 1] begins of the pieces, and the end of the last one */
} cuts;

/* The share of `room` for piece i by its extent, rounded down. */
int cuts_share(const cuts *c, int i, int room);

typedef struct cells {
    int ndim;           /* of the tensor; below 2 there is one row, at 0 also one column */
    int terms;          /* of a partial value, else 1 */
    cuts rows, columns; /* no pieces where the tensor is empty */
    char **label;       /* [rows.n, columns.n] ids of the holders: `,` between equals, `+` between terms */
    int *first;         /* [rows.n, columns.n] position in the mesh of the first holder, by term and position */
    int *next;          /* [processes] position of the next holder of the same cell, or NO_POSITION */
    bool *held;         /* [processes] whether it holds an element */
} cells;

/* The layout must fit mesh and shape. */
cells *cells_new(const trama_mesh *mesh, const trama_layout *layout, trama_shape shape);
void cells_destroy(cells **c);

#endif
