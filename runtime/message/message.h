/* SPDX-License-Identifier: Apache-2.0 */
/* Messages between ranks over handles, through StarPU-MPI on the context's own communicator. It does not know what a
 * message means, nor when to send it. */
#ifndef MESSAGE_H
#define MESSAGE_H

#include <starpu.h>

#include "fence.h"

/* A tag is call << MESSAGE_TAG_BITS | index of the message in its (sender, receiver) pair. The messages under way of
 * all ranks together span fewer than MESSAGE_CALLS calls: tags are used again after so many. */
enum { MESSAGE_TAG_BITS = 24, MESSAGE_CALLS = 256 };
#define MESSAGE_TAG_LIMIT (INT64_C(1) << 62)

typedef struct envelope {
    int rank; /* the other one */
    int64_t tag;
    int priority;      /* of messages that are ready the one with more is posted first */
    const char *label; /* of what, for the watchdog; borrowed until it completes */
    int64_t step;      /* the same */
    bool rendezvous;      /* sent when the receiver is ready, if it is large: else StarPU-MPI may need memory for it there */
} envelope;

/* Posts an asynchronous send (it reads the handle) or receive (it writes it), ordered with tasks by the handle's
 * sequential consistency. Counts one on the fence now and completes when the handle may be overwritten (send) or read
 * (receive); later tasks need not wait for that. Sender and receiver give the same tag and a handle of as many bytes (<
 * 2 GiB); a (rank, tag) is unique while under way. Inside a context_wake bracket. Where there is no other rank (or no
 * MPI) neither may be called. */
void message_send(trama_context *c, starpu_data_handle_t handle, envelope m, fence *f);
void message_receive(trama_context *c, starpu_data_handle_t handle, envelope m, fence *f);

/* Appends the oldest `most` messages under way, one a line: "receive of w1 from rank 2, step 17, 4096 bytes, since 31
 * s". */
void message_missing(trama_context *c, int most, text *out);

#endif
