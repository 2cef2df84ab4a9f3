/* SPDX-License-Identifier: Apache-2.0 */
/* What new threads inherit of the one that makes them. The threads of StarPU and StarPU-MPI get a mode of their own,
 * whatever the host's thread has, and that one gets its own back. */
#ifndef GUEST_H
#define GUEST_H

#include <fenv.h>
#include <hwloc.h>
#include <signal.h>

typedef struct guest_mode {
    hwloc_topology_t topology;
    hwloc_bitmap_t cores; /* NULL where they cannot be told */
    sigset_t blocked;
    fenv_t floating;
} guest_mode;

/* Until guest_leave the calling thread may run on all of `allowed`, takes no signals but faults and profilers' timers,
 * and computes in C's default floating-point mode. */
void guest_enter(guest_mode *hosts, hwloc_topology_t topology, hwloc_const_bitmap_t allowed);
void guest_leave(guest_mode *hosts);

/* Handlers of faults, which MPI's start takes from the host. */
enum { GUEST_FAULTS = 5 };
typedef struct guest_handlers {
    struct sigaction at[GUEST_FAULTS];
} guest_handlers;
void guest_keep_handlers(guest_handlers *hosts);
void guest_put_handlers_back(const guest_handlers *hosts);

#endif
