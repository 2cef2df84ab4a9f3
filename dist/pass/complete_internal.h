/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of completion share: complete.c, freeze.c. */
#ifndef COMPLETE_INTERNAL_H
#define COMPLETE_INTERNAL_H

#include "complete.h"

typedef struct completion {
    const trama_program *program;
    layouts *l;
    trama_rule *rules; /* with nominal extents */
    const trama_mesh *single;
    unsigned
        *summed; /* [value id] axes along which a value is summed as soon as it is there, instead of staying partial */
    text report;
} completion;

/* complete_mesh with the meshes found so far. */
trama_status node_mesh(const layouts *l, const trama_node *node, const trama_mesh **mesh);

/* What is known of operand t: what the user fixed for the op, else the value's own layout on the op's mesh; else NULL.
 */
const trama_layout *operand_layout(const layouts *l, const trama_node *node, int t, const trama_mesh *mesh);

void close_open_axes(trama_layout *layout); /* what is open becomes R */

/* freeze.c: from the splits that the sweeps found to one layout for each value and for each op's operands. */
trama_status freeze_program(completion *c);

#endif
