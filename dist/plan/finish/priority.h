/* SPDX-License-Identifier: Apache-2.0 */
/* Priorities of steps, for when several are ready. 0: in the order of the plan, so that a result is used while it is in
 * cache. A step has more if it lies on a path of several steps that takes longer than all work of the rank takes its
 * workers: its delay delays the run. A step whose result is sent has most, and of such steps that with the longest path
 * behind it: the message travels while others compute. */
#ifndef PRIORITY_H
#define PRIORITY_H

#include "partition.h"

/* Above any priority that comes from a path. */
enum { PRIORITY_SENT = 1 << 24 };

void plan_prioritize(partition *q);

#endif
