/* SPDX-License-Identifier: Apache-2.0 */
/* Which steps go first where several are ready. 0: in the order of the plan, so that what was just computed is used
 * while it is hot. More for a step on a path of several that takes longer than all the work takes its rank's workers:
 * whatever holds it up holds up the run. Most for one whose result is sent: the message travels while the rest is
 * computed. */
#ifndef PRIORITY_H
#define PRIORITY_H

#include "plan.h"

/* Above any priority that comes from a path. */
enum { PRIORITY_SENT = 1 << 24 };

/* workers: of the plan's rank. sent_later[shard]: other plans send what this one leaves there. */
void plan_prioritize(plan *p, int workers, const bool *sent_later);

#endif
