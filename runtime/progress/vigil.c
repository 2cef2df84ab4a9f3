/* SPDX-License-Identifier: Apache-2.0 */
/* A watchdog for calls that block inside MPI or StarPU-MPI: a thread that lives as long as the call. Other waits report
 * from the waiting thread, by watchdog.c and agree.c. */
#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "state.h"

struct vigil {
    trama_config config;
    char what[160];
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t change;
    bool over;
};

static void report(const vigil *v, int64_t waited)
{
    char line[300];
    snprintf(line, sizeof line, "process %ld: %s waits since %lld s", (long)getpid(), v->what, (long long)waited);
    v->config.log(v->config.log_data, TRAMA_LOG_WARNING, line);
}

static void *watch(void *arg)
{
    vigil *v = arg;
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    pthread_mutex_lock(&v->lock);
    for (int64_t periods = 1; !v->over; periods++) {
        until.tv_sec += v->config.watchdog;
        while (!v->over && !pthread_cond_timedwait(&v->change, &v->lock, &until))
            ;
        if (!v->over)
            report(v, periods * v->config.watchdog);
    }
    pthread_mutex_unlock(&v->lock);
    return NULL;
}

/* The thread takes no signals: they are for the host's threads. */
static bool start_thread(vigil *v)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    bool started = !pthread_create(&v->thread, NULL, watch, v);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}

vigil *vigil_begin(const trama_config *config, const char *what)
{
    vigil *v = trama_alloc(sizeof *v);
    v->config = *config;
    v->over = false;
    snprintf(v->what, sizeof v->what, "%s", what);
    pthread_mutex_init(&v->lock, NULL);
    runtime_condition(&v->change);
    if (start_thread(v))
        return v;
    free(v);
    return NULL;
}

void vigil_end(vigil *v)
{
    if (!v)
        return;
    pthread_mutex_lock(&v->lock);
    v->over = true;
    pthread_cond_signal(&v->change);
    pthread_mutex_unlock(&v->lock);
    pthread_join(v->thread, NULL);
    pthread_cond_destroy(&v->change);
    pthread_mutex_destroy(&v->lock);
    free(v);
}
