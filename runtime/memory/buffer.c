/* SPDX-License-Identifier: Apache-2.0 */
/* Allocation of buffers. */
#include "buffer.h"

#include "node_memory.h"

#include <sys/mman.h>

#define LINE ((size_t)64)
#define PAGE ((size_t)4096)
#define LARGE_PAGE ((size_t)2 << 20)
#define LARGE (2 * LARGE_PAGE)   /* least bytes for large pages */
#define BOUND ((size_t)64 << 10) /* least bytes that are bound to a NUMA node */

static size_t round_up(size_t bytes, size_t unit)
{
    return (bytes + unit - 1) / unit * unit;
}

/* bytes is a multiple of PAGE. The memory before and behind the aligned part is unmapped. */
static void *map_aligned(size_t bytes, size_t alignment)
{
    size_t room = bytes + alignment;
    char *start = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED)
        return NULL;
    char *data = start + (alignment - (uintptr_t)start % alignment) % alignment;
    if (data > start)
        munmap(start, (size_t)(data - start));
    munmap(data + bytes, room - bytes - (size_t)(data - start));
    return data;
}

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
    bool large = bytes >= LARGE;
    *b = (buffer){.bytes = round_up(bytes ? bytes : 1, LINE), .mapped = large || (several && bytes >= BOUND)};
    if (b->mapped) {
        b->bytes = round_up(bytes, large ? LARGE_PAGE : PAGE);
        b->data = map_aligned(b->bytes, large ? LARGE_PAGE : PAGE);
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
