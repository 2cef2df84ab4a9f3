/* SPDX-License-Identifier: Apache-2.0 */
/* The first two dims of a tensor as a grid of cells, cut where the boxes of its holders end, and who holds each cell.
 * Knows nothing of how it is drawn. */
#ifndef LAYOUT_CELLS_H
#define LAYOUT_CELLS_H

#include "trama_layout.h"

enum { NO_POSITION = -1 };

/* The pieces of one dim. */
typedef struct cuts {
    int n;       /* pieces that are not empty */
    int64_t *at; /* [n + 1] where they begin, and where the last one ends */
} cuts;

/* What of `room` belongs to piece i, by extent, rounded down. */
int cuts_share(const cuts *c, int i, int room);

typedef struct cells {
    int ndim;           /* of the tensor; below 2 the rows are one, at 0 the columns too */
    int terms;          /* of a partial value, else 1 */
    cuts rows, columns; /* no pieces where the tensor is empty */
    char **label;       /* [rows.n, columns.n] ids of the holders: `,` between equals, `+` between terms */
    int *first;         /* [rows.n, columns.n] position in the mesh of the first holder, by term and position */
    int *next;          /* [processes] of the next holder of the same cell, or NO_POSITION */
    bool *held;         /* [processes] it holds an element */
} cells;

/* The layout is one that fits mesh and shape. */
cells *cells_new(const trama_mesh *mesh, const trama_layout *layout, trama_shape shape);
void cells_destroy(cells **c);

#endif
