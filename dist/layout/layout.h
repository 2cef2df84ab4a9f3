/* SPDX-License-Identifier: Apache-2.0 */
/* Layouts inside dist: the box and term of each process, and the holders of a given box. */
#ifndef LAYOUT_H
#define LAYOUT_H

#include "box.h"
#include "mesh.h"
#include "trama_layout.h"

/* A layout whose axes are all of one kind, R or open. */
trama_layout layout_uniform(const trama_mesh *mesh, trama_placement_kind kind);

/* Reports that the mesh, or else the argument named `other`, is NULL. */
trama_status layout_is_null(trama_status status, const trama_mesh *mesh, const char *other);

/* E_LAYOUT if no tensor can have that many dims. */
trama_status layout_of_ndim(int ndim);

/* Whether the layout is legal for a tensor of ndim dims; open axes are an error unless allowed. */
trama_status layout_check(const trama_mesh *mesh, int ndim, const trama_layout *layout, bool open_allowed);

/* Whether the layout is full, and legal for a tensor of that shape. */
trama_status layout_fits(const trama_mesh *mesh, const trama_layout *layout, trama_shape shape);

uint64_t layout_hash(uint64_t hash, const trama_layout *layout); /* extended by the placements, without the mask */

bool layout_has(const trama_layout *layout, trama_placement_kind kind);

/* The mesh axes that cut dim, major first; returns their number. */
int layout_dim_axes(const trama_layout *layout, int dim, int *axes);

/* Makes axes[n], major first, the cut of dim; each of them must be R or open before. */
void layout_split(trama_layout *layout, int dim, int n, const int *axes);

/* Splits dim by one axis more, behind those that split it already; the axis does not split before. */
void layout_add_split(trama_layout *layout, int dim, int axis);

/* The box of the process at a position, without regard to the mask. */
void layout_box(const trama_mesh *mesh, const trama_layout *layout, const box *whole, int position, box *result);

/* The elements of the largest of these boxes. */
int64_t layout_largest(const trama_mesh *mesh, const trama_layout *layout, const box *whole);

bool layout_present(const trama_layout *layout, int position);

/* Combined position along the axes of set (a bit mask), row-major in mesh order, and their number of positions. */
int axes_position(const trama_mesh *mesh, unsigned set, const int *coordinate);
int axes_size(const trama_mesh *mesh, unsigned set);
/* The reverse: sets the coordinates along the axes of set. */
void axes_coordinate(const trama_mesh *mesh, unsigned set, int position, int *coordinate);

/* Bit masks of the axes of a kind. */
unsigned layout_axes(const trama_layout *layout, trama_placement_kind kind);
unsigned layout_unsplit_axes(const trama_mesh *mesh, const trama_layout *layout); /* all axes that cut no dim */

/* Whether the kind passes through linear ops and mixes with another such kind on several axes. */
static inline bool reduce_is_linear(trama_reduce kind)
{
    return kind == TRAMA_SUM || kind == TRAMA_AVG;
}

/* Calls visit for every distinct non-empty box of the layout that meets `where`, in ascending order; coordinate holds
 * the mesh coordinates along the split axes, 0 along the others. The cost grows with the visited boxes, not with the
 * mesh. */
typedef void layout_visit(void *arg, const box *piece, const int *coordinate);
void layout_overlaps(const trama_mesh *mesh, const trama_layout *layout, const box *whole, const box *where,
                     layout_visit *visit, void *arg);

/* The number of a piece, from 0 in ascending order, among the layout's pieces that meet `where`. Empty pieces may
 * count. Piece and `where` must not be empty. */
int64_t layout_number(const trama_mesh *mesh, const trama_layout *layout, const box *whole, const box *where,
                      const box *piece);

/* The number of pieces that meet `where`, which must not be empty. */
int64_t layout_pieces(const trama_mesh *mesh, const trama_layout *layout, const box *whole, const box *where);

/* Appends every legal layout of a tensor on a mesh: all placements per axis, all orders of axes on one dim. */
typedef ARRAY(trama_layout) layout_list;
void every_layout(const trama_mesh *mesh, int ndim, bool partials, layout_list *list);

void layout_text(text *out, const trama_mesh *mesh, const trama_layout *layout);
const char *reduce_name(trama_reduce reduce); /* "sum", ... */

#endif
