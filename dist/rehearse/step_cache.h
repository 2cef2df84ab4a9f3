/* SPDX-License-Identifier: Apache-2.0 */
/* The operands of steps that lie in the cache of their core. */
#ifndef STEP_CACHE_H
#define STEP_CACHE_H

#include "step_graph.h"

/* Of each step the bytes, as step_bytes counts them, of operands whose shard the same core used last, with less than
 * the cache's size of operands since, in a run that follows others: an array [steps], which the caller frees. Only
 * cores have caches, and a step that any of several workers may take finds nothing in one. */
float *step_cached_bytes(const graph_source *source);

#endif
