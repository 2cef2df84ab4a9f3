/* SPDX-License-Identifier: Apache-2.0 */
/* The global verifier: checks the plans of all ranks against each other. */
#ifndef VERIFY_H
#define VERIFY_H

#include "plan.h"

/* Verifies the plans [n] of ranks 0 .. n-1: each send has one receive of its number with the same box, and each
 * receive a send; all members of a collective take part in it alike; each exchange moves as many bytes as it says, and
 * has no more message buffers; shards that lie in one memory are used in turn; shards whose elements lie in another
 * one have each tile in one of its tiles; shards of GPUs are one tile each, read from other memories as plan_misplaced
 * allows; calls that are done as one fit the kind of their run (fused.h), and no other step reads a value that a step
 * keeps to itself; all ranks come to their end, where a step waits for earlier steps on its tiles (see flow.h) and a
 * receive for its send. Else E_SYSTEM, with a message that names rank and value. */
trama_status plan_verify(const plan *const *plans, int n, const trama_program *program);

/* A shard within another, or with the buffer of another, that steps may use while others use the same memory; -1:
 * none. */
int plan_unordered(const plan *p);
int plan_unordered_in_arenas(const plan *p); /* of those, verify_arena.c */

/* A shard on a GPU that is not one tile with its own memory, or a shard that a step uses from another memory though it
 * must not; -1: none. */
int plan_misplaced(const plan *p);

/* A shard whose elements lie in another one otherwise than its readers need, verify_aliases.c; -1: none. */
int plan_wrong_alias(const plan *p);

/* Bytes of all message buffers, on all places. */
int64_t plan_message_buffers(const plan *p);

/* Bytes of the shards on one place, without inputs, imports, and shards within others. */
int64_t plan_memory(const plan *p, int place);

#endif
