/* SPDX-License-Identifier: Apache-2.0 */
/* Fusion: which ops run, and which of them as one task, tile by tile, while the tile is in cache. */
#ifndef FUSE_H
#define FUSE_H

#include "complete.h"

/* [node id] The needed nodes but for those whose results lend nothing but their shapes: they compute nothing, as the
 * convolution of which the sum's gradient is asked for. kept: values that are read later. The caller frees it. */
bool *fuse_computed(const trama_program *program, const bool *needed, const bool *kept);

/* leader[node id] gets the id of the first node of its group (its own where it is alone). A pointwise op joins the
 * group of an operand's producer where shapes and layouts are equal, nothing is resharded between them, and its other
 * operands are there before the leader runs. needed: nodes that run (fuse_computed). rules
 * [node id]: of nodes that run, resolved. enabled false: each node is alone. */
void fuse_program(const trama_program *program, const bool *needed, const layouts *l, const trama_shape *shapes,
                  const trama_rule *const *rules, bool enabled, int *leader);

/* [value id] Values that the calls of one group alone see: no dependency stands on them, and they need no place in
 * memory. kept: values that are read later. The caller frees it. */
bool *fuse_internal(const trama_program *program, const bool *needed, const bool *kept, const layouts *l,
                    const int *leader);

#endif
