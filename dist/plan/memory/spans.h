/* SPDX-License-Identifier: Apache-2.0 */
/* How long each shard of a plan lives, for the passes that let shards share memory.
 *
 * All ranks walk the same ops and exchanges, so a step may wait for those before it on any rank, but bundles arrive
 * later than they stand: when the last of their parts is sent, which is in the last exchange of their bucket. So
 * exchanges count: a step needs the first n of them, where a message of number n - 1 reaches it, through steps of any
 * rank; and a step that is made when there are m may wait for those that need m or fewer. */
#ifndef SPANS_H
#define SPANS_H

#include "planner.h"

typedef struct shard_spans {
    int *base;         /* [shards] the shard whose memory it lies in */
    int *first, *last; /* [shards] steps that use it or a part of it; -1 */
    int *needs;        /* [shards] exchanges that its users need */
    bool *fixed;       /* [shards] others may use the buffer behind the plan, or at any time */
} shard_spans;

shard_spans spans_find(const partition *q, const bool *kept);
void spans_free(shard_spans *s);

/* The exchanges that there are when a step is made; its own one does not count. */
int exchanges_before(const plan_step *s);

/* [exchanges] Of each the exchanges up to the last one of its bucket. */
int *find_bucket_ends(const plan *p);

/* Whether the plan makes a buffer for the shard. */
bool has_buffer(const plan *p, const plan_shard *s);

/* n times -1; room for one at least. */
int *new_numbers(int n);

/* loan_spans.c: marks buffers that other ranks of the node may read, before spans are found; and sets the spans of
 * messages, in the finished list of steps. */
void mark_shared(partition *q);
void find_loan_spans(partition *q, const shard_spans *s);

/* reuse.c: shards of one form take over the buffers of others. */
void reuse_buffers(partition *q, const shard_spans *s);

/* pack_buffers.c: lets buffers of a place lie in one memory, where they are not used at the same time. The spans are
 * those of no step of the plan any more. */
void pack_buffers(partition *q, const shard_spans *s);

#endif
