/* SPDX-License-Identifier: Apache-2.0 */
/* The communicator: MPI found, started or done without; collective calls that never block blindly. The only file with
 * message.c and driver.c that calls MPI. */
#ifndef COMM_H
#define COMM_H

#include "base.h"

#if TRAMA_HAVE_MPI
#include <mpi.h>
#endif

typedef struct comm {
    int rank, ranks;
    const char *how; /* for people: who started MPI, or that there is none */
#if TRAMA_HAVE_MPI
    MPI_Comm handle; /* a duplicate; MPI_COMM_NULL where ranks is 1 */
#endif
} comm;

/* communicator: address of an MPI_Comm or NULL (see trama_config). E_SYSTEM, E_ARGUMENT. */
trama_status comm_open(const void *communicator, comm *c);
void comm_close(comm *c);
bool comm_is_open(const comm *c); /* where there are several ranks, they can exchange */

/* Has MPI_Finalize call end(arg) first, if it is called before comm_close: MPI is still there then. */
void comm_before_finalize(comm *c, void (*end)(void *arg), void *arg);
bool comm_may_wait(void); /* comm_open may have to wait for other ranks */

/* Ends MPI where comm_open started it, unless a communicator is still open: ranks that end in the middle of a run would
 * wait for each other. */
void comm_end(void);

/* Whether all ranks call it within so many seconds of each other, all of them ready. False where MPI is finalised. */
bool comm_all_leave(comm *c, bool ready, int seconds);

/* The address of an MPI_Comm, for comm_open, of a communicator as Fortran has it; the thread's next call changes it. */
const void *comm_from_fortran(int handle);

/* Called each `seconds` that a collective call has waited, with how long. */
typedef struct comm_patience {
    int seconds;
    void (*late)(void *data, int waited);
    void *data;
} comm_patience;

/* all [ranks][bytes]; MPI's allgather. E_ORDER where it is not open. bytes * ranks may exceed 2 GiB; bytes may not. */
trama_status comm_gather(comm *c, const void *mine, size_t bytes, void *all, comm_patience patience);

/* Whether MPI gives the core up whenever it is asked and has no news. */
bool comm_yields(void);

/* Whether it is all of MPI_COMM_WORLD in its order; so it is without MPI. */
bool comm_is_world(const comm *c);

/* Collective. How far this rank's clock is ahead of rank 0's, in ns; 0 where shared says that the two are one. The
 * error is at most half the shortest of some round trips. */
int64_t comm_clock_ahead(comm *c, bool shared);

void comm_library(text *out); /* "Open MPI v4.1.4", or "no MPI" */

#endif
