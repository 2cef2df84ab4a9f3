/* SPDX-License-Identifier: Apache-2.0 */
/* Which work of a plan surely runs before other work, as far as one sees near it: a step waits for steps that wrote its
 * operands, and these for others. Steps of one op, or of one exchange, that follow each other count as one. */
#ifndef LINEAGE_H
#define LINEAGE_H

#include "plan.h"

typedef struct lineage lineage;

/* Of the steps that the plan has now. base: [shards] the shard whose memory each lies in; both outlive the lineage. */
lineage *lineage_new(const plan *p, const int *base);
void lineage_free(lineage **l);

/* Whether the step runs behind all users of the shard. False also where that is not seen. */
bool lineage_is_behind(lineage *l, int step, int shard);

#endif
