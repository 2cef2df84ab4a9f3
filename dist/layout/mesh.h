/* SPDX-License-Identifier: Apache-2.0 */
/* Meshes inside dist: coordinates, lookup of ids, the masks that layouts on a mesh share. */
#ifndef MESH_H
#define MESH_H

#include "base.h"
#include "box.h"
#include "trama_mesh.h"

enum { AXIS_NAME_BYTES = 24, MAX_PROCESSES = 1 << 24 }; /* ids are below it */

struct trama_mesh {
    int ndim, size;
    int shape[TRAMA_MAX_AXES];
    char names[TRAMA_MAX_AXES][AXIS_NAME_BYTES]; /* "" without a name */
    int *ids;                                    /* [size] */
    int *weights[TRAMA_MAX_AXES];                /* [shape[axis]] in lowest terms; NULL: all equal */
    int weight_sum[TRAMA_MAX_AXES];              /* shape[axis] without weights */
    trama_mesh *parent;                          /* an owned copy; NULL without a parent */
    ARRAY(unsigned char *) masks;                /* interned, so that layouts are plain values */
};

/* Like trama_mesh_create_ids for use inside other calls, with valid ids. NULL for invalid axes, and for lack of
 * memory. */
trama_mesh *mesh_new(int ndim, const int *shape, const char *const *names, const int *ids);
trama_mesh *mesh_copy(const trama_mesh *mesh); /* without masks */

/* Whether meshes, names of axes and parents are equal. */
bool mesh_same(const trama_mesh *a, const trama_mesh *b);

/* The coordinate [ndim] of a position, and back. */
void mesh_coordinate(const trama_mesh *mesh, int position, int *coordinate);
int mesh_position(const trama_mesh *mesh, const int *coordinate);

/* The position of a process id, -1 where it is not in the mesh. */
int mesh_find(const trama_mesh *mesh, int id);
int mesh_find_hinted(const trama_mesh *mesh, int id, int position); /* the same; fast if the id is at `position` */

int mesh_processes(const trama_mesh *mesh); /* 1 + the largest id */

/* The mesh's own copy of a mask: equal masks have equal addresses; all ones is NULL. */
const unsigned char *mesh_mask(const trama_mesh *mesh, const unsigned char *mask);

/* mesh_pieces.c: piece i of [0, n) along an axis: n w_i / sum(w) elements, rounded down, and the remainder one each to the first
 * pieces. mesh_piece_find returns the piece that holds x, 0 <= x < n. */
void mesh_piece(const trama_mesh *mesh, int axis, int64_t n, int i, int64_t *lo, int64_t *length);
void mesh_pieces(const trama_mesh *mesh, int axis, int64_t n, int64_t *begins); /* offsets [shape[axis] + 1] */
int mesh_piece_find(const trama_mesh *mesh, int axis, int64_t n, int64_t x);

bool mesh_is_weighted(const trama_mesh *mesh);
bool mesh_set_weights(trama_mesh *mesh, int axis, const int *weights); /* false with a message */
void mesh_drop_weights(trama_mesh *mesh, int axis);
size_t mesh_identifier(const char *at); /* length of the identifier at the start of a text, or 0 */
trama_status mesh_error(const char *problem, const char *value);

/* The reason for a NULL mesh: ": " and the thread's last message if it is about a mesh; else "". */
const char *mesh_reason(void);

void mesh_text(text *out, const trama_mesh *mesh);

#endif
