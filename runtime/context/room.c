/* SPDX-License-Identifier: Apache-2.0 */
/* Checks that threads and address space suffice to start: StarPU ends the process where a thread cannot be made;
 * OpenBLAS waits for ever for its buffers, at exit too, in threads that it makes when it is loaded. */
#define _GNU_SOURCE /* dladdr, on_exit */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "state.h"

static const size_t starpus_own = (size_t)64 << 20;  /* bytes that its start takes without stacks, and a reserve */
static const size_t blas_buffer = (size_t)128 << 20; /* bytes of the buffer of an OpenBLAS thread */

/* ---- The end of a process without room ---- */

static bool ending, starved; /* starved: a check found no room */
static int status_at_exit;

static void note_status(int status, void *arg)
{
    (void)arg;
    ending = true;
    status_at_exit = status;
}

/* on_exit does not know which library a function is in, so this library stays loaded. Registered by a shared library's
 * constructor, the function runs after all destructors: too late where nothing was started. */
static void prepare_for_the_end(void)
{
    static bool prepared;
    Dl_info self;
    if (prepared)
        return;
    prepared = true;
    if (dladdr((void *)(uintptr_t)note_status, &self) && self.dli_fname)
        (void)dlopen(self.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
    on_exit(note_status, NULL);
}

static bool can_map(size_t bytes)
{
    void *at = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED)
        return false;
    munmap(at, bytes);
    return true;
}

/* Ends the process before OpenBLAS's destructor would wait for a thread that still asks for its buffer. No thread waits
 * where twice the buffers of all cores fit: malloc takes as much again for a new thread. */
void room_end(void)
{
    if (!ending || (!starved && can_map((size_t)sysconf(_SC_NPROCESSORS_ONLN) * 2 * blas_buffer)))
        return;
    fflush(NULL);
    _exit(status_at_exit);
}

bool context_has_limited_room(void)
{
    struct rlimit limit;
    return !getrlimit(RLIMIT_AS, &limit) && limit.rlim_cur != RLIM_INFINITY;
}

/* Runs when OpenBLAS is loaded, whose threads then ask for their buffers. */
static __attribute__((constructor)) void look_at_limit(void)
{
    if (context_has_limited_room())
        prepare_for_the_end();
}

static void note_starving(void)
{
    starved = true;
    prepare_for_the_end();
}

/* ---- Checks ---- */

static void *wait_for_lock(void *lock)
{
    pthread_mutex_lock(lock);
    pthread_mutex_unlock(lock);
    return NULL;
}

/* Makes n threads at a time, with their stacks, and maps `bytes` bytes more. Returns 0 or the error. */
static int try_threads(int n, size_t bytes)
{
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_t *threads = trama_alloc((size_t)n * sizeof *threads);
    int made = 0, error = 0;
    pthread_mutex_lock(&lock);
    while (made < n && !(error = pthread_create(&threads[made], NULL, wait_for_lock, &lock)))
        made++;
    if (!error && !can_map(bytes))
        error = errno;
    pthread_mutex_unlock(&lock);
    while (made > 0)
        pthread_join(threads[--made], NULL);
    free(threads);
    return error;
}

trama_status room_check(int threads)
{
    look_at_limit(); /* again: the limit may be new, and on_exit in time from here */
    int error = try_threads(threads, starpus_own);
    if (!error)
        return TRAMA_OK;
    note_starving();
    return trama_fail(NOWHERE, TRAMA_E_SYSTEM,
                      "there is no room for %d more threads and %zu MB more address space in this process: %s. "
                      "Limits are those of ulimit -v and -u, and of the control group; TRAMA_WORKERS asks for less",
                      threads, starpus_own >> 20, strerror(error));
}

trama_status context_check_room(size_t bytes, const char *what)
{
    if (!bytes || can_map(bytes))
        return TRAMA_OK;
    note_starving();
    return trama_fail(NOWHERE, TRAMA_E_SYSTEM,
                      "there is no room for %s, %zu MB of address space: %s. The limit is that of ulimit -v; "
                      "TRAMA_WORKERS asks for less",
                      what, bytes >> 20, strerror(errno));
}
