/* SPDX-License-Identifier: Apache-2.0 */
/* Which place each process runs on. */
#ifndef MAP_H
#define MAP_H

#include "machine.h"
#include "mesh.h"

/* Process MAP_RANK + r stands for rank r itself: what is read goes there. Ids of meshes are below. */
enum { MAP_RANK = 1 << 24 };

struct process_traffic; /* map_traffic.h */

/* Process id -> place of the machine table. */
typedef struct process_map {
    int n;         /* ids 0 .. n-1 */
    bool distinct; /* no two of them share a place */
    int *place;    /* [n] */
    int n_ranks;
    int *of_rank; /* [n_ranks] the first place of each */
} process_map;

/* By order: n processes fill the places in blocks; where there are fewer processes than places, process i is on place
 * i. order NULL, or a permutation of the processes: process i takes the place of process order[i]. */
process_map *map_by_order(int n, const int *order, const machine *m);

/* By traffic: places such that the sum over pairs of processes of bytes times machine_distance is small, and as even as
 * by order: each place gets n / n_places processes, rounded down or up. Greedy construction ("greedyall": Glantz,
 * Meyerhenke, Noe 2015, Algorithms for mapping parallel processes onto grid and torus architectures), then
 * pairwise exchange until no exchange of two processes and no move to a free place helps (Heider 1972; Brandfass,
 * Alrutz, Gerhold 2013), also from the map by order; the cheapest is taken. Never dearer than map_by_order, and that
 * map itself where nothing is cheaper. Equal arguments give equal maps (all in integers). Ids of the traffic beyond n
 * do not count.
 *
 * O(n_places^2 + pairs k) for the construction, where k places are nearer to a place than the farthest one is (those of
 * its node), and O(n^2 + n n_places) a round of exchanges. Memory: n n_places numbers; where that is over 2^25, the map
 * is by order. */
process_map *map_by_traffic(const struct process_traffic *traffic, int n, const machine *m);

/* Sum over the pairs of bytes times machine_distance. Ids beyond the map's wrap around, as in map_place. */
double map_cost(const process_map *map, const struct process_traffic *traffic, const machine *m);

void map_destroy(process_map **map);

/* The place of a process; ids beyond n wrap around. */
int map_place(const process_map *map, int id);

/* Whether each process of the mesh has a place of its own. */
bool map_is_distinct(const process_map *map, const trama_mesh *mesh);

#endif
