/* SPDX-License-Identifier: Apache-2.0 */
/* --auto chooses mesh and layouts by the times that they would take on a described machine. */
#ifndef EXAMPLES_AUTO_OPTION_H
#define EXAMPLES_AUTO_OPTION_H

#include <argp.h>

#include "trama.h"

/* A child of a program's own parser; its input is a const char *, which becomes the name of the machine. */
extern const struct argp auto_argp;

/* At ARGP_KEY_END: ends the program where both --auto and --mesh were given. Makes the mesh "1" where neither was. */
void auto_check(const struct argp_state *state, const char *machine, trama_mesh **mesh);

/* Chooses mesh and layouts of the target for this job's ranks on that machine, with `fed` for TRAMA_ANY (0: it has no
 * such dim), and prints the table on rank 0; nothing where machine is NULL. Before trama_compile. */
void auto_choose(trama_context *context, trama_target *target, const char *machine, int64_t fed);

#endif
