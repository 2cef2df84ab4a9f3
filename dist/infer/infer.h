/* SPDX-License-Identifier: Apache-2.0 */
/* The one engine that says how an op runs on a mesh: from the layouts at hand and its factor table to the layouts of
 * its operands and results. */
#ifndef INFER_H
#define INFER_H

#include "program.h"

typedef struct op_layouts {
    const trama_mesh *mesh;
    trama_layout in[TRAMA_MAX_OPERANDS], out[TRAMA_MAX_OPERANDS]; /* what the op computes on; as inferred without a mask */
} op_layouts;

/* in[t], out[t]: the layouts at hand on `mesh`, NULL or open axes where nothing is known; those of out only claim splits.
 * A factor wanted by several axes goes to the ones that cost fewer received bytes on the op's edges, ties to the first
 * tensor; an axis wanted by several factors goes to the first in rule order; a partial value passes where the rule says so,
 * else it is reduced on the edge. report, where not NULL, gets a line for each conflict. */
void infer_op(const trama_node *node, const trama_rule *rule, const trama_mesh *mesh, const trama_layout *const *in,
              const trama_layout *const *out, op_layouts *result, text *report);

/* The axes that split factor f in a tensor's layout, major first, as far as the split survives in the rule. */
int infer_claim(const trama_rule *rule, const trama_mesh *mesh, int tensor, const trama_layout *layout, int factor,
                int *axes);

#endif
