/* SPDX-License-Identifier: Apache-2.0 */
/* The options that the examples share: --plan prints the plan of a run, and --rehearse simulates runs on a described
 * machine, and nothing runs; --trace records the run; --device chooses cores or GPUs. */
#ifndef EXAMPLES_RUN_OPTIONS_H
#define EXAMPLES_RUN_OPTIONS_H

#include <argp.h>

#include "trama.h"

typedef enum plan_form { PLAN_NONE, PLAN_TABLE, PLAN_STEPS, PLAN_DOT, PLAN_REHEARSAL } plan_form;

/* A child of a program's own parser; its input is a plan_form *. */
extern const struct argp run_argp;

/* For programs without other options: reads the whole command line. */
plan_form plan_asked_for(int argc, char **argv, const char *doc);

/* Prints the plan of the target for the extents fed last, on rank 0; or the rehearsal of some runs of it, with `fed`
 * for TRAMA_ANY. */
trama_status plan_print(trama_context *context, trama_executable *executable, const trama_target *target,
                        plan_form form, int64_t fed);

/* Prints the rehearsal of some runs on rank 0, on the machine of --rehearse. */
void plan_rehearse(trama_context *context, const trama_target *target, trama_rehearsal_options how);

#endif
