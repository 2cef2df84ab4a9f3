/* SPDX-License-Identifier: Apache-2.0 */
/* Places of one rank: the cores that it takes of a topology, by NUMA domains. Arithmetic over hwloc; it knows neither
 * MPI nor StarPU, so it is tested on described machines. */
#ifndef PLACE_H
#define PLACE_H

#include <hwloc.h>

#include "base.h"

/* The claim of a rank: the PUs that it may use, its part of them, its limits. */
typedef struct place_claim {
    hwloc_const_cpuset_t allowed;
    int sharers, index; /* ranks with this set of PUs, >= 1; the number of this rank among them, in [0, sharers) */
    double quota;       /* CPUs' worth of time for all these ranks; 0: no limit */
    int workers;        /* the user's number; 0: one for each core */
} place_claim;

/* The CPU workers of one NUMA domain. */
typedef struct place_cores {
    int package, domain; /* logical indices in the topology; 0 where it has none */
    int n;               /* workers */
    int *pu;             /* [n] logical index of each worker's PU; PUs repeat where there are more workers than cores */
} place_cores;

typedef struct place_list {
    int n;
    place_cores *at; /* [n], by domain */
    int cores;       /* cores of this rank, >= 1, shared ones included */
    int workers;     /* of all places */
    int *core;       /* [cores] a PU of each; NULL: not known */
    int n_spare;     /* cores of this rank that no worker takes */
    int *spare;      /* [n_spare] a PU of each, in core */
    bool shared; /* a core is shared with another rank, or has several workers, or the quota is below a core's time each
                  */
    bool
        even; /* shared, and every core by equally many ranks of one worker each: bound workers get equal parts of it */
} place_list;

/* Divides the cores with an allowed PU, in topology order, evenly and in runs among the sharers; with more sharers than
 * cores, neighbours share one. A rank takes the first `workers` of its cores, and goes round where it has fewer. Always
 * at least one worker. E_SYSTEM where no PU is allowed. */
trama_status place_find(hwloc_topology_t topology, const place_claim *claim, place_list *places);
void place_free(place_list *places);

/* Sets `set` to the PUs of `allowed` that belong to cores of the rank. */
void place_cpuset(hwloc_topology_t topology, const place_list *places, hwloc_const_cpuset_t allowed,
                  hwloc_cpuset_t set);

/* Sharer `index` gets [*first, *first + returned) of n things, at least one; neighbours share one where n < sharers. */
int share_of(int n, int sharers, int index, int *first);

#endif
