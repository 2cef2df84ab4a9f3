/* SPDX-License-Identifier: Apache-2.0 */
/* Split forms: where a dim is split that an op needs whole, or in other pieces, ops that exchange sums or extrema of
 * parts, or elements at borders, replace it (trama_op.split_form). The choice needs layouts, so completion makes it. */
#ifndef SPLIT_FORM_H
#define SPLIT_FORM_H

#include "complete.h"

/* complete_program, which replaces ops by their split forms until none that is left would receive fewer bytes so.
 * Values keep their ids and their order; new ones follow them. A node of a split form comes where the replaced one was.
 * Call it behind merge_gradients. */
trama_status split_forms_complete(trama_program *program, int64_t nominal, const trama_mesh *single, layouts *result);

/* The split of a dim that an op cannot compute on. */
typedef struct whole_split {
    int dim;
    int64_t parts; /* equal ones, of which a piece by weights has several; 0: there is no split */
} whole_split;

/* The split of an operand of the node for which its split form receives fewer bytes; parts 0: there is none. l has the
 * layouts of its operands, and those on which it computes. */
whole_split split_form_pays(const trama_node *node, const layouts *l, int64_t nominal, const trama_mesh *single);

/* Replaces a node; false where it has no split form for this split. */
bool split_form_replace(trama_program *program, trama_node *node, whole_split split);

#endif
