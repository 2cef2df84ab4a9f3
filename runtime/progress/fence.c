/* SPDX-License-Identifier: Apache-2.0 */
/* Fences: an atomic count each; one lock and one condition variable for all; a pool until the context ends. */
#include "fence.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <time.h>

#include "state.h"

/* state: OWNED until fence_free, plus the count in flight. The call that brings it to 0 recycles the fence. */
struct fence {
    trama_context *context;
    atomic_long state;
    fence *next;
};
#define OWNED (1L << 40)
#define COUNT(state) ((state) & (OWNED - 1))

static const int64_t poll_for = 50000; /* ns */

pthread_mutex_t runtime_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t completed;
static pthread_once_t completed_once = PTHREAD_ONCE_INIT;

void runtime_condition(pthread_cond_t *condition)
{
    pthread_condattr_t attribute;
    pthread_condattr_init(&attribute);
    pthread_condattr_setclock(&attribute, CLOCK_MONOTONIC);
    pthread_cond_init(condition, &attribute);
    pthread_condattr_destroy(&attribute);
}

static void make_completed(void)
{
    runtime_condition(&completed);
}

int64_t runtime_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

void fence_start(trama_context *c)
{
    pthread_once(&completed_once, make_completed);
    c->fences.idle = NULL;
    c->fences.waiters = 0;
}

void fence_stop(trama_context *c)
{
    while (c->fences.idle) {
        fence *f = c->fences.idle;
        c->fences.idle = f->next;
        free(f);
    }
}

fence *fence_new(trama_context *c)
{
    pthread_mutex_lock(&runtime_lock);
    fence *f = c->fences.idle;
    if (f)
        c->fences.idle = f->next;
    pthread_mutex_unlock(&runtime_lock);
    if (!f)
        f = trama_alloc(sizeof *f);
    f->context = c;
    atomic_store(&f->state, OWNED);
    return f;
}

static void recycle(fence *f)
{
    f->next = f->context->fences.idle;
    f->context->fences.idle = f;
}

void fence_add(fence *f, int n)
{
    atomic_fetch_add(&f->context->fences.under_way, n);
    atomic_fetch_add(&f->state, n);
}

void fence_signal(void *arg)
{
    fence *f = arg;
    trama_context *c = f->context;
    atomic_fetch_add(&c->fences.completions, 1);
    long left = atomic_fetch_sub(&f->state, 1) - 1;
    bool last = atomic_fetch_sub(&c->fences.under_way, 1) == 1;
    if (COUNT(left) && !last) {
        loans_look(c);
        return;
    }
    pthread_mutex_lock(&runtime_lock);
    bool awaited =
        c->fences.waiters > 1 ||
        (c->fences.waiters && (c->fences.waited == &f->state || (last && c->fences.waited == &c->fences.under_way)));
    if (left == 0)
        recycle(f);
    if (last && atomic_load(&c->fences.under_way) == 0)
        rest_when_idle(c);
    pthread_mutex_unlock(&runtime_lock);
    if (awaited) /* after the unlock: a waiter that wakes on the same core would block on the lock at once */
        pthread_cond_broadcast(&completed);
}

bool fence_done(const fence *f)
{
    return COUNT(atomic_load(&f->state)) == 0;
}

void fence_free(fence *f)
{
    if (!f || atomic_fetch_sub(&f->state, OWNED) != OWNED)
        return;
    pthread_mutex_lock(&runtime_lock);
    recycle(f);
    pthread_mutex_unlock(&runtime_lock);
}

static struct timespec as_timespec(int64_t ns)
{
    return (struct timespec){.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
}

/* Waits until COUNT(*count) is 0. It calls the log without the lock. */
static void wait_for(trama_context *c, const atomic_long *count, const char *what)
{
    int64_t patience = (int64_t)c->config.watchdog * 1000000000, quiet_since = runtime_now();
    int64_t deadline = quiet_since + patience;
    long seen = atomic_load(&c->fences.completions);
    pthread_mutex_lock(&runtime_lock);
    c->fences.waiters++;
    c->fences.waited = count;
    while (COUNT(atomic_load(count))) {
        struct timespec until = as_timespec(deadline);
        if (pthread_cond_timedwait(&completed, &runtime_lock, &until) != ETIMEDOUT || !COUNT(atomic_load(count)))
            continue;
        long now = atomic_load(&c->fences.completions);
        if (now != seen)
            quiet_since = runtime_now();
        pthread_mutex_unlock(&runtime_lock);
        if (now == seen)
            watchdog_report(c, what, runtime_now() - quiet_since);
        seen = now;
        deadline = runtime_now() + patience;
        pthread_mutex_lock(&runtime_lock);
    }
    c->fences.waiters--;
    pthread_mutex_unlock(&runtime_lock);
}

/* Sleeping and waking costs 10 us, more than a short run takes. So a caller polls for 50 us first, where the rank has
 * several cores of its own and the wait before was as short. It yields, so that a worker on the same core goes on. */
static bool ends_soon(const trama_context *c, const atomic_long *count)
{
    if (c->cores.cores < 2 || c->cores.shared || atomic_load(&c->fences.last_wait) > poll_for)
        return false;
    for (int64_t until = runtime_now() + poll_for; runtime_now() < until; sched_yield())
        if (COUNT(atomic_load(count)) == 0)
            return true;
    return false;
}

static trama_status wait_awake(trama_context *c, const atomic_long *count, const char *what)
{
    if (COUNT(atomic_load(count)) == 0)
        return TRAMA_OK;
    if (starpu_worker_get_id() >= 0)
        return trama_fail(NOWHERE, TRAMA_E_ORDER, "%s would wait inside a StarPU task", what);
    int64_t begin = runtime_now();
    context_wake(c);
    if (!ends_soon(c, count))
        wait_for(c, count, what);
    context_rest(c);
    atomic_store(&c->fences.last_wait, runtime_now() - begin);
    return TRAMA_OK;
}

void fence_wait_below(trama_context *c, const fence *f, int n, const char *what)
{
    const int64_t patience = (int64_t)c->config.watchdog * 1000000000;
    const struct timespec nap = {.tv_nsec = 200000};
    long seen = atomic_load(&c->fences.completions);
    for (int64_t since = runtime_now(); COUNT(atomic_load(&f->state)) > n; nanosleep(&nap, NULL)) {
        const long now = atomic_load(&c->fences.completions);
        if (now == seen && runtime_now() - since < patience)
            continue;
        if (now == seen)
            watchdog_report(c, what, runtime_now() - since);
        seen = now;
        since = runtime_now();
    }
}

trama_status fence_wait(trama_context *c, fence *f, const char *what)
{
    return wait_awake(c, &f->state, what);
}

trama_status fence_wait_all(trama_context *c, const char *what)
{
    return wait_awake(c, &c->fences.under_way, what);
}
