/* SPDX-License-Identifier: Apache-2.0 */
/* The order in which groups run: as the program was recorded, but an optimizer's ops on large states stand as soon as
 * their operands are there and the others have read the states that they overwrite. So a gradient is summed, used and
 * forgotten while those of other layers are computed, and lives for a short time. The same on all ranks. */
#ifndef GROUP_ORDER_H
#define GROUP_ORDER_H

#include "program.h"

typedef struct group_order {
    int n, *leaders; /* [n] the groups in order */
    int *turn;       /* [node id] the number of the node's group in that order; -1: it does not run */
    int *next;       /* [node id] the next node of the group; -1: none */
} group_order;

/* needed, leader: as fuse_program has them. kept: values that are read later. large: [value id] states that are. */
group_order group_order_find(const trama_program *program, const bool *needed, const int *leader, const bool *kept,
                             const bool *large);
void group_order_free(group_order *o);

#endif
