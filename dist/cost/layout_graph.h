/* SPDX-License-Identifier: Apache-2.0 */
/* All completions of a program at once, as variables with states and costs of pairs of them.
 *
 * An op is a variable whose states are its candidates, with the bytes of neighbours as their costs. A value without an
 * annotation lies as the op makes it, or as an input or a state in any split of its dims. Other values lie as
 * completion has them. A pair is a change of layout between the op that makes a value and an op that reads it.
 *
 * Ops that need a value in one layout receive it once. The variable of a value's copies holds up to two copies beside
 * the value, which readers get for nothing. A reader in a further layout pays a share of its bytes: of n readers beside
 * k copies 1/(n-k). The sum of the costs is exact for values that are read in k further layouts, and for those with
 * k + 1 readers. It is never more than the bytes, as long as a detour through another layout takes no fewer bytes than
 * the direct change. On one axis that holds; on two axes it fails for 0.7 % of the triples of layouts, all of them with
 * terms. */
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
    bool *pinned;             /* [value id] it lies as before */
    int n_pinned;             /* ops and values that are, without an annotation of theirs, on several processes */
    node_rules rules;
    candidates_pool candidates;
    class_tables tables;
} layout_graph;

/* The cost of a state other than that of `start`, in bytes, so that ties keep that; of a whole input or state twice as
 * much, so that they keep splits. */
#define COST_OF_OTHER 1e-6

/* bytes: of the start; paid: the most that prices may add. A solution whose costs sum up to twice as much or more is no
 * better than the start. */
void layout_graph_build(layout_graph *g, const trama_program *program, const layouts *start, int64_t nominal,
                        double bytes, double paid);
void layout_graph_free(layout_graph *g);

/* The layouts in a solution; the caller frees them. */
void layout_graph_take(const layout_graph *g, const int *state, layouts *made);

#endif
