/* SPDX-License-Identifier: Apache-2.0 */
/* Who holds what of a tensor, as data and as text. */
#include "layout.h"

trama_status layout_fits(const trama_mesh *mesh, const trama_layout *layout, trama_shape shape)
{
    if (!mesh || !layout)
        return trama_fail(NOWHERE, TRAMA_E_ARGUMENT, "layout: the %s is NULL", mesh ? "layout" : "mesh");
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
    if (position < 0 || position >= mesh->size || (shape.ndim && (!offset || !extent)))
        return trama_fail(NOWHERE, TRAMA_E_ARGUMENT,
                          "layout: %d is no position in a mesh of %d processes, or there is no room", position,
                          mesh->size);
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

static void process_line(text *t, const trama_mesh *mesh, const trama_layout *layout, const box *whole, int position)
{
    int coordinate[TRAMA_MAX_AXES], terms = axes_size(mesh, layout_axes(layout, TRAMA_PARTIAL));
    box b;
    mesh_coordinate(mesh, position, coordinate);
    layout_box(mesh, layout, whole, position, &b);
    text_add(t, "process %d (", mesh->ids[position]);
    for (int a = 0; a < mesh->ndim; a++)
        text_add(t, "%s%s%s%d", a ? "," : "", mesh->names[a], *mesh->names[a] ? " " : "", coordinate[a]);
    text_add(t, ") ");
    if (!layout_present(layout, position)) {
        text_add(t, "nothing\n");
        return;
    }
    box_text(t, &b);
    if (terms > 1)
        text_add(t, " term %d of %d", axes_position(mesh, layout_axes(layout, TRAMA_PARTIAL), coordinate), terms);
    text_add(t, "%s\n", box_count(&b) ? "" : " empty");
}

trama_status trama_layout_describe(const trama_mesh *mesh, const trama_layout *layout, trama_shape shape, char **text_)
{
    trama_status status = layout_fits(mesh, layout, shape);
    if (!status && !text_)
        status = trama_fail(NOWHERE, TRAMA_E_ARGUMENT, "layout: the text's address is NULL");
    if (status)
        return status;
    text t = {0};
    box whole = box_whole(shape);
    for (int i = 0; i < mesh->size; i++)
        process_line(&t, mesh, layout, &whole, i);
    *text_ = text_take(&t);
    return TRAMA_OK;
}
