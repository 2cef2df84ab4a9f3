/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of completion: complete.c, meshes.c, shared_updates.c, freeze.c, sums.c. */
#ifndef COMPLETE_INTERNAL_H
#define COMPLETE_INTERNAL_H

#include "complete.h"

typedef struct completion {
    const trama_program *program;
    layouts *l;
    node_rules rules; /* with nominal extents */
    const trama_mesh *single;
    bool *trains; /* [value id] depends on a trained parameter; NULL in eager mode */
    layout_list
        *held;    /* [value id] while freezing: the layouts in which earlier ops read a value; NULL in eager mode */
    bool *shares; /* [value id] a parameter of which processes may update a part each; NULL in eager mode */
    int *slot;    /* [value id] of a parameter its first slot, of a slot the next one, each 1 + its id; 0: none */
    trama_layout *wished;  /* [value id] the layout of its annotated slots, where that splits more; no axes: none */
    trama_layout *updated; /* [value id] the layout in which a parameter is updated; no axes: not decided yet */
    trama_layout *summed;  /* [value id] R or S along the axes on which a value is summed where it is made, else open */
    text report;
} completion;

/* complete_mesh with the meshes found so far. */
trama_status node_mesh(const layouts *l, const trama_node *node, const trama_mesh **mesh);

/* meshes.c: the mesh of each value. E_LAYOUT where an op has operands on two. */
trama_status spread_meshes(completion *c);

/* The layout of operand t as the user fixed it for the op, else that of its value if on the op's mesh, else NULL. */
const trama_layout *operand_layout(const layouts *l, const trama_node *node, int t, const trama_mesh *mesh);

/* The operands of a forward op, as bits, that depend on trained parameters. */
unsigned trained_operands(const completion *c, const trama_node *node);

void close_open_axes(trama_layout *layout); /* open axes become R */

/* Gives the partial axes of a layout the placements that `summed` has there, where they are not open. */
void reduce_terms(trama_layout *layout, const trama_layout *summed);

/* sums.c: finds values whose terms are to be summed where the value is made; false where there is none that
 * c->summed does not have yet. */
bool find_sums(completion *c);

/* shared_updates.c, of which eager mode uses the layout of an update alone. */
void find_shared(const completion *c);  /* lays out slots, and finds large parameters, by the layouts of all leaves */
void begin_shared(const completion *c); /* of a round of freezing: the parts that annotated slots ask for */
void share_update(const completion *c, const trama_value *gradient); /* frozen: may decide its parameter's parts */
bool is_shared(const completion *c, const trama_value *x);           /* whether processes update a part of it each */
/* The layout in which an op updates a value that is in the memory of a state. */
const trama_layout *updated_layout(const completion *c, const trama_value *v, const trama_value *state);

/* freeze.c: makes one layout for each value and each operand of the splits that the sweeps found. */
trama_status freeze_program(completion *c);

#endif
