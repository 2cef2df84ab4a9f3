/* SPDX-License-Identifier: Apache-2.0 */
/* A folder of a test program's own, which goes with the program. The file that includes it defines _GNU_SOURCE. */
#ifndef OWN_FOLDER_H
#define OWN_FOLDER_H

#include <stdio.h>
#include <stdlib.h>

#include "suite.h"

static char folder[] = "/tmp/trama-test-XXXXXX"; /* its name, once folder_run has made it */

/* One of four buffers in turn. */
static inline const char *in_folder(const char *name)
{
    static char path[4][300];
    static int turn;
    turn = (turn + 1) % 4;
    snprintf(path[turn], sizeof path[turn], "%s/%s", folder, name);
    return path[turn];
}

/* suite_run with the folder. */
static inline int folder_run(const char *name, const TTest *const *tests, size_t n)
{
    char command[100];
    if (!mkdtemp(folder))
        return EXIT_FAILURE;
    const int status = suite_run(name, NULL, NULL, tests, n);
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command) ? EXIT_FAILURE : status;
}

#endif
