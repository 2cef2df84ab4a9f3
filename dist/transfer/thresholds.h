/* SPDX-License-Identifier: Apache-2.0 */
/* Where resharding changes its way: reshard.c goes by it, and the estimate of traffic follows. */
#ifndef THRESHOLDS_H
#define THRESHOLDS_H

enum {
    MANY_MESSAGES = 64, /* of less than SMALL_BYTES from one process: too many */
    SMALL_BYTES = 64 << 10,
    MANY_ON_THE_WAY = 16, /* the same for a part of such an exchange */
    SUM_TILE = 4 << 20,   /* what is summed is summed in parts of so many bytes or more: two terms as each arrives */
    BUNDLE_MESSAGE = 16 << 10, /* messages up to it go with others of their way */
    BUNDLE_BYTES = 128 << 10,  /* up to so much together */
    MESSAGE_WINDOW = 64 << 20, /* bytes of message buffers of one change of layout */
    BUFFER_ALIGNMENT = 64,     /* of those in a window, bytes: no message is cut to less */
    MOST_MESSAGE = 1 << 30,    /* bytes of one message: MPI counts in int */
    VIEW_SHARE = 1024, /* from window / VIEW_SHARE on (64 KiB) a message is sent and received where it lies: less is
                          copied as fast */
    VIEW_ROWS = 128    /* if that is contiguous, or rows of at least 1 / VIEW_ROWS of it (512 B) */
};

#endif
