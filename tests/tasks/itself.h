/* SPDX-License-Identifier: Apache-2.0 */
/* A test's program in a process of its own, for what ends the process; and GPUs that fail when they are told to. */
#ifndef ITSELF_H
#define ITSELF_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "trama_context.h"

/* Whether the GPUs are what tests/standin has instead: only that heeds TRAMA_STANDIN_FAIL. With a live context. */
static inline bool on_standin(const trama_context *c)
{
    char *words = trama_context_describe(c);
    bool standin = words && strstr(words, "stand-in for a GPU");
    free(words);
    return standin;
}

/* Runs the program with this argument and TRAMA_STANDIN_FAIL; said: its output. Returns pclose's result. */
static inline int run_itself(const char *argument, const char *fails, char *said, size_t room)
{
    char path[1024], command[1200];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    path[n > 0 ? n : 0] = 0;
    snprintf(command, sizeof command, "TRAMA_STANDIN_FAIL=%s exec '%s' %s 2>&1", fails, path, argument);
    FILE *pipe = popen(command, "r");
    said[fread(said, 1, room - 1, pipe)] = 0;
    return pclose(pipe);
}

#endif
