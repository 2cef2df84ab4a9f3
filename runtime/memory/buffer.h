/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers in the memory of a place: aligned, in large pages, on its NUMA node. They know neither tensors nor StarPU. */
#ifndef BUFFER_H
#define BUFFER_H

#include <hwloc.h>

#include "base.h"

typedef struct buffer {
    void *data;   /* 64-byte aligned; 2 MiB-aligned and in large pages where bytes >= 4 MiB */
    size_t bytes; /* allocated, >= 64 */
    bool mapped;
    struct node_memory *of; /* the shared memory that it is a part of; NULL */
} buffer;

/* Allocates at least `bytes` bytes on the NUMA node with logical index numa, which is ignored where the machine has one
 * node. False where memory is short. */
bool buffer_make(hwloc_topology_t topology, int numa, size_t bytes, buffer *b);
void buffer_free(buffer *b);

/* The same in memory that the other ranks of the node can read, whose pages are large where the system allows it. False
 * also where there is none. */
bool buffer_make_shared(hwloc_topology_t topology, int numa, size_t bytes, struct node_memory *of, buffer *b);

#endif
