/* SPDX-License-Identifier: Apache-2.0 */
/* Aligned mappings: a larger one, of which the ends are unmapped. */
#include "mapping.h"

#include <stdint.h>
#include <sys/mman.h>

void *mapping_make(size_t bytes, size_t alignment, int protection, int flags)
{
    size_t room = bytes + alignment;
    char *start = mmap(NULL, room, protection, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
    if (start == MAP_FAILED)
        return NULL;
    char *data = start + (alignment - (uintptr_t)start % alignment) % alignment;
    if (data > start)
        munmap(start, (size_t)(data - start));
    munmap(data + bytes, room - bytes - (size_t)(data - start));
    return data;
}
