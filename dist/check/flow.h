/* SPDX-License-Identifier: Apache-2.0 */
/* The order of a plan's steps: a step waits for each step before it that uses one of its tiles, unless both only read
 * the tile. Nothing else orders steps. */
#ifndef FLOW_H
#define FLOW_H

#include "plan.h"

typedef struct flow flow;

flow *flow_new(const plan *p);
void flow_destroy(flow **f);

/* Takes each step that no step before it holds up, in order: `take` does the step, or returns false if it cannot be
 * done yet. Returns whether any step was done. */
typedef bool flow_take(void *arg, int step);
bool flow_advance(flow *f, flow_take *take, void *arg);

/* The first step that is not done; -1 where all are. */
int flow_first(const flow *f);
bool flow_is_done(const flow *f, int step);

#endif
