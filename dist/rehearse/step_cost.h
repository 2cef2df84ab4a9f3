/* SPDX-License-Identifier: Apache-2.0 */
/* The time of a step on one worker, from its flops and bytes and the rates of a kind of node. */
#ifndef STEP_COST_H
#define STEP_COST_H

#include "cluster.h"
#include "plan.h"

/* Bytes of a step's operands, as step_bytes counts them, by the last use of their shards. */
typedef struct step_reuse {
    float cached;           /* on the same core, which has used less than the machine's `cache` of others since */
    float far, far_written; /* on a core that has used more than its `far` since; of these, results going back */
    float lent;             /* by a receive that may take a loan: the sender may still copy */
    float shared;           /* results that other cores of the rank have read since they were written */
} step_reuse;

/* The time of its flops or that of the bytes of its operands, with the rates of the op after which the step is named
 * ("matvec" for products with a vector): the longer one (Williams, Waterman, Patterson 2009, Roofline), and on a core
 * the sum of both for a product, which brings its operands into another order before it computes, and for an op that
 * a program defines, whose loops were seen to wait for the last cache. Operands in another memory come over PCIe first.
 * bytes: step_bytes of the step; those in the cache save the time by which the core's memory is slower, far ones take
 * at least theirs, and lent and shared ones cost the time by which they are slower. A step that only orders others
 * takes no time. */
double step_seconds(const cluster_kind *k, const plan *p, const trama_program *program, const plan_step *s,
                    double bytes, step_reuse reuse);

/* Whether a step is a task that computes or moves something. */
static inline bool step_moves(const plan_step *s)
{
    return s->kind < STEP_ORDER;
}

/* Bytes that a step moves between a core and memory: results count twice, since a cache reads a line before it is
 * written; internal operands do not count. */
double step_bytes(const plan *p, const plan_step *s);
int step_times(const plan_operand *o); /* as often each byte of an operand counts there */

#endif
