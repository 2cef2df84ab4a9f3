/* SPDX-License-Identifier: Apache-2.0 */
/* Messages between ranks over handles, through StarPU-MPI on the context's communicator. It knows neither the meaning
 * nor the time of a message. */
#ifndef MESSAGE_H
#define MESSAGE_H

#include <starpu.h>

#include "fence.h"

/* A tag is call << MESSAGE_TAG_BITS | index of the message in its (sender, receiver) pair. Call c + MESSAGE_CALLS uses
 * the tags of call c again. StarPU-MPI keeps 40 to 100 bytes for each (rank, tag) that it has ever seen. */
enum { MESSAGE_TAG_BITS = 24, MESSAGE_CALLS = 32 };
#define MESSAGE_TAG_LIMIT (INT64_C(1) << 62)

typedef struct envelope {
    int rank; /* the other rank */
    int64_t tag;
    int priority;      /* of the ready messages the one with the highest priority is posted first */
    const char *label; /* name of the value, for the watchdog; borrowed until the message completes */
    int64_t step;      /* for the watchdog */
    bool rendezvous;   /* send a message of more than 1 MiB only when the receiver is ready; else StarPU-MPI may need
                          memory for it there */
} envelope;

/* Posts an asynchronous send (it reads the handle) or receive (it writes it), ordered with tasks by the handle's
 * sequential consistency. Adds one to the fence, which completes when the handle may be overwritten (send) or read
 * (receive); later tasks on the handle need no wait for it. Sender and receiver give the same tag and handles of the
 * same size, below 2 GiB. A (rank, tag) is unique among the messages in flight. Inside a context_wake bracket. Not with
 * one rank, nor without MPI. */
void message_send(trama_context *c, starpu_data_handle_t handle, envelope m, fence *f);
void message_receive(trama_context *c, starpu_data_handle_t handle, envelope m, fence *f);

/* Comes before the messages of a collective call: waits until this rank's messages of call - MESSAGE_CALLS are done.
 * Ranks may be further apart, since messages with one tag arrive in the order of their sends. */
void message_begin_call(trama_context *c, int64_t call);

/* For loan.c: counts a message of so many bytes, and adds it to those in flight and to the fence, until message_close.
 * borrowed: a receive whose elements stay in the sender's memory. */
typedef struct message_record message_record;
message_record *message_open(trama_context *c, const envelope *m, size_t bytes, bool receive, bool borrowed, fence *f);
void message_close(void *record);

/* Appends the oldest `most` messages in flight, one a line: "receive of w1 from rank 2, step 17, 4096 bytes, since 31
 * s". */
void message_missing(trama_context *c, int most, text *out);

#endif
