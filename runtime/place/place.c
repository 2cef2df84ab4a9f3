/* SPDX-License-Identifier: Apache-2.0 */
/* Places of one rank: divides cores into shares, and a share into NUMA domains. */
#include "place.h"

#include <string.h>

/* The first allowed PU of each core, in topology order, and their number; every allowed PU where the topology has no
 * cores. */
static int usable_pus(hwloc_topology_t topology, hwloc_const_cpuset_t allowed, int *pu)
{
    int n = 0;
    hwloc_obj_t last_core = NULL, at = NULL;
    while ((at = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_PU, at))) {
        hwloc_obj_t core = hwloc_get_ancestor_obj_by_type(topology, HWLOC_OBJ_CORE, at);
        if (!hwloc_bitmap_isset(allowed, at->os_index) || (core && core == last_core))
            continue;
        last_core = core;
        pu[n++] = (int)at->logical_index;
    }
    return n;
}

static int domain_of(hwloc_topology_t topology, int pu)
{
    hwloc_obj_t obj = hwloc_get_obj_by_type(topology, HWLOC_OBJ_PU, (unsigned)pu), node = NULL;
    while ((node = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_NUMANODE, node)))
        if (hwloc_bitmap_isset(node->cpuset, obj->os_index))
            return (int)node->logical_index;
    return 0;
}

static int package_of(hwloc_topology_t topology, int pu)
{
    hwloc_obj_t obj = hwloc_get_obj_by_type(topology, HWLOC_OBJ_PU, (unsigned)pu);
    hwloc_obj_t package = hwloc_get_ancestor_obj_by_type(topology, HWLOC_OBJ_PACKAGE, obj);
    return package ? (int)package->logical_index : 0;
}

static void add_worker(hwloc_topology_t topology, place_list *places, int pu)
{
    int domain = domain_of(topology, pu), i = 0;
    while (i < places->n && places->at[i].domain != domain)
        i++;
    if (i == places->n) {
        places->at = trama_resize(places->at, (size_t)++places->n * sizeof *places->at);
        places->at[i] = (place_cores){.package = package_of(topology, pu), .domain = domain};
    }
    place_cores *place = &places->at[i];
    place->pu = trama_resize(place->pu, (size_t)(place->n + 1) * sizeof *place->pu);
    place->pu[place->n++] = pu;
    places->workers++;
}

trama_status place_find(hwloc_topology_t topology, const place_claim *claim, place_list *places)
{
    int n_pus = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_PU), first;
    int *pu = trama_alloc((size_t)(n_pus > 0 ? n_pus : 1) * sizeof *pu);
    int n = usable_pus(topology, claim->allowed, pu);
    if (n == 0) {
        free(pu);
        return trama_fail(NOWHERE, TRAMA_E_SYSTEM, "this process may use none of the machine's %d processors", n_pus);
    }
    *places = (place_list){.shared = claim->sharers > n};
    places->cores = share_of(n, claim->sharers, claim->index, &first);
    if (claim->quota > 0 && claim->quota / claim->sharers < places->cores) {
        int most = (int)(claim->quota / claim->sharers);
        places->shared |= claim->quota / claim->sharers < 0.75; /* less than a core's time each */
        places->cores = most > 1 ? most : 1;
    }
    int workers = claim->workers ? claim->workers : places->cores;
    places->even = claim->sharers > n && claim->sharers % n == 0 && claim->quota <= 0 && workers == 1;
    places->shared |= workers > places->cores;
    places->core = trama_alloc((size_t)places->cores * sizeof *places->core);
    memcpy(places->core, pu + first, (size_t)places->cores * sizeof *places->core);
    places->n_spare = workers < places->cores ? places->cores - workers : 0;
    places->spare = places->core + places->cores - places->n_spare;
    for (int i = 0; i < workers; i++)
        add_worker(topology, places, pu[first + i % places->cores]);
    free(pu);
    return TRAMA_OK;
}

void place_free(place_list *places)
{
    for (int i = 0; i < places->n; i++)
        free(places->at[i].pu);
    free(places->at);
    free(places->core);
    *places = (place_list){0};
}

void place_cpuset(hwloc_topology_t topology, const place_list *places, hwloc_const_cpuset_t allowed, hwloc_cpuset_t set)
{
    hwloc_bitmap_zero(set);
    for (int i = 0; places->core && i < places->cores; i++) {
        hwloc_obj_t pu = hwloc_get_obj_by_type(topology, HWLOC_OBJ_PU, (unsigned)places->core[i]);
        hwloc_obj_t core = hwloc_get_ancestor_obj_by_type(topology, HWLOC_OBJ_CORE, pu);
        hwloc_bitmap_or(set, set, (core ? core : pu)->cpuset);
    }
    hwloc_bitmap_and(set, set, allowed);
}

int share_of(int n, int sharers, int index, int *first)
{
    if (sharers > n) {
        *first = (int)((int64_t)index * n / sharers);
        return 1;
    }
    *first = index * (n / sharers) + (index < n % sharers ? index : n % sharers);
    return n / sharers + (index < n % sharers);
}
