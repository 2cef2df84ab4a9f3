/* SPDX-License-Identifier: Apache-2.0 */
/* Places of one rank: which cores of a topology it takes, and how they fall into NUMA domains. Arithmetic over hwloc;
 * it knows neither MPI nor StarPU, so it is tested on described machines. */
#ifndef PLACE_H
#define PLACE_H

#include <hwloc.h>

#include "base.h"

/* What a rank brings: the PUs it may use, its part of them, its limits. */
typedef struct place_claim {
    hwloc_const_cpuset_t allowed;
    int sharers, index; /* ranks with this very set, >= 1, and which one of them, in [0, sharers) */
    double quota;       /* CPUs' worth of time that those ranks may use together; 0: no limit */
    int workers;        /* asked for by the user; 0: as many as its cores */
} place_claim;

/* The CPU workers of one NUMA domain. */
typedef struct place_cores {
    int package, domain; /* logical indices in the topology; 0 where it has none */
    int n;               /* workers */
    int *pu; /* [n] logical index of the PU that each takes; repeats where there are more workers than cores */
} place_cores;

typedef struct place_list {
    int n;
    place_cores *at; /* [n], by domain */
    int cores;       /* cores of this rank, >= 1; a shared one counts */
    int workers;     /* of all places */
    int n_spare;     /* cores of this rank that no worker takes */
    int *spare;      /* [n_spare] a PU of each */
    bool shared;     /* a core is also another rank's, or has several workers, or the quota does not cover the cores */
    bool even; /* shared, and every core by as many ranks with one worker each: bound they have equal parts of it */
} place_list;

/* The cores that hold an allowed PU, in topology order, are divided evenly and in runs among the sharers; with more
 * sharers than cores, neighbours share one. Of its cores a rank takes the first `workers`, or goes round. Always at
 * least one worker. E_SYSTEM where no PU is allowed. */
trama_status place_find(hwloc_topology_t topology, const place_claim *claim, place_list *places);
void place_free(place_list *places);

/* Of n things sharer `index` gets [*first, *first + returned), at least one: neighbours share where there are fewer. */
int share_of(int n, int sharers, int index, int *first);

#endif
