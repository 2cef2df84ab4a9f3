/* SPDX-License-Identifier: Apache-2.0 */
/* The time of a step on one worker, from its flops and bytes and the rates of a kind of node. */
#ifndef STEP_COST_H
#define STEP_COST_H

#include "cluster.h"
#include "plan.h"

/* The time of its flops and that of the bytes of its operands, with the rates of the op after which the step is named
 * ("matvec" for products with a vector): of a GPU the longer one (Williams, Waterman, Patterson 2009, Roofline), of a
 * core their sum, since products on cores bring their operands into another order before they compute. Operands in
 * another memory come over PCIe first. bytes: step_bytes of the step; `cached` of them save the time by which the
 * core's memory is slower than its cache. A step that only orders others takes no time. */
double step_seconds(const cluster_kind *k, const plan *p, const trama_program *program, const plan_step *s,
                    double bytes, double cached);

/* Bytes that a step moves between a core and memory: results count twice, since a cache reads a line before it is
 * written; internal operands do not count. */
double step_bytes(const plan *p, const plan_step *s);
int step_times(const plan_operand *o); /* as often each byte of an operand counts there */

#endif
