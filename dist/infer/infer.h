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

/* The layout of operand t; from t = n_in on, that of a result. */
static inline const trama_layout *op_layout_of(const op_layouts *op, int n_in, int t)
{
    return t < n_in ? &op->in[t] : &op->out[t - n_in];
}

/* A question of infer_op. */
typedef struct infer_question {
    const trama_node *node;
    const trama_rule *rule;
    const trama_mesh *mesh;
    const trama_layout *const *in, *const *out; /* the known layouts on `mesh`; NULL and open axes are unknown. Those of
                                                   out only claim splits. out NULL: none is known */
    const layout_list *const *held; /* [n_in] further layouts in which operands are there already; NULL: none */
    unsigned trains; /* operands, as bits, that depend on trained parameters: the changes of layout of their gradients
                        count, too */
    bool moves; /* as plans have it: a split of a dim that must be whole moves to another dim of operands and results,
                   where that takes fewer bytes than to gather it */
} infer_question;

/* If tensors split a factor by different axes, the axes with fewer received bytes on the op's edges win, at a tie the
 * first tensor's. An axis claimed for several factors goes to the one with the fewest received bytes, at a tie to the
 * first in rule order. A result without a known layout keeps the one that it is made in, but terms are counted as
 * summed. A partial value passes where the rule allows, else the edge reduces it. report, if not NULL, gets a line for
 * each conflict. */
void infer_op(const infer_question *question, op_layouts *result, text *report);

/* Appends the layouts in which the op can compute on the mesh: each axis splits a factor, or carries terms of a sum
 * from operands to the result, or does neither. Axes that split one factor do so in the mesh's order. Returns false,
 * and appends nothing, where there are more than `most`. */
typedef ARRAY(op_layouts) op_layouts_list;
bool infer_every(const trama_node *node, const trama_rule *rule, const trama_mesh *mesh, int most,
                 op_layouts_list *list);

/* The most bytes that a process receives of neighbours, beyond its own part of the operands. The rule has an extent for
 * TRAMA_ANY. */
int64_t infer_reach_bytes(const trama_node *node, const trama_rule *rule, const op_layouts *op);

/* The axes that split a factor in a tensor's layout, major first, as far as the rule allows the split; returns their
 * number. */
int infer_claim(const trama_rule *rule, const trama_mesh *mesh, int tensor, const trama_layout *layout, int factor,
                int *axes);

#endif
