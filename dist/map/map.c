/* SPDX-License-Identifier: Apache-2.0 */
/* Maps of processes to places: by order, and what a map costs. */
#include "map.h"

#include "map_traffic.h"

process_map *map_by_order(int n, const int *order, const machine *m)
{
    process_map *map = trama_alloc(sizeof *map);
    map->n = n;
    map->distinct = n <= m->n_places;
    map->place = trama_alloc((size_t)n * sizeof *map->place);
    for (int i = 0; i < n; i++) {
        int64_t at = order ? order[i] : i;
        map->place[i] = (int)(n > m->n_places ? at * m->n_places / n : at);
    }
    map->n_ranks = m->n_ranks;
    map->of_rank = trama_alloc((size_t)m->n_ranks * sizeof *map->of_rank);
    for (int r = 0; r < m->n_ranks; r++)
        map->of_rank[r] = machine_first_place(m, r);
    return map;
}

void map_destroy(process_map **map)
{
    if (!*map)
        return;
    free((*map)->place);
    free((*map)->of_rank);
    free(*map);
    *map = NULL;
}

int map_place(const process_map *map, int id)
{
    return id >= MAP_RANK ? map->of_rank[(id - MAP_RANK) % map->n_ranks] : map->place[id % map->n];
}

bool map_is_distinct(const process_map *map, const trama_mesh *mesh)
{
    for (int i = 0; i < mesh->size; i++)
        if (mesh->ids[i] >= map->n)
            return false;
    return map->distinct;
}

double map_cost(const process_map *map, const process_traffic *traffic, const machine *m)
{
    double cost = 0;
    for (int i = 0; i < traffic->pairs.n; i++) {
        const traffic_pair *p = &traffic->pairs.at[i];
        cost += (double)p->bytes * machine_distance(m, map_place(map, p->one), map_place(map, p->other));
    }
    return cost;
}
