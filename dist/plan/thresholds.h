/* SPDX-License-Identifier: Apache-2.0 */
/* Where resharding changes its way: reshard.c goes by it, and the estimate of traffic follows. */
#ifndef THRESHOLDS_H
#define THRESHOLDS_H

enum {
    SLICE_BYTES = 16 << 10, /* below it a box is not worth a scatter: holders send all of it */
    MANY_MESSAGES = 64,     /* of less than SMALL_BYTES from one process: too many */
    SMALL_BYTES = 64 << 10
};

#endif
