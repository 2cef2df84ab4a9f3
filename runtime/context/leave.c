/* SPDX-License-Identifier: Apache-2.0 */
/* Ending without trama_stop: the program returns from main, calls exit, or unloads the library while a context lives.
 * Destructors of the libraries that tasks use, such as OpenBLAS, run next, so no task may run then. Two steps:
 *   1. a function of atexit waits for the tasks; the program's own functions of atexit may still call Trama;
 *   2. a destructor, which runs after all of these and before the ones of libraries that Trama depends on, ends StarPU
 *      and MPI where every rank leaves, and else keeps the workers from starting another task.
 * Where the program calls MPI_Finalize, the messages end before it; memory and tasks stay until trama_stop.
 * In a child of fork both steps do nothing. */
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "config.h"
#include "environment.h"
#include "tracing.h"

/* Seconds without progress for which a leaving rank waits for the others, or config.watchdog if that is less. */
enum { PATIENCE = 5 };

static _Atomic(trama_context *) alive; /* the context, until trama_stop */
static atomic_bool leaving;
static pthread_t leaver;
static bool forked; /* in a child of fork whose parent had a context */

static void nap(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 500000}, NULL);
}

static int64_t patience(const trama_context *c)
{
    return c->config.watchdog < PATIENCE ? c->config.watchdog : PATIENCE;
}

/* Whether the calling thread is a worker in a task, which would wait for itself. */
static bool inside_task(void)
{
    return starpu_worker_get_id() >= 0;
}

static bool quiet(trama_context *c)
{
    return atomic_load(&c->fences.under_way) == 0 && atomic_load(&c->rest.depth) == 0;
}

/* Waits until nothing is in flight and no bracket is open. False where that will not come: a message of a rank that has
 * ended is missing, or another thread is in the middle of a call. It waits for ready tasks as long as they take. */
static bool wait_for_work(trama_context *c)
{
    const int64_t second = 1000000000, period = c->config.watchdog * second;
    int64_t moved = runtime_now(), report = moved + period;
    long seen = atomic_load(&c->fences.completions);
    while (!quiet(c)) {
        int64_t now = runtime_now();
        if (atomic_load(&c->fences.completions) != seen) {
            seen = atomic_load(&c->fences.completions);
            moved = now;
            report = now + period;
        }
        if (inside_task() || (now - moved > patience(c) * second && starpu_task_nready() == 0))
            return false;
        if (now > report) {
            watchdog_report(c, "leaving the program", now - moved);
            report = now + period;
        }
        nap();
    }
    return true;
}

/* ---- Holding the workers ---- */

static atomic_int held;

static void hold(void *buffers[], void *arg)
{
    (void)buffers, (void)arg;
    atomic_fetch_add(&held, 1);
    for (;;)
        pause();
}

/* Gives every worker a task that never ends. A worker takes it before tasks that other workers may run, and then runs
 * nothing else. StarPU-MPI's thread is held too, where it drives a worker. */
static void hold_workers(trama_context *c)
{
    static struct starpu_codelet holding = {
        .cpu_funcs = {hold}, .cuda_funcs = {hold}, .nbuffers = 0, .name = "leaving"};
    int workers = (int)starpu_worker_get_count(), self = starpu_worker_get_id(), wanted = 0;
    context_wake(c);
    for (int w = 0; w < workers; w++) {
        if (w == self)
            continue;
        struct starpu_task *task = starpu_task_create();
        task->cl = &holding;
        task->execute_on_a_specific_worker = 1;
        task->workerid = (unsigned)w;
        wanted += starpu_task_submit(task) == 0;
    }
    while (atomic_load(&held) < wanted)
        nap();
}

/* ---- The two steps ---- */

static trama_context *left_alive(void)
{
    trama_context *c = atomic_load(&alive);
    if (c && !atomic_exchange(&leaving, true))
        leaver = pthread_self();
    return c;
}

static void wait_at_exit(void)
{
    trama_context *c = left_alive();
    if (c && starpu_is_initialized())
        wait_for_work(c);
}

/* Only with the default log: the objects that a log function of the program needs may have been destroyed. */
static void report(const trama_context *c, bool ready)
{
    if (!config_logs_to_stderr(&c->config))
        return;
    if (ready)
        context_log(c, TRAMA_LOG_WARNING,
                    "rank %d: the program ends without trama_stop, and not together with all other ranks",
                    c->comm.rank);
    else
        context_log(c, TRAMA_LOG_WARNING,
                    "rank %d: the program ends without trama_stop; %ld tasks and messages are left undone",
                    c->comm.rank, atomic_load(&c->fences.under_way));
}

static void stop_or_hold(trama_context *c)
{
    bool ready = wait_for_work(c);
    if (comm_all_leave(&c->comm, ready, (int)patience(c))) {
        context_abandon(c);
        return;
    }
    report(c, ready);
    if (!ready && c->driver.started_starpu)
        hold_workers(c);
    trace_save();
    home_leave();
}

static __attribute__((destructor)) void leave(void)
{
    trama_context *c = left_alive();
    if (c && starpu_is_initialized())
        stop_or_hold(c);
    comm_end();
    room_end();
}

/* Called at the program's MPI_Finalize. Where the ranks do not reach it within the time, MPI waits for the others. */
static void leave_mpi(void *context)
{
    trama_context *c = context;
    bool ready = wait_for_work(c);
    context_log(c, TRAMA_LOG_ERROR, "rank %d: MPI_Finalize before trama_stop: nothing can be run or read any more",
                c->comm.rank);
    context_disagree(
        c, "the program has called MPI_Finalize, which ended the messages of the context; call trama_stop before it");
    if (!comm_all_leave(&c->comm, ready, (int)patience(c)))
        return;
    trace_clock(c);
    rest_end_messages(c);
    driver_stop_messages(c);
    comm_close(&c->comm);
}

/* ---- Calls of the library ---- */

static void be_a_child(void)
{
    forked |= atomic_exchange(&alive, NULL) != NULL;
}

/* CUDA registers a function of atexit, too. Functions run last first, so ours is registered again once CUDA runs. */
void leave_start(trama_context *c)
{
    static bool watched, registered[2]; /* without GPUs, with them */
    if (!watched)
        watched = !pthread_atfork(NULL, NULL, be_a_child);
    if (!registered[c->gpu.n > 0])
        registered[c->gpu.n > 0] = !atexit(wait_at_exit);
    comm_before_finalize(&c->comm, leave_mpi, c);
    atomic_store(&alive, c);
}

void leave_stop(void)
{
    atomic_store(&alive, NULL);
}

trama_status context_check(trama_where where, const char *call)
{
    return !forked
               ? TRAMA_OK
               : trama_fail(where, TRAMA_E_ORDER,
                            "%s: this is a child of fork, where the threads of the context are not; only the process "
                            "that called trama_start uses it",
                            call);
}

void leave_hold_others(void)
{
    while (atomic_load(&leaving) && !pthread_equal(leaver, pthread_self()))
        pause();
}
