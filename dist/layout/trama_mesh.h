/* SPDX-License-Identifier: Apache-2.0 */
/* A mesh: an n-d array of logical processes with named axes. Pure data: no context, no MPI rank, no device. */
#ifndef TRAMA_MESH_H
#define TRAMA_MESH_H

#include "trama_base.h"

TRAMA_API_BEGIN

typedef struct trama_mesh trama_mesh; /* not changed once it is made */

/* Parses "dp=2,mp=2" (processes 0..3, row-major), "dp=2,mp=2:4,5,6,7" (with ids), "4" and "2,3" (axes without names),
 * or "dp=[3,1],mp=2" (an axis of 2 with weights). NULL on a wrong text; trama_error() says what. The caller destroys
 * the mesh after the programs that name it have been built: they copy it. */
trama_mesh *trama_mesh_create(const char *text);

/* ndim axes of extent shape[i] >= 1; names NULL or [ndim], each NULL or an identifier; ids NULL (0, 1, ...) or one
 * unique id in 0 .. 2^24-1 a process, row-major. NULL on error. */
trama_mesh *trama_mesh_create_ids(int ndim, const int *shape, const char *const *names, const int *ids);

/* A mesh of processes of parent, in any shape; every id must be in the parent. An axis whose processes lie along one
 * axis of the parent has their weights; trama_mesh_weighted gives it others. The child keeps a copy of the parent, which
 * the caller may destroy at any time. */
trama_mesh *trama_mesh_child(const trama_mesh *parent, int ndim, const int *shape, const char *const *names,
                             const int *ids);

/* The same mesh with weights >= 1 along one axis [its extent], for places that are not equal: what splits n elements
 * along it gives piece i  floor(n w_i / sum(w)), and the remainder one each to the first pieces: no more than 1 off its
 * share, and just that where the sum divides n. Light ones may get nothing. Equal weights are as none. NULL on error,
 * as where the sum of the weights in lowest terms is above 2^31-1. */
trama_mesh *trama_mesh_weighted(const trama_mesh *mesh, int axis, const int *weights);
int trama_mesh_weight(const trama_mesh *mesh, int axis, int i); /* in lowest terms; 1 without weights */

void trama_mesh_destroy(trama_mesh **mesh); /* nulls *mesh; NULL is allowed */

/* Of NULL, and outside of a mesh: 0 axes, 0 processes, no name, and the id -1. */
int trama_mesh_ndim(const trama_mesh *mesh);                        /* axes */
int trama_mesh_size(const trama_mesh *mesh);                        /* processes */
int trama_mesh_extent(const trama_mesh *mesh, int axis);            /* processes along an axis */
const char *trama_mesh_axis_name(const trama_mesh *mesh, int axis); /* NULL where it has none */
int trama_mesh_id(const trama_mesh *mesh, int position);            /* process id at a row-major position */

/* The mesh that trama_mesh_child took processes of; NULL for a mesh without parent. It lives as long as the child. */
const trama_mesh *trama_mesh_parent(const trama_mesh *mesh);

/* Same extents, the same ids in the same order, the same weights; names and parents do not matter. */
bool trama_mesh_equal(const trama_mesh *a, const trama_mesh *b);

/* The text form, which parses to an equal mesh with equal names; ids are left out where they are 0, 1, ... NULL
 * for NULL. trama_text_free frees it. */
char *trama_mesh_text(const trama_mesh *mesh);

TRAMA_API_END
#endif
