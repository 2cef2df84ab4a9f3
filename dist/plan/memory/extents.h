/* SPDX-License-Identifier: Apache-2.0 */
/* Which tenant has which bytes of an arena. */
#ifndef EXTENTS_H
#define EXTENTS_H

#include "base.h"

/* Bytes that one tenant has. */
typedef struct extent {
    int64_t from, to;
    int tenant;
} extent;

typedef ARRAY(extent) extents; /* by address, without overlaps */
typedef ARRAY(int) tenant_list;

/* Gives bytes to a tenant, and takes them from all others. */
void extents_give(extents *list, extent e);

/* Gives those of the bytes to a tenant that nobody has. */
void extents_fill(extents *list, extent e);

/* Adds the tenants of the bytes of e to found, each once, but not e's own. */
void extents_find(const extents *list, extent e, tenant_list *found);

#endif
