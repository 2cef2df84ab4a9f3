/* SPDX-License-Identifier: Apache-2.0 */
/* The global verifier: looks at the plans of all ranks together. */
#ifndef VERIFY_H
#define VERIFY_H

#include "plan.h"

/* Whether the plans [n], of ranks 0 .. n-1, fit together: each send has the one receive of its number with the same
 * box, each receive its send, what each exchange says it moves is what its messages move,
 * message buffers are no more than it says, shards that lie in one
 * memory are used in turn, those of GPUs are one tile each and shared by whole tiles only, and all ranks come to their end, each step waiting for those before it that use the same (see
 * flow.h), and a message for its sender. Else a message that names rank and value. */
trama_status plan_verify(const plan *const *plans, int n, const trama_program *program);

/* A shard in the memory of another that may be used while that memory is used otherwise; -1: there is none. */
int plan_unordered(const plan *p);

/* A shard that is not as those of GPUs are, or that a step uses from another memory though it cannot; -1: there is none.
 */
int plan_misplaced(const plan *p);

/* Bytes of the buffers that messages have, on all places. */
int64_t plan_message_buffers(const plan *p);

/* Bytes of the shards that are made with the plan, on one place. */
int64_t plan_memory(const plan *p, int place);

#endif
