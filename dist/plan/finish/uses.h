/* SPDX-License-Identifier: Apache-2.0 */
/* Which steps of a plan name a shard, in the order of steps: for passes over finished steps, none of which may look at
 * all steps for each shard. */
#ifndef USES_H
#define USES_H

#include "plan.h"

/* Operand `which` of a step. */
typedef struct plan_use {
    int step, which;
} plan_use;

typedef struct plan_uses {
    int n;
    ARRAY(plan_use) * of; /* [shard] by step, then by operand */
} plan_uses;

/* memory: of the step list that the plan has now. plan_no_uses: lists for a pass that adds some of them, in the order
 * of steps. */
plan_uses plan_find_uses(const plan *p);
plan_uses plan_no_uses(const plan *p);
void plan_uses_free(plan_uses *u);

static inline const plan_operand *plan_use_operand(const plan *p, plan_use use)
{
    return plan_step_operand(p, &p->steps.at[use.step], use.which);
}

/* The first use of the shard by step `from` or one behind it: its number in of[shard]. */
int plan_uses_from(const plan_uses *u, int shard, int from);

/* Adds a use, behind those that the list has of its step. */
void plan_uses_add(plan_uses *u, int shard, plan_use use);

/* [shards] whether a value that is kept lies in it. memory: the caller frees it. */
bool *plan_kept_shards(const plan *p, const bool *kept);

#endif
