/* SPDX-License-Identifier: Apache-2.0 */
/* Lower bounds of resharding. */
#include "bound.h"

int64_t bound_lacking(const trama_mesh *source_mesh, const trama_layout *source, const trama_mesh *target_mesh,
                      const trama_layout *target, const box *whole, int position)
{
    box wanted, held, common;
    layout_box(target_mesh, target, whole, position, &wanted);
    int there = mesh_find_near(source_mesh, target_mesh->ids[position], position);
    if (there < 0 || !layout_present(source, there))
        return box_count(&wanted);
    layout_box(source_mesh, source, whole, there, &held);
    return box_count(&wanted) - (box_intersect(&wanted, &held, &common) ? box_count(&common) : 0);
}

/* The partial axes of `from` that `to` does not keep partial with the same kind. */
static int reduced_terms(const trama_mesh *mesh, const trama_layout *from, const trama_layout *to)
{
    int terms = 1;
    for (int a = 0; a < mesh->ndim; a++)
        if (from->axis[a].kind == TRAMA_PARTIAL &&
            (to->axis[a].kind != TRAMA_PARTIAL || to->axis[a].reduce != from->axis[a].reduce))
            terms *= mesh->shape[a];
    return terms;
}

int64_t bound_transfer(const trama_mesh *mesh, const trama_layout *from, const trama_layout *to, const box *whole)
{
    int terms = reduced_terms(mesh, from, to);
    int64_t most = 0;
    for (int i = 0; i < mesh->size; i++) {
        box wanted, held;
        layout_box(mesh, to, whole, i, &wanted);
        layout_box(mesh, from, whole, i, &held);
        int64_t n = box_count(&wanted), received = bound_lacking(mesh, from, mesh, to, whole, i);
        if (terms > 1)
            received += n * terms <= box_count(&held) ? n * (terms - 1) : 2 * n * (terms - 1) / terms;
        most = max_i64(most, received);
    }
    return most;
}
