/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps and restores the host's modes: its thread's cores, signals and floating-point mode; its handlers of faults. */
#include "guest.h"

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

void guest_enter(guest_mode *hosts, hwloc_topology_t topology, hwloc_const_bitmap_t allowed)
{
    hosts->topology = topology;
    bind_as_allowed(hosts, allowed);
    block_signals(&hosts->blocked);
    fegetenv(&hosts->floating);
    fesetenv(FE_DFL_ENV);
}

void guest_leave(guest_mode *hosts)
{
    fesetenv(&hosts->floating);
    pthread_sigmask(SIG_SETMASK, &hosts->blocked, NULL);
    if (hosts->cores)
        hwloc_set_cpubind(hosts->topology, hosts->cores, HWLOC_CPUBIND_THREAD);
    hwloc_bitmap_free(hosts->cores);
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
