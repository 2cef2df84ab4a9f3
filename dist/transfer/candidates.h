/* SPDX-License-Identifier: Apache-2.0 */
/* The routes among which choose.c chooses, and their costs. */
#ifndef CANDIDATES_H
#define CANDIDATES_H

#include "choose.h"

/* The position of probe i, of n at most, which are evenly spaced. The other processes of the mesh are like them. */
static inline int asked(const trama_mesh *mesh, int i, int n)
{
    return (int)((int64_t)i * mesh->size / min_i64(mesh->size, n));
}

enum { MOST_ASKED = 128 }; /* probes in a mesh */

/* The most that one of n probes receives; of_source: the bytes that a process of the source sends on the average. */
transfer_load load_directly(const transfer *t, int n);
transfer_load load_of_route(const transfer *t, const route *r, int n);

/* Processes that hold elements of the tensor, masks aside; 1 for an empty tensor. */
int64_t processes_with_some(const trama_mesh *mesh, const trama_layout *layout, const box *whole);

/* two_hops.c: a route with fewer messages, where a process would send many small ones directly. It costs at most twice
 * the bytes; with sums and larger messages 1/64 more, where pieces do not come out even; within a hop none. */
bool find_two_hops(const transfer *t, reshard_part within, route *found);

/* sliced_sum.c: a route on which each process of the source sums a slice (a reduce-scatter) and the targets take the
 * elements that they lack from these. It costs at most 16/17 of the direct change, where each additional message of a
 * process counts 64 bytes; and a process of the source sends no more than a process receives or sends directly. */
bool find_sliced_sum(const transfer *t, route *found);

#endif
