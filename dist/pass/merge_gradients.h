/* SPDX-License-Identifier: Apache-2.0 */
/* The gradient merge pass: a program whose targets merge gradients becomes one of ordinary ops on state. */
#ifndef MERGE_GRADIENTS_H
#define MERGE_GRADIENTS_H

#include "program.h"

/* For each target that merges: a buffer for each gradient, which lies like it; an accumulation into it; and what was
 * made of the gradient by updates is made of the buffer, scaled. Nodes of the updates, and what depends on them, are
 * marked `gated` and come behind all others, in their order; so numbers of nodes change, those of values do not.
 * Returns whether any target merges. */
bool merge_gradients(trama_program *program);

#endif
