/* SPDX-License-Identifier: Apache-2.0 */
/* Traffic: the bytes that pairs of processes exchange. Plain data about process ids; it knows no places. */
#ifndef MAP_TRAFFIC_H
#define MAP_TRAFFIC_H

#include "complete.h"

/* The bytes between two processes, summed over both directions. */
typedef struct traffic_pair {
    int one, other; /* process ids, one < other */
    int64_t bytes;  /* > 0 */
} traffic_pair;

/* Symmetric and sparse: a pair without an entry has no traffic; with several entries their sum counts. */
typedef struct process_traffic {
    int n;      /* ids 0 .. n-1 */
    int packed; /* pairs before this one were merged; for traffic_add */
    ARRAY(traffic_pair) pairs;
} process_traffic;

/* No traffic among n processes. The caller destroys it. */
process_traffic *traffic_new(int n);
void traffic_destroy(process_traffic **traffic);

#define TRAFFIC_MOST (INT64_MAX / 4) /* limit of the bytes of a pair, at which sums saturate */

/* Adds bytes between two processes, in either order. Ignores a process's bytes to the same process, bytes <= 0, and ids
 * outside of 0 .. n-1 (ranks that read: MAP_RANK). */
void traffic_add(process_traffic *traffic, int one, int other, int64_t bytes);

/* Makes each pair one entry, sorted by (one, other). O(n + pairs log(pairs of a process)). */
void traffic_pack(process_traffic *traffic);

/* The sum over all pairs. */
int64_t traffic_total(const process_traffic *traffic);

/* The traffic of the changes of layout of a completed program among the processes 0 .. n-1, if every node runs once. A
 * dim TRAMA_ANY has the extent `nominal`. needed [node id]: the nodes that run; NULL: all. The caller destroys the
 * result.
 *
 * It estimates the plan's bytes before a map exists. The nearest holder is unknown, so a process receives lacking
 * elements from the holder on its own line of the mesh. Where the plan exchanges slices (all-gather, reduce-scatter),
 * all pairs of a group exchange equal bytes, as in the table of Thakur, Rabenseifner and Gropp 2005. Masks count only
 * in changes without a sum.
 *
 * Equal changes are counted once (c different ones). Changes within groups of g processes are added per mesh and set of
 * axes before they become pairs. With p processes the cost is O(nodes c + c p 64 + p g) on one mesh, milliseconds for
 * 1,024 processes, and O(p_from p_to) for each different change between two meshes. */
process_traffic *traffic_of_program(const trama_program *program, const layouts *l, int64_t nominal, int n,
                                    const bool *needed);

#endif
