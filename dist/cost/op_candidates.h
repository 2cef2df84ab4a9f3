/* SPDX-License-Identifier: Apache-2.0 */
/* The layouts in which an op may compute. Completion chose one of them; a search may choose another. */
#ifndef OP_CANDIDATES_H
#define OP_CANDIDATES_H

#include "layout_classes.h"

/* Of all ops with one rule that completion laid out alike, and whose operands beyond a process's part have the same
 * shapes and element sizes: of others the rule has all extents. */
typedef struct op_candidates {
    const trama_op *op;
    const trama_rule *rule;
    const trama_node *first;  /* the node for which they were made */
    const op_layouts *before; /* as completion has it: the first of the list */
    bool asked;               /* to keep them */
    bool kept;                /* the list has no others */
    op_layouts_list list;
    int64_t *reach;                          /* [list.n] infer_reach_bytes of each */
    layout_classes tensor[RULE_MAX_TENSORS]; /* operands, then results; the states are the list's */
} op_candidates;

typedef struct candidates_pool {
    ARRAY(op_candidates *) list;
    hash_table by_content;
} candidates_pool;
void candidates_pool_free(candidates_pool *pool);

/* The candidates of a node, whose rule has known extents: all that its rule allows in which the process with the
 * largest pieces has no more work than before. An op is kept as it was where the user fixed its layouts, where it
 * follows another layout, accumulates, or has a mask, and where it has too many candidates. */
const op_candidates *candidates_of(candidates_pool *pool, const trama_node *node, const trama_rule *rule,
                                   const op_layouts *before);

#endif
