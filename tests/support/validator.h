/* SPDX-License-Identifier: Apache-2.0 */
/* What is right for one op: its call is split over simulated processes, run by each on its own part, and recombined. */
#ifndef VALIDATOR_H
#define VALIDATOR_H

#include "cases.h"
#include "change.h"
#include "infer.h"

typedef struct sample {
    const op_case *c;
    const trama_node *node;
    const trama_rule *rule; /* the node's, or another to be judged */
    const trama_mesh *mesh;
    uint64_t seed; /* of the operands' elements */
} sample;

/* Layouts of all operands. */
typedef struct combination {
    trama_layout in[TRAMA_MAX_OPERANDS];
} combination;

/* Whether the op on operands laid out as `in`, run by every process on its own, gives results laid out as `out`. */
bool is_right(const sample *s, const trama_layout *in, const trama_layout *out);

/* What inference makes of it. */
op_layouts infer_combination(const sample *s, const combination *c);

/* Whether inference takes a given split or partial value away; what was whole may be split for nothing. One axis. */
bool is_refused(const sample *s, const combination *c);

/* Visits all combinations of the operands' layouts on the mesh; state is updated on equal layouts only. */
typedef void combination_visit(void *arg, const sample *s, const combination *c);
void each_combination(const sample *s, combination_visit *visit, void *arg);

void describe_call(text *t, const sample *s, const trama_layout *in, const trama_layout *out); /* out NULL: not said */

#endif
