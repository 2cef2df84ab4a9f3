/* SPDX-License-Identifier: Apache-2.0 */
/* What a change of layout must move at least. Counts elements; knows no plan. */
#ifndef BOUND_H
#define BOUND_H

#include "layout.h"

/* Elements of the target's box at `position` that the same process does not hold in the source: the least it must
 * receive where nothing is partial. A process outside the source mesh, or masked there, holds nothing. */
int64_t bound_lacking(const trama_mesh *source_mesh, const trama_layout *source, const trama_mesh *target_mesh,
                      const trama_layout *target, const box *whole, int position);

/* The most elements that any process receives when `from` becomes `to` on one mesh, partial values reduced as in the
 * table of Thakur, Rabenseifner and Gropp 2005: (t-1) |piece| for a reduce-scatter, 2 (t-1)/t |piece| for an all-reduce. */
int64_t bound_transfer(const trama_mesh *mesh, const trama_layout *from, const trama_layout *to, const box *whole);

#endif
