/* SPDX-License-Identifier: Apache-2.0 */
/* The routes among which choose.c chooses, and what they cost. */
#ifndef CANDIDATES_H
#define CANDIDATES_H

#include "choose.h"

/* Number i of those processes of a mesh that are asked, evenly spaced, n at most: the others are like them. */
static inline int asked(const trama_mesh *mesh, int i, int n)
{
    return (int)((int64_t)i * mesh->size / min_i64(mesh->size, n));
}

enum { MOST_ASKED = 128 }; /* processes of a mesh */

/* The most that one of n processes asked receives; of_source: the bytes that one of the source sends on the average.
 */
transfer_load load_directly(const transfer *t, int n);
transfer_load load_of_route(const transfer *t, const route *r, int n);

/* Processes that hold something of the tensor, if no mask leaves them out; of an empty one 1. */
int64_t processes_with_some(const trama_mesh *mesh, const trama_layout *layout, const box *whole);

/* two_hops.c: where a process would send many small messages, a route on which they are fewer: at most twice the bytes
 * without sums, and with them no more than pieces that do not come out even. */
bool find_two_hops(const transfer *t, reshard_part within, route *found);

/* sliced_sum.c: The processes of the source sum a slice each (a reduce-scatter), and the targets take what they lack
 * from these. Found where it costs at most 16/17 of the direct change, counting 64 bytes for each message that a
 * process gets more; and where the source need not send more than a process would receive or send directly. */
bool find_sliced_sum(const transfer *t, route *found);

#endif
