/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of a place: aligned, in large pages, on its NUMA node. It knows neither tensors nor StarPU. */
#ifndef BUFFER_H
#define BUFFER_H

#include <hwloc.h>

#include "base.h"

typedef struct buffer {
    void *data;   /* 64-byte aligned; 2 MiB-aligned and in large pages where bytes >= 4 MiB */
    size_t bytes; /* allocated, >= 64 */
    bool mapped;
} buffer;

/* At least `bytes` bytes on the NUMA node of the given logical index (no matter where the machine has one). False where
 * memory lacks. */
bool buffer_make(hwloc_topology_t topology, int numa, size_t bytes, buffer *b);
void buffer_free(buffer *b);

#endif
