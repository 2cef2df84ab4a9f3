/* SPDX-License-Identifier: Apache-2.0 */
/* The walk over positions: recomputes only the dims that the changed coordinates cut. */
#include "layout_walk.h"

static void begin_dim(layout_walk *w, const trama_layout *layout, int dim)
{
    walk_dim *d = &w->dims[dim];
    int axes[TRAMA_MAX_AXES];
    *d = (walk_dim){.n = layout_dim_axes(layout, dim, axes), .last_axis = -1};
    for (int i = 0; i < d->n; i++) {
        const int axis = axes[i];
        d->last_axis = axis > d->last_axis ? axis : d->last_axis;
        d->cuts[i] = (walk_cut){.axis = axis, .n = -1};
        if (w->mesh->weights[axis])
            d->cuts[i].begins = trama_alloc(((size_t)w->mesh->shape[axis] + 1) * sizeof *d->cuts[i].begins);
    }
}

static void cut_anew(walk_cut *c, const trama_mesh *mesh, int64_t n)
{
    c->n = n;
    if (c->begins) {
        mesh_pieces(mesh, c->axis, n, c->begins);
        return;
    }
    c->quotient = n / mesh->shape[c->axis];
    c->rest = n % mesh->shape[c->axis];
}

static void find_dim(layout_walk *w, int dim)
{
    walk_dim *d = &w->dims[dim];
    int64_t lo = w->whole.lo[dim], n = w->whole.n[dim];
    for (int i = 0; i < d->n; i++) {
        walk_cut *c = &d->cuts[i];
        const int at = w->coordinate[c->axis];
        if (c->n != n)
            cut_anew(c, w->mesh, n);
        lo += c->begins ? c->begins[at] : at * c->quotient + min_i64(at, c->rest);
        n = c->begins ? c->begins[at + 1] - c->begins[at] : c->quotient + (at < c->rest);
    }
    w->box.lo[dim] = lo;
    w->box.n[dim] = n;
}

/* Updates the dims that an axis from `changed` on cuts. */
static void find_box(layout_walk *w, int changed)
{
    for (int d = 0; d < w->whole.ndim; d++)
        if (w->dims[d].last_axis >= changed)
            find_dim(w, d);
}

void layout_walk_begin(layout_walk *w, const trama_mesh *mesh, const trama_layout *layout, const box *whole)
{
    *w = (layout_walk){.mesh = mesh, .whole = *whole, .box = *whole};
    for (int d = 0; d < whole->ndim; d++)
        begin_dim(w, layout, d);
    find_box(w, 0);
}

void layout_walk_to(layout_walk *w, int position)
{
    int axis = w->mesh->ndim - 1;
    if (position == w->position)
        return;
    if (position != w->position + 1) {
        mesh_coordinate(w->mesh, position, w->coordinate);
        axis = 0;
    } else {
        while (++w->coordinate[axis] == w->mesh->shape[axis])
            w->coordinate[axis--] = 0;
    }
    w->position = position;
    find_box(w, axis);
}

void layout_walk_end(layout_walk *w)
{
    for (int d = 0; d < w->whole.ndim; d++)
        for (int i = 0; i < w->dims[d].n; i++)
            free(w->dims[d].cuts[i].begins);
}
