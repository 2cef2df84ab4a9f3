/* SPDX-License-Identifier: Apache-2.0 */
/* The map of processes to places. */
#ifndef MAP_H
#define MAP_H

#include "machine.h"
#include "mesh.h"

/* Process MAP_RANK + r stands for rank r as a target of reads. Ids of meshes are below MAP_RANK. */
enum { MAP_RANK = 1 << 24 };

struct process_traffic; /* map_traffic.h */

/* Process id -> place of the machine table. */
typedef struct process_map {
    int n;         /* ids 0 .. n-1 */
    bool distinct; /* no two processes share a place */
    int *place;    /* [n] */
    int n_ranks;
    int *of_rank; /* [n_ranks] the first place of each */
} process_map;

/* Maps by order: n processes fill the places in blocks; with at most as many processes as places, process i is on place
 * i. order: NULL, or a permutation, by which process i takes the place of process order[i]. */
process_map *map_by_order(int n, const int *order, const machine *m);

/* Maps by traffic: reduces the sum over pairs of processes of bytes times machine_distance. Each place gets n /
 * n_places processes, rounded down or up. Greedy construction ("greedyall": Glantz, Meyerhenke, Noe 2015, Algorithms
 * for mapping parallel processes onto grid and torus architectures), then pairwise exchange until no exchange of two
 * processes and no move to a free place helps (Heider 1972; Brandfass, Alrutz, Gerhold 2013), also from the map by
 * order; the cheapest result is taken, and map_by_order's if no other is cheaper. Equal arguments give equal maps (all
 * in integers). Ids of the traffic from n on do not count.
 *
 * O(n_places^2 + pairs k) for the construction, where k is the number of places below the maximum distance from a place
 * (those of its node), and O(n^2 + n n_places) for a round of exchanges. Memory: n n_places numbers; above 2^25 the map
 * is by order. */
process_map *map_by_traffic(const struct process_traffic *traffic, int n, const machine *m);

/* The sum over the pairs of bytes times machine_distance. Ids from n on wrap around, as in map_place. */
double map_cost(const process_map *map, const struct process_traffic *traffic, const machine *m);

void map_destroy(process_map **map);

/* The place of a process; ids from n on wrap around. */
int map_place(const process_map *map, int id);

/* Whether no two processes of the mesh share a place. */
bool map_is_distinct(const process_map *map, const trama_mesh *mesh);

#endif
