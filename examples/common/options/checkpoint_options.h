/* SPDX-License-Identifier: Apache-2.0 */
/* The options of programs that iterate: --save, --save-every, --keep, --restart. */
#ifndef EXAMPLES_CHECKPOINT_OPTIONS_H
#define EXAMPLES_CHECKPOINT_OPTIONS_H

#include <argp.h>

#include "trama.h"

/* Choices of the command line. A program may set `states`, patterns of the states to save; NULL: all. */
typedef struct checkpoint_options {
    const char *save, *restart, *states; /* folders; NULL: none */
    int64_t every;                       /* 0: at the end only */
    int keep;                            /* 0: all */
} checkpoint_options;

/* A child of a program's parser; its input is a checkpoint_options, zeroed. */
extern const struct argp checkpoint_argp;

/* Loads the newest checkpoint of --restart; returns its step, or 0 where there is none. Ends the program where it is
 * beyond the steps that there are to do. */
int64_t checkpoint_restart(trama_executable *executable, const checkpoint_options *options, int64_t steps);

/* After a step: saves where `done` steps are a multiple of --save-every; the program goes on meanwhile. Rank 0 tells
 * each complete checkpoint on stderr. */
void checkpoint_after(trama_context *context, trama_executable *executable, const checkpoint_options *options,
                      int64_t done);

/* After the last step: saves what was not saved, and waits. */
void checkpoint_end(trama_context *context, trama_executable *executable, const checkpoint_options *options,
                    int64_t done);

#endif
