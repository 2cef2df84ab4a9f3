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
    const layout_list *const *held;              /* [n_in] or NULL, as infer_op takes it */
    unsigned trains;                             /* as infer_op takes it */
    bool contested;                              /* assignments of contested axes are compared */
    signed char only[TRAMA_MAX_AXES];            /* 1 + the one factor that the axis may split; 0: any */
    axis_list split[RULE_MAX_FACTORS];           /* the outcome: axes of each factor */
    unsigned taken;                              /* axes given to a factor */
    text *report;
} inference;

/* Whether the layout of operand or result t is known and counts. */
bool infer_uses(const inference *q, int t);

/* The layouts of operands and results where factors are split as found, and partial operands pass where they may. */
void infer_made(const inference *q, op_layouts *r);

bool infer_same(const inference *q, const op_layouts *a, const op_layouts *b);

/* Whether a split of the factor matters to an operand that is read, or to a result. */
bool infer_computes(const inference *q, int factor);

/* All of a tensor by the extents of the rule; of an empty dim an element, so that its splits can be compared. */
box infer_whole(const trama_node *node, const trama_rule *rule, int t);

/* The most bytes that a process receives where operand or result t changes its layout. */
int64_t infer_edge_bytes(const inference *q, int t, const trama_layout *from, const trama_layout *to);

/* infer_bytes.c: received bytes on all edges of the op, which computes as inferred; where assignments of contested axes
 * are compared, also those of its gradients. INT64_MAX where it breaks a layout that the user fixed. */
int64_t infer_bytes(const inference *q, const op_layouts *r);

/* infer_contest.c: the axes that tensors claim for several factors, and these factors. */
typedef struct contest {
    int n, axis[TRAMA_MAX_AXES];
    unsigned factors[TRAMA_MAX_AXES]; /* bit masks */
} contest;
contest infer_contest(const inference *q);

/* Sets q->only to assignment i of the contested axes to factors; false where there is none. */
bool infer_assign(inference *q, const contest *c, int i);

/* infer_move.c: whether some axis splits a dim that must be whole, so that a move can matter. infer_move gives each
 * axis that is left without work for that to the factor with the largest pieces, of which each process gets one; at a
 * tie to the first. */
bool infer_may_move(const inference *q);
void infer_move(inference *q);

#endif
