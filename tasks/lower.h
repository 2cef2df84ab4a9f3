/* SPDX-License-Identifier: Apache-2.0 */
/* Lowering: one step of a plan becomes a task template with its work, or a message. */
#ifndef LOWER_H
#define LOWER_H

#include "instance.h"

/* Fills in *out, which points into itself, the instance and the memory: it must not move. */
void lower_step(const instance *in, const plan_step *step, arena *memory, lowered *out);

#endif
