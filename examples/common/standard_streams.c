/* SPDX-License-Identifier: Apache-2.0 */
/* Ends every program that links this with status 1 and a message where its stdout could not be written: a full disk, a
 * closed stdout. Needs no call: it registers itself before main. */
#define _GNU_SOURCE /* program_invocation_short_name */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "must.h"

/* exit() has begun, so the status is changed by _exit alone. */
static void close_output(void)
{
    if (close_written(stdout))
        return;
    fprintf(stderr, "%s: stdout cannot be written: %s\n", program_invocation_short_name, strerror(errno));
    _exit(EXIT_FAILURE);
}

/* Descriptors 0 to 2 that are closed get a file that can neither be read nor written as such, so that no file opened
 * later takes their numbers. */
static void occupy_closed_streams(void)
{
    for (int descriptor = STDIN_FILENO; descriptor <= STDERR_FILENO; descriptor++)
        if (fcntl(descriptor, F_GETFD) < 0 && errno == EBADF)
            open("/dev/null", descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

__attribute__((constructor)) static void watch_output(void)
{
    occupy_closed_streams();
    atexit(close_output);
}
