/* SPDX-License-Identifier: Apache-2.0 */
/* The box of each process, as numbers and as text. */
#include "layout_walk.h"

trama_status layout_fits(const trama_mesh *mesh, const trama_layout *layout, trama_shape shape)
{
    if (!mesh || !layout)
        return layout_is_null(TRAMA_E_ARGUMENT, mesh, "layout");
    text why = {0};
    if (!shape_check(shape, TRAMA_U8, false, &why))
        trama_fail(NOWHERE, TRAMA_E_SHAPE, "layout: %s", why.at);
    free(why.at);
    if (why.n)
        return TRAMA_E_SHAPE;
    return layout_check(mesh, shape.ndim, layout, false);
}

trama_status trama_layout_box(const trama_mesh *mesh, const trama_layout *layout, trama_shape shape, int position,
                              int64_t *offset, int64_t *extent, int *term, bool *held)
{
    int coordinate[TRAMA_MAX_AXES];
    trama_status status = layout_fits(mesh, layout, shape);
    if (status)
        return status;
    if (position < 0 || position >= mesh->size)
        return trama_fail(NOWHERE, TRAMA_E_ARGUMENT, "layout: %d is no position in a mesh of %d processes", position,
                          mesh->size);
    if (shape.ndim && (!offset || !extent))
        return layout_is_null(TRAMA_E_ARGUMENT, mesh, offset ? "extent's address" : "offset's address");
    box whole = box_whole(shape), b;
    layout_box(mesh, layout, &whole, position, &b);
    for (int d = 0; d < shape.ndim; d++) {
        offset[d] = b.lo[d];
        extent[d] = b.n[d];
    }
    mesh_coordinate(mesh, position, coordinate);
    if (term)
        *term = axes_position(mesh, layout_axes(layout, TRAMA_PARTIAL), coordinate);
    if (held)
        *held = layout_present(layout, position);
    return TRAMA_OK;
}

static void process_line(text *t, const trama_layout *layout, const layout_walk *w)
{
    const trama_mesh *mesh = w->mesh;
    int terms = axes_size(mesh, layout_axes(layout, TRAMA_PARTIAL));
    text_add(t, "process %d (", mesh->ids[w->position]);
    for (int a = 0; a < mesh->ndim; a++)
        text_add(t, "%s%s%s%d", a ? "," : "", mesh->names[a], *mesh->names[a] ? " " : "", w->coordinate[a]);
    text_add(t, ") ");
    if (!layout_present(layout, w->position)) {
        text_add(t, "nothing\n");
        return;
    }
    box_text(t, &w->box);
    if (terms > 1)
        text_add(t, " term %d of %d", axes_position(mesh, layout_axes(layout, TRAMA_PARTIAL), w->coordinate), terms);
    text_add(t, "%s\n", box_count(&w->box) ? "" : " empty");
}

trama_status trama_layout_describe_some(const trama_mesh *mesh, const trama_layout *layout, trama_shape shape,
                                        int first, int n, char **text_)
{
    trama_status status = layout_fits(mesh, layout, shape);
    if (!status && !text_)
        status = layout_is_null(TRAMA_E_ARGUMENT, mesh, "text's address");
    if (!status && (first < 0 || n < 0 || first > mesh->size - n))
        status = trama_fail(NOWHERE, TRAMA_E_ARGUMENT, "layout: %d processes from %d on are not in a mesh of %d", n,
                            first, mesh->size);
    if (status)
        return status;
    text t = {0};
    box whole = box_whole(shape);
    layout_walk w;
    layout_walk_begin(&w, mesh, layout, &whole);
    for (int i = first; i < first + n; i++) {
        layout_walk_to(&w, i);
        process_line(&t, layout, &w);
    }
    layout_walk_end(&w);
    return text_give(&t, "trama_layout_describe", text_);
}

trama_status trama_layout_describe(const trama_mesh *mesh, const trama_layout *layout, trama_shape shape, char **text_)
{
    return trama_layout_describe_some(mesh, layout, shape, 0, mesh ? mesh->size : 0, text_);
}
