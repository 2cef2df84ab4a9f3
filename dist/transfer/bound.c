/* SPDX-License-Identifier: Apache-2.0 */
/* Lower bounds of resharding. */
#include "bound.h"

int64_t bound_lacking(const trama_mesh *source_mesh, const trama_layout *source, const trama_mesh *target_mesh,
                      const trama_layout *target, const box *whole, int position)
{
    box wanted, held, common;
    layout_box(target_mesh, target, whole, position, &wanted);
    int there = mesh_find_hinted(source_mesh, target_mesh->ids[position], position);
    if (there < 0 || !layout_present(source, there))
        return box_count(&wanted);
    layout_box(source_mesh, source, whole, there, &held);
    return box_count(&wanted) - (box_intersect(&wanted, &held, &common) ? box_count(&common) : 0);
}
