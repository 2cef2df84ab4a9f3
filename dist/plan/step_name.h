/* SPDX-License-Identifier: Apache-2.0 */
/* The names of steps in traces: [A-Za-z0-9_.] only, one for all steps of an op in one role. */
#ifndef STEP_NAME_H
#define STEP_NAME_H

#include "plan.h"

/* The op that a compute step is named after: the first that is not pointwise, or else the one with most flops an
 * element. */
const trama_node *step_main_node(const plan *p, const trama_program *program, const plan_step *step);

/* "matmul", "matmul.grad", "update.sgd"; bytes that the name needs, as snprintf counts. A gradient's own op is one with
 * the product that makes a gradient: "relu_grad" is "relu.grad". */
int step_compute_name(const trama_node *node, char *name, size_t bytes);

/* Of a task that does `more` other steps, too: "matmul_and_2", "matmul_and_2.grad"; bytes as above. */
int step_joined_name(const char *label, int more, char *name, size_t bytes);

/* The name of a step that is no compute step; of a send or receive NULL. */
const char *step_movement_name(const plan_step *step);

#endif
