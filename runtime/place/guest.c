/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps and restores the host's modes: its thread's cores, signals and floating-point mode, the stacks of new threads;
 * its handlers of faults. */
#define _GNU_SOURCE /* pthread_getattr_default_np */
#include "guest.h"

#include <pthread.h>
#include <stdbool.h>

static void bind_as_allowed(guest_mode *hosts, hwloc_const_bitmap_t allowed)
{
    hosts->cores = hwloc_bitmap_alloc();
    if (!hwloc_get_cpubind(hosts->topology, hosts->cores, HWLOC_CPUBIND_THREAD) &&
        !hwloc_set_cpubind(hosts->topology, allowed, HWLOC_CPUBIND_THREAD))
        return;
    hwloc_bitmap_free(hosts->cores);
    hosts->cores = NULL;
}

/* Faults stay unblocked, since a thread gets its own; so do the timers of profilers, which sample every thread. */
static void block_signals(sigset_t *before)
{
    static const int taken[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT, SIGPROF, SIGVTALRM};
    sigset_t blocked;
    sigfillset(&blocked);
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++)
        sigdelset(&blocked, taken[i]);
    pthread_sigmask(SIG_BLOCK, &blocked, before);
}

/* Sets the size of new threads' stacks where it is below `least`, and returns the size before; 0: it stays. */
static size_t grow_stacks(size_t least)
{
    pthread_attr_t attributes;
    size_t bytes = 0;
    if (pthread_getattr_default_np(&attributes))
        return 0;
    if (pthread_attr_getstacksize(&attributes, &bytes) || bytes >= least ||
        pthread_attr_setstacksize(&attributes, least) || pthread_setattr_default_np(&attributes))
        bytes = 0;
    pthread_attr_destroy(&attributes);
    return bytes;
}

static void put_stacks_back(size_t bytes)
{
    pthread_attr_t attributes;
    if (!bytes || pthread_getattr_default_np(&attributes))
        return;
    if (!pthread_attr_setstacksize(&attributes, bytes))
        pthread_setattr_default_np(&attributes);
    pthread_attr_destroy(&attributes);
}

void guest_enter(guest_mode *hosts, hwloc_topology_t topology, hwloc_const_bitmap_t allowed)
{
    hosts->topology = topology;
    bind_as_allowed(hosts, allowed);
    block_signals(&hosts->blocked);
    fegetenv(&hosts->floating);
    fesetenv(FE_DFL_ENV);
    hosts->stack = grow_stacks(GUEST_STACK);
}

void guest_leave(guest_mode *hosts)
{
    put_stacks_back(hosts->stack);
    fesetenv(&hosts->floating);
    pthread_sigmask(SIG_SETMASK, &hosts->blocked, NULL);
    if (hosts->cores)
        hwloc_set_cpubind(hosts->topology, hosts->cores, HWLOC_CPUBIND_THREAD);
    hwloc_bitmap_free(hosts->cores);
}

static void forget(guest_binding *binding)
{
    hwloc_bitmap_free(binding->hosts);
    hwloc_bitmap_free(binding->bound);
    *binding = (guest_binding){0};
}

void guest_bind(guest_binding *binding, hwloc_topology_t topology, hwloc_const_bitmap_t cores)
{
    *binding = (guest_binding){topology, pthread_self(), hwloc_bitmap_alloc(), hwloc_bitmap_alloc()};
    bool known = !hwloc_get_cpubind(topology, binding->hosts, HWLOC_CPUBIND_THREAD);
    hwloc_bitmap_and(binding->bound, binding->hosts, cores);
    if (!known || hwloc_bitmap_iszero(binding->bound) || hwloc_bitmap_isequal(binding->bound, binding->hosts) ||
        hwloc_set_cpubind(topology, binding->bound, HWLOC_CPUBIND_THREAD))
        forget(binding);
}

void guest_unbind(guest_binding *binding)
{
    if (binding->bound && pthread_equal(binding->thread, pthread_self())) {
        hwloc_bitmap_t now = hwloc_bitmap_alloc();
        if (!hwloc_get_cpubind(binding->topology, now, HWLOC_CPUBIND_THREAD) &&
            hwloc_bitmap_isequal(now, binding->bound))
            hwloc_set_cpubind(binding->topology, binding->hosts, HWLOC_CPUBIND_THREAD);
        hwloc_bitmap_free(now);
    }
    forget(binding);
}

static const int faults[GUEST_FAULTS] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};

void guest_keep_handlers(guest_handlers *hosts)
{
    for (int i = 0; i < GUEST_FAULTS; i++)
        sigaction(faults[i], NULL, &hosts->at[i]);
}

void guest_put_handlers_back(const guest_handlers *hosts)
{
    struct sigaction now;
    for (int i = 0; i < GUEST_FAULTS; i++)
        if (!sigaction(faults[i], NULL, &now) && now.sa_handler != hosts->at[i].sa_handler)
            sigaction(faults[i], &hosts->at[i], NULL);
}
