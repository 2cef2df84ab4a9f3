/* SPDX-License-Identifier: Apache-2.0 */
/* The lower bound of the elements that a change of layout moves. It does not depend on a plan. */
#ifndef BOUND_H
#define BOUND_H

#include "layout.h"

/* Elements of the target's box at `position` that the same process does not hold in the source: the minimum that it
 * receives if no value is partial. A process outside the source mesh, or masked there, holds nothing. */
int64_t bound_lacking(const trama_mesh *source_mesh, const trama_layout *source, const trama_mesh *target_mesh,
                      const trama_layout *target, const box *whole, int position);

#endif
