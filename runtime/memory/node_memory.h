/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that all ranks of a node can read: a file without a name for each rank, which the rank writes and the others
 * map when the context starts. Pages take memory once they are written. The kernel frees them when the last of these
 * processes has ended, in whatever way. */
#ifndef NODE_MEMORY_H
#define NODE_MEMORY_H

#include "state.h"

/* Collective; the machine table is made. Sets c->node_memory and machine.loan_bytes on all ranks, or on none: where a
 * rank cannot make its memory, or map that of another one, and where no node has two ranks. */
trama_status node_memory_start(trama_context *c);
/* No other rank may read this rank's memory any more. NULL is allowed. */
void node_memory_stop(node_memory **m);

/* At least `bytes` bytes in whole pages, aligned as a buffer of buffer.h; NULL where they do not fit, or without
 * memory. Pages are large where the system allows it for shared memory. `taken`: the bytes to give back. */
void *node_memory_take(node_memory *m, size_t bytes, size_t *taken);
void node_memory_give(node_memory *m, void *data, size_t taken);

/* Where data lie in this rank's memory; -1: elsewhere. And that place in the memory of another rank of the node, which
 * must not be written; NULL where that rank is on another node. */
int64_t node_memory_at(const node_memory *m, const void *data);
void *node_memory_of(const node_memory *m, int rank, int64_t at);

#endif
