/* SPDX-License-Identifier: Apache-2.0 */
/* The pass that makes arenas: pack_buffers.c, pack_tenants.c, pack_orders.c. */
#ifndef PACKING_H
#define PACKING_H

#include "extents.h"
#include "spans.h"

typedef struct tenant {
    int shard;       /* the one whose buffer it is */
    int first, last; /* steps that use it */
    int before;      /* exchanges that there are when it is used first */
    int needs;       /* exchanges that its users need */
    int64_t bytes, at;
} tenant;

/* An order to be inserted before a step. */
typedef struct order {
    int step;
    int operand, n; /* in operands */
} order;

typedef struct arena_pass {
    partition *q;
    ARRAY(tenant) tenants; /* of one arena; by first use, once they are placed */
    extents now, first;    /* the tenants so far that had each byte last, and first */
    ARRAY(order) orders;   /* of all places */
    ARRAY(plan_operand) operands;
    tenant_list named;    /* in the last order */
    ARRAY(int) opening;   /* messages that are used first in the staging buffer that they lie in */
    int slack;            /* steps */
    int64_t least;        /* bytes of an arena */
    int *least_exchanges; /* [steps] exchanges that there are at all steps from this one on */
} arena_pass;

/* ---- Tenants, pack_tenants.c ---- */

/* [steps] The exchanges that there are at a step and at all behind it; one at least. The caller frees them. */
int *pack_least_exchanges(const plan *p);

/* Of all buffers of a place that may lie in arenas. */
int64_t pack_tenant_bytes(const arena_pass *a, const shard_spans *s, int place);

/* Adds a buffer for each shard that has one, and extends it for those that take it over. */
void pack_find_tenants(arena_pass *a, const shard_spans *s, int place, bool shared);

/* Whether `next` can have memory of the tenant: an order of both makes it wait for nothing near it, nor for exchanges
 * that come later. */
bool pack_may_follow(const arena_pass *a, const tenant *t, const tenant *next);

/* The bytes that the arena needs: the tenants are placed largest first, or in the order of time if they are many. */
int64_t pack_place_tenants(arena_pass *a);

/* ---- Orders, pack_orders.c ---- */

/* The messages of a staging buffer that no order of its exchange lets be written: those of its first rounds. The
 * others are behind these, and before them in the next run. */
void pack_find_opening(arena_pass *a);

/* Orders a tenant behind those that have its bytes when it begins. */
void pack_order_begin(arena_pass *a, int number);

/* Orders, for the next run, each first tenant of bytes behind the last ones. Others may still use the rest of its
 * bytes: they have an order of their own. */
void pack_order_ends(arena_pass *a);

/* Inserts the orders into the list of steps. */
void pack_insert_orders(arena_pass *a);

#endif
