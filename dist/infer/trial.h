/* SPDX-License-Identifier: Apache-2.0 */
/* A trial of one op: its call is split over simulated processes, each of which runs its part, and the results are
 * recombined. All elements are doubles here, complex ones two of them; a function of the caller runs a call. */
#ifndef TRIAL_H
#define TRIAL_H

#include "infer.h"

typedef struct trial {
    const char *name; /* for messages */
    const trama_node *node;
    const trama_rule *rule; /* the node's rule or another under trial; all dims known */
    const trama_mesh *mesh;
    uint64_t seed;    /* of the operands' elements */
    double tolerance; /* of |a - b| / max(1, |b|) */
    /* Sets the n doubles of the elements of an operand, or of one of its terms. */
    void (*values)(void *arg, const trama_node *node, int operand, uint64_t seed, int64_t n, double *at);
    /* Runs one call on doubles, for views of any type; false where the boxes do not fit each other. A result that is
     * written over an operand has separate memory, which is not initialized. */
    bool (*run)(void *arg, const trama_call *call);
    void *arg;
} trial;

/* The layouts of all operands. */
typedef struct combination {
    trama_layout in[TRAMA_MAX_OPERANDS];
} combination;

/* Runs the op on every process, with operands laid out as `in`, and once on whole operands, and compares results laid
 * out as `out`. Returns the largest |a - b| / max(1, |b|), or infinity where a run fails or replicas differ. */
double trial_difference(const trial *t, const trama_layout *in, const trama_layout *out);

/* Whether trial_difference is within the tolerance. */
bool is_right(const trial *t, const trama_layout *in, const trama_layout *out);

/* The result of inference for a combination. */
op_layouts infer_combination(const trial *t, const combination *c);

/* Whether inference removes a split or partial value of an operand; it may split a replicated one. One mesh axis. */
bool is_refused(const trial *t, const combination *c);

/* Appends every layout that the value can have on the mesh; partials: also the partial ones that its type allows. */
void trial_layouts(const trama_mesh *mesh, const trama_value *value, bool partials, layout_list *list);

/* Visits all combinations of the operands' layouts on the mesh in which at most `most` operands are split or partial, or
 * all lie equally. Of an update of state the operands with dims have equal layouts, and count as one. */
typedef void combination_visit(void *arg, const trial *t, const combination *c);
void each_combination(const trial *t, int most, combination_visit *visit, void *arg);

/* Whether the operand has the layout of operand 0 in each of them. */
bool is_alike(const trial *t, int operand);

void describe_call(text *out, const trial *t, const trama_layout *in, const trama_layout *results); /* NULL: not said */

#endif
