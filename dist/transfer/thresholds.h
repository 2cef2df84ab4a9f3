/* SPDX-License-Identifier: Apache-2.0 */
/* The sizes at which a change of layout is made another way. */
#ifndef THRESHOLDS_H
#define THRESHOLDS_H

enum {
    MANY_MESSAGES = 64, /* of less than SMALL_BYTES from one process: too many */
    SMALL_BYTES = 64 << 10,
    MANY_IN_A_HOP = 16,     /* the same in one of two hops */
    SLICE_BYTES = 16 << 10, /* below it a box is not scattered: holders send all of it */
    MESSAGE_BYTES = 64,     /* a message costs as much as so many bytes: its envelope, and room in a buffer */
    HOP_SHARE = 16,         /* a sum goes by slices where that saves one of so many bytes */
    SUM_TILE = 4 << 20,     /* what is summed is summed in parts of so many bytes or more: two terms as each arrives */
    BUNDLE_MESSAGE = 16 << 10, /* messages up to it go with others of their way */
    BUNDLE_BYTES = 128 << 10,  /* up to so much together */
    STAGING_BYTES = 64 << 20,  /* bytes of message buffers of one change of layout */
    BUFFER_ALIGNMENT = 64,     /* of those in a staging buffer, bytes: no message is cut to less */
    MOST_MESSAGE = 1 << 30,    /* bytes of one message: MPI counts in int */
    VIEW_SHARE = 1024, /* from staging buffer / VIEW_SHARE on (64 KiB) a message is sent and received where it lies:
                          less is copied as fast */
    VIEW_ROWS = 128    /* if that is contiguous, or rows of at least 1 / VIEW_ROWS of it (512 B) */
};

#endif
