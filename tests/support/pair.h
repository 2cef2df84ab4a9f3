/* SPDX-License-Identifier: Apache-2.0 */
/* One program on simulated ranks and on one device, step by step; a difference ends the test. */
#ifndef PAIR_H
#define PAIR_H

#include "simulation.h"
#include "single.h"

typedef struct pair {
    simulation *many;
    single *one;
    const trama_program *program;
    const char *name; /* for messages; borrowed */
} pair;

pair pair_new(const trama_program *program, const machine *m, const simulation_options *options, const char *name);
void pair_free(pair *p);

void pair_feed(const pair *p, const trama_value *input, const dense *data);

/* Runs the target in both and compares its values and all states, relative to max(1, |value|). */
void pair_run(const pair *p, const trama_target *target, double tolerance);

/* Compares one value that is kept. */
void pair_compare(const pair *p, const trama_value *value, double tolerance);

/* pair_new, one pair_run on ranks 1 .. n_ranks with tiles of every size, fused and not, on CPUs and on others, pair_free.
 * feeds [n]. */
void pair_try(const trama_program *program, const trama_target *target, int n, trama_value *const *inputs,
              const dense *feeds, int n_ranks, double tolerance, const char *name);

#endif
