/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the two text forms of a layout, which layout_parse.c parses to the same layout. */

#include "layout.h"

static const char *const reduce_names[] = {"sum", "avg", "max", "min"};

const char *reduce_name(trama_reduce reduce)
{
    return reduce_names[reduce];
}

static void mask_text(text *out, const trama_mesh *mesh, const trama_layout *layout)
{
    for (int i = 0; layout->mask && i < mesh->size; i++)
        text_add(out, "%s%d%s", i ? "," : " mask{", layout->mask[i], i == mesh->size - 1 ? "}" : "");
}

/* Whether the axes that cut a dim do so in mesh order, so that no [k] is needed. */
static bool in_mesh_order(const trama_layout *layout, int dim)
{
    int axes[TRAMA_MAX_AXES], n = layout_dim_axes(layout, dim, axes);
    for (int i = 1; i < n; i++)
        if (axes[i] < axes[i - 1])
            return false;
    return true;
}

void layout_text(text *out, const trama_mesh *mesh, const trama_layout *layout)
{
    for (int a = 0; a < layout->naxes; a++) {
        const trama_placement *p = &layout->axis[a];
        text_add(out, "%s", a ? "," : "");
        if (p->kind == TRAMA_SPLIT)
            text_add(out, "S(%d)", p->dim);
        if (p->kind == TRAMA_SPLIT && !in_mesh_order(layout, p->dim))
            text_add(out, "[%d]", p->order);
        if (p->kind == TRAMA_PARTIAL)
            text_add(out, "P(%s)", reduce_names[p->reduce]);
        if (p->kind == TRAMA_REPLICATE || p->kind == TRAMA_OPEN)
            text_add(out, p->kind == TRAMA_OPEN ? "?" : "R");
    }
    mask_text(out, mesh, layout);
}

/* Whether the arguments make a valid layout; ndim of the tensor. */
static bool has_text(const trama_mesh *mesh, int ndim, const trama_layout *layout)
{
    if (!mesh || !layout)
        return layout_is_null(TRAMA_E_LAYOUT, mesh, "layout"), false;
    return !layout_check(mesh, ndim, layout, true);
}

char *trama_layout_text(const trama_mesh *mesh, const trama_layout *layout)
{
    text t = {0};
    if (!has_text(mesh, TRAMA_MAX_NDIM, layout))
        return NULL;
    layout_text(&t, mesh, layout);
    return text_result(&t, "trama_layout_text");
}

char *trama_layout_mapping(const trama_mesh *mesh, int tensor_ndim, const trama_layout *layout)
{
    text t = {0};
    if (!has_text(mesh, tensor_ndim, layout))
        return NULL;
    text_add(&t, "[");
    for (int d = 0; d < tensor_ndim; d++) {
        int axes[TRAMA_MAX_AXES], n = layout_dim_axes(layout, d, axes);
        text_add(&t, "%s%s", d ? "," : "", n ? "" : "-1");
        for (int i = 0; i < n; i++)
            text_add(&t, "%s%d", i ? "+" : "", axes[i]);
    }
    text_add(&t, "]");
    const char *before = " P{";
    for (int a = 0; a < layout->naxes; a++)
        if (layout->axis[a].kind == TRAMA_PARTIAL) {
            text_add(&t, "%s%d:%s", before, a, reduce_names[layout->axis[a].reduce]);
            before = ",";
        }
    text_add(&t, "%s", *before == ',' ? "}" : "");
    mask_text(&t, mesh, layout);
    return text_result(&t, "trama_layout_mapping");
}
