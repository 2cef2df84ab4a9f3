/* SPDX-License-Identifier: Apache-2.0 */
/* Exchanges of a few bytes among ranks: before a run, at the end, and of clocks. They wait without occupying a core. */
#include <string.h>

#include "comm.h"

#if TRAMA_HAVE_MPI
#include <limits.h>
#include <sched.h>
#include <time.h>

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Sleeps for a 16th of the time that was waited, so that long waits leave the core to workers and other ranks: a poll
 * takes it 10 us. */
static void sleep_by(double waited)
{
    const double least = 2e-5, most = 1e-3, wanted = waited / 16;
    const double seconds = wanted < least ? least : wanted > most ? most : wanted;
    nanosleep(&(struct timespec){.tv_nsec = (long)(1e9 * seconds)}, NULL);
}

/* Waits without occupying a core, which workers of this rank or other ranks may need. */
static int wait_for(MPI_Request both[2], comm_patience patience, double start, int *reports)
{
    int done = 0, error;
    for (int turn = 0; !(error = MPI_Testall(2, both, &done, MPI_STATUSES_IGNORE)) && !done; turn++) {
        if (turn < 200) {
            sched_yield();
            continue;
        }
        const double waited = now() - start;
        sleep_by(waited);
        if (waited > (double)(*reports + 1) * patience.seconds)
            patience.late(patience.data, ++*reports * patience.seconds);
    }
    return error;
}

/* Bruck's all-gather: before a round, a rank holds the parts of `held` ranks, from its own on, and receives those of as
 * many ranks behind them. MPI_Iallgather does not serve: in Open MPI 4.1.4, while StarPU-MPI's thread called MPI too,
 * three of four ranks were seen to wait in it for ever. */
static int gather_in_rounds(comm *c, char *parts, size_t bytes, comm_patience patience)
{
    const double start = now();
    int reports = 0;
    for (int held = 1; held < c->ranks; held *= 2) {
        MPI_Request both[2];
        const int n = 2 * held <= c->ranks ? held : c->ranks - held, count = (int)(bytes * (size_t)n);
        const int from = (c->rank + held) % c->ranks, to = (c->rank + c->ranks - held) % c->ranks;
        int error = MPI_Irecv(parts + bytes * (size_t)held, count, MPI_BYTE, from, GATHER_TAG, c->handle, &both[0]);
        if (error || (error = MPI_Isend(parts, count, MPI_BYTE, to, GATHER_TAG, c->handle, &both[1])) ||
            (error = wait_for(both, patience, start, &reports)))
            return error;
    }
    return MPI_SUCCESS;
}

static void reverse(char *bytes, size_t n)
{
    for (size_t i = 0; i < n / 2; i++) {
        const char byte = bytes[i];
        bytes[i] = bytes[n - 1 - i];
        bytes[n - 1 - i] = byte;
    }
}

trama_status comm_gather(comm *c, const void *mine, size_t bytes, void *all, comm_patience patience)
{
    if (c->ranks == 1) {
        memcpy(all, mine, bytes);
        return TRAMA_OK;
    }
    if (!comm_is_open(c))
        return trama_fail(NOWHERE, TRAMA_E_ORDER, "MPI has been finalised");
    if (bytes > INT_MAX / (size_t)c->ranks)
        return trama_fail(NOWHERE, TRAMA_E_UNSUPPORTED, "a collective exchange of %zu bytes a rank", bytes);
    memcpy(all, mine, bytes);
    if (gather_in_rounds(c, all, bytes, patience))
        return trama_fail(NOWHERE, TRAMA_E_SYSTEM, "an exchange between all ranks failed in MPI");
    const size_t total = bytes * (size_t)c->ranks, own = bytes * (size_t)c->rank;
    reverse(all, total); /* the parts go round, so that rank 0's is the first */
    reverse(all, own);
    reverse((char *)all + own, total - own);
    return TRAMA_OK;
}

trama_status comm_swap(comm *c, int rank, const void *mine, void *theirs, size_t bytes, comm_patience patience)
{
    MPI_Request both[2];
    int reports = 0;
    if (!comm_is_open(c))
        return trama_fail(NOWHERE, TRAMA_E_ORDER, "MPI has been finalised");
    int error = MPI_Isend(mine, (int)bytes, MPI_BYTE, rank, SWAP_TAG, c->handle, &both[0]);
    both[1] = MPI_REQUEST_NULL;
    if (!error)
        error = MPI_Irecv(theirs, (int)bytes, MPI_BYTE, rank, SWAP_TAG, c->handle, &both[1]);
    if (error || wait_for(both, patience, now(), &reports))
        return trama_fail(NOWHERE, TRAMA_E_SYSTEM, "an exchange with rank %d failed in MPI", rank);
    return TRAMA_OK;
}

/* One round of the barrier below: sends a flag to one rank and receives one from another. The flags are static, since a
 * request that does not complete in time stays in flight. */
static bool pass_flag(comm *c, int distance, bool *flag, double until)
{
    static char flags[32][2];
    static int round;
    char *mine = flags[round % 32];
    MPI_Request both[2];
    int arrived = 0;
    round++;
    mine[0] = *flag;
    MPI_Irecv(&mine[1], 1, MPI_BYTE, (c->rank + c->ranks - distance) % c->ranks, LEAVE_TAG, c->handle, &both[0]);
    MPI_Isend(&mine[0], 1, MPI_BYTE, (c->rank + distance) % c->ranks, LEAVE_TAG, c->handle, &both[1]);
    while (!MPI_Testall(2, both, &arrived, MPI_STATUSES_IGNORE) && !arrived && now() < until)
        nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
    *flag = *flag && arrived && mine[1];
    return arrived;
}

/* A dissemination barrier: after round k each rank knows of 2^k others. MPI's own collective calls do not serve, since
 * ranks that do not leave may be in another one. */
bool comm_all_leave(comm *c, bool ready, int seconds)
{
    double until = now() + seconds;
    if (!comm_is_open(c) || c->ranks == 1)
        return ready;
    if (comm_has_ended())
        return false;
    for (int distance = 1; distance < c->ranks; distance *= 2)
        if (!pass_flag(c, distance, &ready, until))
            return false;
    return ready;
}

/* The clock that FxT uses. */
static int64_t read_clock(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC_RAW, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

enum { CLOCK_ROUNDS = 100 };

static void answer_with_clock(comm *c, int rank)
{
    for (int i = 0; i < CLOCK_ROUNDS; i++) {
        MPI_Recv(NULL, 0, MPI_BYTE, rank, CLOCK_TAG, c->handle, MPI_STATUS_IGNORE);
        int64_t mine = read_clock();
        MPI_Send(&mine, sizeof mine, MPI_BYTE, rank, CLOCK_TAG, c->handle);
    }
}

static int64_t ask_for_clock(comm *c)
{
    int64_t ahead = 0, shortest = INT64_MAX, theirs;
    for (int i = 0; i < CLOCK_ROUNDS; i++) {
        int64_t before = read_clock();
        MPI_Send(NULL, 0, MPI_BYTE, 0, CLOCK_TAG, c->handle);
        MPI_Recv(&theirs, sizeof theirs, MPI_BYTE, 0, CLOCK_TAG, c->handle, MPI_STATUS_IGNORE);
        int64_t after = read_clock();
        if (after - before < shortest) {
            shortest = after - before;
            ahead = before + shortest / 2 - theirs;
        }
    }
    return ahead;
}

int64_t comm_clock_ahead(comm *c, bool shared)
{
    int64_t ahead = 0;
    if (c->ranks == 1)
        return 0;
    char mine = shared, *all = trama_alloc((size_t)c->ranks);
    MPI_Allgather(&mine, 1, MPI_BYTE, all, 1, MPI_BYTE, c->handle);
    for (int r = 1; r < c->ranks && c->rank == 0; r++)
        if (!all[r])
            answer_with_clock(c, r);
    if (c->rank && !shared)
        ahead = ask_for_clock(c);
    free(all);
    return ahead;
}

#else

trama_status comm_gather(comm *c, const void *mine, size_t bytes, void *all, comm_patience patience)
{
    (void)c, (void)patience;
    memcpy(all, mine, bytes);
    return TRAMA_OK;
}

trama_status comm_swap(comm *c, int rank, const void *mine, void *theirs, size_t bytes, comm_patience patience)
{
    (void)c, (void)rank, (void)mine, (void)theirs, (void)bytes, (void)patience;
    return trama_fail(NOWHERE, TRAMA_E_ORDER, "there is no other rank without MPI");
}

bool comm_all_leave(comm *c, bool ready, int seconds)
{
    (void)c, (void)seconds;
    return ready;
}

int64_t comm_clock_ahead(comm *c, bool shared)
{
    (void)c, (void)shared;
    return 0;
}

#endif
