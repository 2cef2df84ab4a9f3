/* SPDX-License-Identifier: Apache-2.0 */
/* Modes that a new thread inherits from its maker. The threads of StarPU and StarPU-MPI get Trama's modes, and the
 * host's thread gets its own back afterwards. */
#ifndef GUEST_H
#define GUEST_H

#include <fenv.h>
#include <hwloc.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>

typedef struct guest_mode {
    hwloc_topology_t topology;
    hwloc_bitmap_t cores; /* NULL where they are not known */
    sigset_t blocked;
    fenv_t floating;
    size_t stack; /* bytes of a thread's stack; 0: was not changed */
} guest_mode;

/* Until guest_leave the calling thread may run on all of `allowed`, blocks all signals but faults and profilers'
 * timers, and computes in C's default floating-point mode. Threads that are made until then have stacks of GUEST_STACK
 * bytes or more: StarPU's workers need more than 256 KB, and get as much as ulimit -s says. */
enum { GUEST_STACK = 2 << 20 };
void guest_enter(guest_mode *hosts, hwloc_topology_t topology, hwloc_const_bitmap_t allowed);
void guest_leave(guest_mode *hosts);

/* The cores of a thread between guest_bind and guest_unbind. All 0: none is bound. */
typedef struct guest_binding {
    hwloc_topology_t topology;
    pthread_t thread;
    hwloc_bitmap_t hosts, bound; /* before, and since; NULL: the thread was left alone */
} guest_binding;

/* Keeps the calling thread on those of its processors that are in `cores`; leaves it alone where none or all are. */
void guest_bind(guest_binding *binding, hwloc_topology_t topology, hwloc_const_bitmap_t cores);
/* Gives the thread its processors back: in that thread, and unless the program has bound it anew. */
void guest_unbind(guest_binding *binding);

/* The host's handlers of faults, which the start of MPI replaces. */
enum { GUEST_FAULTS = 5 };
typedef struct guest_handlers {
    struct sigaction at[GUEST_FAULTS];
} guest_handlers;
void guest_keep_handlers(guest_handlers *hosts);
void guest_put_handlers_back(const guest_handlers *hosts);

#endif
