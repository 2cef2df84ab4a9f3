/* SPDX-License-Identifier: Apache-2.0 */
/* The communicator. Trama starts MPI only where a launcher started the program, and then ends MPI at exit. */
#include "comm.h"

#include <string.h>

#include "guest.h"

#if TRAMA_HAVE_MPI
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

void comm_end(void)
{
    if (initialised_here && initialiser == getpid() && open_contexts == 0 && !comm_has_ended())
        MPI_Finalize();
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

void comm_library(text *out)
{
    text_add(out, "no MPI");
}

#endif
