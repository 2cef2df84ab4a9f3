/* SPDX-License-Identifier: Apache-2.0 */
/* Which place each process runs on. */
#ifndef MAP_H
#define MAP_H

#include "machine.h"
#include "mesh.h"

/* Process MAP_RANK + r stands for rank r itself: what is read goes there. Ids of meshes are below. */
enum { MAP_RANK = 1 << 24 };

/* Process id -> place of the machine table. */
typedef struct process_map {
    int n;          /* ids 0 .. n-1 */
    bool apart;     /* no two of them share a place */
    int *place;     /* [n] */
    int n_ranks;
    int *of_rank;   /* [n_ranks] the first place of each */
} process_map;

/* By order: n processes fill the places in blocks; where there are fewer processes than places, process i is on place i.
 * order NULL, or a permutation of the processes: process i takes the place of process order[i]. */
process_map *map_by_order(int n, const int *order, const machine *m);
void map_destroy(process_map **map);

/* The place of a process; ids beyond n wrap around. */
int map_place(const process_map *map, int id);

/* Whether each process of the mesh has a place of its own. */
bool map_is_apart(const process_map *map, const trama_mesh *mesh);

#endif
