/* SPDX-License-Identifier: Apache-2.0 */
/* MPI_Test in front of MPI's own. A completed request must stay MPI's until it is reported, so completion is looked up
 * without freeing it, and a small table says until when it is held. */
#include "delay.h"

#if TRAMA_HAVE_MPI

#include <mpi.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

typedef struct held_request {
    MPI_Request request;
    int64_t until; /* ns */
} held_request;

enum { MOST_HELD = 1024 }; /* more than that are not held back */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of held and n_held */
static held_request held[MOST_HELD];
static int n_held;
static _Atomic int64_t delay, envelopes, data; /* delay in ns */
static _Thread_local bool spared;

static int64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Whether a request that has completed may be reported; it is forgotten then. */
static bool due(MPI_Request request)
{
    int64_t wait = atomic_load(&delay), time = now();
    bool is_due = wait == 0;
    pthread_mutex_lock(&lock);
    int i = 0;
    while (i < n_held && held[i].request != request)
        i++;
    if (i < n_held) {
        is_due = is_due || time >= held[i].until;
        if (is_due)
            held[i] = held[--n_held];
    } else if (!is_due && n_held < MOST_HELD)
        held[n_held++] = (held_request){request, time + wait};
    else
        is_due = true;
    pthread_mutex_unlock(&lock);
    return is_due;
}

/* StarPU-MPI asks for the status of envelopes alone. */
static int reported(const int *flag, const MPI_Status *status, int error)
{
    if (!error && *flag)
        atomic_fetch_add(status == MPI_STATUS_IGNORE ? &data : &envelopes, 1);
    return error;
}

int MPI_Test(MPI_Request *request, int *flag, MPI_Status *status)
{
    if (*request != MPI_REQUEST_NULL) {
        int error = PMPI_Request_get_status(*request, flag, MPI_STATUS_IGNORE);
        if (error || !*flag)
            return error;
        if (!spared && !due(*request)) {
            *flag = 0;
            return MPI_SUCCESS;
        }
    }
    return reported(flag, status, PMPI_Test(request, flag, status));
}

void delay_set(int64_t us)
{
    atomic_store(&delay, 1000 * us);
}

void delay_spare_thread(bool spare)
{
    spared = spare;
}

delay_counts delay_count(void)
{
    return (delay_counts){atomic_load(&envelopes), atomic_load(&data)};
}

#else

void delay_set(int64_t us)
{
    (void)us;
}

void delay_spare_thread(bool spare)
{
    (void)spare;
}

delay_counts delay_count(void)
{
    return (delay_counts){0};
}

#endif
