/* SPDX-License-Identifier: Apache-2.0 */
/* All completions of a program at once, as variables with states and costs of pairs of them.
 *
 * An op is a variable whose states are its candidates. A value that an op makes lies as it is made, unless an
 * annotation or the rules of gradients say how it lies. Any other value is a variable of its own: an input or a state
 * without an annotation may lie in any split, else there is one state. So pairs are the changes of layout between those
 * that make a value and those that read it.
 *
 * Ops that need a value in one layout receive it once. A value with several readers has a variable for its copies: as
 * made, and a copy in one further layout, which readers get for nothing. The copy may be the one that most readers
 * need. So a reader in a third layout shares that with half of the readers at most, and is counted with such a share of
 * the bytes. The sum is exact where up to three ops read a value, or all in two layouts, and never too large. */
#ifndef LAYOUT_GRAPH_H
#define LAYOUT_GRAPH_H

#include "min_sum.h"
#include "op_candidates.h"

/* The place of a value among the variables. */
typedef struct value_place {
    int variable; /* -1: no op has read or made it */
    const layout_classes *classes;
    int holds; /* the variable of its copies; -1: none */
    const copy_states *copies;
} value_place;

typedef struct layout_graph {
    const trama_program *program;
    const layouts *start;
    min_sum *problem;
    value_place *value;       /* [value id] */
    const op_candidates **op; /* [node id] NULL: an alias */
    int *variable_of_op;      /* [node id] */
    int *readers;             /* [value id] */
    bool *accumulates;        /* [value id] its terms are added up over micro-steps, so that it lies as before */
    node_rules rules;
    candidates_pool candidates;
    class_tables tables;
} layout_graph;

/* The cost of a state other than that of `start`, in bytes: ties keep it. */
#define COST_OF_OTHER 1e-6

void layout_graph_build(layout_graph *g, const trama_program *program, const layouts *start, int64_t nominal);
void layout_graph_free(layout_graph *g);

/* The layouts in a solution; the caller frees them. */
void layout_graph_take(const layout_graph *g, const int *state, layouts *made);

#endif
