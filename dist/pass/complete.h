/* SPDX-License-Identifier: Apache-2.0 */
/* Completion: from the user's annotations to one layout for each value and the layouts that each op computes on. */
#ifndef COMPLETE_H
#define COMPLETE_H

#include "hash_table.h"
#include "infer.h"

/* Tables over a program, by value id and node id. Layouts of values are full: no axis is open. */
typedef struct layouts {
    int n_values, n_nodes;
    const trama_mesh **mesh; /* [n_values] never NULL for a value that is needed */
    trama_layout *value;     /* [n_values] */
    const op_layouts **op;   /* [n_nodes] of the pool; where op.out, the layouts of results as made, differs from value,
                                the edge reshards */
    ARRAY(op_layouts *) pool; /* each kept once: few ops differ from all others */
    hash_table by_content;    /* numbers in the pool */
    char *report;             /* a line for each conflict, "" without one; owned */
} layouts;

/* The extent that stands for TRAMA_ANY: nominal, or that for which the start was chosen, halved until every value has
 * at most MOST_BYTES. */
int64_t complete_nominal(const trama_program *program, int64_t nominal);

/* The rule of a node where `nominal` is that extent; those of all nodes, which the caller frees. */
void complete_rule(const trama_node *node, int64_t nominal, trama_rule *rule);
node_rules complete_rules(const trama_program *program, int64_t nominal);

/* Completes the whole program; `nominal` stands for TRAMA_ANY. Values that no annotation gives a mesh are on `single`,
 * the mesh of process 0 alone. E_LAYOUT where an op has operands on two meshes; it names both and the op's line. */
trama_status complete_program(const trama_program *program, int64_t nominal, const trama_mesh *single, layouts *result);

/* The mesh on which an op computes: the one that the user fixed, else that of its operands with dims, else of its
 * scalars, else of its results. of [n_in], made: the known meshes of operands and results, else NULL. *mesh is NULL
 * where none is known. E_LAYOUT where operands with dims are on different meshes; it names both and the op's line. */
trama_status complete_mesh(const trama_node *node, const trama_mesh *const *of, const trama_mesh *made,
                           const trama_mesh **mesh);

/* Lays out one more node, whose operands are laid out already, by forward inference (eager mode). */
trama_status complete_node(const trama_node *node, const trama_rule *rule, const trama_mesh *single, layouts *result);

/* The layout of `other` with R on each axis that is not split, for a value that goes back to its mesh. */
trama_layout layout_colocated(const trama_layout *other);

void layouts_room(layouts *l, int n_values, int n_nodes); /* grows the tables; new entries are zero */
void layouts_free(layouts *l);

/* Sets the layouts of a node, copied. Unused operands and results are zero. */
void layouts_set_op(layouts *l, int node, const op_layouts *op);

#endif
