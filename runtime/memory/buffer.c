/* SPDX-License-Identifier: Apache-2.0 */
/* Allocation of buffers. */
#include "buffer.h"

#include "mapping.h"
#include "node_memory.h"

#include <sys/mman.h>

#define LINE ((size_t)64)
#define PAGE ((size_t)4096)
#define BOUND ((size_t)64 << 10) /* least bytes that are bound to a NUMA node */

static void bind_memory(hwloc_topology_t topology, int numa, buffer *b)
{
    hwloc_obj_t node = hwloc_get_obj_by_type(topology, HWLOC_OBJ_NUMANODE, (unsigned)numa);
    if (node)
        hwloc_set_area_membind(topology, b->data, b->bytes, node->nodeset, HWLOC_MEMBIND_BIND, HWLOC_MEMBIND_BYNODESET);
}

static bool has_several(hwloc_topology_t topology)
{
    return hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_NUMANODE) > 1;
}

bool buffer_make(hwloc_topology_t topology, int numa, size_t bytes, buffer *b)
{
    bool several = has_several(topology);
    bool large = bytes >= LARGE_BUFFER;
    *b = (buffer){.bytes = mapping_padded(bytes ? bytes : 1, LINE), .mapped = large || (several && bytes >= BOUND)};
    if (b->mapped) {
        b->bytes = mapping_padded(bytes, large ? LARGE_PAGE : PAGE);
        b->data = mapping_make(b->bytes, large ? LARGE_PAGE : PAGE, PROT_READ | PROT_WRITE, 0);
    } else {
        b->data = aligned_alloc(LINE, b->bytes);
    }
    if (!b->data)
        return false;
    if (large)
        madvise(b->data, b->bytes, MADV_HUGEPAGE);
    if (b->mapped && several)
        bind_memory(topology, numa, b);
    return true;
}

bool buffer_make_shared(hwloc_topology_t topology, int numa, size_t bytes, node_memory *of, buffer *b)
{
    *b = (buffer){.of = of};
    b->data = node_memory_take(of, bytes, &b->bytes);
    if (!b->data)
        return false;
    if (has_several(topology))
        bind_memory(topology, numa, b);
    return true;
}

void buffer_free(buffer *b)
{
    if (b->of)
        node_memory_give(b->of, b->data, b->bytes);
    else if (b->mapped)
        munmap(b->data, b->bytes);
    else
        free(b->data);
    *b = (buffer){0};
}
