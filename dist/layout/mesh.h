/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of a mesh: coordinates, lookup of ids, the masks that layouts on it share. */
#ifndef MESH_H
#define MESH_H

#include "base.h"
#include "trama_mesh.h"

enum { AXIS_NAME_BYTES = 24 };

struct trama_mesh {
    int ndim, size;
    int shape[TRAMA_MAX_AXES];
    char names[TRAMA_MAX_AXES][AXIS_NAME_BYTES]; /* "" without a name */
    int *ids;                                    /* [size] */
    ARRAY(unsigned char *) masks;                /* interned, so that layouts are plain values */
};

trama_mesh *mesh_copy(const trama_mesh *mesh); /* without masks */

/* The coordinate [ndim] of a position, and back. */
void mesh_coordinate(const trama_mesh *mesh, int position, int *coordinate);
int mesh_position(const trama_mesh *mesh, const int *coordinate);

/* The position of a process id, -1 where it is not in the mesh. */
int mesh_find(const trama_mesh *mesh, int id);

/* The mesh's own copy of a mask: equal masks have equal addresses; all ones is NULL. */
const unsigned char *mesh_mask(const trama_mesh *mesh, const unsigned char *mask);

void mesh_text(text *out, const trama_mesh *mesh);

#endif
