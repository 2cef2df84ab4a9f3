/* SPDX-License-Identifier: Apache-2.0 */
/* Priorities of steps, for when several are ready. 0: in the order of the plan, so that a result is used while it is in
 * cache. A step has more if it lies on a path of several steps that takes longer than all work of the rank takes its
 * workers: its delay delays the run. A step whose result is sent has more than these, and most if it only moves or sums
 * elements, since its message takes longer than itself: messages travel while others compute. Of two such steps the one
 * with the longer path goes first: that to the end of the next run, which needs some states before others. */
#ifndef PRIORITY_H
#define PRIORITY_H

#include "partition.h"

/* Above any priority that comes from a path: for a result that is sent, and for one that is moved to be sent. */
enum { PRIORITY_SENT = 1 << 24, PRIORITY_MOVED = 2 << 24 };

void plan_prioritize(partition *q);

#endif
