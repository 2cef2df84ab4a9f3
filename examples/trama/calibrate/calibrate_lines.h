/* SPDX-License-Identifier: Apache-2.0 */
/* The lines of the machine that trama calibrate writes. All of them are measured in several passes, of which the median
 * counts, because a machine that others share changes its speed for seconds. */
#ifndef EXAMPLES_CALIBRATE_LINES_H
#define EXAMPLES_CALIBRATE_LINES_H

#include <stdio.h>

enum { MOST_PASSES = 5, MOST_QUANTITIES = 3, MOST_LINES = 128 };

typedef struct quantity {
    double value;
    const char *unit; /* with its prefix; it outlives the lines */
} quantity;

typedef struct machine_line {
    char words[40];
    int n; /* quantities */
    double value[MOST_QUANTITIES][MOST_PASSES];
    const char *unit[MOST_QUANTITIES];
} machine_line;

typedef struct machine_lines {
    machine_line line[MOST_LINES];
    int n, pass, all; /* n: lines of this pass; all: of the first one */
} machine_lines;

/* Of n numbers, which it sorts. */
double median(int n, double *of);

/* The next line of a pass; all passes say the same words in the same order. */
void lines_say(machine_lines *l, const char *words, int n, const quantity *of);
void lines_next_pass(machine_lines *l);
void lines_write(machine_lines *l, FILE *out); /* once all passes are done */

#endif
