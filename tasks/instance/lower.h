/* SPDX-License-Identifier: Apache-2.0 */
/* Lowering: one step of a plan becomes a task template with its work, or a message. */
#ifndef LOWER_H
#define LOWER_H

#include "instance.h"

/* Sets the shards of the lowering; makes those that lie within others. */
void lower_shards(const instance *in, lowering *l);
void lower_free(const instance *in, lowering *l); /* none of its tasks may be in flight */

/* Sets *out, which holds pointers into *out, the instance and the lowering: it must not move. */
void lower_step(const instance *in, const plan_step *step, lowering *l, lowered *out);

#endif
