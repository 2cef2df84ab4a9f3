/* SPDX-License-Identifier: Apache-2.0 */
/* Lanes: streams on which the works of a segment are recorded side by side, so that its graph runs works that need no
 * result of each other at the same time. A work waits for the last write of each buffer that it uses, and, where it
 * writes, for the reads since. It knows no CUDA. */
#ifndef CODELETS_LANES_H
#define CODELETS_LANES_H

#include <stdbool.h>

#include "gpu.h"

typedef struct lane_use {
    int buffer;
    bool writes;
} lane_use;

/* The lane of a work, and of each other lane the work that ends before it begins; -1: none. */
typedef struct lane_place {
    int lane, after[GPU_LANES];
} lane_place;

typedef struct lanes lanes;

/* For at most so many works, on buffers 0 to n_buffers - 1. lanes_end frees it. */
lanes *lanes_begin(int most, int n_buffers);
void lanes_end(lanes *l);

/* The place of the next work. It stands behind the latest work of a lane that comes before it anyway; where there is
 * none, alone on a lane, or behind the lane whose last work was added longest ago. */
lane_place lanes_add(lanes *l, int n_uses, const lane_use *uses);

/* The last work of a lane; -1: it has none. */
int lanes_last(const lanes *l, int lane);

#endif
