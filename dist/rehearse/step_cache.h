/* SPDX-License-Identifier: Apache-2.0 */
/* The operands of steps that lie in the cache of their core, in those of others, or far away. */
#ifndef STEP_CACHE_H
#define STEP_CACHE_H

#include "step_cost.h"
#include "step_graph.h"

/* Of each step the bytes of its operands by their last use, in a run that follows others: an array [steps], which the
 * caller frees. Only cores have caches, and of a step that any of several workers may take nothing is known. */
step_reuse *step_reuses(const graph_source *source);

#endif
