/* SPDX-License-Identifier: Apache-2.0 */
#include "idleness.h"

#include <time.h>

static double seconds_of(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Of a core, from now on for 0.3 s. */
static double share_taken(void)
{
    double begin = seconds_of(CLOCK_MONOTONIC), before = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
    nanosleep(&(struct timespec){.tv_nsec = 300000000}, NULL);
    double taken = seconds_of(CLOCK_PROCESS_CPUTIME_ID) - before;
    return taken / (seconds_of(CLOCK_MONOTONIC) - begin);
}

bool comes_to_rest(void)
{
    double end = seconds_of(CLOCK_MONOTONIC) + 60;
    do {
        if (share_taken() < 0.05)
            return true;
    } while (seconds_of(CLOCK_MONOTONIC) < end);
    return false;
}
