/* SPDX-License-Identifier: Apache-2.0 */
/* Traffic: the bytes that pairs of processes exchange. Plain data about process ids; it knows no places. */
#ifndef MAP_TRAFFIC_H
#define MAP_TRAFFIC_H

#include "complete.h"

/* What two processes send each other, both directions together. */
typedef struct traffic_pair {
    int one, other; /* process ids, one < other */
    int64_t bytes;  /* > 0 */
} traffic_pair;

/* Symmetric and sparse: pairs that are not listed exchange nothing; one that is listed several times exchanges the
 * sum. */
typedef struct process_traffic {
    int n;      /* ids 0 .. n-1 */
    int packed; /* pairs before this one were merged; for traffic_add */
    ARRAY(traffic_pair) pairs;
} process_traffic;

/* No traffic among n processes. The caller destroys it. */
process_traffic *traffic_new(int n);
void traffic_destroy(process_traffic **traffic);

#define TRAFFIC_MOST (INT64_MAX / 4) /* bytes of a pair: sums stop there */

/* Adds bytes between two processes, in either order. What a process sends itself, no bytes, and ids that are not in
 * 0 .. n-1 (ranks that read: MAP_RANK) are left out. */
void traffic_add(process_traffic *traffic, int one, int other, int64_t bytes);

/* Makes each pair one entry, sorted by (one, other). O(n + pairs log(pairs of a process)). */
void traffic_pack(process_traffic *traffic);

/* Of all pairs. */
int64_t traffic_total(const process_traffic *traffic);

/* What the changes of layout of a completed program move, every node run once, among the processes 0 .. n-1. A dim
 * TRAMA_ANY counts as `nominal` long. needed [node id]: the nodes that run; NULL: all. The caller destroys the result.
 *
 * An estimate of the plan's bytes, made before there is a map: who is nearest is not known, so a process takes what it
 * lacks from the holder on its own line of the mesh, and where the plan exchanges slices (all-gather, reduce-scatter)
 * all pairs of the group exchange alike, as in the table of Thakur, Rabenseifner and Gropp 2005. Masks count in what
 * moves without a sum.
 *
 * With p processes, equal changes are found once (c different ones) and all changes within groups of g processes of a
 * mesh are added up before they become pairs (once per mesh and set of axes): O(nodes c + c p 64 + p g) on one mesh, so
 * a mesh of 1,024 costs milliseconds; O(p_from p_to) per different change between two meshes. */
process_traffic *traffic_of_program(const trama_program *program, const layouts *l, int64_t nominal, int n,
                                    const bool *needed);

#endif
