/* SPDX-License-Identifier: Apache-2.0 */
/* Local boxes, from the definition of a layout in the public headers alone. */
#ifndef PIECES_H
#define PIECES_H

#include "harness.h"

/* Offset and extent of a process's local box. */
typedef struct piece {
    int64_t lo[TRAMA_MAX_NDIM], n[TRAMA_MAX_NDIM];
} piece;

/* Each of n gets its share by weight, rounded down, and of what is left the first ones one more. */
static inline void piece_cut(int64_t *lo, int64_t *n, const trama_mesh *mesh, int axis, int i)
{
    int64_t sum = 0, left = *n, all = *n;
    for (int k = 0; k < trama_mesh_extent(mesh, axis); k++)
        sum += trama_mesh_weight(mesh, axis, k);
    for (int k = 0; k < trama_mesh_extent(mesh, axis); k++)
        left -= all * trama_mesh_weight(mesh, axis, k) / sum;
    for (int k = 0; k <= i; k++) {
        *lo += k ? *n : 0;
        *n = all * trama_mesh_weight(mesh, axis, k) / sum + (k < left);
    }
}

static inline int coordinate_of(const trama_mesh *mesh, int position, int axis)
{
    for (int a = trama_mesh_ndim(mesh) - 1; a > axis; a--)
        position /= trama_mesh_extent(mesh, a);
    return position % trama_mesh_extent(mesh, axis);
}

static inline piece piece_of_process(const trama_mesh *mesh, const trama_layout *l, trama_shape shape, int position)
{
    piece b = {{0}, {0}};
    for (int d = 0; d < shape.ndim; d++) {
        b.n[d] = shape.dim[d];
        for (int order = 0; order < l->naxes; order++) /* the axis that cuts first, then the next */
            for (int a = 0; a < l->naxes; a++)
                if (l->axis[a].kind == TRAMA_SPLIT && l->axis[a].dim == d && l->axis[a].order == order)
                    piece_cut(&b.lo[d], &b.n[d], mesh, a, coordinate_of(mesh, position, a));
    }
    return b;
}

static inline int64_t piece_count(const piece *b, int ndim)
{
    int64_t n = 1;
    for (int d = 0; d < ndim; d++)
        n *= b->n[d];
    return n;
}

static inline bool piece_equal(const piece *a, const piece *b, int ndim)
{
    for (int d = 0; d < ndim; d++)
        if (a->lo[d] != b->lo[d] || a->n[d] != b->n[d])
            return false;
    return true;
}

/* Elements in both. */
static inline int64_t piece_common(const piece *a, const piece *b, int ndim)
{
    int64_t n = 1;
    for (int d = 0; d < ndim; d++) {
        int64_t lo = a->lo[d] > b->lo[d] ? a->lo[d] : b->lo[d];
        int64_t to = a->lo[d] + a->n[d] < b->lo[d] + b->n[d] ? a->lo[d] + a->n[d] : b->lo[d] + b->n[d];
        n *= to > lo ? to - lo : 0;
    }
    return n;
}

/* Global row-major number of element i (row-major) of a piece. */
static inline int64_t piece_element(const piece *b, trama_shape shape, int64_t i)
{
    int64_t at = 0, stride = 1;
    for (int d = shape.ndim - 1; d >= 0; d--) {
        at += (b->lo[d] + i % b->n[d]) * stride;
        i /= b->n[d];
        stride *= shape.dim[d];
    }
    return at;
}

static inline bool is_held(const trama_layout *l, int position)
{
    return !l->mask || l->mask[position];
}

/* This rank's boxes of a value are those of the layout for the processes that `mine` names (-1 ends; each box once),
 * and hold the elements of data [shape]. */
static inline void demand_local(trama_executable *e, const trama_value *v, const trama_mesh *mesh,
                                const trama_layout *l, trama_shape shape, trama_dtype dtype, const void *data,
                                const int *mine)
{
    piece wanted[64];
    int n = 0, found = -1;
    for (int i = 0; mine[i] >= 0; i++) {
        piece b = piece_of_process(mesh, l, shape, mine[i]);
        bool new = is_held(l, mine[i]);
        for (int k = 0; k < n; k++)
            new = new && !piece_equal(&b, &wanted[k], shape.ndim);
        if (new)
            wanted[n++] = b;
    }
    must(trama_local_count(e, v, &found));
    demand(found == n, "%s: %d local boxes instead of %d", trama_value_name(v), found, n);
    for (int i = 0; i < n; i++) {
        piece b;
        bool known = false;
        must(trama_local_box(e, v, i, b.lo, b.n));
        for (int k = 0; k < n; k++)
            known |= piece_equal(&b, &wanted[k], shape.ndim);
        demand(known, "%s: box %d is not of its layout", trama_value_name(v), i);
        int64_t count = piece_count(&b, shape.ndim);
        size_t bytes = (size_t)count * trama_dtype_size(dtype);
        void *local = malloc(bytes + 1);
        must(trama_read_local(e, v, i, local, bytes));
        for (int64_t k = 0; k < count; k++) {
            double is = number_at(local, dtype, k), should = number_at(data, dtype, piece_element(&b, shape, k));
            demand(is == should, "%s: element %" PRId64 " of box %d is %.17g instead of %.17g", trama_value_name(v), k,
                   i, is, should);
        }
        free(local);
    }
}

#endif
