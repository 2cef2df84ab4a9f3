/* SPDX-License-Identifier: Apache-2.0 */
/* Layout inference, one engine for all ops: from the known layouts and the factor table of an op to the layouts of its
 * operands and results. */
#ifndef INFER_H
#define INFER_H

#include "program.h"

typedef struct op_layouts {
    const trama_mesh *mesh;
    trama_layout in[TRAMA_MAX_OPERANDS], out[TRAMA_MAX_OPERANDS]; /* inferred without a mask */
} op_layouts;

/* in[t], out[t]: the known layouts on `mesh`; NULL and open axes are unknown. Layouts of out only claim splits. If
 * tensors split a factor by different axes, the axes with fewer received bytes on the op's edges win, at a tie the
 * first tensor's. An axis claimed for several factors goes to the first in rule order. A partial value passes where the
 * rule allows, else the edge reduces it. report, if not NULL, gets a line
 * for each conflict. moves, as plans have it: a split of a dim that must be whole moves to another dim of operands and
 * results, where that takes fewer bytes than to gather it. */
void infer_op(const trama_node *node, const trama_rule *rule, const trama_mesh *mesh, const trama_layout *const *in,
              const trama_layout *const *out, bool moves, op_layouts *result, text *report);

/* The axes that split a factor in a tensor's layout, major first, as far as the rule allows the split; returns their
 * number. */
int infer_claim(const trama_rule *rule, const trama_mesh *mesh, int tensor, const trama_layout *layout, int factor,
                int *axes);

#endif
