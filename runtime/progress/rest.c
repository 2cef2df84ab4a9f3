/* SPDX-License-Identifier: Apache-2.0 */
/* Rest: workers sleep while nothing is in flight and no bracket is open. An idle worker finds that it is time, by a
 * StarPU idle hook that is registered only from the last completion on. So rest needs no thread and no timer, and costs
 * nothing per task. StarPU-MPI's thread, where it drives a worker, sleeps only when no request is pending, and must not
 * sleep while work is in flight: the rank keeps a receive from itself pending then, and completes it by a message to
 * itself. */
#include <assert.h>
#include <sched.h>

#include "state.h"

#if TRAMA_HAVE_MPI
#include <starpu_mpi.h>
#endif

/* So long, because a loop that waits for each step must not put the workers to sleep between two steps. */
static const int64_t rest_after = 2000000; /* ns */

/* StarPU's idle workers spin. A hook makes them yield, so that the main thread, another rank or another program gets
 * the core at once instead of after their time slice (0.05 ms instead of 3 on a busy machine). Where the user lets MPI
 * yield, worker 0, which StarPU-MPI's thread drives, yields already; a second yield is too much where ranks share a
 * core. A hook costs each idle worker 32 atomics on one cache line. So ranks with more workers than this have
 * none, unless StarPU-MPI's thread drives one of them: their main thread finds a free core. */
static const int yield_up_to = 16;

#define KEEP_TAG (MESSAGE_TAG_LIMIT + 1)

static void keep_thread_awake(trama_context *c)
{
#if TRAMA_HAVE_MPI
    if (c->driver.driven)
        starpu_mpi_irecv_detached(c->rest.keep_in, c->comm.rank, KEEP_TAG, c->comm.handle, NULL, NULL);
#else
    (void)c;
#endif
}

static void let_thread_sleep(trama_context *c)
{
#if TRAMA_HAVE_MPI
    if (c->driver.driven)
        starpu_mpi_isend_detached(c->rest.keep_out, c->comm.rank, KEEP_TAG, c->comm.handle, NULL, NULL);
#else
    (void)c;
#endif
}

static bool idle(trama_context *c)
{
    return atomic_load(&c->rest.depth) == 0 && atomic_load(&c->fences.under_way) == 0;
}

/* Under the lock. A bracket that opens at the same time is either seen here, or sees that awake is false and waits for
 * the lock. */
static void go_to_rest(trama_context *c)
{
    atomic_store(&c->rest.awake, false);
    if (!idle(c)) {
        atomic_store(&c->rest.awake, true);
        return;
    }
    if (c->driver.started_starpu)
        starpu_pause();
    let_thread_sleep(c);
    if (c->rest.changed)
        c->rest.changed(false);
}

static void disarm(trama_context *c)
{
    if (c->rest.hook >= 0)
        starpu_idle_hook_deregister(c->rest.hook);
    c->rest.hook = -1;
    atomic_store(&c->rest.armed, false);
}

static unsigned rest_if_time(void *arg)
{
    trama_context *c = arg;
    if (!atomic_load(&c->rest.armed) || runtime_now() - atomic_load(&c->rest.idle_since) < rest_after ||
        pthread_mutex_trylock(&runtime_lock))
        return 1;
    if (atomic_load(&c->rest.armed) && atomic_load(&c->rest.awake) && idle(c)) {
        disarm(c);
        go_to_rest(c);
    }
    pthread_mutex_unlock(&runtime_lock);
    return 1;
}

static unsigned yield_core(void *arg)
{
    const trama_context *c = arg;
    if (!c->rest.mpi_yields || starpu_worker_get_id() != 0)
        sched_yield();
    return 1;
}

void rest_when_idle(trama_context *c)
{
    if (!c->driver.started_starpu || !atomic_load(&c->rest.awake) || atomic_load(&c->rest.depth))
        return;
    atomic_store(&c->rest.idle_since, runtime_now());
    if (!atomic_exchange(&c->rest.armed, true))
        c->rest.hook = starpu_idle_hook_register(rest_if_time, c);
}

void context_wake(trama_context *c)
{
    leave_hold_others();
    atomic_fetch_add(&c->rest.depth, 1);
    if (atomic_load(&c->rest.awake) && !atomic_load(&c->rest.armed))
        return;
    pthread_mutex_lock(&runtime_lock);
    disarm(c);
    if (!atomic_load(&c->rest.awake)) {
        if (c->rest.changed)
            c->rest.changed(true);
        keep_thread_awake(c);
        if (c->driver.started_starpu)
            starpu_resume();
        atomic_store(&c->rest.awake, true);
    }
    pthread_mutex_unlock(&runtime_lock);
}

void context_rest(trama_context *c)
{
    int depth = atomic_fetch_sub(&c->rest.depth, 1);
    assert(depth > 0);
    if (depth > 1 || atomic_load(&c->fences.under_way))
        return;
    pthread_mutex_lock(&runtime_lock);
    if (idle(c))
        rest_when_idle(c);
    pthread_mutex_unlock(&runtime_lock);
}

void context_watch_rest(trama_context *c, void (*changed)(bool awake))
{
    pthread_mutex_lock(&runtime_lock);
    c->rest.changed = changed;
    changed(atomic_load(&c->rest.awake));
    pthread_mutex_unlock(&runtime_lock);
}

void rest_start(trama_context *c)
{
    c->rest.hook = c->rest.yield_hook = -1;
    c->rest.mpi_yields = c->driver.driven && comm_yields();
    atomic_store(&c->rest.depth, 0);
    atomic_store(&c->rest.armed, false);
    if (c->driver.driven) {
        starpu_variable_data_register(&c->rest.keep_in, STARPU_MAIN_RAM, (uintptr_t)&c->rest.keep_data[0],
                                      sizeof(int64_t));
        starpu_variable_data_register(&c->rest.keep_out, STARPU_MAIN_RAM, (uintptr_t)&c->rest.keep_data[1],
                                      sizeof(int64_t));
    }
    const bool drives = c->driver.driven && !c->rest.mpi_yields;
    if (c->driver.started_starpu && (c->cores.shared || c->cores.workers <= yield_up_to || drives))
        c->rest.yield_hook = starpu_idle_hook_register(yield_core, c);
    atomic_store(&c->rest.awake, false);
    if (c->driver.started_starpu)
        starpu_pause();
}

void rest_now(trama_context *c)
{
    pthread_mutex_lock(&runtime_lock);
    disarm(c);
    if (atomic_load(&c->rest.awake))
        go_to_rest(c);
    pthread_mutex_unlock(&runtime_lock);
}

/* Drops the handles of these messages, so that StarPU-MPI may end. */
static void forget_thread(trama_context *c)
{
    if (!c->driver.driven)
        return;
    starpu_data_unregister(c->rest.keep_in);
    starpu_data_unregister(c->rest.keep_out);
    c->driver.driven = false;
}

void rest_end_messages(trama_context *c)
{
    pthread_mutex_lock(&runtime_lock);
    if (atomic_load(&c->rest.awake))
        let_thread_sleep(c);
    pthread_mutex_unlock(&runtime_lock);
    forget_thread(c);
}

void rest_stop(trama_context *c)
{
    pthread_mutex_lock(&runtime_lock);
    disarm(c);
    if (atomic_exchange(&c->rest.awake, false))
        let_thread_sleep(c);
    else if (c->driver.started_starpu)
        starpu_resume();
    pthread_mutex_unlock(&runtime_lock);
    if (c->rest.yield_hook >= 0)
        starpu_idle_hook_deregister(c->rest.yield_hook);
    forget_thread(c);
}
