/* SPDX-License-Identifier: Apache-2.0 */
/* What is right for one op: its call is split over simulated processes, run by each on its own part, and recombined.
 * All elements are doubles here; what runs a call is a function of the caller's. */
#ifndef TRIAL_H
#define TRIAL_H

#include "infer.h"

typedef struct trial {
    const char *name; /* for messages */
    const trama_node *node;
    const trama_rule *rule; /* the node's, or another to be judged; all dims known */
    const trama_mesh *mesh;
    uint64_t seed;    /* of the operands' elements */
    double tolerance; /* of |a - b| / max(1, |b|) */
    /* Elements of an operand, or of one term of it. */
    void (*values)(void *arg, const trama_node *node, int operand, uint64_t seed, int64_t n, double *at);
    /* Runs one call on doubles, whatever the views' types; false where the boxes do not belong together. A result that
     * is written over an operand has memory of its own, which is not set. */
    bool (*run)(void *arg, const trama_call *call);
    void *arg;
} trial;

/* Layouts of all operands. */
typedef struct combination {
    trama_layout in[TRAMA_MAX_OPERANDS];
} combination;

/* The op on operands laid out as `in`, run by every process on its own, against the op on the whole: the largest
 * |a - b| / max(1, |b|) of results laid out as `out`. Infinite where it does not run, or replicas differ. */
double trial_difference(const trial *t, const trama_layout *in, const trama_layout *out);

/* Whether that is within the tolerance. */
bool is_right(const trial *t, const trama_layout *in, const trama_layout *out);

/* What inference makes of it. */
op_layouts infer_combination(const trial *t, const combination *c);

/* Whether inference takes a given split or partial value away; what was whole may be split for nothing. One axis. */
bool is_refused(const trial *t, const combination *c);

/* Visits all combinations of the operands' layouts on the mesh; state is updated on equal layouts only. */
typedef void combination_visit(void *arg, const trial *t, const combination *c);
void each_combination(const trial *t, combination_visit *visit, void *arg);

void describe_call(text *out, const trial *t, const trama_layout *in, const trama_layout *results); /* NULL: not said */

#endif
