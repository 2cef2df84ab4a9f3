/* SPDX-License-Identifier: Apache-2.0 */
/* Rates of data in the cache of a core, in those of others and in memory, for trama calibrate. */
#ifndef EXAMPLES_CALIBRATE_CACHES_H
#define EXAMPLES_CALIBRATE_CACHES_H

#include "calibrate_programs.h"

/* Writes the lines cache and far, and sets c->memory. */
void measure_caches(calibration *c);

/* Writes the line op shared, where all ranks have several workers. Wants c->near_memory. */
void measure_shared(const calibration *c);

#endif
