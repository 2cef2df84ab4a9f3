/* SPDX-License-Identifier: Apache-2.0 */
/* The changes of layout of a completed program, and the bytes that they take. */
#ifndef CHANGES_H
#define CHANGES_H

#include "choose.h"
#include "complete.h"

enum { SETTLES = -1 }; /* in place of an operand */

/* A value comes into a layout that it does not have yet. */
typedef struct layout_change {
    const trama_value *value;
    const trama_node *node; /* the first op that reads it so; where it settles, the op that makes it */
    int operand;            /* of the node; SETTLES: the op makes the value in another layout than the value's own */
    int before;             /* the change of the same value before this one; -1: none */
    const trama_mesh *from_mesh, *to_mesh;
    const trama_layout *from, *to;
} layout_change;
typedef ARRAY(layout_change) layout_changes;

/* Appends the changes in the order of the nodes, each once however many ops need it. needed [node id]: the nodes that
 * run; NULL: all. The layouts must outlive the list. */
void find_changes(const trama_program *program, const layouts *l, const bool *needed, layout_changes *list);

/* Whether a value in a layout on a mesh lies as another layout on a mesh asks. */
static inline bool layout_lies(const trama_mesh *mesh, const trama_layout *layout, const trama_mesh *on,
                               const trama_layout *as)
{
    return mesh == on && trama_layout_equal(layout, as);
}

/* The layout in which a value is through the change besides the one in which it rests: a value that settles is made in
 * that layout. */
const trama_layout *change_layout(const layout_change *change, const trama_mesh **mesh);

/* The change as a transfer; `nominal` stands for TRAMA_ANY. */
transfer change_transfer(const layout_change *change, int64_t nominal);

/* Bytes of transfers, each different one counted once. A zeroed table is empty and valid. */
typedef struct transfer_bytes {
    ARRAY(struct counted_transfer) counted;
    hash_table by_content;
} transfer_bytes;
void transfer_bytes_free(transfer_bytes *table);

/* reshard_most_bytes of a value's change of layout. */
int64_t bytes_between(transfer_bytes *table, const trama_value *value, int64_t nominal, const trama_mesh *from_mesh,
                      const trama_layout *from, const trama_mesh *to_mesh, const trama_layout *to);

/* The bytes of change i of the list. Plans take the cheapest layout that the value already has. */
int64_t change_bytes(transfer_bytes *table, const layout_changes *list, int i, int64_t nominal);

/* The bytes of neighbours that a node's op reads, beside changes of layout. */
int64_t reach_bytes(const trama_node *node, const layouts *l, int64_t nominal);

/* The bytes of all changes of a program, and of neighbours. */
int64_t layouts_bytes(const trama_program *program, const layouts *l, int64_t nominal);

#endif
