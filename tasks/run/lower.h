/* SPDX-License-Identifier: Apache-2.0 */
/* Lowering: one step of a plan becomes a task template with its work, or a message. */
#ifndef LOWER_H
#define LOWER_H

#include "instance.h"

/* Finds the shards, and makes those that lie within others. */
void lower_shards(const instance *in, lowering *l);
void lower_free(const instance *in, lowering *l); /* nothing of it is under way */

/* Fills in *out, which points into itself, the instance and the lowering: it must not move. */
void lower_step(const instance *in, const plan_step *step, lowering *l, lowered *out);

#endif
