/* SPDX-License-Identifier: Apache-2.0 */
/* The files of inference share this: one op's inference while it is decided. */
#ifndef INFER_INSIDE_H
#define INFER_INSIDE_H

#include "infer.h"

typedef struct axis_list {
    int n, axes[TRAMA_MAX_AXES];
} axis_list;

typedef struct inference {
    const trama_node *node;
    const trama_rule *rule;
    const trama_mesh *mesh;
    int n_tensors;
    const trama_layout *given[RULE_MAX_TENSORS]; /* NULL: unknown */
    axis_list split[RULE_MAX_FACTORS];           /* the outcome: axes of each factor */
    unsigned taken;                              /* axes given to a factor */
    text *report;
} inference;

/* Whether the layout of operand or result t is known and counts. */
bool infer_uses(const inference *q, int t);

/* infer_move.c: whether some axis splits a dim that must be whole, so that a move can matter. infer_move gives each
 * axis that is left without work for that to the factor with the largest pieces, of which each process gets one; at a
 * tie to the first. */
bool infer_may_move(const inference *q);
void infer_move(inference *q);

#endif
