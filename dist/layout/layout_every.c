/* SPDX-License-Identifier: Apache-2.0 */
/* Enumerates all layouts of a tensor on a mesh. */
#include <string.h>

#include "layout.h"

static bool is_partial(const trama_layout *l, int axis)
{
    return l->axis[axis].kind == TRAMA_PARTIAL;
}

/* Only sum and avg mix. */
static bool kinds_fit(const trama_mesh *mesh, const trama_layout *l)
{
    for (int a = 0; a < mesh->ndim; a++)
        for (int b = 0; b < a; b++)
            if (is_partial(l, a) && is_partial(l, b) && l->axis[a].reduce != l->axis[b].reduce &&
                !(reduce_is_linear(l->axis[a].reduce) && reduce_is_linear(l->axis[b].reduce)))
                return false;
    return true;
}

/* Orders of the axes that split one dim must be 0, 1, ... */
static bool orders_fit(const trama_mesh *mesh, const trama_layout *l)
{
    for (int a = 0; a < mesh->ndim; a++) {
        int same = 0;
        for (int b = 0; b < mesh->ndim; b++) {
            bool together =
                l->axis[a].kind == TRAMA_SPLIT && l->axis[b].kind == TRAMA_SPLIT && l->axis[a].dim == l->axis[b].dim;
            same += together;
            if (together && a != b && l->axis[a].order == l->axis[b].order)
                return false;
        }
        if (l->axis[a].kind == TRAMA_SPLIT && l->axis[a].order >= same)
            return false;
    }
    return true;
}

static void extend(const trama_mesh *mesh, int ndim, bool partials, int axis, trama_layout *l, layout_list *list)
{
    if (axis == mesh->ndim) {
        if (kinds_fit(mesh, l) && orders_fit(mesh, l))
            *ARRAY_PUSH(list) = *l;
        return;
    }
    trama_placement *p = &l->axis[axis];
    *p = (trama_placement){.kind = TRAMA_REPLICATE};
    extend(mesh, ndim, partials, axis + 1, l, list);
    for (int d = 0; d < ndim; d++)
        for (int order = 0; order < mesh->ndim; order++) {
            *p = (trama_placement){.kind = TRAMA_SPLIT, .dim = d, .order = order};
            extend(mesh, ndim, partials, axis + 1, l, list);
        }
    for (int k = TRAMA_SUM; partials && k <= TRAMA_MIN; k++) {
        *p = (trama_placement){.kind = TRAMA_PARTIAL, .reduce = (trama_reduce)k};
        extend(mesh, ndim, partials, axis + 1, l, list);
    }
}

void every_layout(const trama_mesh *mesh, int ndim, bool partials, layout_list *list)
{
    trama_layout l;
    memset(&l, 0, sizeof l);
    l.naxes = mesh->ndim;
    extend(mesh, ndim, partials, 0, &l, list);
}
