/* SPDX-License-Identifier: Apache-2.0 */
/* The communicator: uses the program's MPI, starts MPI, or works without; its collective calls wait under a watchdog.
 * comm.c and comm_exchange.c alone call MPI; message.c, tile.c, rest.c and driver.c call StarPU-MPI. */
#ifndef COMM_H
#define COMM_H

#include "base.h"

#if TRAMA_HAVE_MPI
#include <mpi.h>

/* Of its own messages; StarPU-MPI uses 42 to 44. */
enum { CLOCK_TAG = 7001, LEAVE_TAG = 7002, GATHER_TAG = 7003, SWAP_TAG = 7004 };

/* Whether MPI is finalised. */
static inline bool comm_has_ended(void)
{
    int finalized = 0;
    return MPI_Finalized(&finalized) || finalized;
}
#endif

typedef struct comm {
    int rank, ranks;
    bool started;    /* Trama started MPI */
    const char *how; /* for descriptions: "MPI started by ...", or that there is none */
#if TRAMA_HAVE_MPI
    MPI_Comm handle; /* a duplicate; MPI_COMM_NULL where ranks is 1 */
#endif
} comm;

/* communicator: address of an MPI_Comm or NULL (see trama_config). E_SYSTEM, E_ARGUMENT. */
trama_status comm_open(const void *communicator, comm *c);
void comm_close(comm *c);
bool comm_is_open(const comm *c); /* one rank, or the ranks can exchange */

/* Makes MPI_Finalize call end(arg) first, while MPI still works, if it is called before comm_close. */
void comm_before_finalize(comm *c, void (*end)(void *arg), void *arg);
bool comm_may_wait(void); /* whether comm_open may wait for other ranks */

/* Ends MPI where comm_open started it, unless a communicator is open: ranks that end in the middle of a run would wait
 * for each other. */
void comm_end(void);

/* Whether all ranks call it within `seconds` of each other, all of them ready. False where MPI is finalised. */
bool comm_all_leave(comm *c, bool ready, int seconds);

/* The address of an MPI_Comm, for comm_open, from a Fortran communicator; the thread's next call changes it. */
const void *comm_from_fortran(int handle);

/* late is called each `seconds` that a collective call waits, with the seconds so far. */
typedef struct comm_patience {
    int seconds;
    void (*late)(void *data, int waited);
    void *data;
} comm_patience;

/* All-gather: mine [bytes], all [ranks][bytes]. bytes is below 2 GiB; bytes * ranks may exceed it. E_ORDER where the
 * communicator is not open. */
trama_status comm_gather(comm *c, const void *mine, size_t bytes, void *all, comm_patience patience);

/* Swaps bytes with another rank, which calls it with this rank and as many bytes, below 2 GiB. Errors: those of
 * comm_gather. */
trama_status comm_swap(comm *c, int rank, const void *mine, void *theirs, size_t bytes, comm_patience patience);

/* Whether MPI yields the core at each call that makes no progress. */
bool comm_yields(void);

/* Whether it has all ranks of MPI_COMM_WORLD in the same order; true without MPI. */
bool comm_is_world(const comm *c);

/* Collective. Nanoseconds by which this rank's clock is ahead of rank 0's; shared: the two have one clock, 0. The error
 * is at most half the shortest of 100 round trips. */
int64_t comm_clock_ahead(comm *c, bool shared);

void comm_library(text *out); /* "Open MPI v4.1.4", or "no MPI" */

#endif
