/* SPDX-License-Identifier: Apache-2.0 */
/* The communicator. Trama starts MPI only where a launcher started the program, and then ends MPI at exit. */
#include "comm.h"

#include <string.h>

#include "guest.h"

#if TRAMA_HAVE_MPI
#include <limits.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>

static bool initialised_here, yields;
static pid_t initialiser; /* the process that initialised MPI: a child of fork does not end it */

/* Open MPI that yields does so in each MPI_Test, where StarPU-MPI's thread holds its lock: a program thread that
 * submits messages waits for turns of all ranks of its core. Worker 0's idle hook yields without that lock, once for
 * all messages (rest.c). */
static const char *const yielding = "OMPI_MCA_mpi_yield_when_idle";

static int open_contexts;

static bool launched(void)
{
    static const char *const marks[] = {
        "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMI_RANK", "PMIX_RANK", "MV2_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS"};
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        if (getenv(marks[i]))
            return true;
    return false;
}

static trama_status initialise(void)
{
    int provided;
    bool ours = !getenv(yielding);
    guest_handlers hosts;
    guest_keep_handlers(&hosts);
    setenv(yielding, "0", 0);
    yields = atoi(getenv(yielding)) == 1;
    int error = MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided);
    if (ours)
        unsetenv(yielding);
    guest_put_handlers_back(&hosts);
    if (error)
        return trama_fail(NOWHERE, TRAMA_E_SYSTEM, "MPI_Init_thread failed");
    initialised_here = true;
    initialiser = getpid();
    return TRAMA_OK;
}

bool comm_yields(void)
{
#ifdef OPEN_MPI
    return initialised_here && yields;
#else
    return false;
#endif
}

static trama_status check_threads(void)
{
    static const struct {
        int level;
        const char *name;
    } levels[] = {{MPI_THREAD_SINGLE, "MPI_THREAD_SINGLE"},
                  {MPI_THREAD_FUNNELED, "MPI_THREAD_FUNNELED"},
                  {MPI_THREAD_SERIALIZED, "MPI_THREAD_SERIALIZED"}};
    int provided = MPI_THREAD_SINGLE;
    MPI_Query_thread(&provided);
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++)
        if (provided == levels[i].level)
            return trama_fail(NOWHERE, TRAMA_E_SYSTEM,
                              initialised_here
                                  ? "this MPI library offers only %s; Trama needs one built with MPI_THREAD_MULTIPLE"
                                  : "the program initialised MPI with %s; Trama needs MPI_Init_thread(..., "
                                    "MPI_THREAD_MULTIPLE, ...), or to be started before MPI",
                              levels[i].name);
    return TRAMA_OK;
}

static trama_status duplicate(MPI_Comm given, comm *c)
{
    int between = 0;
    if (given == MPI_COMM_NULL)
        return trama_fail(
            NOWHERE, TRAMA_E_ARGUMENT,
            "config.communicator is MPI_COMM_NULL: only ranks that have the communicator call trama_start");
    if (!MPI_Comm_test_inter(given, &between) && between)
        return trama_fail(NOWHERE, TRAMA_E_ARGUMENT,
                          "config.communicator is an intercommunicator: MPI_Intercomm_merge makes one of both groups");
    if (MPI_Comm_size(given, &c->ranks) || MPI_Comm_rank(given, &c->rank))
        return trama_fail(NOWHERE, TRAMA_E_ARGUMENT, "config.communicator is not an MPI communicator of this process");
    if (c->ranks == 1)
        return TRAMA_OK;
    trama_status status = check_threads();
    if (!status && MPI_Comm_dup(given, &c->handle))
        status = trama_fail(NOWHERE, TRAMA_E_SYSTEM, "MPI_Comm_dup failed");
    if (!status)
        MPI_Comm_set_errhandler(c->handle, MPI_ERRORS_RETURN);
    return status;
}

bool comm_is_open(const comm *c)
{
    return c->ranks == 1 || c->handle != MPI_COMM_NULL;
}

bool comm_may_wait(void)
{
    int initialized = 0;
    MPI_Initialized(&initialized);
    return initialized || launched();
}

trama_status comm_open(const void *communicator, comm *c)
{
    int initialized, finalized;
    trama_status status = TRAMA_OK;
    *c = (comm){.ranks = 1, .how = "no MPI: not started by a launcher", .handle = MPI_COMM_NULL};
    MPI_Initialized(&initialized);
    MPI_Finalized(&finalized);
    if (finalized && (communicator || launched()))
        return trama_fail(NOWHERE, TRAMA_E_SYSTEM, "MPI has been finalised already, and cannot be started again");
    if (!initialized && communicator)
        return trama_fail(NOWHERE, TRAMA_E_ARGUMENT, "config.communicator is given, but MPI is not initialised");
    if (finalized || (!initialized && !launched()))
        return TRAMA_OK;
    if (!initialized)
        status = initialise();
    c->started = initialised_here;
    c->how = c->started ? "MPI started by Trama" : "MPI started by the program";
    if (!status)
        status = duplicate(communicator ? *(const MPI_Comm *)communicator : MPI_COMM_WORLD, c);
    if (!status && c->handle != MPI_COMM_NULL)
        open_contexts++;
    return status;
}

const void *comm_from_fortran(int handle)
{
    static _Thread_local MPI_Comm given;
    int initialized, finalized;
    MPI_Initialized(&initialized);
    MPI_Finalized(&finalized);
    given = initialized && !finalized ? MPI_Comm_f2c((MPI_Fint)handle) : MPI_COMM_NULL;
    return &given; /* comm_open reports an invalid one */
}

/* MPI_Finalize first deletes the attributes of MPI_COMM_SELF, while all of MPI can still be called. */
static struct {
    bool set; /* the attribute is set, as long as MPI runs */
    void (*end)(void *arg);
    void *arg;
} before_finalize;

static int call_before_finalize(MPI_Comm self, int key, void *value, void *state)
{
    (void)self, (void)key, (void)value, (void)state;
    if (before_finalize.end)
        before_finalize.end(before_finalize.arg);
    return MPI_SUCCESS;
}

void comm_before_finalize(comm *c, void (*end)(void *arg), void *arg)
{
    if (c->handle == MPI_COMM_NULL)
        return;
    before_finalize.end = end;
    before_finalize.arg = arg;
    int key;
    if (before_finalize.set || MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, call_before_finalize, &key, NULL))
        return;
    before_finalize.set = !MPI_Comm_set_attr(MPI_COMM_SELF, key, NULL);
    MPI_Comm_free_keyval(&key); /* MPI frees it once the attribute is deleted */
}

void comm_close(comm *c)
{
    before_finalize.end = NULL;
    if (c->handle == MPI_COMM_NULL)
        return;
    MPI_Comm_free(&c->handle);
    open_contexts--;
}

static bool has_ended(void)
{
    int finalized = 0;
    return MPI_Finalized(&finalized) || finalized;
}

void comm_end(void)
{
    if (initialised_here && initialiser == getpid() && open_contexts == 0 && !has_ended())
        MPI_Finalize();
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
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
        nanosleep(&(struct timespec){.tv_nsec = turn < 1000 ? 20000 : 200000}, NULL);
        if (now() - start > (double)(*reports + 1) * patience.seconds)
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

bool comm_is_world(const comm *c)
{
    int initialized, finalized, ranks = 1, compared = MPI_CONGRUENT;
    MPI_Initialized(&initialized);
    MPI_Finalized(&finalized);
    if (!initialized || finalized)
        return true;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (c->ranks == 1 || ranks != c->ranks)
        return ranks == c->ranks;
    return !MPI_Comm_compare(c->handle, MPI_COMM_WORLD, &compared) && compared == MPI_CONGRUENT;
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
    if (has_ended())
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

void comm_library(text *out)
{
    char version[MPI_MAX_LIBRARY_VERSION_STRING]; /* one line or several */
    int length;
    MPI_Get_library_version(version, &length);
    text_add(out, "%.*s", (int)strcspn(version, ",\n"), version);
}

#else

bool comm_yields(void)
{
    return false;
}

bool comm_is_world(const comm *c)
{
    return c->ranks == 1;
}

int64_t comm_clock_ahead(comm *c, bool shared)
{
    (void)c, (void)shared;
    return 0;
}

bool comm_is_open(const comm *c)
{
    (void)c;
    return true;
}

bool comm_may_wait(void)
{
    return false;
}

trama_status comm_open(const void *communicator, comm *c)
{
    *c = (comm){.ranks = 1, .how = "built without MPI"};
    if (communicator)
        return trama_fail(NOWHERE, TRAMA_E_UNSUPPORTED,
                          "config.communicator is given, but Trama was built without MPI");
    return TRAMA_OK;
}

const void *comm_from_fortran(int handle)
{
    (void)handle;
    return ""; /* not NULL: comm_open refuses it */
}

void comm_before_finalize(comm *c, void (*end)(void *arg), void *arg)
{
    (void)c, (void)end, (void)arg;
}

void comm_close(comm *c)
{
    (void)c;
}

void comm_end(void)
{
}

bool comm_all_leave(comm *c, bool ready, int seconds)
{
    (void)c, (void)seconds;
    return ready;
}

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

void comm_library(text *out)
{
    text_add(out, "no MPI");
}

#endif
