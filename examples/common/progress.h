/* SPDX-License-Identifier: Apache-2.0 */
/* How far a training is, on stderr: a bar that redraws itself on a terminal, a line now and then elsewhere. How far
 * other work is: the same bar, on a terminal only, and only where it takes more than a second. */
#ifndef EXAMPLES_PROGRESS_H
#define EXAMPLES_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct progress {
    bool shown, terminal;
    int64_t steps;
    double begun, told; /* clock_seconds() */
} progress;

double clock_seconds(void); /* monotonic */

progress progress_begin(bool shown, int64_t steps);
/* So many steps are done, with so many samples in all; the loss is the last one's. */
void progress_tell(progress *p, int64_t done, int64_t samples, double loss);

/* Shows how many steps of other work are done; `what` names them. The bar goes away with the last step. */
void progress_count(progress *p, int64_t done, const char *what);

#endif
