/* SPDX-License-Identifier: Apache-2.0 */
/* The boxes of a layout, process by process. The cost for each process does not depend on the size or weights of the
 * mesh. */
#ifndef LAYOUT_WALK_H
#define LAYOUT_WALK_H

#include "layout.h"

/* The cut of an interval of n elements by one axis, kept until the length changes. */
typedef struct walk_cut {
    int axis;
    int64_t n;              /* -1 before the first */
    int64_t quotient, rest; /* n / extent and n % extent of the axis */
    int64_t *begins;        /* [extent + 1] offsets of pieces along an axis with weights; else NULL */
} walk_cut;

typedef struct walk_dim {
    int n, last_axis; /* number of axes that cut the dim; the last one in mesh order, or -1 */
    walk_cut cuts[TRAMA_MAX_AXES];
} walk_dim;

typedef struct layout_walk {
    const trama_mesh *mesh;
    box whole, box; /* box: of the process at the position, without regard to the mask */
    int position, coordinate[TRAMA_MAX_AXES];
    walk_dim dims[TRAMA_MAX_NDIM];
} layout_walk;

/* Begins at position 0. The mesh is borrowed. */
void layout_walk_begin(layout_walk *w, const trama_mesh *mesh, const trama_layout *layout, const box *whole);

/* Goes to a position of the mesh. A step to the next position is the cheapest. */
void layout_walk_to(layout_walk *w, int position);

void layout_walk_end(layout_walk *w);

#endif
