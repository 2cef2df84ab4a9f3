/* SPDX-License-Identifier: Apache-2.0 */
/* The boxes of a layout, process after process: each costs the same few steps, whatever the mesh, its weights and how
 * many axes cut a dim. */
#ifndef LAYOUT_WALK_H
#define LAYOUT_WALK_H

#include "layout.h"

/* How one axis cuts an interval of n elements; kept until an interval of another length is cut. */
typedef struct walk_cut {
    int axis;
    int64_t n;              /* -1 before the first */
    int64_t quotient, rest; /* n by the axis's extent */
    int64_t *begins;        /* [extent + 1] where pieces begin, along an axis with weights; else NULL */
} walk_cut;

typedef struct walk_dim {
    int n, last_axis; /* axes that cut the dim; the last of them in the mesh's order, -1 without any */
    walk_cut cuts[TRAMA_MAX_AXES];
} walk_dim;

typedef struct layout_walk {
    const trama_mesh *mesh;
    box whole, box; /* box: of the process at the position, masked or not */
    int position, coordinate[TRAMA_MAX_AXES];
    walk_dim dims[TRAMA_MAX_NDIM];
} layout_walk;

/* Begins at position 0. The mesh is borrowed. */
void layout_walk_begin(layout_walk *w, const trama_mesh *mesh, const trama_layout *layout, const box *whole);

/* Goes to a position of the mesh; to the next one it is quickest. */
void layout_walk_to(layout_walk *w, int position);

void layout_walk_end(layout_walk *w);

#endif
