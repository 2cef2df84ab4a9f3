/* SPDX-License-Identifier: Apache-2.0 */
/* The sizes that decide how a change of layout is made. */
#ifndef THRESHOLDS_H
#define THRESHOLDS_H

#include <stdint.h>

enum {
    MANY_MESSAGES = 64, /* the most messages below SMALL_BYTES of one process that go directly, else in two hops */
    SMALL_BYTES = 64 << 10,
    SMALL_TERM = 1 << 20,   /* the same where terms are summed, or two hops cost no more bytes */
    MANY_IN_A_HOP = 16,     /* the same limit inside of one of two hops */
    SLICE_BYTES = 16 << 10, /* a smaller box is not scattered: holders send all of it */
    MESSAGE_BYTES = 64,     /* the cost of a message in bytes: its envelope and its room in a buffer */
    HOP_SHARE = 16,         /* a sum goes by slices where that costs at most HOP_SHARE / (HOP_SHARE + 1) of the bytes */
    SUM_TILE = 4 << 20,     /* least bytes of a tile of a sum: tiles of two terms are summed as messages arrive */
    SUM_TASK = 1 << 20,     /* least bytes of the operands of a task, where a sum becomes several */
    MOST_SUM_TILES = 64,    /* of a shard of which each slice is summed by several tasks */
    BUNDLE_MESSAGE = 16 << 10, /* a message of at most these bytes may share a bundle with others of the same places */
    BUNDLE_BYTES = 128 << 10,  /* the most bytes of a bundle */
    STAGING_BYTES = 64 << 20,  /* bytes of message buffers of one change of layout */
    ARENA_BYTES = 64 << 20,    /* least bytes of the buffers of a place that share an arena */
    EARLY_BYTES = 8 << 20,     /* least bytes of a state that is updated as soon as its gradient is there */
    BUFFER_ALIGNMENT = 64,     /* of buffers in one memory, bytes: no message is cut to less */
    MOST_MESSAGE = 1 << 30,    /* bytes of one message: MPI counts in int */
    VIEW_SHARE = 1024 /* a message of staging buffer / VIEW_SHARE (64 KiB) or more that is contiguous is sent and
                         received in place: a smaller one is copied as fast */
};

/* The room of a buffer beside others in one memory. */
static inline int64_t buffer_padded(int64_t bytes)
{
    return (bytes + BUFFER_ALIGNMENT - 1) / BUFFER_ALIGNMENT * BUFFER_ALIGNMENT;
}

#endif
