/* SPDX-License-Identifier: Apache-2.0 */
/* One direct change of layout, computed from meshes, layouts and sizes alone: the axes that are summed, and the bytes
 * that each process lacks and receives. choose.h decides whether a change is direct. */
#ifndef TRANSFER_H
#define TRANSFER_H

#include "layout.h"

typedef struct transfer {
    const trama_mesh *from_mesh, *to_mesh;
    bool one_mesh; /* the two meshes are equal, so axes of one are axes of the other */
    trama_layout from, to;
    box whole;
    size_t element;     /* bytes */
    unsigned kept;      /* axes along which nothing is exchanged: they stay partial, or their lines sum on their own */
    unsigned own;       /* axes of kept along which a split becomes P(sum|avg): each piece is a term, zero elsewhere */
    unsigned reduced;   /* partial axes of the source that are summed */
    unsigned fresh_sum; /* axes along which the target becomes P(sum): the first process keeps the value */
    trama_reduce reduce;
    double scale; /* factor of the result */
} transfer;

transfer transfer_between(const trama_mesh *from_mesh, const trama_layout *from, const trama_mesh *to_mesh,
                          const trama_layout *to, const box *whole, size_t element);

/* Whether two transfers start and end alike and have the same elements. */
bool transfer_equal(const transfer *a, const transfer *b);

/* Axes of the target mesh along which the targets of one box lie. */
unsigned transfer_target_axes(const transfer *t);

/* Whether two processes have the same coordinates along the axes of `own`. */
bool transfer_same_own(const transfer *t, const int *from_coordinate, const int *to_coordinate);

/* Elements of the target box at a position that come from source boxes, those of its own process included. */
int64_t transfer_wanted(const transfer *t, int position);

/* Elements of the target box at a position that its process does not hold. */
int64_t transfer_lacking(const transfer *t, int position);

/* Whether each target of a region sums one slice of the terms and the targets exchange the sums; false: each target
 * sums the whole region. all_hold: each target holds one of the terms. One target receives, of a region of n elements:
 *
 *                   the whole     slices
 *   all hold        (terms-1) n   (terms-1 + targets-1) n / targets: the same for two terms, in more messages
 *   one does not     terms    n   (terms   + targets-1) n / targets */
bool transfer_is_sliced(int terms, int targets, bool all_hold);

/* Whether each target of a region gets one slice from its holders and the targets exchange slices; false: each gets the
 * whole region from one holder. Regions of at least SLICE_BYTES are scattered where the targets outnumber the holders
 * of the `boxes` source boxes that meet their target box, so that these need not send the same bytes several times. */
bool transfer_is_scattered(int64_t targets, int64_t holders, int64_t boxes, int64_t region_bytes);

/* Processes of the source that hold one box, or one term of it. */
int transfer_holders(const transfer *t);

/* Bytes and messages that a process receives; messages counts those that it sends, where these are more because it
 * sends its slice to many targets. of_source: the bytes from processes of the source; targets that exchange slices send
 * the others. */
typedef struct transfer_load {
    int64_t bytes, messages, of_source;
} transfer_load;

/* The load of the process at a position of the target mesh in a direct change. */
transfer_load transfer_received(const transfer *t, int position);

#endif
