/* SPDX-License-Identifier: Apache-2.0 */
/* A mesh: an n-d array of logical processes with named axes. Pure data: no context, no MPI rank, no device. */
#ifndef TRAMA_MESH_H
#define TRAMA_MESH_H

#include "trama_base.h"

TRAMA_API_BEGIN

typedef struct trama_mesh trama_mesh; /* processes in an n-d array; immutable */

/* Makes a mesh from a text: "dp=2,mp=2" (processes 0..3, row-major), "dp=2,mp=2:4,5,6,7" (with ids), "4" and "2,3"
 * (axes without names), or "dp=[3,1],mp=2" (an axis of 2 with weights). NULL on a wrong text; trama_error() has the
 * reason. The caller destroys the mesh. Programs copy it; a layout with a mask points into it. */
trama_mesh *trama_mesh_create(const char *text);

/* Makes a mesh of ndim axes of extent shape[i] >= 1. names: NULL or [ndim], each NULL or an identifier. ids: NULL (0,
 * 1, ...) or one unique id in 0 .. 2^24-1 for each process, row-major. NULL on error. */
trama_mesh *trama_mesh_create_ids(int ndim, const int *shape, const char *const *names, const int *ids);

/* A mesh of any shape whose ids are all in the parent. An axis whose processes lie along one axis of the parent takes
 * their weights; trama_mesh_weighted replaces them. The child keeps a copy of the parent, which the caller may destroy
 * at any time. NULL on error. */
trama_mesh *trama_mesh_child(const trama_mesh *parent, int ndim, const int *shape, const char *const *names,
                             const int *ids);

/* A copy of the mesh with weights [extent of axis], each >= 1, along one axis, for unequal places. A split of n
 * elements along the axis gives piece i floor(n w_i / sum(w)) elements, and the remainder goes one each to the first
 * pieces. A piece differs from its exact share by at most 1, and by 0 where sum(w) divides n. A small weight may yield
 * an empty piece. Equal weights mean unweighted. NULL on error, also where the sum of the weights in lowest terms
 * exceeds 2^31-1. */
trama_mesh *trama_mesh_weighted(const trama_mesh *mesh, int axis, const int *weights);
int trama_mesh_weight(const trama_mesh *mesh, int axis, int i); /* in lowest terms; 1 unweighted, 0 outside */

void trama_mesh_destroy(trama_mesh **mesh); /* frees the mesh and nulls *mesh; NULL is allowed */

/* Properties of a mesh. For NULL and for an axis or position outside of the mesh these return 0, the name NULL and the
 * id -1. */
int trama_mesh_ndim(const trama_mesh *mesh);                        /* axes */
int trama_mesh_size(const trama_mesh *mesh);                        /* processes */
int trama_mesh_extent(const trama_mesh *mesh, int axis);            /* processes along an axis */
const char *trama_mesh_axis_name(const trama_mesh *mesh, int axis); /* name of an axis, or NULL */
int trama_mesh_id(const trama_mesh *mesh, int position);            /* process id at a row-major position */

/* The parent given to trama_mesh_child; NULL for a mesh without a parent. It lives as long as the child. */
const trama_mesh *trama_mesh_parent(const trama_mesh *mesh);

/* Whether extents, ids in order and weights are equal; names and parents do not matter. */
bool trama_mesh_equal(const trama_mesh *a, const trama_mesh *b);

/* The mesh as text, which trama_mesh_create parses to an equal mesh with equal names. Ids 0, 1, ... are left out. NULL
 * for NULL. trama_text_free frees it. */
char *trama_mesh_text(const trama_mesh *mesh);

TRAMA_API_END
#endif
