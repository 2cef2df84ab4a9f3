/* SPDX-License-Identifier: Apache-2.0 */
/* The time of a step on one worker, from its flops and bytes and the rates of a kind of node. */
#ifndef STEP_COST_H
#define STEP_COST_H

#include "cluster.h"
#include "plan.h"

/* The longer of the time of its flops and that of the bytes of its operands (Williams, Waterman, Patterson 2009,
 * Roofline), with the rates of the op after which the step is named. Operands in another memory come over PCIe first.
 * A step that only orders others takes no time. */
double step_seconds(const cluster_kind *k, const plan *p, const trama_program *program, const plan_step *s);

/* Bytes of the operands of a step, each region once as often as it is an operand, without internal ones. */
double step_bytes(const plan *p, const plan_step *s);

#endif
