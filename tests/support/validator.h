/* SPDX-License-Identifier: Apache-2.0 */
/* Trials of built-in ops, run by the naive loops of reference.h. */
#ifndef VALIDATOR_H
#define VALIDATOR_H

#include "cases.h"
#include "trial.h"

/* The case's call, appended as node, under a rule (the node's, or another to be judged). */
trial trial_of(const op_case *c, const trama_node *node, const trama_rule *rule, const trama_mesh *mesh, uint64_t seed);

/* The most operands that are split or partial at once in combinations that tests try: all, or as many as give 1,000
 * combinations, and at least two. */
int operands_at_once(const trial *t);

#endif
